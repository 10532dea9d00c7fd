"""Does Feature Focus predict the words of Jane Austen's novels as well as its authors report, and how long is a pass?

    python benchmarks/austen.py DATA [--splits 3] [--quick]

DATA/austen/novels.txt.gz is the text. A random tenth of the words is the test, as in figure 10 of Learning When
Concepts Abound; split i is drawn with seed i. Seconds are those of a pass on one core, the best of three, kernels
compiled before. The settings are the paper's; nothing is chosen by the test words.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from abound import EMAClassifier, FeatureFocusClassifier, FrequencyClassifier, OOZClassifier
from record import Recorder, Table
from tasks import Task, austen_sentences, austen_task, measure, spread, warm_up

Figures = dict[str, float]

PAPER: dict[str, dict[str, Any]] = {
    "FF, margin 0": {"R1": "0.272 ± 0.002", "R5": 0.480, "HR": 2.71, "W": 1_500_000, "d": 8.7, "pass s": 40.0},
    "FF, margin 0.1": {"R1": "0.279 ± 0.002", "R5": 0.462, "HR": 2.73, "W": 1_600_000, "d": 9.1, "pass s": 40.0},
    "FF, margin 0.5": {"R1": "0.243 ± 0.002", "R5": 0.425, "HR": 3.01, "W": 1_600_000, "d": 9.1, "pass s": 40.0},
    "frequency": {"R1": 0.037, "R5": 0.15, "HR": 10.3},
}
TARGETS = {"R1": 0.272, "R5": 0.480, "HR": 2.75, "W": 2_200_000, "d": 11, "pass s": 3.0}


def learners() -> list[tuple[str, int, Any]]:
    """The learners by name, their passes, and how to make one for a seed."""
    return [
        ("FF, margin 0", 1, lambda seed: FeatureFocusClassifier(random_state=seed)),
        ("FF, margin 0.1", 4, lambda seed: FeatureFocusClassifier(margin=0.1, passes=4, random_state=seed)),
        ("FF, margin 0.5", 4, lambda seed: FeatureFocusClassifier(margin=0.5, passes=4, random_state=seed)),
        ("EMA, rate 0.1", 1, lambda seed: EMAClassifier(rate=0.1, margin=0.0, passes=1, random_state=seed)),
        ("OOZ", 1, lambda seed: OOZClassifier(passes=1, random_state=seed)),
        ("frequency", 1, lambda seed: FrequencyClassifier()),
    ]


def run(make: Any, seed: int, task: Task, repeats: int) -> Figures:
    """Train, keep the quickest pass, and measure once."""
    best = float("inf")
    for _ in range(repeats):
        model = make(seed).fit(task.X, task.y)
        best = min([best, *(entry["seconds"] for entry in getattr(model, "history_", []))])
    return measure(model, task.X_test, task.y_test) | {"pass s": best}


def report(table: Table, name: str, passes: int, runs: list[Figures]) -> None:
    figures: dict[str, Any] = {key: spread([run[key] for run in runs]) for key in ("R1", "R5", "HR")}
    if name != "frequency":
        figures |= {"W": int(sum(run["W"] for run in runs) / len(runs)), "d": sum(run["d"] for run in runs) / len(runs)}
        figures["pass s"] = min(run["pass s"] for run in runs)
    table.row({"learner": name, "passes": passes, "splits": len(runs)}, figures, PAPER.get(name))


def meets_targets(runs: list[Figures]) -> bool:
    """Whether the means over the splits are within the bounds."""
    mean = {key: sum(run[key] for run in runs) / len(runs) for key in TARGETS}
    mean["pass s"] = min(run["pass s"] for run in runs)
    return all(mean[key] >= TARGETS[key] if key in ("R1", "R5") else mean[key] <= TARGETS[key] for key in TARGETS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=3, help="random splits, with seeds 0, 1, ... (default: 3)")
    parser.add_argument("--quick", action="store_true", help="20,000 words and one split; nothing is recorded")
    arguments = parser.parse_args()
    recorder = Recorder("austen", __doc__, arguments.data, keep=not arguments.quick)
    sentences = austen_sentences(arguments.data)
    runs: dict[str, list[Figures]] = {name: [] for name, _, _ in learners()}
    for seed in range(1 if arguments.quick else arguments.splits):
        task = austen_task(sentences, seed)
        task = task.shortened(20_000) if arguments.quick else task
        for name, _, make in learners():
            if seed == 0:
                warm_up(make(seed), task)
            runs[name].append(run(make, seed, task, 3 if name == "FF, margin 0" else 1))
    n_rows, n_features = task.X.shape
    note = f"{n_rows:,} training rows, {n_features:,} features; mean ± standard deviation over the splits."
    table = recorder.table("Jane Austen, figure 10", note)
    for name, passes, _ in learners():
        report(table, name, passes, runs[name])
    bounds = "R1 ≥ 0.272, R5 ≥ 0.480, HR ≤ 2.75, W ≤ 2.2 million, d ≤ 11, a pass ≤ 3 s (FF, margin 0, one pass)"
    table.target(meets_targets(runs["FF, margin 0"]), bounds)
    share = sum(run["R1"] for run in runs["frequency"]) / len(runs["frequency"])
    table.target(0.035 <= share <= 0.038, "the frequency baseline's R1 is between 0.035 and 0.038")


if __name__ == "__main__":
    main()
