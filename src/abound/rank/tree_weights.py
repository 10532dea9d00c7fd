"""The weights of a tree's nodes, laid out for walks from the root: by node, by feature, sixteen children at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.rank import _descend_kernels as kernels
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


def join_entries(
    slot_indptr: npt.NDArray[Any], slots: npt.NDArray[Any], parts: list[NodeEntries], room: Float32Array
) -> TreeWeights:
    """Put the entries of all nodes one after another.

    Parameters
    ----------
    slot_indptr, slots : arrays
        As in `TreeWeights`.
    parts : list of NodeEntries
        In the order of the nodes; emptied on the way, so that memory is needed once.
    room : float32 array of shape (n_rows, 16)
        Where the weights go.

    Returns
    -------
    TreeWeights
        Owns ``room``.
    """
    entry_indptr = _joined_pointers([part.entry_indptr for part in parts])
    row_indptr = _joined_pointers([part.row_indptr for part in parts])
    bucket_indptr = _joined_pointers([part.bucket_indptr for part in parts])
    features = frozen(np.concatenate([part.features for part in parts]), np.int32)
    offsets = frozen(np.concatenate([part.offsets for part in parts]), np.float32)
    blocks = frozen(np.concatenate([part.blocks for part in parts]), np.int32)
    buckets = frozen(np.concatenate([part.buckets for part in parts]), np.int32)
    begin = 0
    while parts:
        weights = parts.pop(0).weights
        room[begin : begin + len(weights)] = weights
        begin += len(weights)
    return TreeWeights(
        *(frozen(slot_indptr, np.int64), frozen(slots, np.int32), entry_indptr, features, offsets),
        *(row_indptr, blocks, frozen(room, np.float32), bucket_indptr, buckets),
    )


def _joined_pointers(parts: list[IntArray]) -> IntArray:
    lengths = np.concatenate([np.diff(part) for part in parts])
    pointers: IntArray = frozen(np.concatenate(([0], np.cumsum(lengths))), np.int64)
    return pointers
