"""Sums of changes that are kept in files while weights are averaged within a budget of memory.

They are only ever read and written from front to back: what the rows have changed is merged into them, feature by
feature, and at the end they are subtracted from the weights in the same way. What was changed is added up in dense
arrays, of some features at a time, for which the rows are read again and again; if there are so many classes that this
would be too often, in sparse products of a part of the rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound.distribute import spans
from abound.learn._sum_kernels import add_changes
from abound.learn.row_views import take_rows
from abound.scratch import Spill, let_go
from abound.validation import Float64Array, IntArray, Rows

ENTRIES_AT_ONCE = 2**20
"""Entries of rows that are read, and of sums that are merged, at a time."""

MOST_READINGS = 64
"""How often the rows are read at most before sparse products are the better way."""

BYTES_AN_ENTRY = 32
"""What an entry of a product takes while it is computed."""


def add_to_sums(sums: Any, rows: Rows, by_row: Any, n_bytes: int) -> Any:
    """Add the rows, transposed, times what was changed for them.

    Parameters
    ----------
    sums : csr_array or None
        What there is, in files; None for nothing yet.
    rows : Rows
        All rows, on disk.
    by_row : csr_array of shape (n_rows, width)
        The changes of each row, times their steps.
    n_bytes : int
        What may be in memory at a time.

    Returns
    -------
    csr_array of shape (n_features, width)
        The new sums, in files.
    """
    cuts = dense_cuts(rows.n_features, by_row.shape[1], n_bytes)
    if len(cuts) - 1 <= MOST_READINGS:
        return _merged(
            sums, by_row.shape[1], ((*span, sp.csr_array(dense_sums(rows, by_row, *span))) for span in pairwise(cuts))
        )
    for product in products_by_part(rows, by_row, n_bytes):
        most = product.nnz + (0 if sums is None else sums.nnz)
        together = product.indptr.astype(np.int64) + (0 if sums is None else sums.indptr)
        parts = spans(together, 1 + most // ENTRIES_AT_ONCE)
        sums = _merged(sums, by_row.shape[1], ((a, b, product[a:b]) for a, b in parts))
    return sp.csr_array((rows.n_features, by_row.shape[1])) if sums is None else sums


def products_by_part(rows: Rows, by_row: Any, n_bytes: int) -> Iterator[Any]:
    """Multiply the rows, transposed, with what was changed for them, some rows at a time.

    Parameters
    ----------
    rows : Rows
        All rows, on disk.
    by_row : csr_array of shape (n_rows, width)
        The changes of each row.
    n_bytes : int
        What a product may take.

    Yields
    ------
    csr_array of shape (n_features, width)
        They add up to the whole product.
    """
    n_changes = np.diff(by_row.indptr)
    changed = np.flatnonzero(n_changes)
    lengths = rows.indptr[changed + 1] - rows.indptr[changed]
    costs = np.concatenate(([0], np.cumsum(lengths * (1 + n_changes[changed]), dtype=np.int64)))
    for begin, end in spans(costs, 1 + BYTES_AN_ENTRY * int(costs[-1]) // n_bytes):
        part = take_rows(rows, changed[begin:end])
        X = sp.csr_array((part.data, part.indices, part.indptr), shape=(part.n_rows, part.n_features))
        product = (X.T.tocsr() @ by_row[changed[begin:end]]).tocsr()
        let_go(rows.indices, rows.data)
        yield product


def dense_cuts(n_features: int, width: int, n_bytes: int) -> list[int]:
    """Cut features into spans whose dense sums fit.

    Parameters
    ----------
    n_features, width : int
        The shape of all sums.
    n_bytes : int
        What may be in memory at a time.

    Returns
    -------
    list of int
        Where spans begin, and the end.
    """
    return [*range(0, n_features, max(1, n_bytes // (16 * width))), n_features]


def dense_sums(rows: Rows, by_row: Any, first: int, last: int) -> Float64Array:
    """Return the product of some features' columns, transposed, with numbers for each row.

    Parameters
    ----------
    rows : Rows
        All rows, on disk.
    by_row : csr_array of shape (n_rows, width)
        The numbers.
    first, last : int
        The features.

    Returns
    -------
    float64 array of shape (last - first, width)
        Each row is added after those before it.
    """
    sums = np.zeros((last - first, by_row.shape[1]))
    changes = by_row.indptr.astype(np.int64), by_row.indices, by_row.data
    for begin, end in rows.spans(ENTRIES_AT_ONCE):
        add_changes(rows.indptr, rows.indices, rows.data, begin, end, *changes, first, last, sums)
        let_go(rows.indices, rows.data)
    return sums


def _merged(sums: Any, width: int, parts: Iterable[tuple[int, int, Any]]) -> Any:
    """Add what parts hold of consecutive features to the sums, into new files."""
    indices, data = Spill(np.int32), Spill(np.float64)
    lengths: list[IntArray] = []
    for first, last, part in parts:
        if sums is not None:
            old = slice(sums.indptr[first], sums.indptr[last])
            part = (sums[first:last] + part).tocsr()
            let_go(sums.indices[old], sums.data[old])
        lengths.append(np.diff(part.indptr))
        indices.append(part.indices)
        data.append(part.data)
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(lengths), dtype=np.int64)))
    matrix = sp.csr_array((len(indptr) - 1, width), dtype=np.float64)
    # scipy's constructor would look at all of the file.
    matrix.indptr = indptr.astype(np.int32) if indptr[-1] <= np.iinfo(np.int32).max else indptr
    matrix.indices, matrix.data = indices.mapped(), data.mapped()
    return matrix
