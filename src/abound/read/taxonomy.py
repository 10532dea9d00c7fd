"""Taxonomies of classes: trees, directed graphs without cycles, and undirected graphs, as arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.read.errors import FormatError
from abound.read.taxonomy_arrays import pack, unpack
from abound.read.taxonomy_build import check_kind, distinct_edges, name_array, parents_first, with_root
from abound.read.taxonomy_files import Name, Pair, edges_of_paths, read_edges, read_paths
from abound.read.taxonomy_structure import Structure
from abound.validation import check_choice


class Taxonomy(Structure):
    """A taxonomy of classes; made by `from_edges`, `from_file`, `from_parents` or `from_paths`.

    Nodes are numbered so that parents come before their children and, else, as they were given. Depth may be ragged,
    and inner nodes may be labels. Nothing in a taxonomy ever changes, so that estimators share it.

    Parameters
    ----------
    names : sequence of str or of int
        The nodes, each once.
    edges : array-like of shape (n_edges, 2)
        Places of parent and child in ``names``; an edge listed twice counts once.
    kind : {"auto", "tree", "dag", "graph"}
        ``tree`` has one root and one parent a node, ``dag`` is directed without cycles, ``graph`` is undirected.
        ``auto`` is a dag if a node has several parents, else a tree.
    titles : dict, optional
        Human names of nodes, by name.

    Attributes
    ----------
    kind : {"tree", "dag", "graph"}
        What it is.
    names : array of shape (n_nodes,)
        The name of each node, in the order of the ids.
    edges : int32 array of shape (n_edges, 2)
        Ids of parent and child of each edge; in a graph, of its two ends.
    titles : dict
        Human names of nodes, by name; may be empty.

    Examples
    --------
    >>> taxonomy = Taxonomy.from_edges([("animal", "cat"), ("animal", "dog"), ("cat", "lion")])
    >>> taxonomy.root, taxonomy.leaves.tolist(), taxonomy.path("lion")
    ('animal', ['dog', 'lion'], ['animal', 'cat', 'lion'])
    >>> taxonomy.distance("dog", "lion")
    3
    """

    def __init__(
        self,
        names: Sequence[Name],
        edges: npt.ArrayLike,
        kind: str = "auto",
        titles: Mapping[Any, str] | None = None,
    ) -> None:
        check_choice("kind", kind, ("auto", "tree", "dag", "graph"))
        nodes = name_array(names)
        pairs = distinct_edges(edges, nodes, undirected=kind == "graph")
        if kind != "graph":
            nodes, pairs = parents_first(nodes, pairs)
        super().__init__(nodes, pairs, check_kind(kind, nodes, pairs))
        self.titles: dict[Any, str] = dict(titles or {})

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Pair],
        *,
        kind: str = "auto",
        root: Name | None = None,
        titles: Mapping[Any, str] | None = None,
    ) -> Taxonomy:
        """Make a taxonomy of pairs of parent and child.

        Parameters
        ----------
        edges : iterable of (parent, child)
            The edges.
        kind : {"auto", "tree", "dag", "graph"}
            See `Taxonomy`.
        root : str or int, optional
            Joins several roots; a new node, or one of the roots. Several roots of a tree are an error without it.
        titles : dict, optional
            Human names of nodes.

        Returns
        -------
        Taxonomy
            The taxonomy.
        """
        pairs = list(edges)
        if not pairs:
            raise ValueError("a taxonomy needs at least one edge")
        return cls._of(list(dict.fromkeys(name for pair in pairs for name in pair)), pairs, kind, root, titles)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        separator: str | None = None,
        kind: str = "auto",
        root: Name | None = None,
        titles: Mapping[Any, str] | None = None,
    ) -> Taxonomy:
        """Read a taxonomy from a file, plain or compressed.

        Parameters
        ----------
        path : str or path
            The file: ``parent child`` a line, separated by a tab (names may then hold spaces) or white space.
        separator : str, optional
            Given, the file holds a label path a line with this between its names; see `from_paths`.
        kind, root, titles
            See `from_edges`.

        Returns
        -------
        Taxonomy
            The taxonomy.
        """
        pairs = read_edges(path) if separator is None else []
        paths = read_paths(path, separator) if separator is not None else []
        try:
            if separator is None:
                return cls.from_edges(pairs, kind=kind, root=root, titles=titles)
            joint = "root" if root is None else root
            return cls.from_paths(paths, separator=separator, kind=kind, root=joint, titles=titles)
        except ValueError as error:
            raise FormatError(os.fspath(path), None, str(error)) from None

    @classmethod
    def from_parents(
        cls,
        parents: Mapping[Any, Any] | tuple[Sequence[Name], npt.ArrayLike],
        *,
        root: Name | None = None,
        titles: Mapping[Any, str] | None = None,
    ) -> Taxonomy:
        """Make a tree from the parent of each node.

        Parameters
        ----------
        parents : dict, or (names, array)
            Child to parent, None for a root; or names and, for each, the place of its parent in them, -1 for a root.
        root, titles
            See `from_edges`.

        Returns
        -------
        Taxonomy
            The tree.

        Examples
        --------
        >>> Taxonomy.from_parents((["all", "cat", "dog"], [-1, 0, 0])).children("all")
        ['cat', 'dog']
        """
        if isinstance(parents, Mapping):
            pairs = [(parent, child) for child, parent in parents.items() if parent is not None]
            nodes = list(dict.fromkeys([*parents, *(parent for parent, _ in pairs)]))
            return cls._of(nodes, pairs, "tree", root, titles)
        names, places = list(parents[0]), np.asarray(parents[1])
        if places.shape != (len(names),) or (len(names) and (places.min() < -1 or places.max() >= len(names))):
            raise ValueError("the parent array must have one place a name, from -1 to the number of names less one")
        pairs = [(names[parent], name) for name, parent in zip(names, places.tolist(), strict=True) if parent >= 0]
        return cls._of(names, pairs, "tree", root, titles)

    @classmethod
    def from_paths(
        cls,
        paths: Iterable[str | Sequence[Name]],
        *,
        separator: str = "/",
        kind: str = "auto",
        root: Name = "root",
        titles: Mapping[Any, str] | None = None,
    ) -> Taxonomy:
        """Make a taxonomy of label paths.

        Parameters
        ----------
        paths : iterable of str or of sequences
            A string is split at the separator, and its nodes are its beginnings: ``a``, ``a/b``, ``a/b/c``. In a list
            each element is the name of a node.
        separator : str
            What stands between the names of a string.
        kind, titles
            See `from_edges`.
        root : str or int
            Joins the paths if they begin differently.

        Returns
        -------
        Taxonomy
            The taxonomy.

        Examples
        --------
        >>> Taxonomy.from_paths(["toys/cars", "toys/dolls", "food"]).names.tolist()
        ['root', 'toys', 'food', 'toys/cars', 'toys/dolls']
        """
        nodes, pairs = edges_of_paths(paths, separator)
        return cls._of(nodes, pairs, kind, root, titles)

    @classmethod
    def _of(
        cls, nodes: list[Name], pairs: list[Pair], kind: str, root: Name | None, titles: Mapping[Any, str] | None
    ) -> Taxonomy:
        if root is not None and kind != "graph":
            nodes, pairs = with_root(nodes, pairs, root)
        place = {name: i for i, name in enumerate(nodes)}
        flat = np.fromiter((place[name] for pair in pairs for name in pair), np.int64, 2 * len(pairs))
        return cls(nodes, flat.reshape(-1, 2), kind, titles)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the taxonomy as plain arrays, for a model file.

        Returns
        -------
        dict of arrays
            Names as bytes and offsets (or integers), edges, kind and titles.
        """
        return pack(self.names, self.edges, self.kind, self.titles)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Taxonomy:
        """Make the taxonomy that `to_arrays` took apart, with the same ids.

        Parameters
        ----------
        arrays : dict of arrays
            They are checked.

        Returns
        -------
        Taxonomy
            The taxonomy.
        """
        return cls(*unpack(arrays))

    def title(self, node: Name) -> str:
        """Return the human name of a node.

        Parameters
        ----------
        node : str or int
            Its name.

        Returns
        -------
        str
            Its title, or its name if it has none.
        """
        return self.titles.get(node, str(node))

    def __repr__(self) -> str:
        return f"Taxonomy({self.kind} of {len(self)} nodes and {len(self.edges)} edges)"

    def __deepcopy__(self, memo: dict[int, Any]) -> Taxonomy:
        """Return itself: a clone of an estimator shares its taxonomy."""
        return self

    def __reduce__(self) -> tuple[Any, tuple[dict[str, npt.NDArray[Any]]]]:
        return Taxonomy.from_arrays, (self.to_arrays(),)
