"""Rows on disk put into another order, and prepared for the solvers, without ever having them all in memory.

Rows in a random order would be fetched from all over the file. Here they are read once from front to back, each is put
down in the part of the new file in which it will be, and then the parts are sorted, one after another, in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound.distribute import spans
from abound.learn.disk_order import WINDOW_SHARE, rows_bytes
from abound.learn.linear_rows import SolverRows, row_norms
from abound.learn.row_views import add_first, copy_entries
from abound.scratch import is_mapped, let_go, scratch_array
from abound.validation import Float32Array, IdArray, IntArray, Rows, frozen

BYTES_A_ENTRY = 64
"""What an entry takes while its part is sorted."""

COPIES = 4
"""So many times the rows are in memory while they are prepared there."""


def stays_on_disk(rows: Rows, memory: int | None) -> bool:
    """Decide whether rows are prepared on disk.

    Parameters
    ----------
    rows : Rows
        The rows.
    memory : int or None
        The budget.

    Returns
    -------
    bool
        True for rows on disk that cannot be prepared in half of the budget.
    """
    return memory is not None and is_mapped(rows.data) and COPIES * rows_bytes(rows) > memory // 2


def refuse_elsewhere(learner: Any) -> None:
    """Refuse settings that learning from files cannot honour.

    Parameters
    ----------
    learner : estimator
        Whose rows stay on disk.
    """
    for name in ("cluster", "checkpoint"):
        value = getattr(learner, name)
        if value is not None:
            raise ValueError(f"{name}={value!r}: not for rows that stay on disk; leave it or memory out")


def gather_rows(
    rows: Rows | SolverRows,
    order: IntArray,
    memory: int,
    change: Callable[[IntArray, IdArray, Float32Array], tuple[Any, Any]] | None = None,
) -> tuple[IntArray, IdArray, Float32Array]:
    """Copy rows on disk in another order.

    Parameters
    ----------
    rows : Rows or SolverRows
        The rows.
    order : int64 array
        The row to take at each place; a row may come several times, or not at all.
    memory : int
        The budget; a sixteenth of it is used.
    change : callable, optional
        Makes new indices and values of some rows, given as ``indptr, indices, data``; as many as there were.

    Returns
    -------
    indptr, indices, data : int64, int32, float32 array
        The last two in temporary files, frozen.
    """
    lengths = rows.indptr[order + 1] - rows.indptr[order]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    n_entries = int(indptr[-1])
    indices, data = scratch_array(n_entries, np.int32), scratch_array(n_entries, np.float32)
    at_once = max(1, memory // 16 // BYTES_A_ENTRY)
    parts = spans(indptr, 1 + n_entries // at_once)
    by_source = np.argsort(order, kind="stable")
    _put_down(rows, order, by_source, lengths, indptr, parts, at_once, indices, data)
    for begin, end in parts:
        place = slice(indptr[begin], indptr[end])
        arrived = np.argsort(order[begin:end], kind="stable")
        own = np.concatenate(([0], np.cumsum(lengths[begin:end][arrived])))
        met = Rows(own, indices[place].copy(), data[place].copy(), rows.n_features)
        back = np.empty(end - begin, dtype=np.int64)
        back[arrived] = np.arange(end - begin)
        bounds = indptr[begin : end + 1] - indptr[begin]
        entries = copy_entries(met, back, bounds)
        indices[place], data[place] = entries if change is None else change(bounds, *entries)
        let_go(indices[place], data[place])
    return frozen(indptr, np.int64), frozen(indices, np.int32), frozen(data, np.float32)


def _put_down(
    rows: Rows | SolverRows,
    order: IntArray,
    by_source: IntArray,
    lengths: IntArray,
    indptr: IntArray,
    parts: list[tuple[int, int]],
    at_once: int,
    indices: IdArray,
    data: Float32Array,
) -> None:
    """Read the rows from front to back and append each to its part of the new file."""
    begins = np.array([begin for begin, _ in parts], dtype=np.int64)
    cursor = indptr[begins]
    running = np.concatenate(([0], np.cumsum(lengths[by_source])))
    for begin, end in spans(running, 1 + int(running[-1]) // at_once):
        places = by_source[begin:end]
        part = np.searchsorted(begins, places, side="right") - 1
        by_part = np.argsort(part, kind="stable")
        places, part = places[by_part], part[by_part]
        bounds = np.concatenate(([0], np.cumsum(lengths[places])))
        own_indices, own_data = copy_entries(rows, order[places], bounds)
        for first, last in _runs(part):
            low, high = bounds[first], bounds[last]
            target = slice(cursor[part[first]], cursor[part[first]] + high - low)
            indices[target], data[target] = own_indices[low:high], own_data[low:high]
            cursor[part[first]] += high - low
        let_go(rows.indices, rows.data, indices, data)


def _runs(numbers: IntArray) -> list[tuple[int, int]]:
    """Where equal numbers stand in a sorted array."""
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(numbers)], strict=True)) if len(numbers) else []


def solver_rows_on_disk(
    rows: Rows, weights: Float32Array, generator: np.random.Generator, bias: float, memory: int
) -> SolverRows:
    """Prepare rows on disk for the solvers; the result is that of `abound.learn.linear_rows.solver_rows`.

    Parameters
    ----------
    rows, weights, generator, bias : object
        As there.
    memory : int
        The budget.

    Returns
    -------
    SolverRows
        Indices and values in temporary files.
    """
    if bias:
        rows = add_first(rows, bias)
    at_once = max(1, memory // 16 // BYTES_A_ENTRY)
    norms = np.empty(rows.n_rows)
    for begin, end, part in _matrices(rows, at_once):
        norms[begin:end] = row_norms(part)
    present = (norms > 0) & (weights > 0)
    frequency = np.zeros(rows.n_features, dtype=np.int64)
    for begin, end, part in _matrices(rows, at_once):
        frequency += np.bincount(part[present[begin:end]].indices, minlength=rows.n_features)
    order = generator.permutation(rows.n_rows)
    order = order[present[order]]
    features = np.argsort(-frequency, kind="stable")[: np.count_nonzero(frequency)]
    place = np.zeros(rows.n_features, dtype=np.int32)
    place[features] = np.arange(len(features))

    def renumber(indptr: IntArray, indices: IdArray, data: Float32Array) -> tuple[Any, Any]:
        part = sp.csr_array((data, place[indices], indptr), shape=(len(indptr) - 1, rows.n_features))
        part.sort_indices()
        return part.indices, part.data

    return SolverRows(
        *gather_rows(rows, order, memory, renumber),
        frozen(norms[order], np.float32),
        frozen(weights[order], np.float32),
        frozen(order, np.int64),
        frozen(features[1:] - 1 if bias else features, np.int32),
        max(1, memory // WINDOW_SHARE // 8),
        bias,
    )


def _matrices(rows: Rows, at_once: int) -> Any:
    """Spans of the rows as matrices in memory."""
    for begin, end in rows.spans(at_once):
        span = slice(rows.indptr[begin], rows.indptr[end])
        indptr = rows.indptr[begin : end + 1] - rows.indptr[begin]
        shape = end - begin, rows.n_features
        yield begin, end, sp.csr_array((rows.data[span], rows.indices[span], indptr), shape=shape)
        let_go(rows.indices[span], rows.data[span])
