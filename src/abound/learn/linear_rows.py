"""Rows as the solvers of linear problems take them: shuffled once, frequent features first, empty rows left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.learn._lanes import LANES
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, frozen


class SolverRows(NamedTuple):
    """Rows in a random order, over the features that occur, the most frequent first.

    Full sweeps then read the rows from front to back, and the weights of frequent features stay in the cache.
    """

    indptr: IntArray
    indices: IdArray
    data: Float32Array
    norms: Float32Array
    """Squared length of each row."""
    weights: Float32Array
    """How much each row counts."""
    order: IntArray
    """The user's row behind each row."""
    features: IdArray
    """The user's feature behind each feature, but for the constant one."""
    window: int = 0
    """Entries of rows on disk that are shuffled together and let go of together; 0 for rows in memory."""
    bias: float = 0.0
    """The value of a constant feature that comes before all others; 0 if there is none."""

    @property
    def n_rows(self) -> int:
        """Number of rows that can move a weight."""
        return len(self.norms)

    @property
    def n_constant(self) -> int:
        """How many features are constant: 1 or 0."""
        return int(self.bias != 0)

    @property
    def n_features(self) -> int:
        """Number of features that occur, with the constant one."""
        return self.n_constant + len(self.features)

    def featured(self, weights: Float32Array) -> Float32Array:
        """Return weights by feature without those of the constant one."""
        return weights[self.n_constant :]

    def biases(self, weights: Float32Array) -> Float32Array:
        """Return what the constant feature adds to each score.

        Parameters
        ----------
        weights : float32 array of shape (n_features, n)
            Of some classes.

        Returns
        -------
        float32 array of shape (n,)
            0 without a constant feature.
        """
        if not self.bias:
            return np.zeros(weights.shape[1], np.float32)
        added: Float32Array = np.float32(self.bias) * weights[0]
        return added


def solver_rows(rows: Rows, weights: Float32Array, generator: np.random.Generator, bias: float = 0.0) -> SolverRows:
    """Prepare rows for the solvers.

    Parameters
    ----------
    rows : Rows
        The rows.
    weights : float32 array of shape (n,)
        How much each counts; rows of weight 0 are left out.
    generator : numpy Generator
        Draws the order.
    bias : float
        If not 0, every row gets a first feature of this value.

    Returns
    -------
    SolverRows
        A copy.
    """
    first = rows.indptr[0]
    values = rows.data[first : rows.indptr[-1]]
    matrix = sp.csr_array(
        (values, rows.indices[first : rows.indptr[-1]], rows.indptr - first), shape=(rows.n_rows, rows.n_features)
    )
    if bias:
        matrix = sp.hstack([np.full((rows.n_rows, 1), bias, dtype=np.float32), matrix], format="csr")
    norms = row_norms(matrix)
    order = generator.permutation(rows.n_rows)
    order = order[(norms[order] > 0) & (weights[order] > 0)]
    matrix = matrix[order]
    frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
    features = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]
    place = np.zeros(matrix.shape[1], dtype=np.int32)
    place[features] = np.arange(len(features))
    renumbered = sp.csr_array((matrix.data, place[matrix.indices], matrix.indptr), shape=matrix.shape)
    renumbered.sort_indices()
    return SolverRows(
        frozen(renumbered.indptr, np.int64),
        frozen(renumbered.indices, np.int32),
        frozen(renumbered.data, np.float32),
        frozen(norms[order], np.float32),
        frozen(weights[order], np.float32),
        frozen(order, np.int64),
        frozen(features[1:] - 1 if bias else features, np.int32),
        bias=bias,
    )


def row_norms(matrix: Any) -> Float64Array:
    """Return the squared length of each row.

    Parameters
    ----------
    matrix : csr_array
        The rows.

    Returns
    -------
    float64 array
        Of each row by itself.
    """
    squares = sp.csr_array((matrix.data.astype(np.float64) ** 2, matrix.indices, matrix.indptr), shape=matrix.shape)
    norms: Float64Array = np.asarray(squares.sum(axis=1)).ravel()
    return norms


def lane_array(n: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return zeros of shape (n, 16) that begin at a cache line, so that a row of float32 is one line.

    Parameters
    ----------
    n : int
        Number of rows.
    dtype : dtype
        Type of its entries.

    Returns
    -------
    array of shape (n, 16)
        Zeros.
    """
    size = n * LANES * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, dtype=np.uint8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + size].view(dtype).reshape(n, LANES)
