"""The tree of a recursive regularization: its inner nodes but for those with one child, its leaves, and its springs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from abound.learn.class_tree import ClassTree
from abound.validation import Float64Array, IdArray, IntArray, frozen


class ShortTree(NamedTuple):
    """A tree of classes without the inner nodes that have one child: two springs in a row are one half as stiff.

    Inner nodes come in the order of a walk, parents first and what is below a node before its next sibling.
    ``stiffness`` is the ω of the edge to the parent, in ``½ ω ‖w_n − w_π‖²``.
    """

    parent: IdArray
    stiffness: Float64Array
    leaf_parent: IdArray
    leaf_stiffness: Float64Array

    @property
    def n_inner(self) -> int:
        """Number of inner nodes that are left."""
        return len(self.parent)

    @property
    def depth(self) -> IntArray:
        """How many inner nodes are above each inner node."""
        depth = np.zeros(self.n_inner, dtype=np.int64)
        for n, parent in enumerate(self.parent[1:].tolist(), start=1):
            depth[n] = depth[parent] + 1
        return depth


def short_tree(tree: ClassTree, *, root_is_zero: bool) -> ShortTree:
    """Leave out inner nodes with one child; the objective's minimum over them stays the same.

    Parameters
    ----------
    tree : ClassTree
        The classes at its leaves.
    root_is_zero : bool
        Fix the root's weights at 0: an edge of endless stiffness.

    Returns
    -------
    ShortTree
        By class.
    """
    n_children = np.diff(tree.children.indptr)
    kept = (n_children > 1) & (tree.class_of_node < 0)
    kept[0] = True
    place = np.cumsum(kept) - 1
    above = np.full(tree.n_nodes, -1)
    soft = np.ones(tree.n_nodes)
    for node, parent in enumerate(tree.parent[1:].tolist(), start=1):
        if kept[parent]:
            above[node] = place[parent]
        else:
            above[node], soft[node] = above[parent], 1 + soft[parent]
    stiffness = 1 / soft
    inner = np.flatnonzero(kept)
    if root_is_zero:
        stiffness[0] = np.inf
    order = _walk(above[inner])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    parent, leaves = above[inner][order], tree.leaf_of_class
    parent[1:] = number[parent[1:]]
    return ShortTree(
        frozen(parent, np.int32),
        stiffness[inner][order],
        frozen(number[above[leaves]], np.int32),
        stiffness[leaves],
    )


def _walk(parent: IntArray) -> IntArray:
    """The nodes in the order of a walk that goes down before it goes on."""
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent[1:].tolist(), start=1):
        children[above].append(node)
    order, waiting = [], [0]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(children[order[-1]])
    return np.array(order)
