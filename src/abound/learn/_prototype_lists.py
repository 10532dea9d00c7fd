"""Weights of any sign by feature, sparse while few and dense once many: the working memory of the prototype learners.

The weights of feature ``f`` are an unsorted list of (class, weight) in an arena, until it holds ``dense_at`` classes;
then they become a row of ``dense`` with a place for every class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.compiled import kernel
from abound.validation import Float32Array, IdArray, IntArray

SMALLEST = 4
"""Places of a list's first home."""

SPARSE = -1
"""The dense row of a feature that has none."""

HEAD = np.dtype(
    [("start", np.int64), ("degree", np.int32), ("capacity", np.int32), ("row", np.int32), ("coming", np.int32)],
    align=True,
)
"""Where a list stands, its edges and places, its dense row, and the changes that are on their way to it."""

BLOCK = 64
"""Classes compared at once when looking for one."""


class PrototypeLists(NamedTuple):
    """Heads, arena and dense rows; ``used`` holds the arena's next free place and the next free dense row."""

    heads: npt.NDArray[np.void]
    classes: IdArray
    weights: Float32Array
    dense: Float32Array
    used: IntArray


@kernel
def find_two(classes: Any, c: Any, d: Any) -> Any:
    """Return where two classes stand in a list, -1 for one that does not.

    A block's smallest ``class xor c`` is 0 if ``c`` stands in it; that minimum takes vector instructions.
    """
    place_c, place_d = -1, -1
    n_blocks = len(classes) // BLOCK
    left, right = np.uint32(c), np.uint32(d)
    for b in range(n_blocks):
        block = classes[b * BLOCK : (b + 1) * BLOCK]
        nearest = np.uint32(0xFFFFFFFF)
        for k in range(BLOCK):
            nearest = min(nearest, np.uint32(block[k]) ^ left, np.uint32(block[k]) ^ right)
        if nearest == 0:
            for k in range(BLOCK):
                if block[k] == c:
                    place_c = b * BLOCK + k
                if block[k] == d:
                    place_d = b * BLOCK + k
            if place_c >= 0 and place_d >= 0:
                return place_c, place_d
    for e in range(n_blocks * BLOCK, len(classes)):
        if classes[e] == c:
            place_c = e
        if classes[e] == d:
            place_d = e
    return place_c, place_d


@kernel
def room_needed(lists: Any, indices: Any, low: int, high: int, extra: int, dense_at: int) -> Any:
    """Return the arena places and dense rows that ``extra`` more classes in each of a row's features may take."""
    places, rows = 0, 0
    for p in range(low, high):
        head = lists.heads[indices[p]]
        if head.row != SPARSE:
            continue
        degree = head.degree + head.coming + extra
        if degree > head.capacity:
            places += max(SMALLEST, 2 * head.capacity, degree)
        if degree >= dense_at:
            rows += 1
    return places, rows


@kernel
def reserve(lists: Any, head: Any, extra: int) -> None:
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
def make_dense(lists: Any, head: Any) -> None:
    """Move a list into a dense row of its own."""
    row = lists.used[1]
    lists.used[1] = row + 1
    lists.dense[row, :] = 0
    for e in range(head.start, head.start + head.degree):
        lists.dense[row, lists.classes[e]] = lists.weights[e]
    head.row = row


@kernel
def add_two(lists: Any, head: Any, c: Any, change: Any, d: Any, other: Any) -> None:
    """Add to the weights of two classes; free places are there if they are new. ``d`` may be ``c`` with ``other`` 0."""
    if head.row != SPARSE:
        lists.dense[head.row, c] += change
        lists.dense[head.row, d] += other
        return
    place_c, place_d = find_two(lists.classes[head.start : head.start + head.degree], c, d)
    change_at(lists, head, place_c, c, change)
    if d != c:
        change_at(lists, head, place_d, d, other)


@kernel
def change_at(lists: Any, head: Any, place: int, c: Any, change: Any) -> None:
    """Add to the weight at a place of the list, or append a new one if the place is -1."""
    if place >= 0:
        lists.weights[head.start + place] += change
        return
    lists.classes[head.start + head.degree] = c
    lists.weights[head.start + head.degree] = change
    head.degree += 1


@kernel
def count_edges(lists: Any, degrees: Any) -> None:
    """Write the number of weights other than 0 of each feature."""
    for f in range(len(lists.heads)):
        head = lists.heads[f]
        n = 0
        if head.row == SPARSE:
            for e in range(head.start, head.start + head.degree):
                n += lists.weights[e] != 0
        else:
            for c in range(lists.dense.shape[1]):
                n += lists.dense[head.row, c] != 0
        degrees[f] = n


@kernel
def copy_edges(lists: Any, indptr: Any, begin: int, end: int, classes: Any, weights: Any) -> None:
    """Copy the weights other than 0 of features ``begin`` to ``end`` to where ``indptr`` says."""
    for f in range(begin, end):
        head = lists.heads[f]
        q = indptr[f]
        if head.row == SPARSE:
            for e in range(head.start, head.start + head.degree):
                if lists.weights[e] != 0:
                    classes[q], weights[q] = lists.classes[e], lists.weights[e]
                    q += 1
        else:
            for c in range(lists.dense.shape[1]):
                if lists.dense[head.row, c] != 0:
                    classes[q], weights[q] = c, lists.dense[head.row, c]
                    q += 1


def empty_lists(n_features: int, n_classes: int) -> PrototypeLists:
    """Return lists without weights.

    Parameters
    ----------
    n_features, n_classes : int
        The shape.

    Returns
    -------
    PrototypeLists
        With a small arena.
    """
    return lists_from(sp.csr_array((n_features, n_classes), dtype=np.float32))


def lists_from(matrix: Any) -> PrototypeLists:
    """Return lists that begin with given weights.

    Parameters
    ----------
    matrix : csr_array of features × classes
        The weights; copied.

    Returns
    -------
    PrototypeLists
        All sparse; features that hold many classes become dense with their next change.
    """
    n_features, n_classes = matrix.shape
    heads = np.zeros(n_features, dtype=HEAD)
    heads["row"] = SPARSE
    heads["start"] = matrix.indptr[:-1]
    heads["degree"] = heads["capacity"] = np.diff(matrix.indptr)
    room = 2 * matrix.nnz + 4 * n_features + 1024
    classes, weights = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.float32)
    classes[: matrix.nnz], weights[: matrix.nnz] = matrix.indices, matrix.data
    dense = np.empty((0, n_classes), dtype=np.float32)
    return PrototypeLists(heads, classes, weights, dense, np.array([matrix.nnz, 0]))


def roomier(lists: PrototypeLists, places: int, rows: int) -> PrototypeLists:
    """Return the lists with room for more edges and dense rows.

    Parameters
    ----------
    lists : PrototypeLists
        The lists.
    places, rows : int
        Arena places and dense rows that are needed.

    Returns
    -------
    PrototypeLists
        Arrays that are too short are copied into longer ones, the arena into twice as long a one.
    """
    used, dense_used = lists.used.tolist()
    if used + places > len(lists.classes):
        size = used + max(places, len(lists.classes))
        lists = lists._replace(classes=longer_array(lists.classes, size), weights=longer_array(lists.weights, size))
    if dense_used + rows > len(lists.dense):
        lists = lists._replace(dense=longer_array(lists.dense, dense_used + max(rows, len(lists.dense) // 2, 16)))
    return lists


def widened(lists: PrototypeLists, n_features: int, n_classes: int) -> PrototypeLists:
    """Return the lists with room for more features and classes.

    Parameters
    ----------
    lists : PrototypeLists
        The lists.
    n_features, n_classes : int
        The new shape, no smaller than the old one.

    Returns
    -------
    PrototypeLists
        The new ones have no weights.
    """
    heads = np.zeros(n_features, dtype=HEAD)
    heads["row"] = SPARSE
    heads[: len(lists.heads)] = lists.heads
    more = np.zeros((len(lists.dense), n_classes - lists.dense.shape[1]), dtype=np.float32)
    return lists._replace(heads=heads, dense=np.concatenate((lists.dense, more), axis=1))


def longer_array(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    longer = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
