"""Nodes and edges as read-only arrays, for kernels, and the walks over them by name, for people."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.labels import IdArray, IntArray
from abound.read._taxonomy_kernels import count_subtrees, node_depths, path_lengths
from abound.read.taxonomy_files import Name
from abound.validation import frozen

PAIRS_AT_ONCE = 2**20


class Links(NamedTuple):
    """Neighbours of nodes: those of node ``i`` are ``indices[indptr[i]:indptr[i + 1]]``."""

    indptr: IntArray
    indices: IdArray

    def of(self, node: int) -> IdArray:
        """Return the neighbours of a node.

        Parameters
        ----------
        node : int
            Its id.

        Returns
        -------
        int32 array
            Ids, ascending.
        """
        return self.indices[self.indptr[node] : self.indptr[node + 1]]


class Structure:
    """The arrays of a taxonomy, made when they are first used, and what can be asked about its nodes.

    Parameters
    ----------
    names : array of shape (n_nodes,)
        The name of each node; parents come before their children.
    edges : int array of shape (n_edges, 2)
        Ids of parent and child of each edge, each edge once.
    kind : {"tree", "dag", "graph"}
        What the nodes and edges are.
    """

    def __init__(self, names: npt.NDArray[Any], edges: npt.NDArray[Any], kind: str) -> None:
        self.names = names
        self.edges: IdArray = frozen(edges, np.int32)
        self.kind = kind

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, node: object) -> bool:
        return node in self._ids

    @property
    def is_tree(self) -> bool:
        """Whether it is a tree."""
        return self.kind == "tree"

    @cached_property
    def _ids(self) -> dict[Any, int]:
        return {name: i for i, name in enumerate(self.names.tolist())}

    @cached_property
    def parent_links(self) -> Links:
        """The parents of each node."""
        self._need_direction()
        return _links(self.edges[:, 1], self.edges[:, 0], len(self))

    @cached_property
    def child_links(self) -> Links:
        """The children of each node."""
        self._need_direction()
        return _links(self.edges[:, 0], self.edges[:, 1], len(self))

    @cached_property
    def neighbour_links(self) -> Links:
        """The nodes that share an edge with each node, whatever its direction."""
        both = np.concatenate((self.edges, self.edges[:, ::-1]))
        return _links(both[:, 0], both[:, 1], len(self))

    @cached_property
    def parent_ids(self) -> IdArray:
        """The parent of each node of a tree, -1 for the root."""
        self._need_tree("the parent of a node")
        parents = np.full(len(self), -1, np.int32)
        parents[self.edges[:, 1]] = self.edges[:, 0]
        return _fixed(parents)

    @cached_property
    def depth(self) -> IdArray:
        """The fewest edges between each node and a root."""
        depth = np.empty(len(self), np.int32)
        node_depths(*self.parent_links, depth)
        return _fixed(depth)

    @cached_property
    def subtree_sizes(self) -> IntArray:
        """The number of nodes at and below each node of a tree."""
        sizes = np.empty(len(self), np.int64)
        count_subtrees(self.parent_ids, sizes)
        sizes.flags.writeable = False
        return sizes

    @cached_property
    def leaf_ids(self) -> IdArray:
        """Nodes without children."""
        return _fixed(np.flatnonzero(np.diff(self.child_links.indptr) == 0))

    @cached_property
    def root_ids(self) -> IdArray:
        """Nodes without parents."""
        return _fixed(np.flatnonzero(np.diff(self.parent_links.indptr) == 0))

    @property
    def leaves(self) -> npt.NDArray[Any]:
        """Names of the nodes without children."""
        return self.names[self.leaf_ids]

    @property
    def root(self) -> Any:
        """Name of the root of a tree."""
        self._need_tree("the root")
        return self.names[self.root_ids].tolist()[0]

    def node_ids(self, labels: Iterable[Any]) -> IdArray:
        """Return the ids of nodes.

        Parameters
        ----------
        labels : iterable
            Names.

        Returns
        -------
        int32 array
            Ids, -1 for a name that is no node.
        """
        listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        return np.array([self._ids.get(label, -1) for label in listed], dtype=np.int32)

    def children(self, node: Name) -> list[Any]:
        """Return the names of the nodes right below a node.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        list
            Names; empty for a leaf.
        """
        return self._names_of(self.child_links.of(self._id(node)))

    def parents(self, node: Name) -> list[Any]:
        """Return the names of the nodes right above a node.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        list
            Names; empty for a root.
        """
        return self._names_of(self.parent_links.of(self._id(node)))

    def parent(self, node: Name) -> Any:
        """Return the name of the node right above a node of a tree.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        str, int or None
            None for the root.
        """
        self._need_tree("the parent of a node")
        return next(iter(self.parents(node)), None)

    def neighbours(self, node: Name) -> list[Any]:
        """Return the names of all nodes that share an edge with a node.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        list
            Names.
        """
        return self._names_of(self.neighbour_links.of(self._id(node)))

    def ancestors(self, node: Name) -> list[Any]:
        """Return the names of all nodes above a node.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        list
            Names, a node always before its own ancestors; in a tree from the parent to the root.
        """
        found: set[int] = set()
        waiting = [self._id(node)]
        while waiting:
            above = [parent for parent in self.parent_links.of(waiting.pop()).tolist() if parent not in found]
            found.update(above)
            waiting += above
        return self._names_of(np.array(sorted(found, reverse=True), dtype=np.int32))

    def path(self, node: Name) -> list[Any]:
        """Return the names from the root of a tree to a node.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        list
            Names, the root first and the node last.
        """
        self._need_tree("a path")
        return [*reversed(self.ancestors(node)), node]

    def distance(self, first: Name, second: Name) -> int:
        """Return the number of edges between two nodes of a tree.

        Parameters
        ----------
        first, second : str or int
            Their names.

        Returns
        -------
        int
            0 for a node and itself.
        """
        return int(self.distances([self._id(first)], [self._id(second)])[0])

    def distances(self, firsts: npt.ArrayLike, seconds: npt.ArrayLike) -> IdArray:
        """Return the number of edges between pairs of nodes of a tree.

        Parameters
        ----------
        firsts, seconds : integer arrays
            Ids; one shape, or shapes that broadcast.

        Returns
        -------
        int32 array
            The length of the path between each pair.
        """
        a, b = np.broadcast_arrays(np.asarray(firsts), np.asarray(seconds))
        for ids in (a, b):
            if ids.size and (ids.min() < 0 or ids.max() >= len(self)):
                wrong = int(ids[(ids < 0) | (ids >= len(self))].flat[0])
                raise ValueError(f"{wrong} is no node of the taxonomy: ids go from 0 to {len(self) - 1}")
        flat_a, flat_b = (np.ascontiguousarray(ids, dtype=np.int32).ravel() for ids in (a, b))
        lengths = np.empty(flat_a.size, np.int32)
        for i in range(0, len(lengths), PAIRS_AT_ONCE):
            part = slice(i, i + PAIRS_AT_ONCE)
            path_lengths(self.parent_ids, flat_a[part], flat_b[part], lengths[part])
        return lengths.reshape(a.shape)

    def _id(self, node: Name) -> int:
        if node not in self._ids:
            raise ValueError(f"{node!r} is no node of the taxonomy")
        return self._ids[node]

    def _names_of(self, ids: IdArray) -> list[Any]:
        names: list[Any] = self.names[ids].tolist()
        return names

    def _need_direction(self) -> None:
        if self.kind == "graph":
            raise ValueError("an undirected graph has no parents and children; see neighbours")

    def _need_tree(self, what: str) -> None:
        self._need_direction()
        if self.kind != "tree":
            raise ValueError(f"{what} needs a tree, but this taxonomy is a {self.kind}")


def _links(owners: IdArray, others: IdArray, n_nodes: int) -> Links:
    order = np.lexsort((others, owners))
    indptr = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=n_nodes), out=indptr[1:])
    return Links(frozen(indptr, np.int64), frozen(others[order], np.int32))


def _fixed(ids: npt.NDArray[Any]) -> IdArray:
    array: IdArray = frozen(ids, np.int32)
    return array
