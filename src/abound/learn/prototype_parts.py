"""Parts of the prototype learners: the changes that averages are made from, cutting light weights, oversampling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from abound.labels import Labels
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows


class Met(NamedTuple):
    """Rows of a batch by feature, while they are multiplied with each other.

    Those of feature ``f`` begin at ``lists[f, 0]``: rows of the batch in ``rows``, their values in ``values``. At first
    ``lists[f, 1]`` counts how many there will be; once the first one is met, -1 times how many there are.
    """

    lists: IdArray
    rows: IdArray
    values: Float32Array


class Batch(NamedTuple):
    """Arrays a batch is worked in: scores, products of its rows, the changes of each row, the pass's tally.

    Row ``u`` of the batch adds ``changes[q] · x`` to the class ``change_classes[q]``, for ``q`` in
    ``change_indptr[u]:change_indptr[u + 1]``.
    """

    scores: Float32Array
    met: Met
    products: Float32Array
    change_indptr: IntArray
    change_classes: IdArray
    changes: Float32Array
    tally: Float64Array


def make_batch(size: int, width: int, changes_a_row: int, n_features: int, n_entries: int) -> Batch:
    """Return the arrays for batches.

    Parameters
    ----------
    size : int
        Rows of a batch at most.
    width : int
        Columns of the scores.
    changes_a_row : int
        Changes of a row at most.
    n_features : int
        Number of features.
    n_entries : int
        Non-zeros of a batch at most.

    Returns
    -------
    Batch
        Nothing in them yet.
    """
    met = Met(
        np.zeros((n_features, 2), dtype=np.int32),
        np.empty(n_entries, dtype=np.int32),
        np.empty(n_entries, dtype=np.float32),
    )
    return Batch(
        np.empty((size, width), dtype=np.float32),
        met,
        np.empty((size, size), dtype=np.float32),
        np.zeros(size + 1, dtype=np.int64),
        np.empty(size * changes_a_row, dtype=np.int32),
        np.empty(size * changes_a_row, dtype=np.float32),
        np.zeros(3, dtype=np.float64),
    )


class ChangeBook:
    """Changes by row and class, each times its step: enough to average the weights afterwards.

    Every change is a multiple of a row, so the sum of all changes × step is the rows' matrix, transposed, times what
    stands here; no number is kept for each weight while learning.
    """

    def __init__(self) -> None:
        self.rows: list[IntArray] = []
        self.classes: list[IdArray] = []
        self.changes: list[Float64Array] = []
        self.n_changes = 0

    def note(self, rows: IntArray, batch: Batch, steps: int) -> None:
        """Take in a batch; its first row was step ``steps``.

        Parameters
        ----------
        rows : int64 array
            The batch's rows.
        batch : Batch
            Their changes.
        steps : int
            Steps before the batch.
        """
        bounds = batch.change_indptr[: len(rows) + 1]
        places = np.repeat(np.arange(len(rows)), np.diff(bounds))
        self.rows.append(rows[places])
        self.classes.append(batch.change_classes[: bounds[-1]].copy())
        self.changes.append(batch.changes[: bounds[-1]] * (float(steps) + places))
        self.n_changes += len(places)

    def totals(self, width: int) -> Float64Array:
        """Return the sum of all changes × step of each column.

        Parameters
        ----------
        width : int
            Number of columns.

        Returns
        -------
        float64 array of shape (width,)
            To be added to earlier totals.
        """
        sums = np.bincount(np.concatenate(self.classes), np.concatenate(self.changes), width)
        return sums.astype(np.float64, copy=False)

    def sums(self, rows: Rows, width: int) -> Any:
        """Return the sum of all changes × step, features × columns, and begin anew.

        Parameters
        ----------
        rows : Rows
            The rows that were learned.
        width : int
            Number of columns.

        Returns
        -------
        csr_array
            To be added to earlier sums.
        """
        by_row = self.take_all(rows.n_rows, width)
        X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
        return (X.T.tocsr() @ by_row).tocsr()

    def take_all(self, n_rows: int, width: int) -> Any:
        """Return the changes × step, rows × columns, and begin anew.

        Parameters
        ----------
        n_rows, width : int
            Number of rows and columns.

        Returns
        -------
        csr_array
            What was noted.
        """
        pair = (np.concatenate(self.rows), np.concatenate(self.classes))
        by_row = sp.coo_array((np.concatenate(self.changes), pair), shape=(n_rows, width)).tocsr()
        self.rows, self.classes, self.changes, self.n_changes = [], [], [], 0
        return by_row


def edges_kept(keep: float, n_edges: int) -> int:
    """Return how many weights to keep: a share of them below 1, a number from 1.

    Parameters
    ----------
    keep : float or int
        What the user set.
    n_edges : int
        Weights there are.

    Returns
    -------
    int
        Weights to keep.
    """
    return int(keep * n_edges) if keep < 1 else int(keep)


def heaviest(weights: Any, keep: float) -> Any:
    """Return a matrix with its heaviest |weights| only, ties by position.

    Parameters
    ----------
    weights : csr_array
        All weights.
    keep : float or int
        The share or number to keep.

    Returns
    -------
    csr_array
        The same shape.
    """
    kept = edges_kept(keep, weights.nnz)
    if kept >= weights.nnz:
        return weights
    light = np.argsort(-np.abs(weights.data), kind="stable")[kept:]
    lighter = weights.copy()
    lighter.data[light] = 0
    lighter.eliminate_zeros()
    return lighter


def repeated_rows(training: IntArray, labels: Labels, least: int, generator: np.random.Generator) -> IntArray:
    """Draw rows to repeat so that every class of the training rows has at least ``least``.

    Parameters
    ----------
    training : int64 array
        The training rows.
    labels : Labels
        Labels of all rows.
    least : int
        Rows wanted of each class.
    generator : Generator
        Draws, with replacement.

    Returns
    -------
    int64 array
        The rows to add.
    """
    part = labels.take(training)
    owners = np.repeat(training, np.diff(part.indptr))
    by_class = np.argsort(part.ids, kind="stable")
    counts = np.bincount(part.ids, minlength=labels.n_classes)
    starts = np.concatenate(([0], np.cumsum(counts)))[:-1]
    missing = np.where(counts > 0, np.maximum(0, least - counts), 0)
    classes = np.repeat(np.arange(labels.n_classes), missing)
    drawn = (generator.random(len(classes)) * counts[classes]).astype(np.int64)
    return owners[by_class[starts[classes] + drawn]]
