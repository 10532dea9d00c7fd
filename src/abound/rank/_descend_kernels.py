"""Kernels that walk down a tree: which leaves are best, without scoring the others.

A row's score of a child is its score of the parent plus ``link(w·x)``, at most 0, so scores fall along a path; they are
logarithms. Rows that are at the same node are scored one after another: then its weights are in the cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._lane_sums import LANES, add_weights
from abound.rank._topk_kernels import comes_before, offer, sort_heap

EMPTY = np.int32(-(2**31))
"""What stands in a slot without a child. Other numbers below 0 are ``~c``, the leaf of class c; else a node."""

LOWEST = -60.0
"""The best chance of a row is written as at least exp of this: float32 ends at exp(-87)."""

VANISHING = 1e-300

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
def score_children(indices: Any, data: Any, low: int, high: int, tree: Any, node: int, sums: Any) -> Any:
    """Write ``w·x`` of all children of a node, in blocks of 16; return whether the node knows a feature of the row."""
    first = tree.slot_indptr[node] // LANES
    n_blocks = tree.slot_indptr[node + 1] // LANES - first
    for b in range(n_blocks):
        for lane in range(LANES):
            sums[b, lane] = 0
    common = np.float32(0)
    knows = False
    for p in range(low, high):
        e = find_entry(tree, node, indices[p])
        if e >= 0:
            knows = True
            value = data[p]
            common += value * tree.offsets[e]
            for q in range(tree.row_indptr[e], tree.row_indptr[e + 1]):
                add_weights(tree.weights, q, value, sums, tree.blocks[q])
    if common != 0:
        for b in range(n_blocks):
            for lane in range(LANES):
                sums[b, lane] += common
    return knows


@kernel
def link_of(s: Any, link: int) -> Any:
    """Return the logarithm of the chance that a score stands for: by the squared hinge loss, or by the logistic."""
    if link == 0:
        short = np.float32(1) - s
        return -short * short if short > 0 else np.float32(0)
    if s < 0:
        return s - np.float32(math.log1p(math.exp(s)))
    return -np.float32(math.log1p(math.exp(-s)))


@kernel
def begin_rows(n: int, room: Any) -> None:
    """Put every row at the root."""
    for r in range(n):
        room.nodes[r, 0] = 0
        room.scores[r, 0] = 0
        room.sizes[r] = 1


@kernel
def gather_rows(n: int, room: Any, touched: Any) -> Any:
    """List the nodes at which rows are, and chain the rows of each; return how many nodes there are."""
    width = room.nodes.shape[1]
    n_touched = 0
    for r in range(n):
        for b in range(room.sizes[r]):
            node = room.nodes[r, b]
            if room.heads[node] < 0:
                touched[n_touched] = node
                n_touched += 1
            room.chain[r * width + b] = room.heads[node]
            room.heads[node] = r * width + b
    return n_touched


@kernel
def beam_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    begin: int,
    end: int,
    tree: Any,
    link: int,
    open_nodes: Any,
    open_classes: Any,
    room: Any,
    out_ids: Any,
    out_scores: Any,
    out_known: Any,
) -> None:
    """Write the best leaves below the ``beam`` best nodes of each level, best first, for rows ``begin`` to ``end``.

    ``open_nodes`` and ``open_classes`` are empty, or tell where the walk may go. ``out_known`` tells whether the root
    knows a feature of the row.
    """
    n = end - begin
    width = room.nodes.shape[1]
    begin_rows(n, room)
    room.found[:n] = 0
    nodes, scores, next_nodes, next_scores = room.nodes, room.scores, room.next_nodes, room.next_scores
    while True:
        n_touched = gather_rows(n, room, room.touched)
        if n_touched == 0:
            break
        room.next_sizes[:n] = 0
        for t in range(n_touched):
            node = room.touched[t]
            pair = room.heads[node]
            room.heads[node] = -1
            low_slot, high_slot = tree.slot_indptr[node], tree.slot_indptr[node + 1]
            while pair >= 0:
                r = pair // width
                row = begin + r
                above = scores[r, pair - r * width]
                knows = score_children(indices, data, indptr[row], indptr[row + 1], tree, node, room.sums)
                if node == 0:
                    out_known[row] = knows
                for slot in range(low_slot, high_slot):
                    child = tree.slots[slot]
                    if child == EMPTY:
                        continue
                    place = slot - low_slot
                    s = room.sums[place // LANES, place % LANES]
                    if child < 0:
                        if len(open_classes) == 0 or open_classes[~child]:
                            room.found[r] = offer_child(
                                above, s, link, np.int32(~child), room.found[r], out_ids[row], out_scores[row]
                            )
                    elif len(open_nodes) == 0 or open_nodes[child]:
                        room.next_sizes[r] = offer_child(
                            above, s, link, child, room.next_sizes[r], next_nodes[r], next_scores[r]
                        )
                pair = room.chain[pair]
        for r in range(n):
            room.sizes[r] = room.next_sizes[r]
            for b in range(room.sizes[r]):
                nodes[r, b] = next_nodes[r, b]
                scores[r, b] = next_scores[r, b]
    for r in range(n):
        sort_heap(room.found[r], out_ids[begin + r], out_scores[begin + r])


@kernel
def offer_child(above: Any, s: Any, link: int, child: Any, size: Any, ids: Any, scores: Any) -> Any:
    """Offer a child to a heap of the best, whose worst is on top; return the heap's new size."""
    # No link is above the score itself or 0: where this is too little, the link need not be computed.
    if size == len(ids) and above + min(s, np.float32(0)) < scores[0]:
        return size
    return offer(above + link_of(s, link), child, size, ids, scores)


@kernel
def push(score: Any, child: Any, size: int, ids: Any, scores: Any) -> None:
    """Add to a heap whose best is on top; the arrays have room."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if not comes_before(score, child, scores[up], ids[up]):
            break
        ids[i], scores[i] = ids[up], scores[up]
        i = up
    ids[i], scores[i] = child, score


@kernel
def pop(size: int, ids: Any, scores: Any) -> None:
    """Take the best from the top of a heap of ``size``; it is lost, so read it first."""
    child, score = ids[size - 1], scores[size - 1]
    last = size - 1
    i = 0
    while True:
        down = 2 * i + 1
        if down >= last:
            break
        right = down + 1
        if right < last and comes_before(scores[right], ids[right], scores[down], ids[down]):
            down = right
        if not comes_before(scores[down], ids[down], score, child):
            break
        ids[i], scores[i] = ids[down], scores[down]
        i = down
    ids[i], scores[i] = child, score


@kernel
def best_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    begin: int,
    end: int,
    tree: Any,
    link: int,
    open_nodes: Any,
    open_classes: Any,
    room: Any,
    out_ids: Any,
    out_scores: Any,
    out_known: Any,
) -> None:
    """Write the best leaves of each row, best first, opening the best node at any level first.

    Scores fall along a path, so a leaf that is the best of all that is waiting is the best of all that is left.
    """
    k = out_ids.shape[1]
    n_nodes = len(tree.slot_indptr) - 1
    ids, scores = room.queue_ids, room.queue_scores
    for row in range(begin, end):
        # In the queue a node stands below 0, so that it comes before a leaf of the same score.
        ids[0], scores[0] = -n_nodes, 0
        size, found = 1, 0
        while size > 0 and found < k:
            best, above = ids[0], scores[0]
            pop(size, ids, scores)
            size -= 1
            if best >= 0:
                out_ids[row, found], out_scores[row, found] = best, above
                found += 1
                continue
            node = best + n_nodes
            knows = score_children(indices, data, indptr[row], indptr[row + 1], tree, node, room.sums)
            if node == 0:
                out_known[row] = knows
            low_slot = tree.slot_indptr[node]
            for slot in range(low_slot, tree.slot_indptr[node + 1]):
                child = tree.slots[slot]
                if child == EMPTY:
                    continue
                if child < 0:
                    if len(open_classes) and not open_classes[~child]:
                        continue
                elif len(open_nodes) and not open_nodes[child]:
                    continue
                place = slot - low_slot
                score = above + link_of(room.sums[place // LANES, place % LANES], link)
                push(score, np.int32(~child if child < 0 else child - n_nodes), size, ids, scores)
                size += 1


@kernel
def mean_of_trees(
    ids: Any, scores: Any, begin: int, totals: Any, touched: Any, sums: Any, out_ids: Any, out_scores: Any
) -> None:
    """Average what several trees say of some rows, and write the best classes of each, best first.

    ``ids`` and ``scores`` have the shape (trees, rows, leaves), with -1 where a tree found fewer. In each tree a class
    has the sum of its leaves' chances, 0 where the tree did not find it. A row whose best chance would be too small for
    a float32 is lifted as a whole. ``totals``, one number a class, is zero and stays so; ``touched`` and ``sums``, one
    number for each that is written, are scratch.
    """
    n_trees, n_rows, width = ids.shape
    for r in range(n_rows):
        top = -np.inf
        for t in range(n_trees):
            if ids[t, r, 0] >= 0:
                top = max(top, np.float64(scores[t, r, 0]))
        n_touched = 0
        for t in range(n_trees):
            for j in range(width):
                c = ids[t, r, j]
                if c < 0:
                    break
                if totals[c] == 0:
                    touched[n_touched] = c
                    n_touched += 1
                # What is far below the best is nothing beside it, but must differ from a class that was not found.
                totals[c] += max(VANISHING, math.exp(np.float64(scores[t, r, j]) - top))
        best = out_ids[begin + r]
        size = 0
        for t in range(n_touched):
            c = touched[t]
            size = offer(totals[c], np.int32(c), size, best, sums)
            totals[c] = 0
        sort_heap(size, best, sums)
        shift = max(top, LOWEST) - math.log(n_trees)
        for j in range(size):
            out_scores[begin + r, j] = math.exp(math.log(sums[j]) + shift)


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
