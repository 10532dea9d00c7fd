"""Rows as learners see them: some of them, or with each sign of a feature a feature of its own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from abound.validation import Rows, frozen


def take_rows(rows: Rows, wanted: npt.NDArray[np.int64]) -> Rows:
    """Copy some rows.

    Parameters
    ----------
    rows : Rows
        All rows.
    wanted : int64 array
        Row numbers.

    Returns
    -------
    Rows
        Those rows, in that order.
    """
    lengths = np.diff(rows.indptr)[wanted]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    places = np.arange(indptr[-1]) + np.repeat(rows.indptr[:-1][wanted] - indptr[:-1], lengths)
    return Rows(
        frozen(indptr, np.int64),
        frozen(rows.indices[places], np.int32),
        frozen(rows.data[places], np.float32),
        rows.n_features,
    )


def ignore_negative(rows: Rows) -> Rows:
    """Return the rows with 0 for every negative value, so that it neither votes nor speaks against a class.

    Parameters
    ----------
    rows : Rows
        Values of any sign.

    Returns
    -------
    Rows
        The same rows if none of their values is negative.
    """
    if not (rows.data < 0).any():
        return rows
    return rows._replace(data=frozen(np.maximum(rows.data, 0), np.float32))


def split_negative(rows: Rows) -> Rows:
    """Make two features of one, ``max(v, 0)`` at 2f and ``max(-v, 0)`` at 2f + 1 (JMLR 2009, footnote 3).

    Parameters
    ----------
    rows : Rows
        Values of any sign.

    Returns
    -------
    Rows
        Values of at least 0, twice the features.
    """
    indices = 2 * rows.indices.astype(np.int64) + (rows.data < 0)
    if 2 * rows.n_features > np.iinfo(np.int32).max:
        raise ValueError(f"negative='split' doubles the {rows.n_features} features beyond what int32 holds")
    return Rows(rows.indptr, frozen(indices, np.int32), frozen(np.abs(rows.data), np.float32), 2 * rows.n_features)


def add_constant(rows: Rows, value: float) -> Rows:
    """Give every row one more feature, the last, of the same value.

    Parameters
    ----------
    rows : Rows
        The rows.
    value : float
        The new feature's value.

    Returns
    -------
    Rows
        One feature more.
    """
    n = rows.n_rows
    begins, ends = rows.indptr[:-1] - rows.indptr[0], rows.indptr[1:] - rows.indptr[0]
    first, last = rows.indptr[0], rows.indptr[-1]
    indices = np.insert(rows.indices[first:last], ends, rows.n_features)
    data = np.insert(rows.data[first:last], ends, np.float32(value))
    indptr = np.concatenate((begins, ends[-1:] if n else [0])) + np.arange(n + 1)
    return Rows(frozen(indptr, np.int64), frozen(indices, np.int32), frozen(data, np.float32), rows.n_features + 1)
