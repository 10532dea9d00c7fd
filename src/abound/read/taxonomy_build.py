"""Checks and order of a taxonomy's nodes and edges, before it becomes one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from abound.labels import MAX_IDS, IntArray
from abound.read._taxonomy_kernels import topological_order
from abound.read.numbering import as_objects
from abound.read.taxonomy_files import Name, Pair

SHOWN_NODES = 5
"""Nodes that a message lists."""


def name_array(names: Sequence[Name]) -> npt.NDArray[Any]:
    """Make an array of node names.

    Parameters
    ----------
    names : sequence of str or of int
        The names.

    Returns
    -------
    array
        Objects for strings, int64 for integers; read-only.
    """
    listed: list[Any] = names.tolist() if isinstance(names, np.ndarray) else list(names)
    if not listed:
        raise ValueError("a taxonomy needs at least one node")
    if len(listed) > MAX_IDS:
        raise ValueError(f"a taxonomy of more than {MAX_IDS} nodes")
    types = set(map(type, listed))
    if types == {str}:
        array: npt.NDArray[Any] = as_objects(listed)
    elif bool not in types and all(issubclass(kind, int | np.integer) for kind in types):
        array = np.array(listed, dtype=np.int64)
    else:
        found = ", ".join(sorted(kind.__name__ for kind in types))
        raise TypeError(f"the names of a taxonomy must be all strings or all integers; they are of {found}")
    if len(set(listed)) < len(listed):
        twice = Counter(listed).most_common(1)[0][0]
        raise ValueError(f"node {twice!r} is listed twice")
    array.flags.writeable = False
    return array


def distinct_edges(edges: npt.ArrayLike, names: npt.NDArray[Any], *, undirected: bool) -> IntArray:
    """Return each edge once; refuse one from a node to itself, or to no node.

    Parameters
    ----------
    edges : array-like of shape (n_edges, 2)
        Places of two nodes.
    names : array
        The names of the nodes.
    undirected : bool
        Whether an edge and its reverse are one.

    Returns
    -------
    int64 array of shape (n_distinct, 2)
        In the order in which they first appear.
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= len(names)):
        raise ValueError("an edge of the taxonomy leads to a node that does not exist")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        name = names[pairs[loops[0], 0]]
        raise ValueError(f"the taxonomy has a cycle: {name} > {name}")
    if undirected:
        pairs = np.sort(pairs, axis=1)
    first = np.unique(pairs[:, 0] * len(names) + pairs[:, 1], return_index=True)[1]
    distinct: IntArray = pairs[np.sort(first)]
    return distinct


def parents_first(names: npt.NDArray[Any], edges: IntArray) -> tuple[npt.NDArray[Any], IntArray]:
    """Number the nodes anew so that parents come before their children; a cycle is an error that names it.

    Parameters
    ----------
    names : array
        The nodes.
    edges : int64 array of shape (n_edges, 2)
        Places of parent and child, each edge once.

    Returns
    -------
    names, edges : arrays
        In the new numbering, edges sorted.
    """
    n_nodes = len(names)
    by_parent = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    indptr = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(edges[:, 0], minlength=n_nodes), out=indptr[1:])
    n_parents = np.bincount(edges[:, 1], minlength=n_nodes).astype(np.int64)
    order = np.empty(n_nodes, np.int32)
    n_ordered = topological_order(indptr, by_parent[:, 1].astype(np.int32), n_parents, order)
    if n_ordered < n_nodes:
        cycle = " > ".join(str(names[node]) for node in _cycle(edges, n_parents > 0))
        raise ValueError(f"the taxonomy has a cycle: {cycle}")
    place = np.empty(n_nodes, np.int64)
    place[order] = np.arange(n_nodes)
    ordered = names[order]
    ordered.flags.writeable = False
    moved = place[edges]
    return ordered, moved[np.lexsort((moved[:, 1], moved[:, 0]))]


def _cycle(edges: IntArray, is_left: npt.NDArray[np.bool_]) -> list[int]:
    """Find a cycle among nodes that no order could take: each has a parent among them, so climb till one returns."""
    within = edges[is_left[edges[:, 0]] & is_left[edges[:, 1]]]
    parent = dict(zip(within[:, 1].tolist(), within[:, 0].tolist(), strict=True))
    climbed: dict[int, None] = {}
    node = int(np.flatnonzero(is_left)[0])
    while node not in climbed:
        climbed[node] = None
        node = parent[node]
    walk = list(climbed)
    walk = walk[walk.index(node) :]
    return [node, *reversed(walk)]


def check_kind(kind: str, names: npt.NDArray[Any], edges: IntArray) -> Literal["tree", "dag", "graph"]:
    """Tell what the nodes and edges are; refuse a tree that is none.

    Parameters
    ----------
    kind : {"auto", "tree", "dag", "graph"}
        What they should be.
    names : array
        The nodes.
    edges : int64 array of shape (n_edges, 2)
        Parent and child; without cycles unless ``kind`` is ``graph``.

    Returns
    -------
    {"tree", "dag", "graph"}
        What they are.
    """
    if kind == "graph":
        return "graph"
    n_parents = np.bincount(edges[:, 1], minlength=len(names))
    shared = np.flatnonzero(n_parents > 1)
    if kind == "dag" or (kind == "auto" and len(shared)):
        return "dag"
    if len(shared):
        parents = edges[edges[:, 1] == shared[0], 0]
        raise ValueError(
            f"node {names[shared[0]]!r} of the tree has several parents: {_listed(names[parents])}; pass kind='dag'"
        )
    roots = np.flatnonzero(n_parents == 0)
    if len(roots) > 1:
        raise ValueError(
            f"the tree has {len(roots)} roots: {_listed(names[roots])}; pass root='name' to join them under one"
        )
    return "tree"


def with_root(nodes: list[Name], edges: list[Pair], root: Name) -> tuple[list[Name], list[Pair]]:
    """Join several roots under one; nothing changes if there is one root only.

    Parameters
    ----------
    nodes : list
        The nodes.
    edges : list of (parent, child)
        The edges.
    root : str or int
        A new node or one of the roots.

    Returns
    -------
    nodes, edges : lists
        With the joint root.
    """
    below = {child for _, child in edges}
    roots = [node for node in nodes if node not in below]
    if len(roots) < 2:
        return nodes, edges
    if root in below:
        raise ValueError(f"root={root!r} is a node below another, so it cannot join the roots {_listed(roots)}")
    new_nodes = nodes if root in roots else [root, *nodes]
    return new_nodes, [*((root, node) for node in roots if node != root), *edges]


def _listed(names: Any) -> str:
    listed = [str(name) for name in names]
    return ", ".join(listed[:SHOWN_NODES]) + (", …" if len(listed) > SHOWN_NODES else "")
