"""The weights of a tree's nodes, laid out for walks from the root: by node, by feature, sixteen children at a time."""

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


class TreeWeights(NamedTuple):
    """A tree of linear models: a child's score is the product of its weights with the row. All arrays are frozen.

    Node 0 is the root, and parents come before their children. Node ``n`` has its children in the slots
    ``slot_indptr[n]`` to ``slot_indptr[n + 1]``, a multiple of 16: a number in ``slots`` is a node, ``~c`` the leaf of
    class c, or `EMPTY`. An *entry* is a feature that a node knows: entries ``entry_indptr[n]`` to ``entry_indptr[n +
    1]``, sorted by a hash of the feature; its bucket ``b`` holds those from ``buckets[bucket_indptr[n] + b]`` to the
    next, counted from the node's first. All children share the entry's number in ``offsets``; to it come, for blocks of
    16 children, the rows ``row_indptr[e]`` to ``row_indptr[e + 1]`` of ``weights``, each for the block in ``blocks``.
    """

    slot_indptr: IntArray
    slots: IdArray
    entry_indptr: IntArray
    features: IdArray
    offsets: Float32Array
    row_indptr: IntArray
    blocks: IdArray
    weights: Float32Array
    bucket_indptr: IntArray
    buckets: IdArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes that have children."""
        return len(self.slot_indptr) - 1

    @property
    def n_weights(self) -> int:
        """Number of weights that are not 0."""
        return int(np.count_nonzero(self.weights) + np.count_nonzero(self.offsets))

    @property
    def most_blocks(self) -> int:
        """Blocks of the widest node."""
        return int(np.diff(self.slot_indptr).max()) // LANES

    @property
    def n_levels(self) -> int:
        """Nodes on the longest way down."""
        return int(kernels.count_levels(self, np.ones(self.n_nodes, dtype=np.int32)))

    @property
    def leaf_classes(self) -> IdArray:
        """The class of each leaf."""
        classes: IdArray = ~self.slots[(self.slots < 0) & (self.slots != EMPTY)]
        return classes

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
        slots = self.slots.copy()
        at_leaf = np.flatnonzero((slots < 0) & (slots != EMPTY))
        moved = new_ids[~slots[at_leaf]]
        slots[at_leaf] = np.where(moved < 0, EMPTY, ~moved)
        moved_tree = self._replace(slots=frozen(slots, np.int32))
        at_node = np.flatnonzero(slots >= 0)
        is_open = moved_tree.open_nodes(np.ones(n_classes, dtype=np.bool_))[slots[at_node]]
        slots[at_node[~is_open]] = EMPTY
        return self._replace(slots=frozen(slots, np.int32))

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


class NodeEntries(NamedTuple):
    """What some consecutive nodes know: the arrays of `TreeWeights` but the slots, counted from the first of them."""

    entry_indptr: IntArray
    features: IdArray
    offsets: Float32Array
    row_indptr: IntArray
    blocks: IdArray
    weights: Float32Array
    bucket_indptr: IntArray
    buckets: IdArray


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
        self._n_entries: list[IntArray] = []
        self._n_buckets: list[IntArray] = []
        self._features, self._offsets = make(np.int32), make(np.float32)
        self._n_rows, self._blocks = make(np.int32), make(np.int32)
        self._weights, self._buckets = make(np.float32, LANES), make(np.int32)

    def append(self, part: NodeEntries) -> None:
        """Take over the next nodes.

        Parameters
        ----------
        part : NodeEntries
            What they know.
        """
        self._n_entries.append(np.diff(part.entry_indptr))
        self._n_buckets.append(np.diff(part.bucket_indptr))
        self._n_rows.append(np.diff(part.row_indptr))
        self._features.append(part.features)
        self._offsets.append(part.offsets)
        self._blocks.append(part.blocks)
        self._weights.append(part.weights)
        self._buckets.append(part.buckets)

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
            _running(np.concatenate(self._n_entries)),
            frozen(self._features.mapped(), np.int32),
            frozen(self._offsets.mapped(), np.float32),
            _running(self._n_rows.mapped()),
            frozen(self._blocks.mapped(), np.int32),
            frozen(self._weights.mapped(), np.float32),
            _running(np.concatenate(self._n_buckets)),
            frozen(self._buckets.mapped(), np.int32),
        )


def _running(lengths: npt.NDArray[Any]) -> IntArray:
    pointers = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=pointers[1:])
    running: IntArray = frozen(pointers, np.int64)
    return running
