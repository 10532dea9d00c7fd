"""Kernel of greedy descent: scores of classes from the scores of a tree's nodes."""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel


@kernel
def score_by_descent(node_scores: Any, parent: Any, class_of_node: Any, best: Any, regret: Any, scores: Any) -> None:
    """Write the score of every class for each row: the sum over the greedy path, less what the class's own path lacks.

    At each fork a path lacks the score of the best child less that of its own. The leaf that greedy descent ends in
    lacks nothing, so it is the best class, with the sum of the scores on its path. Leaves that share a class are added
    up. ``scores`` is zero at the start; ``best`` and ``regret``, one number a node, are scratch.
    """
    n_nodes = len(parent)
    for i in range(node_scores.shape[0]):
        own = node_scores[i]
        best[:] = -1
        for z in range(1, n_nodes):
            above = parent[z]
            if best[above] < 0 or own[z] > own[best[above]]:
                best[above] = z
        total = 0.0
        z = best[0]
        while z >= 0:
            total += own[z]
            z = best[z]
        regret[0] = 0.0
        for z in range(1, n_nodes):
            regret[z] = regret[parent[z]] + (own[best[parent[z]]] - own[z])
            if class_of_node[z] >= 0:
                scores[i, class_of_node[z]] += total - regret[z]
