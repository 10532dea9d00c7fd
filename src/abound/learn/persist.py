"""A fitted learner as named arrays and JSON settings, and back.

A learner says which arrays make its model: ``index/*`` for those that rank by one index, ``member/<j>/*`` for
committees, ``generalist/*`` and ``experts/*`` for EDGE. Beside them stand ``labels/*``, the class labels,
``class_counts``, the rows of each class, ``state/*``, which may be left out, what an online learner needs to learn on,
and ``decisions/*``, if there are any, what held-out rows have taught it (see `Decisions`). Everything is checked
before a kernel may see it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import MAX_IDS
from abound.learn.base import RankingClassifier
from abound.learn.decisions import decision_arrays, decisions_from
from abound.learn.index_parts import prefixed
from abound.learn.kept_settings import field_of, learner_by, settings_of
from abound.store import ModelFileError, Section, check_numbers, lazy_labels, pack_labels
from abound.store.check import LARGEST_SUM, MOST
from abound.validation import LARGEST

Arrays = dict[str, npt.NDArray[Any]]
SUMS = ("sum_weights", "totals", "frequencies")
"""Arrays of sums over rows or steps; floats of all others are weights."""

KINDS = ("single", "lists", "indicator", "dense")


def learner_arrays(estimator: RankingClassifier, *, keep_state: bool = True) -> tuple[Arrays, dict[str, Any]]:
    """Take a fitted learner apart.

    Parameters
    ----------
    estimator : RankingClassifier
        The learner.
    keep_state : bool
        Whether to keep what it needs to learn on.

    Returns
    -------
    arrays : dict
        Named arrays.
    meta : dict
        Settings that JSON can hold.
    """
    labels, kind = pack_labels(estimator.classes_)
    arrays = estimator._model_arrays() | prefixed("labels/", labels) | {"class_counts": estimator.class_counts_}
    if keep_state:
        arrays |= prefixed("state/", estimator._state_arrays())
    decided, decisions = decision_arrays(estimator._decisions)
    arrays |= prefixed("decisions/", decided)
    meta = part_meta(estimator) | {
        "labels": kind,
        "kind": estimator._kind,
        "labels_a_row": estimator._labels_a_row,
        "n_features_in": estimator.n_features_in_,
    }
    if decisions:
        meta["decisions"] = decisions
    _check_floats(arrays)
    return arrays, meta


def learner_from(stored: Section, meta: Any) -> RankingClassifier:
    """Put a learner together from what `learner_arrays` gave, without copying its arrays.

    Parameters
    ----------
    stored : Section
        The arrays.
    meta : dict
        The settings.

    Returns
    -------
    RankingClassifier
        Fitted; its arrays are read-only.
    """
    if meta is None:
        raise ModelFileError(stored.path, "it holds arrays, but no learner", "Give a file that a model was saved to.")
    estimator = learner_by(stored, meta)
    counts = stored.require("class_counts", np.int64)
    if counts.min(initial=0) < 0 or not 0 < counts.sum(dtype=np.float64) <= MOST:
        raise stored.fault("class_counts", "there are no rows, or too many, or fewer than none of a class")
    estimator.class_counts_ = counts
    kind, where = field_of(stored, meta, "labels", dict), stored.name_of("labels")
    estimator._classes = classes = lazy_labels(stored.section("labels/"), kind, where)
    if len(classes) != len(counts):
        raise stored.fault("labels", f"{len(classes)} labels for {len(counts)} classes")
    repeat = classes.find_repeat()
    if repeat is not None:
        first, second = repeat
        raise stored.fault("labels", f"the classes {first} and {second} have the same label, {classes[first]!r}")
    estimator._kind = field_of(stored, meta, "kind", str)
    if estimator._kind not in KINDS:
        raise stored.fault("meta", f"the kind of labels {estimator._kind!r} is unknown")
    n_features, labels_a_row = field_of(stored, meta, "n_features_in", int), meta.get("labels_a_row")
    if not 0 <= field_of(stored, meta, "labels_a_row", int | float) <= MAX_IDS:
        raise stored.fault("meta", f"labels_a_row={labels_a_row} is not from 0 to {MAX_IDS}")
    if not 1 <= n_features <= MAX_IDS:
        raise stored.fault("meta", f"n_features_in={n_features} is not from 1 to {MAX_IDS}")
    estimator._labels_a_row, estimator.n_features_in_ = float(meta["labels_a_row"]), n_features
    estimator._decisions = decisions_from(stored.section("decisions/"), meta.get("decisions"))
    return _restored(estimator, stored, meta)


def part_arrays(part: RankingClassifier) -> Arrays:
    """Take a part of an ensemble apart: what ranks, and the state it has left.

    Parameters
    ----------
    part : RankingClassifier
        A fitted learner that shares its ensemble's labels.

    Returns
    -------
    dict
        Named arrays.
    """
    return part._model_arrays() | prefixed("state/", part._state_arrays())


def part_meta(part: RankingClassifier) -> dict[str, Any]:
    """Return a fitted learner's settings, without what an ensemble's parts have in common.

    Parameters
    ----------
    part : RankingClassifier
        The learner.

    Returns
    -------
    dict
        Settings that JSON can hold.
    """
    return {**settings_of(part), "n_edges": part.n_edges_, "fitted": part._fitted_values()}


def part_from(stored: Section, meta: Any, whole: RankingClassifier) -> RankingClassifier:
    """Put a part of an ensemble together.

    Parameters
    ----------
    stored : Section
        What `part_arrays` gave.
    meta : dict
        What `part_meta` gave.
    whole : RankingClassifier
        The ensemble, which knows labels and features already.

    Returns
    -------
    RankingClassifier
        Fitted; its arrays are read-only.
    """
    part = learner_by(stored, meta)
    for name in ("class_counts_", "_classes", "_kind", "_labels_a_row", "n_features_in_"):
        setattr(part, name, getattr(whole, name))
    return _restored(part, stored, meta)


def _restored(estimator: RankingClassifier, stored: Section, meta: Any) -> RankingClassifier:
    n_edges, fitted = field_of(stored, meta, "n_edges", int), field_of(stored, meta, "fitted", dict)
    if not 0 <= n_edges < MOST:
        raise stored.fault("meta", f"n_edges={n_edges} is not from 0 to {MOST}")
    estimator._restore_model(stored, n_edges, fitted)
    return estimator


def _check_floats(arrays: Arrays) -> None:
    """Refuse to write what could not be loaded: numbers that are infinite, or beyond what can be ranked."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not name.startswith("decisions/"):
            check_numbers(f"the model: array {name!r}", array, LARGEST_SUM if name.endswith(SUMS) else LARGEST)
