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

FEATURES_AN_ENTRY = 4
"""Up to so many features for each of its entries a vector is kept by features. A value alone takes half the room of a
row and its value, so that it takes at most twice the room."""


class RowVectors(NamedTuple):
    """Sparse vectors one after another; vector i stands for ``Σ_j values[j] x_{rows[j]}`` over its places j.

    Rows that are beyond the last one stand for a feature each: a sum of very many rows is shorter by features. One that
    has all of them shares their list with the others.
    """

    begins: IntArray
    ends: IntArray
    """Where the values of each vector are."""
    firsts: IntArray
    """Where its rows begin, -1 for a vector of all features."""
    rows: IdArray
    values: Float32Array
    features: IdArray
    """The rows of a vector of all features."""

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
        begin, end, first = int(self.begins[i]), int(self.ends[i]), int(self.firsts[i])
        rows = self.features if first < 0 else self.rows[first : first + end - begin]
        return rows, self.values[begin:end]

    @property
    def n_entries(self) -> int:
        """Entries of all vectors."""
        return len(self.values)

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
            let_go(self.values[self.begins[first] : self.ends[last - 1]])
            by_rows = first + np.flatnonzero(self.firsts[first:last] >= 0)
            if len(by_rows):
                final = by_rows[-1]
                end = self.firsts[final] + self.ends[final] - self.begins[final]
                let_go(self.rows[self.firsts[by_rows[0]] : end])


class Pile:
    """Sparse vectors as they come, one upon another.

    Parameters
    ----------
    on_disk : bool
        Whether to write them to temporary files, which vanish with the last array that was taken from them.
    features : int32 array, optional
        The rows of vectors of all features: those that are added with this very array do not take it with them.

    Examples
    --------
    >>> pile = Pile(on_disk=True)
    >>> pile.add(np.array([3, 5]), np.array([0.5, 2.0]))
    >>> pile.add(np.array([4]), np.array([1.0]))
    >>> pile.whole().of(1)
    (array([4], dtype=int32), array([1.], dtype=float32))
    """

    def __init__(self, on_disk: bool, features: IdArray | None = None) -> None:
        make = Spill if on_disk else Growing
        self._rows, self._values = make(np.int32), make(np.float32)
        self._features = np.empty(0, dtype=np.int32) if features is None else features
        self._lengths: list[int] = []
        self._firsts: list[int] = []

    def add(self, rows: IdArray, values: Float32Array) -> None:
        """Put a vector on top.

        Parameters
        ----------
        rows : int32 array
            Ascending.
        values : float32 array
            Of each.
        """
        self._lengths.append(len(values))
        self._values.append(values)
        if rows is self._features:
            self._firsts.append(-1)
        else:
            self._firsts.append(self._rows.length)
            self._rows.append(rows)

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
        begins, ends, firsts = np.zeros((3, len(places)), dtype=np.int64)
        begins[places], ends[places], firsts[places] = bounds[:-1], bounds[1:], self._firsts
        rows, values = frozen(self._rows.mapped(), np.int32), frozen(self._values.mapped(), np.float32)
        begins, ends, firsts = (frozen(part, np.int64) for part in (begins, ends, firsts))
        return RowVectors(begins, ends, firsts, rows, values, self._features)


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


def shortened(
    rows: SolverRows, features: IdArray, own: IdArray, one: Float32Array, other: Float32Array
) -> tuple[IdArray, Float32Array, Float32Array]:
    """Write two vectors by features if that takes hardly more room than by rows: they are read much faster.

    Parameters
    ----------
    rows : SolverRows
        All rows.
    features : int32 array
        The rows of a vector of all features.
    own : int32 array
        Ascending; the rows of both vectors.
    one, other : float32 array
        Their values.

    Returns
    -------
    tuple of int32 array and two float32 arrays
        The same vectors; ``features`` and a value for each, or what was given.
    """
    if FEATURES_AN_ENTRY * len(own) <= rows.n_features:
        return own, one, other
    sums = np.zeros((rows.n_features, 2))
    for begin, end in spans_to_read(rows, len(own)):
        kernels.add_two_vectors(rows.indptr, rows.indices, rows.data, own, one, other, begin, end, sums)
    return features, sums[:, 0].astype(np.float32), sums[:, 1].astype(np.float32)
