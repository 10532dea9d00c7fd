"""Why a class has its place in a top-down ranking: the classifiers that speak for it and against it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from abound.learn.class_tree import ClassTree
from abound.learn.top_down_walk import Walk
from abound.validation import Float32Array, Float64Array


def column_shares(
    tree: ClassTree, walk: Walk, alive: npt.NDArray[np.bool_], scores: Float32Array, c: int, by_probability: bool
) -> Float64Array:
    """Tell how often each column of the index counts in the score of a class.

    Greedily, the score is the sum of the scores on the greedy path; and for each node of the class's own path, its
    score is added and that of the best sibling taken away. By probability, it is what the sigmoids are taken of: the
    scores on the class's path.

    Parameters
    ----------
    tree : ClassTree
        The tree.
    walk : Walk
        The same as arrays.
    alive : bool array of shape (n_nodes,)
        The nodes that lead to a class.
    scores : float32 array of shape (2 n_nodes,)
        Of one row; see `Trained`.
    c : int
        The class; if it has several leaves, the best one counts.
    by_probability : bool
        Which of the two.

    Returns
    -------
    float64 array of shape (2 n_nodes,)
        The shares; their product with the scores is the score.
    """
    n_nodes = tree.n_nodes

    def best_child(node: int) -> int:
        children: list[int] = [child for child in tree.children.of(node).tolist() if alive[child]]
        return min(children, key=lambda child: (-scores[child], walk.preference[child]))

    def path_to(node: int) -> list[int]:
        return [] if node == 0 else [*path_to(int(tree.parent[node])), node]

    def value(leaf: int) -> float:
        path = path_to(leaf)
        if not by_probability:
            return float(sum(scores[z] - scores[best_child(int(tree.parent[z]))] for z in path))
        levels = scores[path].astype(np.float64) + scores[n_nodes + tree.parent[path]]
        return float(np.prod(expit(-(walk.slopes[path] * levels + walk.intercepts[path]))))

    leaf = max(np.flatnonzero(tree.class_of_node == c).tolist(), key=value)
    shares = np.zeros(2 * n_nodes)
    path = path_to(leaf)
    counted = path
    if not by_probability:
        node, counted = 0, []
        while tree.class_of_node[node] < 0:
            node = best_child(node)
            counted.append(node)
        for z in path:
            shares[z] += 1
            shares[best_child(int(tree.parent[z]))] -= 1
    for z in counted:
        shares[z] += 1
        shares[n_nodes + tree.parent[z]] += 1
    return shares
