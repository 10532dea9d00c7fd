"""Can probabilities, cuts and sure answers be trusted on new rows?

    python benchmarks/confidence.py DATA [--learners ff pa] [--quick]

Three tables. How well probabilities of the first class fit the test rows, if they are made of the margin to the second
class (as abound does with one label a row) or of the score alone. What the rules for several labels a row reach, and
whether the one that is chosen on held-out rows is better than taking as many labels as rows have on average. How often
an answer is right (the true class or a node above it) that climbs the taxonomy until it is sure enough.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from abound import Model
from abound.labels import encode
from abound.learn.confidence import DEPTH, _rank_held_out, fit_calibration
from abound.learn.decisions import Calibration, Decisions
from abound.learn.registry import make_learner
from abound.measure import macro_f1, micro_f1
from abound.measure.thresholds import CUTS, right_places
from abound.read.datasets import load_dataset
from abound.validation import as_rows
from record import Recorder
from tasks import Task, vectorised

SINGLE = ("clinc150", "news20", "wordnet_hypernym", "tib_ddc")
SEVERAL = ("bibtex", "yeast_cellcycle_go")
LEVELS = (0.0, 0.3, 0.5, 0.7, 0.9)


def read_task(data: Path, name: str, quick: bool) -> tuple[Task, Any]:
    """Read a data set and its taxonomy."""
    dataset = load_dataset(data / name)
    train, test = dataset.train, dataset.part("test")
    if hasattr(train, "text_bytes"):
        task = vectorised(train, test)
    else:
        width = max(train.X.shape[1], test.X.shape[1])
        for rows in (train.X, test.X):
            rows.resize((rows.shape[0], width))
        task = Task(train.X, train.labels.to_y(), test.X, test.labels.to_y())
    return (task.shortened(2000) if quick and isinstance(task.y, np.ndarray) else task), dataset.taxonomy


def fit_of(probability: Any, right: Any) -> dict[str, float]:
    """How well probabilities fit what was right: log loss, calibration error in ten bins, area under the ROC curve."""
    kept = np.clip(probability, 1e-6, 1 - 1e-6)
    bins = np.minimum((probability * 10).astype(int), 9)
    error = sum(
        abs(right[bins == b].mean() - probability[bins == b].mean()) * (bins == b).mean()
        for b in range(10)
        if (bins == b).any()
    )
    loss = -np.log(np.where(right, kept, 1 - kept)).mean()
    return {"log loss": float(loss), "calibration error": float(error), "AUC": float(roc_auc_score(right, probability))}


class Learned(NamedTuple):
    """A fitted learner, and a fifth of its rows ranked by a copy that was trained on the others."""

    model: Any
    ranking: Any
    right: Any

    def calibration(self, kind: str, by: str) -> Calibration:
        """Learn probabilities, of the score or of the margin."""
        return fit_calibration(kind, by, self.ranking, self.right, np.ones(len(self.right), np.float32))


def learn(task: Task, learner: str) -> Learned:
    """Train a learner and rank held-out rows, as `fit` does when it calibrates."""
    labels = encode(task.y)
    model = make_learner(learner).fit(task.X, task.y)
    found = _rank_held_out(model, as_rows(task.X), labels, np.ones(len(labels), np.float32), None, DEPTH)
    if found is None:
        raise ValueError("there are too few rows to hold some out")
    return Learned(model._frozen_copy(), found[0], right_places(found[0].ids, labels.take(found[1])))


def calibration(recorder: Recorder, tasks: dict[str, Any], learned: dict[tuple[str, str], Learned]) -> None:
    """Probabilities of the first class."""
    table = recorder.table("Probability of the first class", "On test rows; learned on a fifth of the training rows.")
    losses = []
    for (name, learner), each in learned.items():
        task = tasks[name][0]
        ranking = each.model._rank(each.model._rows(task.X_test), DEPTH, None)
        right = right_places(ranking.ids, encode(task.y_test, each.model.classes_))[:, 0]
        for kind in ("platt", "isotonic"):
            loss = {}
            for by in ("score", "margin"):
                figures = fit_of(each.calibration(kind, by)(ranking)[:, 0], right)
                loss[by] = figures["log loss"]
                setting = {"data": name, "learner": learner, "calibrate": kind, "of": by}
                table.row(setting, {"R1": float(right.mean())} | figures)
            losses.append(loss["margin"] < loss["score"])
    table.target(all(losses), "the margin's log loss is lower than the score's in every row")


def sure(recorder: Recorder, tasks: dict[str, Any], learned: dict[tuple[str, str], Learned]) -> None:
    """Answers that climb the taxonomy."""
    table = recorder.table("Answers that are sure enough", "Right: the true class or a node above it. Isotonic.")
    enough = []
    for (name, learner), each in learned.items():
        task, taxonomy = tasks[name]
        truth = [set(taxonomy.path(label)) for label in task.y_test.tolist()]
        depth = dict(zip(taxonomy.names.tolist(), taxonomy.depth.tolist(), strict=True))
        each.model._decisions = Decisions(each.calibration("isotonic", "margin"))
        model, classes = Model(each.model, taxonomy=taxonomy), set(each.model.classes_.tolist())
        for level in LEVELS:
            answers = model.predict(task.X_test, min_confidence=level).tolist()
            right = np.mean([answer in path for answer, path in zip(answers, truth, strict=True)])
            figures = {
                "right": float(right),
                "classes": float(np.mean([answer in classes for answer in answers])),
                "mean depth": float(np.mean([depth[answer] for answer in answers])),
            }
            table.row({"data": name, "learner": learner, "min_confidence": level}, figures)
            enough.append(right - level)
    table.target(min(enough) > -0.05, f"as many are right as were asked for (least: {min(enough):+.3f})")


def cuts(recorder: Recorder, tasks: dict[str, Task], learners: list[str]) -> None:
    """Rules for several labels a row."""
    table = recorder.table("Several labels a row", "micro-F1 on test rows; held out: as estimated in training.")
    gains = []
    for name, task in tasks.items():
        for learner in learners:
            results: dict[str, float] = {}
            make_learner(learner).fit(task.X, task.y).predict(task.X_test)
            for cut in (None, "auto", *CUTS):
                begin = time.perf_counter()
                model = make_learner(learner, cut=cut).fit(task.X, task.y)
                seconds = time.perf_counter() - begin
                predicted = model.predict(task.X_test)
                figures = {"micro-F1": micro_f1(task.y_test, predicted), "macro-F1": macro_f1(task.y_test, predicted)}
                results[str(cut)] = figures["micro-F1"]
                estimate = model.cut_scores_.get(model.cut_)
                setting = {"data": name, "learner": learner, "cut": str(cut), "rule": model.cut_}
                table.row(setting, figures | {"held out": estimate, "fit s": seconds})
            gains.append(results["auto"] - results["None"])
    table.target(min(gains) > -0.02, f"auto is not below the average number: {min(gains):+.3f} to {max(gains):+.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--learners", nargs="+", default=["ff", "pa"], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small parts; nothing is recorded")
    arguments = parser.parse_args()
    recorder = Recorder("confidence", __doc__, arguments.data, keep=not arguments.quick)
    names = SINGLE[:1] if arguments.quick else SINGLE
    single = {name: read_task(arguments.data, name, arguments.quick) for name in names}
    learned = {(name, learner): learn(single[name][0], learner) for name in single for learner in arguments.learners}
    calibration(recorder, single, learned)
    sure(recorder, single, learned)
    names = SEVERAL[:1] if arguments.quick else SEVERAL
    several = {name: read_task(arguments.data, name, arguments.quick)[0] for name in names}
    cuts(recorder, several, arguments.learners)


if __name__ == "__main__":
    main()
