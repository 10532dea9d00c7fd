"""Rows as learners see them: some of them, or with each sign of a feature a feature of its own.

What is made of mapped rows is mapped too, in a temporary file: it may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.distribute import spans
from abound.scratch import is_mapped, let_go, scratch_array
from abound.validation import LARGEST, Float32Array, IdArray, IntArray, Rows, check_number, frozen

ENTRIES_AT_ONCE = 2**20
"""Entries of mapped rows that are looked at before they are let go of."""

ENTRIES_A_ROW = 2**10
"""What a row counts for more than its entries when rows from all over a file are read."""

FEW_ENTRIES = 2**22
"""So many entries of mapped rows are copied into memory."""


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
    indptr = np.concatenate(([0], np.cumsum(rows.indptr[wanted + 1] - rows.indptr[wanted])))
    n_entries = int(indptr[-1])
    if not is_mapped(rows.data):
        indices, data = copy_entries(rows, wanted, indptr)
    else:
        make: Any = np.empty if n_entries <= FEW_ENTRIES else scratch_array
        indices, data = make(n_entries, np.int32), make(n_entries, np.float32)
        # The system maps more of a file than is asked for, so that few rows count as many entries.
        costs = indptr + ENTRIES_A_ROW * np.arange(len(indptr))
        for begin, end in spans(costs, 1 + int(costs[-1]) // ENTRIES_AT_ONCE):
            place = slice(indptr[begin], indptr[end])
            indices[place], data[place] = copy_entries(rows, wanted[begin:end], indptr[begin : end + 1] - indptr[begin])
            let_go(rows.indices, rows.data, indices[place], data[place])
    return Rows(frozen(indptr, np.int64), frozen(indices, np.int32), frozen(data, np.float32), rows.n_features)


def feature_counts(rows: Rows, *, positive: bool = False) -> IntArray:
    """Count in how many rows each feature stands.

    Parameters
    ----------
    rows : Rows
        The rows.
    positive : bool
        Whether only values above 0 count.

    Returns
    -------
    int64 array of shape (n_features,)
        How many.
    """
    counts = np.zeros(rows.n_features, dtype=np.int64)
    for begin, end in rows.spans(ENTRIES_AT_ONCE):
        span = slice(rows.indptr[begin], rows.indptr[end])
        part = rows.indices[span][rows.data[span] > 0] if positive else rows.indices[span]
        counts += np.bincount(part, minlength=rows.n_features)
        let_go(rows.indices[span], rows.data[span])
    let_go(rows.indices, rows.data)
    return counts


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
    if not _any_negative(rows):
        return rows
    return change_values(rows, lambda data: np.maximum(data, 0))


def change_values(rows: Rows, change: Callable[[Float32Array], npt.NDArray[Any]]) -> Rows:
    """Return the rows with other values.

    Parameters
    ----------
    rows : Rows
        The rows.
    change : callable
        Makes the new values of some old ones.

    Returns
    -------
    Rows
        The same features.
    """
    if not is_mapped(rows.data):
        return rows._replace(data=frozen(change(rows.data), np.float32))
    data = scratch_array(len(rows.data), np.float32)
    for begin in range(0, len(data), ENTRIES_AT_ONCE):
        part, changed = rows.data[begin : begin + ENTRIES_AT_ONCE], data[begin : begin + ENTRIES_AT_ONCE]
        changed[:] = change(part)
        let_go(part, changed)
    let_go(rows.data, data)
    return rows._replace(data=frozen(data, np.float32))


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
    if 2 * rows.n_features > np.iinfo(np.int32).max:
        raise ValueError(f"negative='split' doubles the {rows.n_features} features beyond what int32 holds")

    def split(part: Rows) -> tuple[IdArray, Float32Array]:
        indices = 2 * part.indices.astype(np.int64) + (part.data < 0)
        return frozen(indices, np.int32), frozen(np.abs(part.data), np.float32)

    if is_mapped(rows.data):
        return _rewritten(rows, split, 2 * rows.n_features)
    return Rows(rows.indptr, *split(rows), 2 * rows.n_features)


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
    last = rows.n_features

    def append(part: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        ends = part.indptr[1:] - part.indptr[0]
        return np.insert(part.indices, ends, last), np.insert(part.data, ends, np.float32(value))

    return _with_one_more(rows, append)


def add_first(rows: Rows, value: float) -> Rows:
    """Give every row one more feature of the same value, before all others: those move up by one.

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

    def put_first(part: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        begins = part.indptr[:-1] - part.indptr[0]
        return np.insert(part.indices + 1, begins, 0), np.insert(part.data, begins, np.float32(value))

    return _with_one_more(rows, put_first)


def _with_one_more(rows: Rows, change: Callable[[Rows], tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> Rows:
    """The rows with an entry more in each and a feature more in all."""
    indptr = frozen(rows.indptr - rows.indptr[0] + np.arange(rows.n_rows + 1), np.int64)
    if is_mapped(rows.data):
        return _rewritten(rows, change, rows.n_features + 1, indptr)
    span = slice(rows.indptr[0], rows.indptr[-1])
    indices, data = change(Rows(rows.indptr, rows.indices[span], rows.data[span], rows.n_features))
    return Rows(indptr, frozen(indices, np.int32), frozen(data, np.float32), rows.n_features + 1)


def check_bias(bias: Any) -> None:
    """Raise a clear error for a ``bias`` that is neither "auto" nor a number."""
    if not isinstance(bias, str) or bias != "auto":
        check_number("bias", bias, -LARGEST, LARGEST)


def own_bias(bias: float | str, rows: Rows, weights: Float32Array | None = None) -> float:
    """Return the value of the constant feature: "auto" is the root mean square length of the rows.

    So it counts as much as all that a typical row has, whatever the scale of the data; it is 1 for rows of unit length.

    Parameters
    ----------
    bias : float or "auto"
        What the user set.
    rows : Rows
        The rows that are learned.
    weights : float32 array of shape (n,), optional
        How much each counts.

    Returns
    -------
    float
        As a float32 has it.
    """
    return float(np.float32(np.sqrt(mean_square(rows, weights)))) if bias == "auto" else float(bias)


def mean_square(rows: Rows, weights: Float32Array | None = None) -> float:
    """Return the mean of the squared lengths of rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    weights : float32 array of shape (n,), optional
        How much each counts.

    Returns
    -------
    float
        1 for rows of unit length; 0 if no row counts.
    """
    total, n = 0.0, float(rows.n_rows if weights is None else weights.sum(dtype=np.float64))
    for begin, end in spans(rows.indptr, 1 + int(rows.indptr[-1] - rows.indptr[0]) // ENTRIES_AT_ONCE):
        part = rows.data[rows.indptr[begin] : rows.indptr[end]]
        squares = np.square(part, dtype=np.float64)
        if weights is not None:
            squares *= np.repeat(weights[begin:end], np.diff(rows.indptr[begin : end + 1]))
        total += float(squares.sum())
        let_go(part)
    return total / n if n else 0.0


def copy_entries(rows: Any, wanted: IntArray, indptr: IntArray) -> tuple[IdArray, Float32Array]:
    """Copy the entries of some rows into memory.

    Parameters
    ----------
    rows : Rows or SolverRows
        All rows.
    wanted : int64 array
        Row numbers.
    indptr : int64 array
        Where the copies are to stand, from 0.

    Returns
    -------
    indices, data : int32, float32 array
        The copies.
    """
    places = np.arange(indptr[-1]) + np.repeat(rows.indptr[wanted] - indptr[:-1], np.diff(indptr))
    return rows.indices[places], rows.data[places]


def _any_negative(rows: Rows) -> bool:
    for begin in range(0, len(rows.data), ENTRIES_AT_ONCE):
        part = rows.data[begin : begin + ENTRIES_AT_ONCE]
        if (part < 0).any():
            return True
        let_go(part)
    let_go(rows.data)
    return False


def _rewritten(
    rows: Rows,
    change: Callable[[Rows], tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    n_features: int,
    indptr: IntArray | None = None,
) -> Rows:
    """Mapped rows changed span by span; ``indptr`` tells where the changed ones stand if not where they stood."""
    indptr = frozen(rows.indptr - rows.indptr[0], np.int64) if indptr is None else indptr
    n_entries = int(indptr[-1])
    indices, data = scratch_array(n_entries, np.int32), scratch_array(n_entries, np.float32)
    for begin, end in rows.spans(ENTRIES_AT_ONCE):
        span = slice(rows.indptr[begin], rows.indptr[end])
        part = Rows(rows.indptr[begin : end + 1], rows.indices[span], rows.data[span], rows.n_features)
        place = slice(indptr[begin], indptr[end])
        indices[place], data[place] = change(part)
        let_go(part.indices, part.data, indices[place], data[place])
    let_go(rows.indices, rows.data, indices, data)
    return Rows(indptr, frozen(indices, np.int32), frozen(data, np.float32), n_features)
