"""Walks over taxonomies given as arrays; a node's parents come before it."""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel


@kernel
def topological_order(indptr: Any, children: Any, n_parents: Any, order: Any) -> Any:
    """Write the nodes so that parents come first; nodes on or behind a cycle are left out.

    Parameters
    ----------
    indptr, children : int64, int32 arrays
        The children of each node.
    n_parents : int64 array
        Number of parents of each node; used up.
    order : int32 array
        Gets the nodes, level by level.

    Returns
    -------
    int
        How many nodes were written.
    """
    n = 0
    for node in range(len(n_parents)):
        if n_parents[node] == 0:
            order[n] = node
            n += 1
    done = 0
    while done < n:
        node = order[done]
        done += 1
        for i in range(indptr[node], indptr[node + 1]):
            child = children[i]
            n_parents[child] -= 1
            if n_parents[child] == 0:
                order[n] = child
                n += 1
    return n


@kernel
def node_depths(indptr: Any, parents: Any, depths: Any) -> None:
    """Write the fewest edges between each node and a root."""
    for node in range(len(depths)):
        depths[node] = 0
        for i in range(indptr[node], indptr[node + 1]):
            depth = depths[parents[i]] + 1
            if i == indptr[node] or depth < depths[node]:
                depths[node] = depth


@kernel
def count_subtrees(parents: Any, sizes: Any) -> None:
    """Write the number of nodes at and below each node of a tree; ``parents`` has -1 for the root."""
    for node in range(len(sizes)):
        sizes[node] = 1
    for node in range(len(sizes) - 1, -1, -1):
        if parents[node] >= 0:
            sizes[parents[node]] += sizes[node]


@kernel
def path_lengths(parents: Any, firsts: Any, seconds: Any, lengths: Any) -> None:
    """Write the number of edges between pairs of nodes of a tree.

    A parent has a smaller number than its child, so the node with the larger number climbs until both meet.
    """
    for i in range(len(firsts)):
        a, b = firsts[i], seconds[i]
        length = 0
        while a != b:
            if a > b:
                a = parents[a]
            else:
                b = parents[b]
            length += 1
        lengths[i] = length
