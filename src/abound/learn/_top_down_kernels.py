"""The kernels of top-down ranking: a walk takes the best leaves; a node's classifier is asked when it is opened.

Nodes wait in a heap, the most promising on top, so nodes that are never opened cost nothing. To open one costs a search
of the row's features among those of its classifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel


@kernel
def add_up(parent: Any, values: Any) -> None:
    """Add to each node what is below it; parents come before their children."""
    for node in range(len(parent) - 1, 0, -1):
        values[parent[node]] += values[node]


@kernel
def is_better(value: Any, node: Any, other_value: Any, other: Any, preference: Any) -> Any:
    """Tell whether a node is opened before another: by its value, ties by preference."""
    return value > other_value or (value == other_value and preference[node] < preference[other])


@kernel
def push(value: Any, node: Any, size: Any, preference: Any, nodes: Any, values: Any) -> Any:
    """Put a node into a heap, its best on top; return the new size."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if not is_better(value, node, values[up], nodes[up], preference):
            break
        nodes[i], values[i] = nodes[up], values[up]
        i = up
    nodes[i], values[i] = node, value
    return size + 1


@kernel
def drop_top(size: Any, preference: Any, nodes: Any, values: Any) -> Any:
    """Take the best node out of a heap; return the new size."""
    size -= 1
    node, value = nodes[size], values[size]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        right = down + 1
        if right < size and is_better(values[right], nodes[right], values[down], nodes[down], preference):
            down = right
        if not is_better(values[down], nodes[down], value, node, preference):
            break
        nodes[i], values[i] = nodes[down], values[down]
        i = down
    nodes[i], values[i] = node, value
    return size


@kernel
def score_children(indices: Any, data: Any, low: int, high: int, walk: Any, node: Any, score: Any) -> Any:
    """Write the scores of a node's children, without what they have in common, which is returned.

    Both the row's and the node's features are sorted.
    """
    for e in range(walk.child_indptr[node], walk.child_indptr[node + 1]):
        score[walk.children[e]] = walk.bias[walk.children[e]]
    common = walk.bias[len(walk.bias) // 2 + node]
    first, last = walk.feature_indptr[node], walk.feature_indptr[node + 1]
    for p in range(low, high):
        if first == last:
            break
        f = indices[p]
        left, right = first, last
        while left < right:
            middle = (left + right) >> 1
            if walk.features[middle] < f:
                left = middle + 1
            else:
                right = middle
        first = left
        if left < last and walk.features[left] == f:
            common += data[p] * walk.common[left]
            for q in range(walk.edge_indptr[left], walk.edge_indptr[left + 1]):
                score[walk.edge_nodes[q]] += data[p] * walk.edge_weights[q]
    return np.float64(common)


@kernel
def open_greedily(
    walk: Any, alive: Any, score: Any, node: Any, value: Any, size: Any, heap_nodes: Any, heap_values: Any
) -> Any:
    """Put the children of a node into the heap, each less what it scores below the best; return size and best score."""
    best = -np.inf
    for e in range(walk.child_indptr[node], walk.child_indptr[node + 1]):
        if alive[walk.children[e]]:
            best = max(best, np.float64(score[walk.children[e]]))
    for e in range(walk.child_indptr[node], walk.child_indptr[node + 1]):
        child = walk.children[e]
        if alive[child]:
            size = push(value + (score[child] - best), child, size, walk.preference, heap_nodes, heap_values)
    return size, best


@kernel
def child_probability(walk: Any, score: Any, common: Any, child: Any) -> Any:
    """The sigmoid of a child's score."""
    z = walk.slopes[child] * (score[child] + common) + walk.intercepts[child]
    if z > 0:
        return np.exp(-z) / (1 + np.exp(-z))
    return 1 / (1 + np.exp(z))


@kernel
def open_by_probability(
    walk: Any,
    alive: Any,
    score: Any,
    common: Any,
    node: Any,
    value: Any,
    least: Any,
    size: Any,
    heap_nodes: Any,
    heap_values: Any,
) -> Any:
    """Put the children of a node into the heap, with the product of the probabilities down to them; return its size.

    Where no child reaches ``least``, the class of the node itself, if it has one, takes the node's own.
    """
    first, last = walk.child_indptr[node], walk.child_indptr[node + 1]
    reached = value < least
    for e in range(first, last):
        if reached:
            break
        reached = last - first == 1 or value * child_probability(walk, score, common, walk.children[e]) >= least
    for e in range(first, last):
        child = walk.children[e]
        if alive[child]:
            whole = last - first == 1 or (not reached and child == walk.own_leaf[node])
            probability = 1.0 if whole else child_probability(walk, score, common, child)
            size = push(value * probability, child, size, walk.preference, heap_nodes, heap_values)
    return size


@kernel
def walk_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    walk: Any,
    alive: Any,
    by_probability: bool,
    least: float,
    begin: int,
    end: int,
    score: Any,
    heap_nodes: Any,
    heap_values: Any,
    last_row: Any,
    out_ids: Any,
    out_scores: Any,
) -> None:
    """Write the best k classes of rows ``begin`` to ``end``, best first; places left over stay as they are.

    Greedily, a leaf's score is the sum of the scores on the greedy path less what its own path pays. By probability it
    is the product down its path; those below ``least`` are left out, but for the best if there is no other. ``alive``
    tells which nodes lead to a class that may rank, the root among them. ``last_row`` holds, for each class, the last
    row it was found for, at the start none of these.
    """
    k = out_ids.shape[1]
    for i in range(begin, end):
        level = 0.0
        heap_nodes[0], heap_values[0] = 0, 1.0 if by_probability else 0.0
        size, found = 1, 0
        while size > 0 and found < k:
            node, value = heap_nodes[0], heap_values[0]
            if by_probability and value < least and found > 0:
                break
            size = drop_top(size, walk.preference, heap_nodes, heap_values)
            c = walk.class_of_node[node]
            if c >= 0:
                # After a merge several leaves have one class: the best of them counts.
                if last_row[c] != i:
                    last_row[c] = i
                    out_ids[i, found], out_scores[i, found] = c, np.float32(level + value)
                    found += 1
                continue
            common = score_children(indices, data, indptr[i], indptr[i + 1], walk, node, score)
            if by_probability:
                size = open_by_probability(
                    walk, alive, score, common, node, value, least, size, heap_nodes, heap_values
                )
            else:
                size, best = open_greedily(walk, alive, score, node, value, size, heap_nodes, heap_values)
                # Deeper nodes are preferred among equals, so all that is opened before the first leaf is on its path.
                if found == 0:
                    level += best + common
