"""Growing lists of (class, weight), one a feature, in one arena: the working memory of the index learners.

The head of list ``f`` tells where it stands and how many of its places are taken. A list that needs more places moves
to the arena's end. When the arena is full, kernels return, `make_room` packs the lists into a larger one, and the
kernel goes on: the cost of an edge stays constant, and no kernel ever allocates.

A head is one record of 32 bytes because a row visits its features in no order: all that is known of a feature should
come with one cache line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.compiled import kernel

SMALLEST = 4
"""Places of a list's first home."""


HEAD = np.dtype(
    [("start", np.int64), ("degree", np.int32), ("capacity", np.int32), ("total", np.float64), ("seen", np.int64)],
    align=True,
)
"""Where a list stands, its edges and places; a learner's sum for the feature; in how many rows it was seen."""

IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]
Float64Array = npt.NDArray[np.float64]


class EdgeLists(NamedTuple):
    """The heads and the arena; ``used`` is one number, the arena's next free place."""

    heads: npt.NDArray[np.void]
    classes: IdArray
    weights: Float64Array
    used: IntArray

    @property
    def n_edges(self) -> int:
        """Edges in all lists."""
        return int(self.heads["degree"].sum(dtype=np.int64))


@kernel
def room_needed(lists: Any, indices: Any, low: int, high: int, extra: int) -> Any:
    """Return the arena places that ``extra`` more edges in each of a row's lists may take."""
    needed = 0
    for p in range(low, high):
        head = lists.heads[indices[p]]
        if head.degree + extra > head.capacity:
            needed += max(SMALLEST, 2 * head.capacity, head.degree + extra)
    return needed


@kernel
def reserve(lists: Any, head: Any, extra: Any) -> None:
    """Make sure that a list has ``extra`` free places; the arena has them, as `room_needed` said."""
    if head.degree + extra <= head.capacity:
        return
    larger = max(SMALLEST, 2 * head.capacity, head.degree + extra)
    old, new = head.start, lists.used[0]
    for j in range(head.degree):
        lists.classes[new + j] = lists.classes[old + j]
        lists.weights[new + j] = lists.weights[old + j]
    head.start = new
    head.capacity = larger
    lists.used[0] = new + larger


@kernel
def pack(lists: Any, indptr: Any, classes: Any, weights: Any) -> None:
    """Copy the lists, without their free places, to where ``indptr`` says."""
    for f in range(len(lists.heads)):
        old, new = lists.heads[f].start, indptr[f]
        for j in range(lists.heads[f].degree):
            classes[new + j] = lists.classes[old + j]
            weights[new + j] = lists.weights[old + j]


def empty_lists(n_features: int) -> EdgeLists:
    """Return lists without edges.

    Parameters
    ----------
    n_features : int
        Number of lists.

    Returns
    -------
    EdgeLists
        With an arena for a few edges each.
    """
    return lists_from(np.zeros(n_features + 1, dtype=np.int64), np.empty(0, np.int32), np.empty(0, np.float64))


def lists_from(indptr: IntArray, classes: npt.NDArray[Any], weights: npt.NDArray[Any]) -> EdgeLists:
    """Return growing lists that begin with given edges.

    Parameters
    ----------
    indptr, classes, weights : arrays
        The edges by feature; copied.

    Returns
    -------
    EdgeLists
        With as many free places in the arena as edges, and a few a feature.
    """
    n_edges = int(indptr[-1])
    room = 2 * n_edges + SMALLEST * (len(indptr) - 1) + 1024
    arena_classes = np.empty(room, dtype=np.int32)
    arena_weights = np.empty(room, dtype=np.float64)
    arena_classes[:n_edges] = classes
    arena_weights[:n_edges] = weights
    heads = np.zeros(len(indptr) - 1, dtype=HEAD)
    heads["start"] = indptr[:-1]
    heads["degree"] = heads["capacity"] = np.diff(indptr)
    return EdgeLists(heads, arena_classes, arena_weights, np.array([n_edges], dtype=np.int64))


def packed(lists: EdgeLists) -> tuple[IntArray, IdArray, Float64Array]:
    """Return the lists without free places, as ``indptr, classes, weights``.

    Parameters
    ----------
    lists : EdgeLists
        The lists.

    Returns
    -------
    tuple of arrays
        New arrays.
    """
    indptr = np.concatenate(([0], np.cumsum(lists.heads["degree"], dtype=np.int64)))
    classes = np.empty(indptr[-1], dtype=np.int32)
    weights = np.empty(indptr[-1], dtype=np.float64)
    pack(lists, indptr, classes, weights)
    return indptr, classes, weights


def make_room(lists: EdgeLists, needed: int) -> EdgeLists:
    """Return the same lists in an arena with at least ``needed`` free places.

    Parameters
    ----------
    lists : EdgeLists
        The lists.
    needed : int
        Places that the next row may take.

    Returns
    -------
    EdgeLists
        The arena's size at least doubles with the edges, so that this is seldom called.
    """
    roomier = lists_from(*packed(lists))
    roomier.heads["total"], roomier.heads["seen"] = lists.heads["total"], lists.heads["seen"]
    short = int(roomier.used[0]) + needed - len(roomier.classes)
    if short <= 0:
        return roomier
    return roomier._replace(
        classes=np.concatenate((roomier.classes, np.empty(short, dtype=np.int32))),
        weights=np.concatenate((roomier.weights, np.empty(short, dtype=np.float64))),
    )


def more_lists(lists: EdgeLists, n_features: int) -> EdgeLists:
    """Return the lists with empty ones appended for new features.

    Parameters
    ----------
    lists : EdgeLists
        The lists.
    n_features : int
        Number of lists wanted.

    Returns
    -------
    EdgeLists
        They share the arena.
    """
    more = max(0, n_features - len(lists.heads))
    return lists._replace(heads=np.concatenate((lists.heads, np.zeros(more, dtype=HEAD))))


def remapped(lists: EdgeLists, new_ids: IdArray) -> EdgeLists:
    """Return the lists with their classes renumbered, heaviest edge first.

    Parameters
    ----------
    lists : EdgeLists
        The lists.
    new_ids : int32 array
        The new id of each class, -1 to drop its edges; edges that become one add up.

    Returns
    -------
    EdgeLists
        New lists with the same totals.
    """
    indptr, classes, weights = packed(lists)
    features = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    ids = new_ids[classes]
    kept = ids >= 0
    pairs, where = np.unique(np.stack((features[kept], ids[kept])), axis=1, return_inverse=True)
    sums = np.bincount(where.ravel(), weights[kept], minlength=pairs.shape[1])
    order = np.lexsort((pairs[1], -sums, pairs[0]))
    bounds = np.concatenate(([0], np.cumsum(np.bincount(pairs[0], minlength=len(indptr) - 1)))).astype(np.int64)
    renumbered = lists_from(bounds, pairs[1][order], sums[order])
    renumbered.heads["total"], renumbered.heads["seen"] = lists.heads["total"], lists.heads["seen"]
    return renumbered
