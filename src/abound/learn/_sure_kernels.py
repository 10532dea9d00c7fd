"""Kernel of answers that are sure enough: probabilities add up along the way to the root."""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel
from abound.rank._topk_kernels import add_vote, forget_votes


@kernel
def find_sure_nodes(
    ids: Any,
    masses: Any,
    home: Any,
    indptr: Any,
    above: Any,
    depth: Any,
    least: float,
    begin: int,
    end: int,
    votes: Any,
    nodes: Any,
) -> None:
    """Write for each row its best class's node, or the deepest node whose classes' masses add up to enough.

    Parameters
    ----------
    ids, masses : int32, float64 arrays of shape (n, k)
        Classes of each row, best first, -1 for none, and their masses.
    home : int32 array
        The node of each class.
    indptr, above : int64, int32 arrays
        The nodes at and above each class, each once.
    depth : int32 array
        Of each node.
    least : float
        What is sure enough.
    begin, end : int
        The rows to work on.
    votes : Votes
        One a node: their masses.
    nodes : int32 array of shape (n,)
        Gets the nodes, -1 where none is sure enough. Of equally deep ones the heavier, then the lower id.
    """
    mass = votes.score
    for i in range(begin, end):
        if ids.shape[1] > 0 and ids[i, 0] >= 0 and masses[i, 0] >= least:
            nodes[i] = home[ids[i, 0]]
            continue
        n = 0
        for j in range(ids.shape[1]):
            c = ids[i, j]
            if c < 0 or masses[i, j] <= 0:
                continue
            for p in range(indptr[c], indptr[c + 1]):
                n = add_vote(votes, above[p], masses[i, j], n)
        best = -1
        for t in range(n):
            node = votes.touched[t]
            if mass[node] < least:
                continue
            deeper = best < 0 or depth[node] > depth[best]
            alike = not deeper and depth[node] == depth[best]
            if deeper or (alike and (mass[node] > mass[best] or (mass[node] == mass[best] and node < best))):
                best = node
        nodes[i] = best
        forget_votes(votes, n)
