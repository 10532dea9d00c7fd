"""Kernels of what the nodes of a tree know: laying it out, finding it again, and the scores of a node's children.

Kernels that call one another for every row and node would spend their time passing arrays on: these take several rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._lane_sums import LANES, add_weights, ask_for

EMPTY = np.int32(-(2**31))
"""What stands in a slot without a child. Other numbers below 0 are ``~c``, the leaf of class c; else a node."""

SPREAD = np.uint64(2654435769)
LOW_HALF = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


@kernel
def bucket_of(feature: int, n_buckets: int) -> Any:
    """Return the bucket of a feature: multiplicative hashing, any number of buckets."""
    mixed = (np.uint64(feature) * SPREAD) & LOW_HALF
    return np.int64((mixed * np.uint64(n_buckets)) >> HALF)


@kernel
def find_entry(tree: Any, node: int, feature: int) -> Any:
    """Return where a node keeps the weights of a feature, -1 if it has none."""
    base = tree.bucket_indptr[node]
    bucket = base + bucket_of(feature, tree.bucket_indptr[node + 1] - base - 1)
    first = tree.entry_indptr[node]
    for e in range(first + tree.buckets[bucket], first + tree.buckets[bucket + 1]):
        if tree.features[e] == feature:
            return e
    return np.int64(-1)


@kernel
def look_up(indptr: Any, indices: Any, data: Any, n: int, tree: Any, looked: Any) -> None:
    """Find the weights of the features of n rows, each at a node: ``looked.rows`` and ``looked.nodes``.

    A large model is not in the cache, and four pointers are followed one after the other. So all features of all rows
    take each step together, and ask for the memory that the next step reads.
    """
    rows, nodes, entries, values, counts = looked.rows, looked.nodes, looked.entries, looked.values, looked.counts
    buckets, bucket_indptr, features = tree.buckets, tree.bucket_indptr, tree.features
    entry_indptr, row_indptr = tree.entry_indptr, tree.row_indptr
    for i in range(n):
        base = bucket_indptr[nodes[i]]
        n_buckets = bucket_indptr[nodes[i] + 1] - base - 1
        low = indptr[rows[i]]
        for t in range(indptr[rows[i] + 1] - low):
            bucket = base + bucket_of(indices[low + t], n_buckets)
            entries[i, t] = bucket
            ask_for(buckets, bucket)
    for i in range(n):
        first = entry_indptr[nodes[i]]
        for t in range(indptr[rows[i] + 1] - indptr[rows[i]]):
            ask_for(features, first + buckets[entries[i, t]])
    for i in range(n):
        first = entry_indptr[nodes[i]]
        low = indptr[rows[i]]
        found = 0
        for t in range(indptr[rows[i] + 1] - low):
            bucket, feature = entries[i, t], indices[low + t]
            for e in range(first + buckets[bucket], first + buckets[bucket + 1]):
                if features[e] == feature:
                    entries[i, found], values[i, found] = e, data[low + t]
                    found += 1
                    ask_for(row_indptr, e)
                    ask_for(tree.offsets, e)
                    break
        counts[i] = found
    for i in range(n):
        for t in range(counts[i]):
            q = row_indptr[entries[i, t]]
            ask_for(tree.blocks, q)
            ask_for(tree.weights, q)
            ask_for(tree.weights, q + 1)


@kernel
def add_up(n: int, tree: Any, looked: Any) -> None:
    """Write ``w·x`` of all children of each row's node, in blocks of 16, from what was looked up."""
    nodes, entries, values, counts, sums = looked.nodes, looked.entries, looked.values, looked.counts, looked.sums
    row_indptr, offsets, blocks, weights = tree.row_indptr, tree.offsets, tree.blocks, tree.weights
    width = sums.shape[0] // len(nodes)
    for i in range(n):
        n_blocks = (tree.slot_indptr[nodes[i] + 1] - tree.slot_indptr[nodes[i]]) // LANES
        base = i * width
        for b in range(base, base + n_blocks):
            for lane in range(LANES):
                sums[b, lane] = 0
        common = np.float32(0)
        for t in range(counts[i]):
            e, value = entries[i, t], values[i, t]
            common += value * offsets[e]
            for q in range(row_indptr[e], row_indptr[e + 1]):
                add_weights(weights, q, value, sums, base + blocks[q])
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
def lay_out_node(
    features: Any,
    n_features: int,
    offsets: Any,
    kept: Any,
    n_kept: int,
    counts: Any,
    cursor: Any,
    entry: int,
    row: int,
    bucket: int,
    out: Any,
) -> Any:
    """Write what a node knows, its features sorted by their hash; return how many they are.

    ``kept`` has the weights by block: the place of their feature in ``features``, the block, and the 16 numbers. They
    go to ``out`` from the given entry, row and bucket on. A feature without weights and offset is left out. ``counts``
    and ``cursor`` have room for a number a feature.
    """
    counts[:n_features] = 0
    for j in range(n_kept):
        counts[kept.features[j]] += 1
    n_entries = 0
    for f in range(n_features):
        n_entries += counts[f] > 0 or offsets[f] != 0
    n_buckets = max(1, n_entries)
    for b in range(n_buckets + 1):
        out.buckets[bucket + b] = 0
    for f in range(n_features):
        if counts[f] > 0 or offsets[f] != 0:
            out.buckets[bucket + bucket_of(features[f], n_buckets) + 1] += 1
    for b in range(n_buckets):
        out.buckets[bucket + b + 1] += out.buckets[bucket + b]
    for f in range(n_features - 1, -1, -1):
        if counts[f] > 0 or offsets[f] != 0:
            # Filled from behind, the end of each bucket becomes its beginning.
            b = bucket + bucket_of(features[f], n_buckets) + 1
            out.buckets[b] -= 1
            cursor[f] = out.buckets[b]
            e = entry + out.buckets[b]
            out.features[e], out.offsets[e], out.row_counts[e] = features[f], offsets[f], counts[f]
    for b in range(n_buckets):
        out.buckets[bucket + b] = out.buckets[bucket + b + 1]
    out.buckets[bucket + n_buckets] = n_entries
    total = 0
    for i in range(n_entries):
        counts[i] = total
        total += out.row_counts[entry + i]
    for j in range(n_kept):
        i = cursor[kept.features[j]]
        q = row + counts[i]
        counts[i] += 1
        out.blocks[q] = kept.blocks[j]
        for lane in range(LANES):
            out.weights[q, lane] = kept.weights[j, lane]
    return n_entries
