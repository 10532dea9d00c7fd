"""Sparse vectors over rows: what leaves and inner nodes of a tree are made of, in memory or in temporary files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from abound.learn import _recursive_kernels as kernels
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import VALUES_A_CALL
from abound.learn.row_views import ENTRIES_A_ROW
from abound.scratch import Growing, Spill, is_mapped, let_go
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, frozen


class RowVectors(NamedTuple):
    """Sparse vectors one after another; vector i stands for ``Σ_j values[j] x_{rows[j]}`` over its places j.

    Rows that are beyond the last one stand for a feature each: a sum of very many rows is shorter by features.
    """

    begins: IntArray
    ends: IntArray
    rows: IdArray
    values: Float32Array

    def of(self, i: int) -> tuple[IdArray, Float32Array]:
        """Return the rows and values of a vector.

        Parameters
        ----------
        i : int
            Its number.

        Returns
        -------
        tuple of int32 and float32 array
            Views.
        """
        return self.rows[self.begins[i] : self.ends[i]], self.values[self.begins[i] : self.ends[i]]

    def to_disk(self) -> RowVectors:
        """Return the same vectors in temporary files.

        Returns
        -------
        RowVectors
            These ones if they are in files already.
        """
        if is_mapped(self.values):
            return self
        rows, values = Spill(np.int32), Spill(np.float32)
        rows.append(self.rows)
        values.append(self.values)
        return self._replace(rows=frozen(rows.mapped(), np.int32), values=frozen(values.mapped(), np.float32))

    def let_go(self, first: int, last: int) -> None:
        """Let vectors that are in a file leave memory.

        Parameters
        ----------
        first, last : int
            From one vector to before another that stands behind it.
        """
        if first < last:
            span = slice(self.begins[first], self.ends[last - 1])
            let_go(self.rows[span], self.values[span])


class Pile:
    """Sparse vectors as they come, one upon another.

    Parameters
    ----------
    on_disk : bool
        Whether to write them to temporary files, which vanish with the last array that was taken from them.

    Examples
    --------
    >>> pile = Pile(on_disk=True)
    >>> pile.add(np.array([3, 5]), np.array([0.5, 2.0]))
    >>> pile.add(np.array([4]), np.array([1.0]))
    >>> pile.whole().of(1)
    (array([4], dtype=int32), array([1.], dtype=float32))
    """

    def __init__(self, on_disk: bool) -> None:
        make = Spill if on_disk else Growing
        self._rows, self._values = make(np.int32), make(np.float32)
        self._lengths: list[int] = []

    def add(self, rows: IdArray, values: Float32Array) -> None:
        """Put a vector on top.

        Parameters
        ----------
        rows : int32 array
            Ascending.
        values : float32 array
            Of each.
        """
        self._lengths.append(len(rows))
        self._rows.append(rows)
        self._values.append(values)

    def whole(self, order: IntArray | None = None) -> RowVectors:
        """Return all vectors; nothing can be added any more.

        Parameters
        ----------
        order : int64 array, optional
            The number of each vector, in the order in which they came; as they came by default.

        Returns
        -------
        RowVectors
            Frozen.
        """
        bounds = np.concatenate(([0], np.cumsum(np.array(self._lengths, dtype=np.int64))))
        places = np.arange(len(self._lengths)) if order is None else order
        begins, ends = np.zeros((2, len(places)), dtype=np.int64)
        begins[places], ends[places] = bounds[:-1], bounds[1:]
        rows, values = frozen(self._rows.mapped(), np.int32), frozen(self._values.mapped(), np.float32)
        return RowVectors(frozen(begins, np.int64), frozen(ends, np.int64), rows, values)


def spans_to_read(rows: SolverRows, n: int) -> Iterator[tuple[int, int]]:
    """Cut a list of rows so that a kernel call does not take long; rows on disk leave memory after each call.

    Parameters
    ----------
    rows : SolverRows
        All rows.
    n : int
        Length of the list.

    Yields
    ------
    (begin, end)
        Places in the list.
    """
    mean = max(1, len(rows.indices) // max(1, rows.n_rows))
    step = max(1, rows.window // (mean + ENTRIES_A_ROW) if rows.window else VALUES_A_CALL // mean)
    for begin in range(0, n, step):
        yield begin, min(begin + step, n)
        let_go(rows.indices, rows.data)


def add_vector(rows: SolverRows, own: IdArray, values: Float32Array, sums: Float64Array) -> None:
    """Add a vector, by features, to others.

    Parameters
    ----------
    rows : SolverRows
        All rows.
    own, values : int32 array, float32 array
        One of `RowVectors`.
    sums : float64 array of shape (n_features,)
        Added to.
    """
    for begin, end in spans_to_read(rows, len(own)):
        kernels.add_vector(rows.indptr, rows.indices, rows.data, own, values, begin, end, sums)


def shortened(rows: SolverRows, own: IdArray, *vectors: Float32Array) -> tuple[IdArray, tuple[Float32Array, ...]]:
    """Write vectors by features if that is hardly longer than by rows, and read much faster.

    Parameters
    ----------
    rows : SolverRows
        All rows.
    own : int32 array
        Ascending; the rows of all vectors.
    *vectors : float32 array
        Values of each.

    Returns
    -------
    tuple of int32 array and tuple of float32 arrays
        The same vectors.
    """
    if 2 * len(own) <= rows.n_features or own[0] >= rows.n_rows:
        return own, vectors
    sums = np.zeros((len(vectors), rows.n_features))
    for values, total in zip(vectors, sums, strict=True):
        add_vector(rows, own, values, total)
    kept = np.flatnonzero(sums.any(axis=0))
    found = tuple(total[kept].astype(np.float32) for total in sums)
    return (rows.n_rows + kept).astype(np.int32), found
