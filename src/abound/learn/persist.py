"""A fitted learner as named arrays and JSON settings, and back.

A learner says which arrays make its model: ``index/*`` for those that rank by one index, ``member/<j>/*`` for
committees, ``generalist/*`` and ``experts/*`` for EDGE. Beside them stand ``labels/*``, the class labels,
``class_counts``, the rows of each class, ``state/*``, which may be left out, what an online learner needs to learn on,
and ``decisions/*``, if there are any, what held-out rows have taught it (see `Decisions`). Everything is checked
before a kernel may see it.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.base import RankingClassifier
from abound.learn.decisions import decision_arrays, decisions_from
from abound.learn.index_parts import prefixed
from abound.learn.registry import LEARNERS, make_learner
from abound.read.taxonomy import Taxonomy
from abound.store import Section, lazy_labels, pack_labels

Arrays = dict[str, npt.NDArray[Any]]
RUNTIME = ("checkpoint", "cluster")
"""Parameters that say where to work, not what to learn: a model file goes to others, who have other machines."""

MAX_ROWS = 2**53
"""Rows that a model has seen, at most: the largest number that is counted to in float64."""

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
    estimator = _made(stored, meta)
    counts = stored.require("class_counts", np.int64)
    if counts.min(initial=0) < 0 or not 0 < counts.sum(dtype=np.float64) <= MAX_ROWS:
        raise stored.fault("class_counts", "there are no rows, or too many, or fewer than none of a class")
    estimator.class_counts_ = counts
    estimator._classes = lazy_labels(stored.section("labels/"), _field(stored, meta, "labels", dict), "labels")
    if len(estimator._classes) != len(counts):
        raise stored.fault("labels", f"{len(estimator._classes)} labels for {len(counts)} classes")
    estimator._kind = _field(stored, meta, "kind", str)
    if estimator._kind not in KINDS:
        raise stored.fault("meta", f"the kind of labels {estimator._kind!r} is unknown")
    estimator._labels_a_row = float(_field(stored, meta, "labels_a_row", int | float))
    estimator.n_features_in_ = _field(stored, meta, "n_features_in", int)
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
    return {**_plain(part), "n_edges": part.n_edges_, "fitted": part._fitted_values()}


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
    part = _made(stored, meta)
    for name in ("class_counts_", "_classes", "_kind", "_labels_a_row", "n_features_in_"):
        setattr(part, name, getattr(whole, name))
    return _restored(part, stored, meta)


def _restored(estimator: RankingClassifier, stored: Section, meta: Any) -> RankingClassifier:
    n_edges = _field(stored, meta, "n_edges", int)
    estimator._restore_model(stored, n_edges, _field(stored, meta, "fitted", dict))
    return estimator


def _made(stored: Section, meta: Any) -> RankingClassifier:
    name = _field(stored, meta, "learner", str)
    if name not in LEARNERS:
        raise stored.fault("meta", f"the learner {name!r} is unknown", "Was it written by a newer abound? Upgrade.")
    parameters = _field(stored, meta, "parameters", dict)
    try:
        estimator = make_learner(name, **{name: _revived(stored, value) for name, value in parameters.items()})
        estimator._check_parameters()
    except (ValueError, TypeError) as error:
        raise stored.fault("meta", f"its parameters are not valid ({error})") from None
    return estimator


def _field(stored: Section, meta: Any, name: str, kind: Any) -> Any:
    """A setting that must be there and of its type."""
    if not isinstance(meta, dict) or not isinstance(meta.get(name), kind) or isinstance(meta.get(name), bool):
        raise stored.fault("meta", f"the setting {name!r} is missing or of a wrong type")
    return meta[name]


def _plain(value: Any) -> Any:
    """A parameter as JSON holds it; a generator cannot be kept, so the loaded learner draws its own."""
    if isinstance(value, RankingClassifier):
        parameters = value.get_params(deep=False)
        for name in RUNTIME:
            parameters.pop(name, None)
        return {"learner": value.learner, "parameters": {name: _plain(each) for name, each in parameters.items()}}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(each)] for key, each in value.items()]}
    # A taxonomy stands among the learner's arrays.
    if isinstance(value, np.random.RandomState | Taxonomy):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | numbers.Number):
        return value
    raise ValueError(f"the parameter value {value!r} cannot be saved")


def _revived(stored: Section, value: Any) -> Any:
    """A parameter as it was before `_plain`; a list comes back as a tuple."""
    if isinstance(value, dict) and isinstance(value.get("pairs"), list):
        return dict(_revived(stored, pair) for pair in value["pairs"] if isinstance(pair, list) and len(pair) == 2)
    if isinstance(value, dict):
        return _made(stored, value)
    if isinstance(value, list):
        return tuple(_revived(stored, each) for each in value)
    return value
