"""Kernels of what the nodes of a tree know: laying it out, finding it again, and the scores of a node's children.

Kernels that call one another for every row and node would spend their time passing arrays on: these take several rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._lane_sums import LANES, add_packed, ask_for, start_sums

EMPTY = np.int32(-(2**31))
"""What stands in a slot without a child. Other numbers below 0 are ``~c``, the leaf of class c; else a node."""

SPREAD = np.uint64(2654435769)
LOW_HALF = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

ALL_LANES = (1 << LANES) - 1
ALL_BLOCKS = (1 << 15) - 1
LAST = np.int32(-(2**31))
"""The bit of an entry's last head."""

MOST_CELLS = 2**31 - 1
"""Cells that a node may have: the table counts them in 32 bits."""


@kernel
def place_of(feature: int, size: int) -> Any:
    """Return where in a table of a size a feature is looked for first: multiplicative hashing, any size."""
    mixed = (np.uint64(feature) * SPREAD) & LOW_HALF
    return np.int64((mixed * np.uint64(size)) >> HALF)


@kernel
def find_entry(tree: Any, node: int, feature: int) -> Any:
    """Return where in the table a node has a feature, -1 if it does not know it."""
    base, end = tree.table_indptr[node], tree.table_indptr[node + 1]
    t = base + place_of(feature, end - base)
    while tree.table[2 * t] >= 0:
        if tree.table[2 * t] == feature:
            return t
        t = t + 1 if t + 1 < end else base
    return np.int64(-1)


@kernel
def look_up(indptr: Any, indices: Any, data: Any, n: int, tree: Any, looked: Any) -> None:
    """Find the weights of the features of n rows, each at a node: ``looked.rows`` and ``looked.nodes``.

    A large model is not in the cache, and pointers are followed one after the other. So all features of all rows take
    each step together, and ask for the memory that the next step reads.
    """
    rows, nodes, cells, values, counts = looked.rows, looked.nodes, looked.cells, looked.values, looked.counts
    table, table_indptr = tree.table, tree.table_indptr
    for i in range(n):
        if len(tree.biases):
            ask_for(tree.biases, tree.slot_indptr[nodes[i]])
        base = table_indptr[nodes[i]]
        size = table_indptr[nodes[i] + 1] - base
        low = indptr[rows[i]]
        for j in range(indptr[rows[i] + 1] - low):
            t = base + place_of(indices[low + j], size)
            cells[i, j] = t
            ask_for(table, 2 * t)
    for i in range(n):
        base, end, first = table_indptr[nodes[i]], table_indptr[nodes[i] + 1], tree.cell_indptr[nodes[i]]
        low = indptr[rows[i]]
        found = 0
        for j in range(indptr[rows[i] + 1] - low):
            feature, t = indices[low + j], cells[i, j]
            while table[2 * t] >= 0:
                if table[2 * t] == feature:
                    p = first + table[2 * t + 1]
                    cells[i, found], values[i, found] = p, data[low + j]
                    found += 1
                    ask_for(tree.cells, p)
                    ask_for(tree.cells, p + LANES)
                    break
                t = t + 1 if t + 1 < end else base
        counts[i] = found


@kernel
def add_up(n: int, tree: Any, looked: Any) -> None:
    """Write the scores of all children of each row's node, in blocks of 16, from what was looked up."""
    nodes, values, counts, sums = looked.nodes, looked.values, looked.counts, looked.sums
    cells, weights = tree.cells, tree.cells.view(np.float32)
    width = sums.shape[0] // len(nodes)
    for i in range(n):
        first = tree.slot_indptr[nodes[i]]
        n_blocks = (tree.slot_indptr[nodes[i] + 1] - first) // LANES
        base = i * width
        if len(tree.biases):
            for b in range(n_blocks):
                start_sums(tree.biases, first + b * LANES, sums, base + b)
        else:
            for b in range(base, base + n_blocks):
                for lane in range(LANES):
                    sums[b, lane] = 0
        common = np.float32(0)
        for j in range(counts[i]):
            p, value = looked.cells[i, j], values[i, j]
            common += value * weights[p]
            head = np.int64(0)
            p += 1
            while head >= 0:
                head = np.int64(cells[p])
                p = add_packed(cells, p + 1, head & ALL_LANES, value, sums, base + (head >> LANES & ALL_BLOCKS))
        if common != 0:
            for b in range(base, base + n_blocks):
                for lane in range(LANES):
                    sums[b, lane] += common


@kernel
def find_open(tree: Any, open_classes: Any, open_nodes: Any) -> None:
    """Tell which nodes lead to a class that may be ranked."""
    for node in range(len(open_nodes) - 1, -1, -1):
        is_open = False
        for slot in range(tree.slot_indptr[node], tree.slot_indptr[node + 1]):
            child = tree.slots[slot]
            if child != EMPTY:
                is_open |= open_classes[~child] if child < 0 else open_nodes[child]
        open_nodes[node] = is_open


@kernel
def count_levels(tree: Any, level: Any) -> Any:
    """Return the number of nodes on the longest way down; ``level``, a number a node, is 1."""
    deepest = 1
    for node in range(len(level)):
        deepest = max(deepest, level[node])
        for slot in range(tree.slot_indptr[node], tree.slot_indptr[node + 1]):
            if tree.slots[slot] >= 0:
                level[tree.slots[slot]] = level[node] + 1
    return deepest


@kernel
def count_weights(weights: Any, j: int) -> Any:
    """Return how many of a row of sixteen weights are not 0."""
    n = 0
    for lane in range(LANES):
        n += weights[j, lane] != 0
    return n


@kernel
def pack(block: int, rows: Any, j: int, is_last: bool, cells: Any, weights: Any, p: int) -> Any:
    """Write a row of sixteen weights as a head and those that are not 0, from cell p on; return the cell behind them.

    ``weights`` is what the cells are as numbers.
    """
    lanes, q = 0, p + 1
    for lane in range(LANES):
        if rows[j, lane] != 0:
            lanes |= 1 << lane
            weights[q] = rows[j, lane]
            q += 1
    cells[p] = np.int32(block << LANES | lanes) | (LAST if is_last else np.int32(0))
    return q


@kernel
def enter(feature: int, start: int, base: int, size: int, table: Any) -> None:
    """Write a feature and where its cells begin into the first place of a table from its own on that is free."""
    t = place_of(feature, size)
    while table[2 * (base + t)] >= 0:
        t = t + 1 if t + 1 < size else 0
    table[2 * (base + t)], table[2 * (base + t) + 1] = feature, start


@kernel
def forget_feature(feature: int, table_indptr: Any, table: Any) -> None:
    """Take a feature out of the tables of all nodes; those behind it move up, so that they are still found."""
    for node in range(len(table_indptr) - 1):
        base, size = table_indptr[node], table_indptr[node + 1] - table_indptr[node]
        t = place_of(feature, size)
        while table[2 * (base + t)] >= 0 and table[2 * (base + t)] != feature:
            t = t + 1 if t + 1 < size else 0
        if table[2 * (base + t)] < 0:
            continue
        gap = t
        while True:
            t = t + 1 if t + 1 < size else 0
            other = table[2 * (base + t)]
            if other < 0:
                break
            # It may stand in the gap if that is not before its own place, once round.
            away, back = t - place_of(other, size), t - gap
            if (away if away >= 0 else away + size) >= (back if back >= 0 else back + size):
                table[2 * (base + gap)], table[2 * (base + gap) + 1] = other, table[2 * (base + t) + 1]
                gap = t
        table[2 * (base + gap)] = table[2 * (base + gap) + 1] = -1


@kernel
def lay_out_node(
    features: Any,
    n_features: int,
    offsets: Any,
    kept: Any,
    n_kept: int,
    counts: Any,
    cursor: Any,
    base: int,
    cell: int,
    out: Any,
) -> Any:
    """Write what a node knows; return the size of its table and the number of its cells.

    ``kept`` has the weights by block: the place of their feature in ``features``, the block, and the 16 numbers. They
    go to ``out``, from the given place of the table and the given cell on. A feature without weights and offset is left
    out. ``counts`` and ``cursor`` have room for a number a feature. Nothing is written of more than `MOST_CELLS`.
    """
    counts[:n_features] = 0
    cursor[:n_features] = 0
    for j in range(n_kept):
        counts[kept.features[j]] += 1
        cursor[kept.features[j]] += 1 + count_weights(kept.weights, j)
    n_entries = n_cells = 0
    for f in range(n_features):
        if counts[f] > 0 or offsets[f] != 0:
            n_entries += 1
            n_cells += 1 + max(1, cursor[f])
    # At least half of it is free, so that what is looked for is soon found, or soon missed.
    size = 2 * n_entries + 1
    if n_cells > MOST_CELLS:
        return size, n_cells
    out.table[2 * base : 2 * (base + size)] = -1
    weights = out.cells.view(np.float32)
    end = cell
    for f in range(n_features):
        if counts[f] > 0 or offsets[f] != 0:
            enter(features[f], end - cell, base, size, out.table)
            weights[end] = offsets[f]
            if counts[f] == 0:
                out.cells[end + 1] = LAST
            n_own = 1 + max(1, cursor[f])
            cursor[f] = end + 1 - cell
            end += n_own
    for j in range(n_kept):
        f = kept.features[j]
        counts[f] -= 1
        p = cell + cursor[f]
        cursor[f] = pack(kept.blocks[j], kept.weights, j, counts[f] == 0, out.cells, weights, p) - cell
    return size, n_cells


@kernel
def weight_of(tree: Any, node: int, t: int, place: int) -> Any:
    """Return the weight of the feature at place t of the table for the child at a place of the node."""
    weights, p = tree.cells.view(np.float32), tree.cell_indptr[node] + tree.table[2 * t + 1]
    total = weights[p]
    head = np.int64(0)
    p += 1
    while head >= 0:
        head, p = np.int64(tree.cells[p]), p + 1
        for lane in range(LANES):
            if head >> lane & 1:
                if (head >> LANES & ALL_BLOCKS) * LANES + lane == place:
                    total += weights[p]
                p += 1
    return total


@kernel
def list_edges(tree: Any, offsets: Any, entries: Any, places: Any, values: Any) -> Any:
    """Write the offset at each place of the table, and for each weight its entry, the place of its child, the number.

    An entry is a place of the table. ``offsets`` begins at 0. What there is no room for is only counted: returns the
    number of weights, and how many offsets are not 0.
    """
    weights, n, n_offsets = tree.cells.view(np.float32), 0, 0
    for node in range(len(tree.table_indptr) - 1):
        for t in range(tree.table_indptr[node], tree.table_indptr[node + 1]):
            if tree.table[2 * t] < 0:
                continue
            p = tree.cell_indptr[node] + tree.table[2 * t + 1]
            n_offsets += weights[p] != 0
            if t < len(offsets):
                offsets[t] = weights[p]
            head = np.int64(0)
            p += 1
            while head >= 0:
                head, p = np.int64(tree.cells[p]), p + 1
                for lane in range(LANES):
                    if head >> lane & 1:
                        if n < len(entries):
                            place = (head >> LANES & ALL_BLOCKS) * LANES + lane
                            entries[n], places[n], values[n] = t, place, weights[p]
                        n, p = n + 1, p + 1
    return n, n_offsets


@kernel
def pack_edges(
    offsets: Any, entries: Any, places: Any, values: Any, table_indptr: Any, table: Any, cell_indptr: Any, cells: Any
) -> None:
    """Write cells, and where they begin into the table, from the list of `list_edges` or a part of it."""
    weights, n, p = cells.view(np.float32), 0, np.int64(0)
    for node in range(len(table_indptr) - 1):
        first = p
        for t in range(table_indptr[node], table_indptr[node + 1]):
            if table[2 * t] < 0:
                continue
            table[2 * t + 1] = p - first
            weights[p] = offsets[t]
            p += 1
            head, block = p, np.int64(-1)
            while n < len(entries) and entries[n] == t:
                if places[n] // LANES != block:
                    head, block = p, np.int64(places[n] // LANES)
                    cells[head] = np.int32(block << LANES)
                    p += 1
                cells[head] |= np.int32(1 << (places[n] % LANES))
                weights[p] = values[n]
                n, p = n + 1, p + 1
            if block < 0:
                cells[p] = 0
                p += 1
            cells[head] |= LAST
        cell_indptr[node + 1] = p
