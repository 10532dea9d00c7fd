"""Rows of hostile values, in every form a matrix can have, given to every method of every learner.

A case is a number: it says which learner, which rows and labels. The learner answers what a slow score says, or refuses
with one error that says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from abound import (
    HierarchicalBayesClassifier,
    LabelTreeClassifier,
    OrthogonalTransferClassifier,
    PathSVMClassifier,
    RecursiveClassifier,
    Taxonomy,
    TopDownClassifier,
)
from abound.validation import LARGEST
from estimators import ESTIMATORS
from fuzzing import Finding
from generate import make_rows

TREE = Taxonomy.from_parents({"a": "r", "b": "r", "c0": "a", "c1": "a", "c2": "b", "c3": "b", "new": "r"})
TREES: list[Any] = [RecursiveClassifier, PathSVMClassifier, OrthogonalTransferClassifier, HierarchicalBayesClassifier]
LEARNERS = [
    *ESTIMATORS,
    *(learner(TREE) for learner in TREES),
    TopDownClassifier(TREE, calibrate="isotonic"),
    LabelTreeClassifier(tree=TREE),
]

EXPECTED = [
    r"X\[\d+, \d+\] is .*cannot be ranked",
    r"sample_weight|Sample weights must contain at least one",
    "learning these rows gave weights beyond .* which cannot be ranked|these rows cannot be ranked",
    "Every class has fewer rows than|holds no label|has a weight of 0",
]
"""Errors that say what is wrong with the rows."""

PALETTES: dict[str, list[float]] = {
    "ones": [1.0, 1.0, 0.5, -1.0, 0.0],
    "denormal": [1e-45, -1e-45, 1e-40, 1e-38, 0.0],
    "tiny": [1e-30, -1e-30, 1e-20, 1e-10],
    "large": [1e3, -1e5, 1e8, -1e10],
    "limit": [1e15, -1e15, 9.9e14, -9.9e14],
    "ends": [1e15, 1e-45, -1e15, -1e-45, 1.0],
    "zeros": [0.0, -0.0],
    "beyond": [1.1e15, -1e16, 1e38, -3.4e38],
    "beyond float32": [1e39, -1e300],
}
MILD = ["ones", "denormal", "tiny", "large", "limit", "ends", "zeros"]


def row_case(learners: list[Any] = LEARNERS) -> Callable[[int], str]:
    """The case of a number; does everything once to every learner first, which compiles all kernels."""
    X, numbers = make_rows(0, n=40, n_features=8, n_classes=4)
    for learner in learners:
        names = [f"c{c}" for c in numbers]
        for labels in (names, [[name] for name in names]):
            use(clone(learner), X, X, labels, None, np.random.default_rng(0))
    return lambda seed: case(learners, np.random.Generator(np.random.Philox(seed)))


def case(learners: list[Any], rng: Any) -> str:
    """Train one learner on some rows, and ask it about others."""
    learner = clone(pick(rng, learners))
    n, width, n_classes = (int(rng.integers(1, most)) for most in (30, 8, 5))
    some = [pick(rng, MILD) for _ in range(rng.integers(1, 4))]
    other = [pick(rng, MILD + ["beyond", "beyond float32"] * (rng.random() < 0.3)) for _ in range(rng.integers(1, 3))]
    X, asked = rows_of(rng, some if rng.random() < 0.95 else other, n, width), rows_of(rng, other, 5, width)
    labels: list[Any] = [f"c{c}" for c in rng.integers(0, n_classes, n)]
    if rng.random() < 0.3:
        labels = [[name, "c0"] if rng.random() < 0.5 else [name] for name in labels]
    weights = pick(rng, [None, None, None, np.ones(n), rng.choice([0, 1, 2.5], n), rng.choice([1e15, 1, 1e-40], n)])
    try:
        return use(learner, X, asked, labels, weights, rng)
    except Exception as error:
        error.add_note(f"{learner!r} on {some}, asked about {other}, {'with' if weights is not None else 'no'} weights")
        if type(error) is not ValueError or not any(re.search(text, str(error)) for text in EXPECTED):
            raise
        if re.search(EXPECTED[0], str(error)) and not (beyond(X) or beyond(asked)):
            raise Finding(f"refused rows that are in order: {error}") from error
        return "refused"


def pick(rng: Any, options: Any) -> Any:
    return options[int(rng.integers(0, len(options)))]


def rows_of(rng: Any, palettes: list[str], n: int, width: int) -> Any:
    """A matrix of some form, with empty rows, explicit zeros, doubled and unsorted entries."""
    values = np.concatenate([PALETTES[name] for name in palettes])
    dense = np.where(rng.random((n, width)) < 0.5, rng.choice(values, (n, width)), 0.0)
    dense[rng.random(n) < 0.1] = 0
    with np.errstate(over="ignore"):
        dense = dense.astype(np.float32 if rng.random() < 0.5 and np.abs(dense).max() < 3.4e38 else np.float64)
    form = pick(rng, ["dense", "csr", "csr", "coo", "csc", "wide", "loose", "fortran"])
    if form == "dense":
        return dense
    if form == "fortran":
        return np.asfortranarray(dense)
    if form == "loose":
        # Each entry twice, once as an explicit zero, in any order.
        rows, columns = np.nonzero(np.ones_like(dense))
        order = rng.permutation(2 * len(rows))
        entries = np.concatenate([dense.ravel(), np.zeros(dense.size, dense.dtype)])[order]
        columns, rows = np.tile(columns, 2)[order], np.tile(rows, 2)[order]
        by_row = np.argsort(rows, kind="stable")
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n))))
        return sp.csr_array((entries[by_row], columns[by_row], indptr), shape=(n, width))
    matrix = sp.csr_array(dense)
    if form == "wide":
        indices, indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        matrix = sp.csr_array((matrix.data, indices, indptr), shape=matrix.shape)
    return matrix.asformat(form) if form in ("coo", "csc") else matrix


def beyond(X: Any) -> bool:
    return bool((np.abs(X.data if sp.issparse(X) else X) > LARGEST).any())


def use(learner: Any, X: Any, asked: Any, labels: Any, weights: Any, rng: Any) -> str:
    """Fit, ask, learn on, ask again, change the classes, and ask once more."""
    learner.fit(X, labels, sample_weight=weights)
    ask(learner, X, labels)
    ask(learner, asked, labels[:1] * asked.shape[0])
    if hasattr(learner, "partial_fit"):
        names = [pick(rng, [*labels, "new" if isinstance(labels[0], str) else ["new"]]) for _ in range(asked.shape[0])]
        learner.partial_fit(asked, names)
        ask(learner, asked, names)
        ask(learner, X, labels)
    reclass(learner)
    if isinstance(labels[0], str):
        ask(learner, X, labels)
    return "used"


def reclass(learner: Any) -> None:
    """Merge, rename and drop classes."""
    classes = learner.classes_.tolist()
    if len(classes) > 2:
        learner.merge_classes(classes[:2], into=classes[1])
        learner.drop_classes(learner.classes_.tolist()[-1:])
    learner.rename_classes({learner.classes_.tolist()[0]: "renamed"})


def ask(learner: Any, X: Any, labels: Any) -> None:
    """Everything that a fitted learner answers."""
    classes = learner.classes_.tolist()
    answer = learner.predict_topk(X, len(classes))
    sane(answer, classes)
    sane(learner.predict_topk(X, 2, include=classes[-2:]), classes[-2:])
    if len(classes) > 1:
        sane(learner.predict_topk(X, 2, exclude=classes[:1]), classes[1:])
    dense = learner.decision_function(X)
    if not (np.isfinite(dense) | np.isneginf(dense)).all():
        raise Finding("decision_function is not finite")
    predicted = learner.predict(X)
    if learner._kind == "single" and list(predicted) != answer.labels[:, 0].tolist():
        raise Finding("predict is not the best of predict_topk")
    if not 0 <= learner.score(X, labels) <= 1:
        raise Finding("the score is not from 0 to 1")
    one = sp.csr_array(X)[[0]] if sp.issparse(X) else X[:1]
    if not np.isfinite([value for _, value in learner.explain(one, classes[-1])]).all():
        raise Finding("explain is not finite")
    if learner.is_calibrated:
        shares = learner.predict_topk(X, 3, probabilities=True).scores, learner.predict_proba(X)
        if not all(((share >= 0) & (share <= 1)).all() for share in shares):
            raise Finding("probabilities are not from 0 to 1")
        taxonomy = learner._own_taxonomy()
        if taxonomy is not None and learner._kind == "single":
            sure = learner.predict(X, min_confidence=0.7).tolist()
            if not set(sure) <= {*classes, *taxonomy.names.tolist()}:
                raise Finding("what is sure enough is neither a class nor a node")
    if learner._ranks_by_index():
        compare(learner, learner._rows(X), answer)


def sane(answer: Any, classes: list[Any]) -> None:
    """Known labels, and scores that are numbers and never rise; -inf stands beside None."""
    scores, known = answer.scores, set(classes)
    if not (np.isfinite(scores) | np.isneginf(scores)).all():
        raise Finding("scores are not finite")
    if (scores[:, 1:] > scores[:, :-1]).any():
        raise Finding("scores rise")
    for row, numbers in zip(answer.labels.tolist(), scores.tolist(), strict=True):
        ranked = [label for label in row if label is not None]
        if len(set(ranked)) != len(ranked) or not set(ranked) <= known or not ranked:
            raise Finding("labels are unknown, twice or missing")
        if [label is None for label in row] != [number == -np.inf for number in numbers]:
            raise Finding("-inf without None, or None without -inf")


def compare(learner: Any, rows: Any, answer: Any) -> None:
    """Scores are what the index says, added up slowly in float64."""
    index = learner.index_
    if not np.isfinite(index.weights).all():
        raise Finding("weights are not finite")
    X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features)).astype(np.float64)
    W = index.to_matrix().astype(np.float64)
    slow, size = (X @ W).toarray(), (abs(X) @ abs(W)).toarray()
    if index.offset is not None:
        slow += (X @ index.offset.astype(np.float64))[:, None]
        size += (abs(X) @ np.abs(index.offset.astype(np.float64)))[:, None]
    touched = (abs(X) @ (abs(W) > 0)).toarray().any(axis=1) | (index.bias is not None and learner.ranks_by_bias)
    if index.bias is not None:
        slow, size = slow + index.bias, size + np.abs(index.bias)
    room = 1e-5 * size + 1e-36
    place = {label: c for c, label in enumerate(learner.classes_.tolist())}
    for i in np.flatnonzero(touched):
        for label, score in zip(answer.labels[i].tolist(), answer.scores[i].tolist(), strict=True):
            if label is not None and score != 0 and abs(slow[i, place[label]] - score) > room[i, place[label]]:
                raise Finding(f"a score is {score} in place of {slow[i, place[label]]}")
        if slow[i].max() - room[i].max() > max(0.0, answer.scores[i, 0] + abs(answer.scores[i, 0]) * 1e-5):
            raise Finding("another class has a higher score")
