"""The weights of a tree's nodes, laid out for walks from the root: by node, by feature, by sixteen children."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abound.rank import _node_kernels as kernels
from abound.rank._lane_sums import LANES
from abound.validation import Float32Array, IdArray, IntArray, frozen

EMPTY = int(kernels.EMPTY)
"""What stands in a slot without a child."""

MOST_CHILDREN = LANES << 15
"""Children that a node may have: a block is numbered in 15 bits."""


class TreeWeights(NamedTuple):
    """A tree of linear models: a child's score is its bias and the product of its weights with the row.

    All arrays are frozen.

    Node 0 is the root, and parents come before their children. Node ``n`` has its children in the slots
    ``slot_indptr[n]`` to ``slot_indptr[n + 1]``, a multiple of 16: a number in ``slots`` is a node, ``~c`` the leaf of
    class c, or `EMPTY`. The features that it knows are in the places ``table_indptr[n]`` to ``table_indptr[n + 1]`` of
    ``table``, which has two numbers a place: a feature, or -1 if it is free, and where its cells begin, counted from
    ``cell_indptr[n]``. A feature is at the place that its hash tells, or at the next one that was free.

    The cells of a feature are its offset, a weight that all children share, as the bits of a float32; then, for each
    block of 16 children some of which have a weight of their own, a head, ``block << 16 | lanes`` with a bit for each
    of these, and their weights, which add to the offset. Blocks rise, and the last head is below 0. Of sixteen children
    few have such a weight, and what a row needs of a node and a feature is in two stretches of memory.

    ``biases`` is empty, or has what every row adds to the score of the child in each slot. A bias is no feature: it is
    never pruned, and does not count among the weights.
    """

    slot_indptr: IntArray
    slots: IdArray
    table_indptr: IntArray
    table: IdArray
    cell_indptr: IntArray
    cells: IdArray
    biases: Float32Array

    @property
    def n_nodes(self) -> int:
        """Number of nodes that have children."""
        return len(self.slot_indptr) - 1

    @property
    def n_weights(self) -> int:
        """Number of weights and offsets that are not 0."""
        return sum(map(int, kernels.list_edges(self, *_room_for_edges(0, 0))))

    @property
    def most_blocks(self) -> int:
        """Blocks of the widest node."""
        return int(np.diff(self.slot_indptr).max()) // LANES

    @property
    def n_levels(self) -> int:
        """Nodes on the longest way down."""
        return int(kernels.count_levels(self, np.ones(self.n_nodes, dtype=np.int32)))

    @property
    def leaves(self) -> IntArray:
        """The slots of the leaves."""
        return np.flatnonzero((self.slots < 0) & (self.slots != EMPTY))

    @property
    def leaf_classes(self) -> IdArray:
        """The class of each leaf."""
        classes: IdArray = ~self.slots[self.leaves]
        return classes

    @property
    def knows_every_row(self) -> bool:
        """Whether the root has a bias, so that it has something to say of rows without features, too."""
        return bool(self.biases[: self.slot_indptr[1]].any())

    def edges(self) -> Edges:
        """List all weights.

        Returns
        -------
        Edges
            In the order of the entries.
        """
        n_weights = int(kernels.list_edges(self, *_room_for_edges(0, 0))[0])
        found = _room_for_edges(len(self.table) // 2, n_weights)
        kernels.list_edges(self, *found)
        return found

    def with_edges(self, edges: Edges) -> TreeWeights:
        """Return the tree with other weights.

        Parameters
        ----------
        edges : Edges
            For the same entries, in their order, the places of each rising.

        Returns
        -------
        TreeWeights
            With the same features and children.
        """
        table, cell_indptr = self.table.copy(), np.zeros(self.n_nodes + 1, dtype=np.int64)
        cells = np.zeros(len(table) + 2 * len(edges.entries), dtype=np.int32)
        kernels.pack_edges(*edges, self.table_indptr, table, cell_indptr, cells)
        return self._replace(
            table=frozen(table, np.int32),
            cell_indptr=frozen(cell_indptr, np.int64),
            cells=frozen(cells[: cell_indptr[-1]].copy(), np.int32),
        )

    def remap_classes(self, new_ids: IdArray, n_classes: int) -> TreeWeights:
        """Return the tree with its classes renumbered.

        Parameters
        ----------
        new_ids : int32 array of shape (n_classes,)
            The new id of each class, -1 to drop it; classes that share one become one, with several leaves.
        n_classes : int
            Number of classes afterwards.

        Returns
        -------
        TreeWeights
            Shares all other arrays; no slot leads to a node without classes.
        """
        slots, at_leaf = self.slots.copy(), self.leaves
        moved = new_ids[~slots[at_leaf]]
        slots[at_leaf] = np.where(moved < 0, EMPTY, ~moved)
        moved_tree = self._replace(slots=frozen(slots, np.int32))
        at_node = np.flatnonzero(slots >= 0)
        is_open = moved_tree.open_nodes(np.ones(n_classes, dtype=np.bool_))[slots[at_node]]
        slots[at_node[~is_open]] = EMPTY
        return self._replace(slots=frozen(slots, np.int32))

    def with_constant(self, feature: int, value: float) -> TreeWeights:
        """Return the tree without a feature that has the same value in every row: it is the bias.

        Parameters
        ----------
        feature : int
            The feature, in a tree without biases.
        value : float
            That value.

        Returns
        -------
        TreeWeights
            With the same scores for rows without that feature; the tree itself if no node knows it.
        """
        is_constant = self.table[::2] == feature
        if not is_constant.any():
            return self
        edges, nodes = self.edges(), np.repeat(np.arange(self.n_nodes), np.diff(self.table_indptr))
        shared = np.zeros(self.n_nodes, dtype=np.float32)
        shared[nodes[is_constant]] = edges.offsets[is_constant]
        biases = np.repeat(shared, np.diff(self.slot_indptr))
        own = np.flatnonzero(is_constant[edges.entries])
        biases[self.slot_indptr[nodes[edges.entries[own]]] + edges.places[own]] += edges.weights[own]
        with np.errstate(over="ignore", invalid="ignore"):
            biases *= np.float32(value)
        table = self.table.copy()
        kernels.forget_feature(feature, self.table_indptr, table)
        without = self._replace(table=frozen(table, np.int32), biases=frozen(biases, np.float32))
        return without.with_edges(without.edges())

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Take it apart, for a model file.

        Returns
        -------
        dict
            The arrays by name, without biases if there are none.
        """
        return {name: array for name, array in self._asdict().items() if name != "biases" or len(array)}

    def open_nodes(self, open_classes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell which nodes lead to a class that may be ranked.

        Parameters
        ----------
        open_classes : bool array of shape (n_classes,)
            Which classes may.

        Returns
        -------
        bool array of shape (n_nodes,)
            Which nodes lead there.
        """
        found = np.empty(self.n_nodes, dtype=np.bool_)
        kernels.find_open(self, open_classes, found)
        return found


class Edges(NamedTuple):
    """The weights of a tree as lists: the offset of each entry; entry, place of the child and number of each weight.

    An entry is a place of the tree's table, whether free or not.
    """

    offsets: Float32Array
    entries: IntArray
    places: IdArray
    weights: Float32Array


def _room_for_edges(n_entries: int, n_weights: int) -> Edges:
    return Edges(
        np.zeros(n_entries, dtype=np.float32),
        np.empty(n_weights, dtype=np.int64),
        np.empty(n_weights, dtype=np.int32),
        np.empty(n_weights, dtype=np.float32),
    )


class NodeEntries(NamedTuple):
    """What some consecutive nodes know: their parts of a `TreeWeights`, and how large these are, node by node."""

    table_sizes: IntArray
    table: IdArray
    cell_counts: IntArray
    cells: IdArray
    biases: Float32Array
    """Of all their slots; empty if there are none."""


class Growable(Protocol):
    """An array that grows at its end."""

    def append(self, piece: npt.NDArray[Any]) -> None:
        """Write a piece behind the others."""
        ...

    def mapped(self) -> npt.NDArray[Any]:
        """Return the whole."""
        ...


class Entries:
    """What the nodes of a tree know, taken over part by part, so that it is in memory once.

    Parameters
    ----------
    make : callable
        Makes an empty array of a type, and of a width if it has two dimensions: in memory or in a file.
    """

    def __init__(self, make: Callable[..., Growable]) -> None:
        self._table_sizes: list[IntArray] = []
        self._cell_counts: list[IntArray] = []
        self._biases: list[Float32Array] = []
        self._table, self._cells = make(np.int32), make(np.int32)

    def append(self, part: NodeEntries) -> None:
        """Take over the next nodes.

        Parameters
        ----------
        part : NodeEntries
            What they know.
        """
        self._table_sizes.append(part.table_sizes)
        self._cell_counts.append(part.cell_counts)
        self._biases.append(part.biases)
        self._table.append(part.table)
        self._cells.append(part.cells)

    def tree(self, slot_indptr: npt.NDArray[Any], slots: npt.NDArray[Any]) -> TreeWeights:
        """Return the tree; nothing can be appended any more.

        Parameters
        ----------
        slot_indptr, slots : arrays
            As in `TreeWeights`.

        Returns
        -------
        TreeWeights
            Of all nodes.
        """
        return TreeWeights(
            frozen(slot_indptr, np.int64),
            frozen(slots, np.int32),
            _running(np.concatenate(self._table_sizes)),
            frozen(self._table.mapped(), np.int32),
            _running(np.concatenate(self._cell_counts)),
            frozen(self._cells.mapped(), np.int32),
            frozen(np.concatenate(self._biases), np.float32),
        )


def _running(lengths: npt.NDArray[Any]) -> IntArray:
    pointers = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=pointers[1:])
    running: IntArray = frozen(pointers, np.int64)
    return running
