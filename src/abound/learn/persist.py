"""A fitted learner as named arrays and JSON settings, and back.

``index/*`` is what ranks, ``labels/*`` the class labels, ``class_counts`` the rows of each class, and ``state/*``,
which may be left out, what an online learner needs to learn on. Everything is checked here before a kernel may see it.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.learn.base import RankingClassifier
from abound.learn.registry import LEARNERS, make_learner
from abound.store import Section, lazy_labels, pack_labels

Arrays = dict[str, npt.NDArray[Any]]
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
    index = estimator.index_
    labels, kind = pack_labels(estimator.classes_)
    arrays: Arrays = {"index/indptr": index.indptr, "index/classes": index.classes, "index/weights": index.weights}
    if index.offset is not None:
        arrays["index/offset"] = index.offset
    arrays |= {f"labels/{name}": array for name, array in labels.items()}
    arrays["class_counts"] = estimator.class_counts_
    if keep_state:
        arrays |= {f"state/{name}": array for name, array in estimator._state_arrays().items()}
    meta = {
        "learner": estimator.learner,
        "parameters": {name: _plain(value) for name, value in estimator.get_params(deep=False).items()},
        "labels": kind,
        "kind": estimator._kind,
        "labels_a_row": estimator._labels_a_row,
        "n_features_in": estimator.n_features_in_,
        "n_edges": estimator.n_edges_,
        "fitted": estimator._fitted_values(),
    }
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
    n_classes = len(counts)
    section = stored.section("index/")
    indptr, classes = section.require("indptr", np.int64), section.require("classes", np.int32)
    weights = section.require("weights", np.float32, (len(classes),))
    section.check_csr("indptr", "classes", n_classes)
    n_features = len(indptr) - 1
    offset = section.require("offset", np.float32, (n_features,)) if "offset" in section else None
    estimator.class_counts_ = counts
    estimator._classes = lazy_labels(stored.section("labels/"), _field(stored, meta, "labels", dict), "labels")
    if len(estimator._classes) != n_classes:
        raise stored.fault("labels", f"{len(estimator._classes)} labels for {n_classes} classes")
    estimator._kind = _field(stored, meta, "kind", str)
    if estimator._kind not in KINDS:
        raise stored.fault("meta", f"the kind of labels {estimator._kind!r} is unknown")
    estimator._labels_a_row = float(_field(stored, meta, "labels_a_row", int | float))
    estimator.n_features_in_ = _field(stored, meta, "n_features_in", int)
    if estimator._width_of_view(estimator.n_features_in_) != n_features:
        raise stored.fault("index/indptr", f"{n_features} lists for {estimator.n_features_in_} features")
    n_edges = _field(stored, meta, "n_edges", int)
    index = ClassIndex(indptr, classes, weights, n_classes, offset)
    estimator._restore(index, stored.section("state/"), n_edges, _field(stored, meta, "fitted", dict))
    return estimator


def _made(stored: Section, meta: Any) -> RankingClassifier:
    name = _field(stored, meta, "learner", str)
    if name not in LEARNERS:
        raise stored.fault("meta", f"the learner {name!r} is unknown", "Was it written by a newer abound? Upgrade.")
    parameters = _field(stored, meta, "parameters", dict)
    try:
        estimator = make_learner(name, **parameters)
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
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | numbers.Number):
        return value
    raise ValueError(f"the parameter value {value!r} cannot be saved")
