"""Kernels that check the nodes of a tree from a file: each place and each cell is looked at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._lane_sums import LANES
from abound.rank._node_kernels import ALL_BLOCKS, ALL_LANES, HALF, place_of
from abound.validation import LARGEST

LONGEST_RUN = 2**14
"""Taken places side by side, at most: as many are read to miss a feature. Half of a table that abound writes is free,
and the longest run of ten million features drawn at random is 54."""

SOUND, BAD_TABLE, CROWDED, BAD_CELLS, TOO_LARGE = 0, 1, 2, 3, 4


@kernel
def has_repeat(table: Any, base: int, size: int, first: int, length: int, key: Any, seen: Any) -> Any:
    """Tell whether a run of a node's places has a feature twice; ``seen`` is -1 all over before and after.

    ``key`` is an odd number that who wrote the file does not know, so that the features cannot be made to collide.
    """
    mask = 1
    while mask < 2 * length:
        mask *= 2
    mask -= 1
    is_twice = False
    for i in range(length):
        t = first + i if first + i < size else first + i - size
        feature = table[2 * (base + t)]
        place = np.int64((np.uint64(feature) * key) >> HALF) & mask
        while seen[place] >= 0 and seen[place] != feature:
            place = (place + 1) & mask
        is_twice |= seen[place] == feature
        seen[place] = feature
    seen[: mask + 1] = -1
    return is_twice


@kernel
def check_cells(tree: Any, node: int, start: int) -> Any:
    """Check the cells of a feature, which begin at ``start`` in the node's.

    Returns what is wrong and, if nothing is, the place behind them, if a weight is, its place. Blocks rise: a weight
    that came twice would be listed twice, and what is packed of such a list has a bit for one weight and holds two.
    """
    weights, cells = tree.cells.view(np.float32), tree.cells
    n_blocks = (tree.slot_indptr[node + 1] - tree.slot_indptr[node]) // LANES
    p, behind = tree.cell_indptr[node] + start, tree.cell_indptr[node + 1]
    if p + 1 >= behind:
        return BAD_CELLS, p
    if not abs(weights[p]) <= LARGEST:
        return TOO_LARGE, p
    p += 1
    head, block = np.int64(0), np.int64(-1)
    while head >= 0:
        if p >= behind:
            return BAD_CELLS, p
        head, p, before = np.int64(cells[p]), p + 1, block
        block = head >> LANES & ALL_BLOCKS
        if block >= n_blocks or block <= before:
            return BAD_CELLS, p
        lanes = head & ALL_LANES
        while lanes:
            if p >= behind:
                return BAD_CELLS, p
            if not abs(weights[p]) <= LARGEST:
                return TOO_LARGE, p
            lanes &= lanes - 1
            p += 1
    return SOUND, p


@kernel
def faults(tree: Any, n_features: int, begin: int, end: int, key: Any, seen: Any) -> Any:
    """Tell how some nodes of a tree from a file would lead a walk astray, and which place or cell is wrong.

    ``key`` and ``seen``, which has room for twice the longest run, are those of `has_repeat`. A feature is found if
    all places from its own on are taken up to where it is. All features together have no more cells than the node: so
    each cell is looked at about once, and two that share some, which does no harm, leave as many to none.
    """
    table = tree.table
    for node in range(begin, end):
        base, size = tree.table_indptr[node], tree.table_indptr[node + 1] - tree.table_indptr[node]
        n_cells = tree.cell_indptr[node + 1] - tree.cell_indptr[node]
        free = 0
        while free < size and table[2 * (base + free)] >= 0:
            free += 1
        if free == size:
            return BAD_TABLE, base
        # Once round, from one free place to the same: runs go on at the table's begin.
        length = 0
        for i in range(1, size + 1):
            t = free + i if free + i < size else free + i - size
            feature, start = table[2 * (base + t)], table[2 * (base + t) + 1]
            if feature < 0:
                first = t - length if t >= length else t - length + size
                if length > 1 and has_repeat(table, base, size, first, length, key, seen):
                    return BAD_TABLE, base + t
                length = 0
                continue
            away = t - place_of(feature, size)
            if away < 0:
                away += size
            if feature >= n_features or away > length or start < 0:
                return BAD_TABLE, base + t
            if length == LONGEST_RUN:
                return CROWDED, base + t
            length += 1
            fault, p = check_cells(tree, node, start)
            if fault != SOUND:
                return fault, p
            n_cells -= p - tree.cell_indptr[node] - start
            if n_cells < 0:
                return BAD_CELLS, p
    return SOUND, np.int64(0)
