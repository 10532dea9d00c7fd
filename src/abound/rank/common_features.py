"""Features that vote for many classes and occur in many rows, written out in full while a batch is ranked.

Adding such a list to the scores one class after the other costs a nanosecond an edge; adding a full row of weights
costs a vector instruction for eight or sixteen classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from abound.index.class_index import ClassIndex
from abound.validation import Float32Array, IdArray, Rows

LEAST_SHARE = 6
"""A feature is written out if it votes for at least one class in so many."""

LEAST_USES = 16
"""Rows that must have the feature: writing it out costs about as much as four of them."""

MOST_CELLS = 8_000_000
"""Weights in full rows: 32 MB."""


class CommonFeatures(NamedTuple):
    """Full rows of weights, and which feature's each is."""

    place: IdArray
    """The row of each feature, -1 for the others; empty if there are no full rows."""
    weights: Float32Array
    """A row a feature, a column a class."""


def common_features(index: ClassIndex, rows: Rows) -> CommonFeatures:
    """Write out the lists of features that are worth it for these rows.

    Parameters
    ----------
    index : ClassIndex
        The model.
    rows : Rows
        The batch.

    Returns
    -------
    CommonFeatures
        Empty for a small batch or an index of short lists.
    """
    nothing = CommonFeatures(np.empty(0, dtype=np.int32), np.empty((0, index.n_classes), dtype=np.float32))
    if rows.n_rows < LEAST_USES or LEAST_SHARE * index.n_edges < index.n_classes:
        return nothing
    degrees = index.degrees
    heavy = LEAST_SHARE * degrees >= index.n_classes
    if not heavy.any():
        return nothing
    uses = np.bincount(rows.indices[rows.indptr[0] : rows.indptr[-1]], minlength=index.n_features)
    found = np.flatnonzero(heavy & (uses >= LEAST_USES))
    by_cost = np.argsort(-uses[found] * degrees[found], kind="stable")
    found = found[by_cost[: MOST_CELLS // index.n_classes]]
    if not len(found):
        return nothing
    place = np.full(index.n_features, -1, dtype=np.int32)
    place[found] = np.arange(len(found))
    weights = np.zeros((len(found), index.n_classes), dtype=np.float32)
    for row, f in enumerate(found.tolist()):
        edges = slice(index.indptr[f], index.indptr[f + 1])
        weights[row, index.classes[edges]] = index.weights[edges]
    return CommonFeatures(place, weights)
