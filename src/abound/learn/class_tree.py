"""The taxonomy of a learner, resolved against its classes: one tree, each class at a leaf, as arrays for kernels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.index_parts import prefixed
from abound.read._taxonomy_kernels import count_subtrees
from abound.read.taxonomy import Taxonomy
from abound.read.taxonomy_structure import Links
from abound.store import Section
from abound.validation import IdArray, IntArray, frozen

SHOWN = 5
"""Names that a message lists."""


@dataclass(frozen=True, eq=False)
class ClassTree:
    """A tree with the classes of a learner at its leaves; made by `class_tree`.

    Node 0 is the root, and parents come before their children. The root is never a class. A class that is an inner node
    of the taxonomy has a leaf of its own, spawned under that node, so rows of an inner node are rows of a leaf, and
    what a leaf predicts is a class.

    Parameters
    ----------
    parent : int32 array of shape (n_nodes,)
        The parent of each node, -1 for the root.
    class_of_node : int32 array of shape (n_nodes,)
        The class id at each node, -1 at inner nodes and at leaves that no class of the training data has. Several
        leaves have one class only after classes were merged.
    n_classes : int
        Number of classes.
    taxonomy : Taxonomy or None
        What it was made of; None if all classes stand under one root.
    source : int32 array of shape (n_nodes,)
        The taxonomy's node behind each node, for a spawned leaf that of its class; -1 without a taxonomy.

    Examples
    --------
    >>> from abound import Taxonomy
    >>> taxonomy = Taxonomy.from_edges([("all", "cat"), ("all", "dog"), ("cat", "lion")])
    >>> tree = class_tree(taxonomy, ["cat", "dog", "lion"])
    >>> tree.parent.tolist(), tree.leaf_of_class.tolist(), tree.names.tolist()
    ([-1, 0, 0, 1, 1], [4, 2, 3], ['all', 'cat', 'dog', 'lion', 'cat'])
    >>> tree.paths.of(0).tolist()
    [1, 4]
    """

    parent: IdArray
    class_of_node: IdArray
    n_classes: int
    taxonomy: Taxonomy | None
    source: IdArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes, with the root."""
        return len(self.parent)

    @property
    def is_flat(self) -> bool:
        """Whether every node but the root is right below it."""
        return not self.parent[1:].any()

    @cached_property
    def level(self) -> IdArray:
        """The number of edges between each node and the root."""
        level = np.zeros(self.n_nodes, np.int32)
        for node, parent in enumerate(self.parent[1:].tolist(), start=1):
            level[node] = level[parent] + 1
        return _fixed(level)

    @cached_property
    def children(self) -> Links:
        """The children of each node, ascending."""
        order = 1 + np.argsort(self.parent[1:], kind="stable")
        indptr = np.zeros(self.n_nodes + 1, np.int64)
        np.cumsum(np.bincount(self.parent[1:], minlength=self.n_nodes), out=indptr[1:])
        return Links(frozen(indptr, np.int64), _fixed(order))

    @cached_property
    def subtree_sizes(self) -> IntArray:
        """The number of nodes at and below each node."""
        sizes = np.empty(self.n_nodes, np.int64)
        count_subtrees(self.parent, sizes)
        return sizes

    @cached_property
    def leaf_of_class(self) -> IdArray:
        """The node of each class; after a merge, the first of them."""
        nodes = np.flatnonzero(self.class_of_node >= 0)[::-1]
        leaves = np.full(self.n_classes, -1, np.int32)
        leaves[self.class_of_node[nodes]] = nodes
        return _fixed(leaves)

    @cached_property
    def paths(self) -> Links:
        """The nodes from below the root down to the leaf of each class; the root is left out, as all have it."""
        walks = [self._climb(leaf) for leaf in self.leaf_of_class.tolist()]
        indptr = np.concatenate(([0], np.cumsum([len(walk) for walk in walks])))
        return Links(frozen(indptr, np.int64), _fixed([node for walk in walks for node in walk]))

    @cached_property
    def names(self) -> npt.NDArray[Any]:
        """The taxonomy's name of each node, for a spawned leaf that of its class; None without a taxonomy."""
        names = np.full(self.n_nodes, None, dtype=object)
        if self.taxonomy is not None:
            names[:] = self.taxonomy.names[self.source].tolist()
        return names

    def path_sums(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up what the nodes of each class's path have.

        Parameters
        ----------
        weights : array of shape (n_nodes, ...)
            Something of each node; the root's is not counted.

        Returns
        -------
        array of shape (n_classes, ...)
            The sums. The leaves of merged classes are added up.
        """
        sums = weights.copy()
        sums[0] = 0
        for node, parent in enumerate(self.parent[1:].tolist(), start=1):
            sums[node] += sums[parent]
        total = np.zeros((self.n_classes, *weights.shape[1:]), weights.dtype)
        at_class = np.flatnonzero(self.class_of_node >= 0)
        np.add.at(total, self.class_of_node[at_class], sums[at_class])
        return total

    def remap_classes(self, new_ids: IdArray, n_classes: int) -> ClassTree:
        """Return the tree with its classes renumbered.

        Parameters
        ----------
        new_ids : int32 array of shape (n_classes,)
            The new id of each class, -1 to drop it; classes that share one become one.
        n_classes : int
            Number of classes afterwards.

        Returns
        -------
        ClassTree
            The same nodes.
        """
        moved = np.append(new_ids, -1)[self.class_of_node]
        return replace(self, class_of_node=_fixed(moved), n_classes=n_classes)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tree, with its taxonomy, as named arrays of a model file."""
        arrays: dict[str, npt.NDArray[Any]] = {"parent": self.parent, "class_of_node": self.class_of_node}
        if self.taxonomy is None:
            return arrays
        return arrays | {"source": self.source} | prefixed("taxonomy/", self.taxonomy.to_arrays())

    def _climb(self, node: int) -> list[int]:
        walk = []
        while node > 0:
            walk.append(node)
            node = int(self.parent[node])
        return walk[::-1]


def class_tree(taxonomy: Any, classes: Sequence[Any] | npt.NDArray[Any], *, prune: bool = True) -> ClassTree:
    """Find the classes of a learner in its taxonomy.

    A label and a node belong together if they are equal or are written alike: a file's node ``6`` is the label 6.

    Parameters
    ----------
    taxonomy : Taxonomy, path or None
        A tree, or the file of one (see `Taxonomy.from_file`). None puts all classes under one root.
    classes : sequence
        The labels, in the order of their ids.
    prune : bool
        Leave out nodes that lead to no class.

    Returns
    -------
    ClassTree
        The tree; a class that the taxonomy lacks, or a taxonomy that is no tree, is an error.
    """
    check_taxonomy(taxonomy)
    if taxonomy is None:
        n_classes = len(classes)
        parent = np.concatenate(([-1], np.zeros(n_classes)))
        nothing = np.full(n_classes + 1, -1)
        return ClassTree(_fixed(parent), _fixed(np.arange(-1, n_classes)), n_classes, None, _fixed(nothing))
    if not isinstance(taxonomy, Taxonomy):
        taxonomy = Taxonomy.from_file(taxonomy)
    _need_tree(taxonomy)
    home = nodes_of(taxonomy, classes)
    kept = _on_the_way(taxonomy.parent_ids, home) if prune else np.ones(len(taxonomy), np.bool_)
    place = np.cumsum(kept) - 1
    source = np.flatnonzero(kept)
    above = taxonomy.parent_ids[source]
    parent = np.where(above < 0, -1, place[above])
    is_inner = np.bincount(parent[1:], minlength=len(parent)) > 0
    is_inner[0] = True
    spawning = is_inner[place[home]]
    leaves = place[home].copy()
    leaves[spawning] = len(parent) + np.arange(spawning.sum())
    parent = np.concatenate((parent, place[home[spawning]]))
    class_of_node = np.full(len(parent), -1)
    class_of_node[leaves] = np.arange(len(home))
    behind = np.concatenate((source, home[spawning]))
    return ClassTree(_fixed(parent), _fixed(class_of_node), len(home), taxonomy, _fixed(behind))


def check_taxonomy(taxonomy: Any) -> None:
    """Raise a clear error unless a parameter may be a taxonomy; no file is read.

    Parameters
    ----------
    taxonomy : object
        What the user set.
    """
    if taxonomy is not None and not isinstance(taxonomy, Taxonomy | str | os.PathLike):
        raise ValueError(f"taxonomy={taxonomy!r}: it must be an abound.Taxonomy, the path of a file, or None")


def class_tree_from(section: Section, n_classes: int) -> ClassTree:
    """Put a tree together from what `ClassTree.to_arrays` gave, checked so that kernels may follow its pointers.

    Parameters
    ----------
    section : Section
        The arrays.
    n_classes : int
        Number of classes that it must have.

    Returns
    -------
    ClassTree
        Shares the arrays.
    """
    parent = section.require("parent", np.int32)
    n_nodes = len(parent)
    if not n_nodes or parent[0] != -1 or (parent[1:] < 0).any() or (parent[1:] >= np.arange(1, n_nodes)).any():
        raise section.fault("parent", "it is no tree whose parents come before their children")
    classes = section.require("class_of_node", np.int32, (n_nodes,))
    if classes.min() < -1 or classes.max() >= n_classes or len(np.unique(classes[classes >= 0])) != n_classes:
        raise section.fault("class_of_node", f"it does not hold the {n_classes} classes of the model")
    if classes[0] >= 0 or (classes[parent[1:]] >= 0).any():
        raise section.fault("class_of_node", "a class is no leaf of the tree")
    part = section.section("taxonomy/")
    if not len(part):
        return ClassTree(parent, classes, n_classes, None, _fixed(np.full(n_nodes, -1)))
    try:
        taxonomy = Taxonomy.from_arrays(dict(part))
    except (ValueError, TypeError) as error:
        raise section.fault("taxonomy", str(error)) from None
    source = section.require("source", np.int32, (n_nodes,))
    if source.min() < 0 or source.max() >= len(taxonomy):
        raise section.fault("source", f"it names nodes that are not among the taxonomy's {len(taxonomy)}")
    return ClassTree(parent, classes, n_classes, taxonomy, source)


def _need_tree(taxonomy: Taxonomy) -> None:
    if taxonomy.is_tree:
        return
    if taxonomy.kind == "graph":
        raise ValueError("the taxonomy is an undirected graph, but this learner needs a tree")
    if len(taxonomy.root_ids) > 1:
        roots = _listed(taxonomy.names[taxonomy.root_ids])
        raise ValueError(f"the taxonomy has {len(taxonomy.root_ids)} roots, but this learner needs a tree: {roots}")
    shared = int(np.diff(taxonomy.parent_links.indptr).argmax())
    parents = _listed(taxonomy.names[taxonomy.parent_links.of(shared)])
    name = taxonomy.names[shared]
    raise ValueError(f"node {name!r} of the taxonomy has several parents ({parents}), but this learner needs a tree")


def nodes_of(taxonomy: Taxonomy, classes: Sequence[Any] | npt.NDArray[Any]) -> IdArray:
    """Find the taxonomy's node of each class; every class must have one of its own.

    Parameters
    ----------
    taxonomy : Taxonomy
        Any kind.
    classes : sequence
        The labels, in the order of their ids.

    Returns
    -------
    int32 array
        A node each; a class that the taxonomy lacks is an error.
    """
    labels = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    nodes = taxonomy.node_ids(labels)
    if (nodes < 0).any():
        by_text = {str(name): node for node, name in enumerate(taxonomy.names.tolist())}
        for c in np.flatnonzero(nodes < 0).tolist():
            label = labels[c]
            whole = int(label) if isinstance(label, float) and label.is_integer() else label
            nodes[c] = by_text.get(str(whole), -1)
    lacking = [labels[c] for c in np.flatnonzero(nodes < 0).tolist()]
    if lacking:
        count = "the class" if len(lacking) == 1 else f"{len(lacking)} classes of the training data:"
        raise ValueError(f"the taxonomy lacks {count} {_listed(lacking)}; add them, or leave their rows out")
    distinct, first = np.unique(nodes, return_index=True)
    if len(distinct) < len(nodes):
        again = int(np.setdiff1d(np.arange(len(nodes)), first)[0])
        other = int(np.flatnonzero(nodes == nodes[again])[0])
        name = taxonomy.names[nodes[again]]
        raise ValueError(f"the classes {labels[other]!r} and {labels[again]!r} are both node {name!r} of the taxonomy")
    return nodes


def _on_the_way(parents: IdArray, home: IdArray) -> npt.NDArray[np.bool_]:
    """Tell which nodes lead to a class; the root always does."""
    kept = np.zeros(len(parents), np.bool_)
    kept[home] = kept[0] = True
    for node in range(len(parents) - 1, 0, -1):
        if kept[node]:
            kept[parents[node]] = True
    return kept


def _listed(names: Any) -> str:
    listed = [repr(name) for name in (names.tolist() if isinstance(names, np.ndarray) else names)]
    return ", ".join(listed[:SHOWN]) + (", …" if len(listed) > SHOWN else "")


def _fixed(ids: Any) -> IdArray:
    array: IdArray = frozen(ids, np.int32)
    return array
