"""Sums of changes that are kept in files while weights are averaged within a budget of memory.

They are only ever read and written from front to back: what a part of the rows has changed is merged into them, feature
by feature, and at the end they are subtracted from the weights in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound.distribute import spans
from abound.learn.row_views import take_rows
from abound.scratch import let_go, scratch_array
from abound.validation import IntArray, Rows

ENTRIES_AT_ONCE = 2**20
"""Entries of sums that are merged at a time."""

BYTES_AN_ENTRY = 32
"""What an entry of a product takes while it is computed."""


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


def added_on_disk(sums: Any, product: Any) -> Any:
    """Add two matrices into a temporary file.

    Parameters
    ----------
    sums : csr_array or None
        What there is, in a file; None for nothing yet.
    product : csr_array
        To be added.

    Returns
    -------
    csr_array
        In a new file; the old one vanishes with ``sums``.
    """
    if sums is None:
        sums = sp.csr_array(product.shape)
    most = sums.nnz + product.nnz
    indices, data = scratch_array(most, np.int32), scratch_array(most, np.float64)
    lengths: list[IntArray] = []
    end = 0
    both = sums.indptr.astype(np.int64) + product.indptr
    for first, last in spans(both, 1 + most // ENTRIES_AT_ONCE):
        part = (sums[first:last] + product[first:last]).tocsr()
        place = slice(end, end + part.nnz)
        indices[place], data[place] = part.indices, part.data
        old = slice(sums.indptr[first], sums.indptr[last])
        let_go(indices[place], data[place], sums.indices[old], sums.data[old])
        lengths.append(np.diff(part.indptr))
        end = place.stop
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(lengths), dtype=np.int64)))
    return _csr(indptr, indices[:end], data[:end], product.shape)


def _csr(indptr: IntArray, indices: Any, data: Any, shape: tuple[int, int]) -> Any:
    """A csr_array that shares its arrays; scipy's constructor would look at all of them."""
    matrix = sp.csr_array(shape, dtype=np.float64)
    matrix.indptr = indptr.astype(np.int32) if indptr[-1] <= np.iinfo(np.int32).max else indptr
    matrix.indices, matrix.data = indices, data
    return matrix
