"""Slow and obvious twins of top-down ranking: one list of open nodes, searched through at every step."""

from __future__ import annotations

from typing import Any

import numpy as np


def descend(tree: Any, walk: Any, scores: Any) -> int:
    """The leaf that is reached by going to the best child, ties to the one with more rows, then to the first."""
    node = 0
    while tree.class_of_node[node] < 0:
        children = tree.children.of(node).tolist()
        node = min(children, key=lambda child: (-scores[child], walk.preference[child]))
    return int(tree.class_of_node[node])


def path_to(tree: Any, node: int) -> list[int]:
    """The nodes below the root down to a node."""
    return [] if node == 0 else [*path_to(tree, int(tree.parent[node])), node]


def regrets(tree: Any, scores: Any) -> Any:
    """What the path of each class pays: how far its nodes are below their best siblings."""
    best = [max((scores[c] for c in tree.children.of(z).tolist()), default=0) for z in range(tree.n_nodes)]
    paths = [path_to(tree, int(leaf)) for leaf in tree.leaf_of_class]
    return np.array([sum(float(best[tree.parent[z]]) - float(scores[z]) for z in path) for path in paths])


def best_sum(tree: Any, scores: Any) -> float:
    """The sum of the best scores from the root down, each with what its siblings have in common."""
    node, total = 0, 0.0
    while tree.class_of_node[node] < 0:
        child = max(tree.children.of(node).tolist(), key=lambda child: scores[child])
        total += float(scores[child]) + float(scores[tree.n_nodes + node])
        node = child
    return total


def probabilities(tree: Any, walk: Any, scores: Any) -> Any:
    """The product of the sigmoids down to each node."""
    found = np.ones(tree.n_nodes)
    for z in range(1, tree.n_nodes):
        parent = int(tree.parent[z])
        level = float(scores[z]) + float(scores[tree.n_nodes + parent])
        alone = len(tree.children.of(parent)) == 1
        found[z] = found[parent] * (1 if alone else 1 / (1 + np.exp(walk.slopes[z] * level + walk.intercepts[z])))
    return found


def candidates(tree: Any, walk: Any, scores: Any, least: float) -> dict[int, float]:
    """The classes of figure 7 of the paper: nodes that reach p_min and have no child that does, if they are classes."""
    reached = probabilities(tree, walk, scores)
    found: dict[int, float] = {}
    for z in range(tree.n_nodes):
        children = tree.children.of(z).tolist()
        if reached[z] < least or any(reached[child] >= least for child in children):
            continue
        leaf = z if not children else int(walk.own_leaf[z])
        if leaf >= 0:
            found[int(tree.class_of_node[leaf])] = float(reached[z])
    if not found:
        leaf = max(tree.leaf_of_class.tolist(), key=lambda leaf: reached[leaf])
        found[int(tree.class_of_node[leaf])] = float(reached[leaf])
    return found
