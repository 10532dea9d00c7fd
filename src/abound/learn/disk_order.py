"""The order in which rows on disk are learned when they are larger than the memory that learning may take.

A random order over all rows would fetch every row from another place of the file. So the file is cut into blocks, a
window takes some blocks from random places, and the rows of a window come in random order. Each block is read once a
pass, from front to back, and leaves memory with its window. The order depends on the seed, the rows and the budget, and
on nothing else.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from abound.scratch import is_mapped, let_go
from abound.validation import IntArray, Rows

BLOCKS = 16
"""Blocks of a window: from so many places come the rows that are shuffled together."""

WINDOW_SHARE = 8
"""A window takes this part of the budget."""

ALIGNED = 64
"""Without shuffling windows end after a multiple of so many rows, so that batches are the same as without windows."""

BYTES_A_ROW = 64
"""What order, labels and weights of a row take."""

ADVICE = "use fewer features (a larger min_df of the vectoriser) or fewer classes"
"""What else to do about a model that does not fit."""


def window_entries(rows: Rows, memory: int | None) -> int | None:
    """Decide whether rows are taken in windows.

    Parameters
    ----------
    rows : Rows
        The rows.
    memory : int or None
        The budget.

    Returns
    -------
    int or None
        Non-zeros of a window. None if the rows are in memory anyway, or fit into half of the budget: then they come in
        the same order as ever.
    """
    if memory is None or not is_mapped(rows.data) or rows_bytes(rows) <= memory // 2:
        return None
    return max(1, memory // WINDOW_SHARE // 8)


def rows_bytes(rows: Rows) -> int:
    """Return the bytes of the rows' entries.

    Parameters
    ----------
    rows : Rows
        The rows.

    Returns
    -------
    int
        Eight for each.
    """
    return 8 * int(rows.indptr[-1] - rows.indptr[0])


def online_needs(rows: Rows, model: dict[str, int], memory: int, twice: bool) -> dict[str, int]:
    """Estimate what an online learner takes at most.

    Parameters
    ----------
    rows : Rows
        What it learns from.
    model : dict
        The most bytes that what is learned takes, by what they are for.
    memory : int
        The budget.
    twice : bool
        Whether a copy of the learner is trained, to learn decisions from, while the learner is there.

    Returns
    -------
    dict
        Bytes, by what they are for.
    """
    entries = window_entries(rows, memory)
    resident = rows_bytes(rows) if is_mapped(rows.data) else 0
    needs = {
        "the rows under way": resident if entries is None else 10 * entries,
        "their order and labels": BYTES_A_ROW * rows.n_rows,
    }
    return needs | {what: (1 + twice) * size for what, size in model.items()}


def make_windows(rows: Rows, chosen: IntArray, entries: int, generator: np.random.Generator | None) -> list[IntArray]:
    """Cut the rows of a pass into windows.

    Parameters
    ----------
    rows : Rows
        All rows.
    chosen : int64 array
        The rows of the pass.
    entries : int
        Non-zeros of a window.
    generator : Generator or None
        Shuffles blocks and rows; None keeps the order.

    Returns
    -------
    list of int64 arrays
        In the order to take them in.
    """
    if generator is None:
        cuts = _cuts(rows, chosen, entries)
        aligned = sorted({0, *(cut - cut % ALIGNED for cut in cuts[1:-1]), len(chosen)})
        return [chosen[begin:end] for begin, end in pairwise(aligned)]
    chosen = np.sort(chosen)
    blocks = list(pairwise(_cuts(rows, chosen, max(1, entries // BLOCKS))))
    order = generator.permutation(len(blocks)).tolist()
    windows = []
    for begin in range(0, len(blocks), BLOCKS):
        taken = [blocks[block] for block in order[begin : begin + BLOCKS]]
        windows.append(generator.permutation(np.concatenate([chosen[a:b] for a, b in taken])))
    return windows


def forget_rows(rows: Rows) -> None:
    """Let the pages of mapped rows leave memory.

    Parameters
    ----------
    rows : Rows
        The rows.
    """
    let_go(rows.indices, rows.data)


def _cuts(rows: Rows, chosen: IntArray, entries: int) -> list[int]:
    """Places in the chosen rows between which there are about so many entries."""
    ends = np.cumsum(rows.indptr[chosen + 1] - rows.indptr[chosen])
    total = int(ends[-1]) if len(ends) else 0
    inner = np.searchsorted(ends, np.arange(entries, total, entries, dtype=np.int64))
    return sorted({0, *inner.tolist(), len(chosen)})
