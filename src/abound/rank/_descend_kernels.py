"""Kernels that walk down a tree: which leaves are best, without scoring the others.

A row's score of a child is its score of the parent plus ``link(w·x + bias)``, at most 0, so scores fall along a path;
they are logarithms. Several rows walk together, so that what they look up comes from memory at the same time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._lane_sums import LANES, at_least, below_zero, lowest_bit
from abound.rank._node_kernels import EMPTY, add_up, look_up
from abound.rank._topk_kernels import add_vote, comes_before, forget_votes, offer, sort_heap

LOWEST = -60.0
"""The best chance of a row is written as at least exp of this: float32 ends at exp(-87)."""

VANISHING = 1e-300

TOGETHER = 32
"""Rows that walk together: while one waits for memory, the others compute."""


ROUNDING = np.float32(1e-5)
"""More than sums of logarithms are rounded by."""


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
def begin_row(row: int, i: int, room: Any) -> None:
    """Let the root wait for a row, which walks at place i."""
    room.looked.rows[i] = row
    room.found[i] = 0
    room.n_waiting[i] = 0
    room.n_opened[i] = 0
    room.n_waiting[i, 0] = 1
    room.waiting[i, 0, 0] = 0
    room.chances[i, 0, 0] = 0


@kernel
def take_next_nodes(n: int, row: int, end: int, room: Any, out_ids: Any, out_scores: Any) -> Any:
    """Choose the node that each of n rows opens next: the best of those that wait at any level, the higher level first.

    A row is done when none waits that is not below the worst of the leaves wanted. Then the next, from ``row`` to
    ``end``, takes its place. Returns how many rows walk on, and the row after them.
    """
    waiting, chances, n_waiting, n_opened = room.waiting, room.chances, room.n_waiting, room.n_opened
    rows, found, k = room.looked.rows, room.found, out_ids.shape[1]
    i = 0
    while i < n:
        level = -1
        best = out_scores[rows[i], 0] if found[i] == k else np.float32(-np.inf)
        for at in range(waiting.shape[1]):
            b = n_opened[i, at]
            # Below a node that is level with the worst leaf there may be one of a lower number.
            if b < n_waiting[i, at] and (chances[i, at, b] > best or (level < 0 and chances[i, at, b] == best)):
                level, best = at, chances[i, at, b]
        if level >= 0:
            room.looked.nodes[i] = waiting[i, level, n_opened[i, level]]
            n_opened[i, level] += 1
            room.level[i], room.above[i] = level, best
            i += 1
        else:
            sort_heap(found[i], out_ids[rows[i]], out_scores[rows[i]])
            if row < end:
                begin_row(row, i, room)
                row += 1
            else:
                n -= 1
                if i < n:
                    copy_row(n, i, room)
    return n, row


@kernel
def copy_row(source: int, i: int, room: Any) -> None:
    """Let a row walk on at another place."""
    room.looked.rows[i] = room.looked.rows[source]
    room.found[i] = room.found[source]
    room.n_waiting[i] = room.n_waiting[source]
    room.n_opened[i] = room.n_opened[source]
    room.waiting[i] = room.waiting[source]
    room.chances[i] = room.chances[source]


@kernel
def offer_children(
    n: int, tree: Any, link: int, open_nodes: Any, open_classes: Any, room: Any, out_ids: Any, out_scores: Any
) -> None:
    """Let the children of each row's node wait, or be among the leaves wanted."""
    slots, slot_indptr, sums = tree.slots, tree.slot_indptr, room.looked.sums
    n_levels, beam, k = room.waiting.shape[1], room.waiting.shape[2], out_ids.shape[1]
    width = sums.shape[0] // len(room.found)
    for i in range(n):
        node, row, above, below = room.looked.nodes[i], room.looked.rows[i], room.above[i], room.level[i] + 1
        n_blocks = (slot_indptr[node + 1] - slot_indptr[node]) // LANES
        # On the lowest level there are leaves alone.
        level = min(below, n_levels - 1)
        waiting, chances, n_waiting = room.waiting[i, level], room.chances[i, level], room.n_waiting[i, level]
        best_ids, best_scores, found = out_ids[row], out_scores[row], room.found[i]
        for b in range(n_blocks):
            # Most children are turned down by a look at their scores, sixteen at once.
            least_node = least_score(above, chances[beam - 1], link) if n_waiting == beam else np.float32(-np.inf)
            least_leaf = least_score(above, best_scores[0], link) if found == k else np.float32(-np.inf)
            first = slot_indptr[node] + b * LANES
            leaves = below_zero(slots, first)
            lanes = at_least(sums, i * width + b, least_leaf) & leaves
            lanes |= at_least(sums, i * width + b, least_node) & ~leaves
            while lanes:
                lane = lowest_bit(lanes)
                lanes &= lanes - 1
                child = slots[first + lane]
                if child == EMPTY:
                    continue
                score = above + link_of(sums[i * width + b, lane], link)
                if child < 0:
                    if len(open_classes) == 0 or open_classes[~child]:
                        found = offer(score, np.int32(~child), found, best_ids, best_scores)
                elif len(open_nodes) == 0 or open_nodes[child]:
                    n_waiting = let_wait(score, child, n_waiting, waiting, chances)
        room.n_waiting[i, level], room.found[i] = n_waiting, found


@kernel
def let_wait(score: Any, child: Any, size: int, waiting: Any, chances: Any) -> Any:
    """Put a node among the best that wait, which are sorted, if it is one of these; return how many they are."""
    last = size
    if size == len(waiting):
        last -= 1
        if not comes_before(score, child, chances[last], waiting[last]):
            return size
    else:
        size += 1
    while last > 0 and comes_before(score, child, chances[last - 1], waiting[last - 1]):
        waiting[last], chances[last] = waiting[last - 1], chances[last - 1]
        last -= 1
    waiting[last], chances[last] = child, score
    return size


@kernel
def least_score(above: Any, worst: Any, link: int) -> Any:
    """Return a score below which a child is certainly below the worst that is wanted, whatever rounding does."""
    gap = above - worst + ROUNDING * (np.float32(1) - worst)
    if gap < 0:
        return np.float32(np.inf)
    # By the logistic no link is above the score itself.
    return np.float32(1) - np.sqrt(gap) if link == 0 else -gap


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
    knows a feature of the row. Of all nodes that wait the best is opened first, until it is below the leaves that were
    found. Scores fall along a path, so those of a level are opened best first as well, and what is left unopened of its
    best few could not have changed the result.
    """
    n = min(len(room.found), end - begin)
    for i in range(n):
        begin_row(begin + i, i, room)
    row = begin + n
    looked = room.looked
    while True:
        n, row = take_next_nodes(n, row, end, room, out_ids, out_scores)
        if n == 0:
            break
        look_up(indptr, indices, data, n, tree, looked)
        add_up(n, tree, looked)
        for i in range(n):
            if looked.nodes[i] == 0:
                out_known[looked.rows[i]] = looked.counts[i] > 0
        offer_children(n, tree, link, open_nodes, open_classes, room, out_ids, out_scores)


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
    ids, scores, looked = room.queue_ids, room.queue_scores, room.looked
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
            looked.rows[0], looked.nodes[0] = row, node
            look_up(indptr, indices, data, 1, tree, looked)
            add_up(1, tree, looked)
            if node == 0:
                out_known[row] = looked.counts[0] > 0
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
                score = above + link_of(looked.sums[place // LANES, place % LANES], link)
                push(score, np.int32(~child if child < 0 else child - n_nodes), size, ids, scores)
                size += 1


@kernel
def mean_of_trees(ids: Any, scores: Any, begin: int, votes: Any, sums: Any, out_ids: Any, out_scores: Any) -> None:
    """Average what several trees say of some rows, and write the best classes of each, best first.

    ``ids`` and ``scores`` have the shape (trees, rows, leaves), with -1 where a tree found fewer. In each tree a class
    has the sum of its leaves' chances, 0 where the tree did not find it. A row whose best chance would be too small for
    a float32 is lifted as a whole. ``sums``, a number for each class that is written, is scratch.
    """
    n_trees, n_rows, width = ids.shape
    for r in range(n_rows):
        top = -np.inf
        for t in range(n_trees):
            if ids[t, r, 0] >= 0:
                top = max(top, np.float64(scores[t, r, 0]))
        n = 0
        for t in range(n_trees):
            for j in range(width):
                c = ids[t, r, j]
                if c < 0:
                    break
                # What is far below the best is nothing beside it, but its logarithm must be a number.
                n = add_vote(votes, c, max(VANISHING, math.exp(np.float64(scores[t, r, j]) - top)), n)
        best = out_ids[begin + r]
        size = 0
        for t in range(n):
            c = votes.touched[t]
            size = offer(votes.score[c], c, size, best, sums)
        forget_votes(votes, n)
        sort_heap(size, best, sums)
        shift = max(top, LOWEST) - math.log(n_trees)
        for j in range(size):
            out_scores[begin + r, j] = math.exp(math.log(sums[j]) + shift)
