"""Do probabilities of the first class keep what they say, for every main learner?

    python benchmarks/calibration.py DATA [--sets clinc150 news20 ...] [--learners ff pa ...] [--rows 20000] [--quick]

A fifth of the training rows, 3,000 or more, is set aside: neither learning nor calibration sees it. Of the rest at most
``--rows`` are learned. A learner is trained on them as `fit` does, calibrated on a fifth that a copy of it has not
seen, and says of the rows that were set aside, and of the test rows, how sure it is of its first class. Test rows may
be of another nature than training rows (synonyms where these are titles), which nothing in training can tell; what is
promised is about rows like those of training.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abound.labels import Labels, encode
from abound.learn.confidence import DEPTH, _rank_held_out, fit_calibration
from abound.learn.registry import make_learner
from abound.measure import Reliability, calibration_bound, calibration_error, reliability
from abound.measure.thresholds import right_places
from abound.read.datasets import load_dataset, load_icd10
from abound.validation import as_rows
from abound.vectorise.text import TextVectorizer
from record import Recorder

SETS = ("clinc150", "wordnet_hypernym", "icd10", "news20", "tib_ddc", "yso_finna_en", "bibtex")
LEARNERS = ("ff", "pa", "svm", "label-tree", "top-down", "ooz", "lr", "hr-svm", "hr-lr")
OF_TAXONOMIES = ("top-down", "hr-svm", "hr-lr")
LARGEST_ERROR = 0.03
LARGEST_BOUND = 0.04
"""What is promised of the upper bound where fewer than `ENOUGH` rows were set aside."""
ENOUGH = 3000
MOST_ASIDE = 15_000
DRAWS = 50


class Rows(NamedTuple):
    """Rows of one kind and their labels."""

    X: Any
    labels: Labels


class Task(NamedTuple):
    """Rows to learn and calibrate on, rows set aside, and test rows."""

    learned: Rows
    aside: Rows
    test: Rows
    taxonomy: Any


def read_task(data: Path, name: str, most: int) -> Task:
    """Read a data set, and set rows of its training part aside."""
    dataset = load_icd10() if name == "icd10" else load_dataset(data / name)
    train, test = dataset.train, dataset.part("test")
    order = np.random.default_rng(0).permutation(len(train.labels))
    n_aside = min(max(ENOUGH, len(order) // 5), MOST_ASIDE, len(order) // 3)
    parts = train.take(np.sort(order[n_aside:][:most])), train.take(np.sort(order[:n_aside])), test
    if hasattr(train, "text_bytes"):
        vectorizer = TextVectorizer(min_df=2).fit(parts[0].text_bytes)
        matrices = [vectorizer.transform(part.text_bytes) for part in parts]
    else:
        matrices = [part.X for part in parts]
    return Task(*(Rows(X, part.labels) for X, part in zip(matrices, parts, strict=True)), dataset.taxonomy)


def by_luck(said: Any) -> float:
    """The error on average if all that is said were true: so many rows do not show less."""
    rng = np.random.default_rng(0)
    return float(np.mean([calibration_error(said, rng.random(len(said)) < said) for _ in range(DRAWS)]))


def shown_bin(found: Reliability, place: int) -> str:
    """What a bin says, and what is right."""
    return f"{found.said[place]:.2f}: {found.right[place]:.2f}"


def measure_learner(task: Task, name: str, learner: str, table: Any) -> list[str]:
    """Measure both ways to calibrate a learner; returns where it breaks the promise."""
    parameters = {"taxonomy": task.taxonomy} if learner in OF_TAXONOMIES else {}
    X, labels = task.learned.X, encode(task.learned.labels.to_y())
    model = make_learner(learner, **parameters, cut=None).fit(X, labels.to_y())
    weights = np.ones(len(labels), np.float32)
    held = _rank_held_out(model, as_rows(X), labels, weights, None, min(DEPTH, labels.n_classes))
    if held is None:
        raise ValueError(f"{name} has too few rows to hold some out")
    ranking, right = held[0], right_places(held[0].ids, labels.take(held[1]))
    by = "margin" if labels.kind == "single" else "score"
    broken = []
    for kind in ("platt", "isotonic"):
        calibration = fit_calibration(kind, by, ranking, right, weights[: len(right)])
        for which, part in {"set aside": task.aside, "test": task.test}.items():
            first = model._rank(model._rows(part.X), 2, None)
            said = calibration(first)[:, 0]
            found = right_places(first.ids, encode(part.labels.to_y(), model.classes_))[:, 0]
            bins, bound = reliability(said, found), calibration_bound(said, found)
            figures = {"n": len(said), "R1": float(found.mean()), "error": bins.error, "error at most": bound}
            figures |= {"by luck": by_luck(said)}
            figures |= {"said: right, lowest": shown_bin(bins, 0), "middle": shown_bin(bins, 7)}
            figures |= {"highest": shown_bin(bins, -1)}
            table.row({"data": name, "learner": learner, "calibrate": kind, "rows": which}, figures)
            holds = bins.error <= LARGEST_ERROR if len(said) >= ENOUGH else bound <= LARGEST_BOUND
            if which == "set aside" and not holds:
                broken.append(f"{learner} {kind} {bins.error:.3f} (at most {bound:.3f})")
    return broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--learners", nargs="+", default=LEARNERS, metavar="NAME")
    parser.add_argument("--rows", type=int, default=20_000, help="rows that are learned at most")
    parser.add_argument("--quick", action="store_true", help="one small set, two learners; nothing is recorded")
    arguments = parser.parse_args()
    recorder = Recorder("calibration", __doc__, arguments.data, keep=not arguments.quick)
    names, learners = (SETS[:1], LEARNERS[:2]) if arguments.quick else (arguments.sets, arguments.learners)
    note = (
        "Error: on n rows, 15 bins of equal mass; by luck: what it would be if all that is said were true. "
        "said: right: of the lowest, the middle and the highest bin."
    )
    for name in names:
        table = recorder.table(name, note)
        task = read_task(arguments.data, name, arguments.rows)
        known = [each for each in learners if task.taxonomy is not None or each not in OF_TAXONOMIES]
        broken = [line for each in known for line in measure_learner(task, name, each, table)]
        aside = len(task.aside.labels)
        promise = (
            f"the error of rows set aside is at most {LARGEST_ERROR}"
            if aside >= ENOUGH
            else f"the upper bound of the error of {aside:,} rows set aside is at most {LARGEST_BOUND}"
        )
        told = f" ({', '.join(known)})" if not broken else f"; not for {'; '.join(broken)}"
        table.target(not broken, promise + told)


if __name__ == "__main__":
    main()
