"""What is done with indexes beside ranking: arrays of a model file, folding, averaging, contributions of features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.scratch import Spill
from abound.store import Section
from abound.validation import Rows, frozen

Arrays = dict[str, npt.NDArray[Any]]

BIAS = -1
"""The number of the bias among the features that add to a score."""


def prefixed(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """Return arrays under longer names.

    Parameters
    ----------
    prefix : str
        What to put before each name.
    arrays : mapping
        Named arrays.

    Returns
    -------
    dict
        The same arrays.
    """
    return {prefix + name: array for name, array in arrays.items()}


def index_arrays(index: ClassIndex) -> Arrays:
    """Take an index apart.

    Parameters
    ----------
    index : ClassIndex
        The index.

    Returns
    -------
    dict
        ``indptr``, ``classes``, ``weights`` and, where there are any, ``offset`` and ``bias``.
    """
    arrays: Arrays = {"indptr": index.indptr, "classes": index.classes, "weights": index.weights}
    more = {"offset": index.offset, "bias": index.bias}
    return arrays | {name: array for name, array in more.items() if array is not None}


def index_from(section: Section, n_features: int, n_classes: int, constant: Any = 0.0) -> ClassIndex:
    """Put an index together, checked so that kernels may follow its pointers.

    Parameters
    ----------
    section : Section
        What `index_arrays` gave.
    n_features, n_classes : int
        The shape it must have.
    constant : object
        The learner's ``bias``: in files of version 0.1 a number was the value of one more feature, the last.

    Returns
    -------
    ClassIndex
        Shares the arrays.
    """
    indptr, classes = section.require("indptr", np.int64), section.require("classes", np.int32)
    weights = section.require_numbers("weights", np.float32, (len(classes),))
    section.check_csr("indptr", "classes", n_classes)
    n_lists = len(indptr) - 1
    is_feature = n_lists == n_features + 1 and isinstance(constant, float | int) and constant != 0
    if n_lists != n_features and not is_feature:
        raise section.fault("indptr", f"{n_lists} lists for {n_features} features")
    offset = section.require_numbers("offset", np.float32, (n_lists,)) if "offset" in section else None
    bias = section.require_numbers("bias", np.float32, (n_classes,)) if "bias" in section else None
    index = ClassIndex(indptr, classes, weights, n_classes, offset, bias)
    return index.with_constant(float(constant)) if is_feature else index


def folded(index: ClassIndex, n_features: int) -> ClassIndex:
    """Return an index over the user's features: of a feature that was split by sign, the part for positive values.

    Parameters
    ----------
    index : ClassIndex
        Over ``n_features`` features, or twice as many (see `abound.learn.row_views.split_negative`).
    n_features : int
        The user's features.

    Returns
    -------
    ClassIndex
        The same index where there is nothing to fold.
    """
    if index.n_features == n_features:
        return index
    degrees = index.degrees.copy()
    degrees[1::2] = 0
    indptr = np.concatenate(([0], np.cumsum(degrees[::2])))
    positive = np.repeat(np.arange(index.n_features) % 2 == 0, index.degrees)
    offset = None if index.offset is None else frozen(index.offset[::2], np.float32)
    edges = frozen(index.classes[positive], np.int32), frozen(index.weights[positive], np.float32)
    return ClassIndex(frozen(indptr, np.int64), *edges, index.n_classes, offset, index.bias)


def mean_index(indexes: Sequence[ClassIndex]) -> ClassIndex:
    """Return the index whose scores are the mean of the scores of several.

    Parameters
    ----------
    indexes : sequence of ClassIndex
        All of one shape, at least one.

    Returns
    -------
    ClassIndex
        The first one itself if it is alone.
    """
    if len(indexes) == 1:
        return indexes[0]
    share = 1 / len(indexes)
    mean = indexes[0].merge(indexes[1], share=share, other_share=share)
    for index in indexes[2:]:
        mean = mean.merge(index, other_share=share)
    return mean


def without_bias(index: ClassIndex) -> ClassIndex:
    """Return the index without its bias."""
    return replace(index, bias=None)


def contributions(
    index: ClassIndex, rows: Rows, c: int, feature_behind: Callable[[int], int]
) -> list[tuple[Any, float]]:
    """Tell what each feature of one row adds to the score that an index gives a class.

    Parameters
    ----------
    index : ClassIndex
        The index.
    rows : Rows
        One row.
    c : int
        The class.
    feature_behind : callable
        From a feature of the index to the user's.

    Returns
    -------
    list of (feature, contribution)
        In the order of the row, without those that add nothing; the bias comes last, as the feature `BIAS`.
    """
    parts: list[tuple[Any, float]] = []
    span = slice(rows.indptr[0], rows.indptr[-1])
    for f, value in zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True):
        low, high = index.indptr[f], index.indptr[f + 1]
        weight = float(index.weights[low:high][index.classes[low:high] == c].sum())
        weight += 0.0 if index.offset is None else float(index.offset[f])
        if weight != 0:
            parts.append((feature_behind(f), value * weight))
    return parts + bias_part(0.0 if index.bias is None else float(index.bias[c]))


def bias_part(amount: float) -> list[tuple[Any, float]]:
    """Return what a bias adds to a score, as one of its parts: none if it is 0."""
    return [(BIAS, amount)] if amount else []


def joined_index(parts: Iterable[ClassIndex]) -> ClassIndex:
    """Put indexes of consecutive features together, in temporary files: they may be large together.

    Parameters
    ----------
    parts : iterable of ClassIndex
        With the same classes, in the order of their features; one at a time is in memory.

    Returns
    -------
    ClassIndex
        Over all features.
    """
    classes, weights = Spill(np.int32), Spill(np.float32)
    degrees, offsets, n_classes = [], [], 0
    for part in parts:
        classes.append(part.classes)
        weights.append(part.weights)
        degrees.append(part.degrees)
        offsets += [] if part.offset is None else [part.offset]
        n_classes = part.n_classes
    return ClassIndex(
        frozen(np.concatenate(([0], np.cumsum(np.concatenate(degrees)))), np.int64),
        frozen(classes.mapped(), np.int32),
        frozen(weights.mapped(), np.float32),
        n_classes,
        frozen(np.concatenate(offsets), np.float32) if offsets else None,
    )
