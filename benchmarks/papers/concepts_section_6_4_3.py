"""Section 6.4.3 of Learning When Concepts Abound: are the columns of Feature Focus poor prototypes of classes?

    python benchmarks/papers/concepts_section_6_4_3.py DATA [--measure] [--quick]

The best F1 over all thresholds when the rows are ranked for each class of 20 newsgroups, mean over the classes. The
paper: on newsgroups comparable to single perceptrons, below SVMs; it prints no figures.
"""

from pathlib import Path
from typing import Any

import numpy as np
from beside import CONCEPTS, Recorder, Row, Verdict, figures, present
from sklearn.metrics import precision_recall_curve

from abound import FeatureFocusClassifier, LinearClassifier, PerceptronClassifier
from tasks import text_task

LEARNERS = {
    "FF": FeatureFocusClassifier(margin=0.5),
    "perceptron": PerceptronClassifier(average=False),
    "SVM": LinearClassifier(),
}


def best_f1(truth: Any, scores: Any) -> float:
    """The best F1 over all thresholds."""
    precision, recall, _ = precision_recall_curve(truth, scores)
    return float(np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12)))


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Section 6.4.3: best F1 of ranking rows for a class", "20 newsgroups, official split.")
    task = text_task(data, "news20")
    task = task.shortened(2000) if quick else task
    for name, model in LEARNERS.items():
        scores = model.fit(task.X, task.y).decision_function(task.X_test)
        by_class = [best_f1(task.y_test == label, scores[:, c]) for c, label in enumerate(model.classes_)]
        table.row({"learner": name}, {"mean best F1": float(np.mean(by_class))})


def judge(rows: list[Row]) -> Verdict:
    found = {row["learner"]: row["mean best F1"] for row in figures(rows)}
    told = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    holds = found["FF"] < found["SVM"] and found["FF"] >= found["perceptron"] - 0.03
    return holds, f"FF's columns rank rows comparably to single perceptrons and worse than SVMs ({told})"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "section 6.4.3", "concepts_section_6_4_3", ["Section 6.4.3"], measure, judge)
