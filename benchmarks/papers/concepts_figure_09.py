"""Figure 9 of Learning When Concepts Abound, newsgroups: is Feature Focus at least as accurate as its rivals?

    python benchmarks/papers/concepts_figure_09.py DATA [--measure] [--quick]

Three random 80-20 splits of 20 newsgroups, term frequencies without idf as in the paper; mean ± standard deviation.
"""

from pathlib import Path
from typing import Any

from beside import CONCEPTS, Recorder, Row, Verdict, figures, number, present
from newsgroups import random_splits, recalls

from abound import FeatureFocusClassifier, FrequencyClassifier, LinearClassifier, PerceptronClassifier
from tasks import spread

LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "FF, margin 0": (FeatureFocusClassifier(), {"R1": 0.798, "R5": 0.978}),
    "FF, margin 0.5": (FeatureFocusClassifier(margin=0.5), {"R1": "0.865 ± 0.005", "R5": 0.987}),
    "perceptron": (PerceptronClassifier(average=False), {"R1": 0.728, "R5": 0.928}),
    "committee of 10": (
        PerceptronClassifier(n_members=10, init="random", average=False),
        {"R1": 0.830, "R5": 0.970},
    ),
    "SVM, C 1": (LinearClassifier(C=1.0), {"R1": "0.852 ± 0.005", "R5": 0.975}),
    "frequency": (FrequencyClassifier(), {"R1": 0.05, "R5": 0.25}),
}


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Figure 9: 20 newsgroups", "Random 80-20 splits, term frequencies, unit length.")
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in LEARNERS}
    for task in random_splits(data, 3, quick, use_idf=False):
        for name, (model, _) in LEARNERS.items():
            runs[name].append(recalls(model, task))
    for name, (_, paper) in LEARNERS.items():
        found = {key: spread([run[key] for run in runs[name]]) for key in ("R1", "R5")}
        table.row({"learner": name}, found, paper)


def judge(rows: list[Row]) -> Verdict:
    r1 = {row["learner"]: number(row["R1"]) for row in figures(rows)}
    best = r1["FF, margin 0.5"]
    ahead = best > r1["SVM, C 1"] > r1["perceptron"] and best > r1["committee of 10"] > r1["perceptron"]
    told = ", ".join(f"{name} {value:.3f}" for name, value in r1.items())
    return ahead, f"FF with margin 0.5 is ahead of the SVM and the committee, and these of the perceptron ({told})"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 9 (newsgroups)", "concepts_figure_09", ["Figure 9"], measure, judge)
