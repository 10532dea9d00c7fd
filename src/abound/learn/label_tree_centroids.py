"""What stands for a class when classes are clustered: the mean direction of its rows, in its heaviest features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from abound.distribute import spans
from abound.labels import Labels
from abound.learn import _label_tree_clustering as kernels
from abound.learn.disk_gather import gather_rows
from abound.learn.linear_rows import SolverRows
from abound.scratch import let_go, scratch_array
from abound.validation import Float32Array, IdArray, IntArray, frozen

VALUES_ON_DISK = 2_000_000
"""Non-zeros in files that are read before they are let go of."""

VALUES_A_CALL = 10_000_000
"""Non-zeros that one kernel call reads: a fraction of a second."""


HEAVIEST = 128
"""Features that a class is clustered by: most of what a class of many rows has is in one of them alone."""

ENOUGH = 10.0
"""A feature that classes have this much of together counts half as much for each of them when these are clustered."""


class Vectors(NamedTuple):
    """A sparse vector a class, of length 1 or empty."""

    indptr: IntArray
    indices: IdArray
    data: Float32Array
    n_features: int
    enough: float = np.inf
    """From which sum over the classes on a feature counts for less; see `kernels.weigh_sides`."""


def class_centroids(rows: SolverRows, labels: Labels, memory: int | None = None) -> Vectors:
    """Return the mean direction of each class's rows, in the `HEAVIEST` features of the class.

    A constant feature is none of these: it would bring all classes together.

    Parameters
    ----------
    rows : SolverRows
        The rows, weighted.
    labels : Labels
        Of these rows, in their order.
    memory : int or None
        A budget: the rows are in files, and so shall be the centroids.

    Returns
    -------
    Vectors
        One a class.
    """
    n_features, n_classes = len(rows.features), labels.n_classes
    owners = np.repeat(np.arange(rows.n_rows, dtype=np.int32), np.diff(labels.indptr))
    class_rows = owners[np.argsort(labels.ids, kind="stable")]
    class_indptr = np.concatenate(([0], np.cumsum(labels.counts)))
    row_weights, at_once = rows.weights, VALUES_A_CALL
    if memory is not None:
        by_class = gather_rows(rows, class_rows.astype(np.int64), memory)
        rows = rows._replace(indptr=by_class[0], indices=by_class[1], data=by_class[2])
        row_weights = frozen(row_weights[class_rows], np.float32)
        class_rows, at_once = np.arange(len(class_rows), dtype=np.int32), VALUES_ON_DISK
    counts = np.empty(n_classes, dtype=np.int64)
    nothing = np.full(n_features, -1, dtype=np.int64)
    given = rows.indptr, rows.indices, rows.n_constant, class_indptr, class_rows
    lengths = np.diff(rows.indptr)[class_rows]
    running = np.concatenate(([0], np.cumsum(lengths)))[class_indptr]
    parts = spans(running, 1 + int(running[-1]) // at_once)
    seen = nothing.copy()
    for part in parts:
        kernels.count_centroids(*given, *part, seen, counts)
        let_go(rows.indices)
    indptr = np.concatenate(([0], np.cumsum(np.minimum(counts, HEAVIEST))))
    own = np.empty(counts.max(), dtype=np.int32), np.empty(counts.max(), dtype=np.float32)
    make: Any = np.empty if memory is None else scratch_array
    indices, data = make(int(indptr[-1]), np.int32), make(int(indptr[-1]), np.float32)
    values = rows.data, row_weights
    for part in parts:
        kernels.sum_centroids(*given[:3], *values, *given[3:], *part, indptr, nothing, *own, indices, data)
        let_go(rows.indices, rows.data, indices, data)
    return Vectors(indptr, indices, data, n_features, ENOUGH)
