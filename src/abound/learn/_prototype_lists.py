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
from abound.vectorise._instructions import prefetch

SMALLEST = 4
"""Places of a list's first home."""

SPARSE = -1
"""The dense row of a feature that has none."""

HEAD = np.dtype([("start", np.int64), ("degree", np.int32), ("capacity", np.int32), ("row", np.int32)], align=True)
"""Where a list stands, its edges and places, and its dense row."""

BLOCK = 1024
"""Classes that are compared before asking whether both were found."""

LINE = 16
"""Classes, or weights, that memory delivers at once."""

NEAR = 256
"""Classes of a list that are brought near before it is searched."""

NEXT_PLACE, LAST_PLACE, NEXT_ROW, LAST_ROW = 0, 1, 2, 3
"""What a share has in stock: free places of the arena and free dense rows, each from the next to before the last."""

DENSE_ROW = -1
"""What a share lacks that needs a dense row."""

REGION = 4096
"""Places of the arena that a share gets at least when its stock has run out."""


class PrototypeLists(NamedTuple):
    """Heads, arena and dense rows; ``used`` says how much of arena and dense rows has been given out.

    Threads share the features out among themselves, and each has free places and dense rows in ``stock`` for its own.
    Lists are read far more often than the processor's cache can hold them: class ids take two bytes where they fit.
    """

    heads: npt.NDArray[np.void]
    classes: npt.NDArray[np.uint16] | IdArray
    weights: Float32Array
    dense: Float32Array
    used: IntArray
    stock: IntArray


@kernel
def find_two(classes: Any, c: Any, d: Any) -> Any:
    """Return where two classes stand in a list, -1 for one that does not.

    A maximum over all places of a block takes vector instructions; stopping at the first match would not.
    """
    one, other = classes.dtype.type(c), classes.dtype.type(d)
    none = np.int32(-1)
    place_c, place_d = none, none
    for low in range(0, len(classes), BLOCK):
        block = classes[low : low + BLOCK]
        at_c, at_d = none, none
        for k in range(len(block)):
            at_c = max(at_c, np.int32(k) if block[k] == one else none)
            at_d = max(at_d, np.int32(k) if block[k] == other else none)
        if at_c >= 0:
            place_c = np.int32(low + at_c)
        if at_d >= 0:
            place_d = np.int32(low + at_d)
        if place_c >= 0 and place_d >= 0:
            break
    return place_c, place_d


@kernel
def fetch(array: Any, low: int, high: int) -> None:
    """Bring a part of an array near before it is read."""
    for e in range(low, high, LINE):
        prefetch(array, e)


@kernel
def fetch_dense(lists: Any, f: Any, c: Any, d: Any) -> None:
    """Bring two weights of a feature near if its row is dense."""
    row = np.int64(lists.heads[f].row)
    if row != SPARSE:
        prefetch(lists.dense, row * lists.dense.shape[1] + c)
        prefetch(lists.dense, row * lists.dense.shape[1] + d)


@kernel
def fetch_list(lists: Any, f: Any) -> None:
    """Bring a feature's list near: its first classes and the place of a new weight."""
    head = lists.heads[f]
    if head.row == SPARSE:
        fetch(lists.classes, head.start, head.start + min(head.degree, NEAR))
        prefetch(lists.weights, head.start + head.degree)


@kernel
def make_room(lists: Any, head: Any, extra: int, dense_at: int, stock: Any) -> Any:
    """See that a sparse list takes ``extra`` more classes: in place, elsewhere, or as a dense row.

    Returns 0, or what the stock lacks: a number of places, `DENSE_ROW` for a dense row.
    """
    degree = head.degree + extra
    if degree >= dense_at:
        if stock[NEXT_ROW] == stock[LAST_ROW]:
            return DENSE_ROW
        make_dense(lists, head, stock)
    elif degree > head.capacity:
        larger = max(SMALLEST, 2 * head.capacity, degree)
        if stock[NEXT_PLACE] + larger > stock[LAST_PLACE]:
            return larger
        old, new = head.start, stock[NEXT_PLACE]
        for j in range(head.degree):
            lists.classes[new + j] = lists.classes[old + j]
            lists.weights[new + j] = lists.weights[old + j]
        head.start = new
        head.capacity = larger
        stock[NEXT_PLACE] = new + larger
    return 0


@kernel
def make_dense(lists: Any, head: Any, stock: Any) -> None:
    """Move a list into a dense row of its own."""
    row = stock[NEXT_ROW]
    stock[NEXT_ROW] = row + 1
    lists.dense[row, :] = 0
    for e in range(head.start, head.start + head.degree):
        lists.dense[row, lists.classes[e]] = lists.weights[e]
    head.row = row


@kernel
def add_two(lists: Any, head: Any, c: Any, change: Any, d: Any, other: Any, dense_at: int, stock: Any) -> Any:
    """Add to the weights of two classes, ``d`` may be ``c`` with ``other`` 0; return 0, or what the stock lacks."""
    if head.row == SPARSE:
        place_c, place_d = find_two(lists.classes[head.start : head.start + head.degree], c, d)
        extra = (place_c < 0) + (place_d < 0 and d != c)
        missing = make_room(lists, head, extra, dense_at, stock) if extra > 0 else 0
        if missing != 0:
            return missing
    if head.row != SPARSE:
        lists.dense[head.row, c] += change
        lists.dense[head.row, d] += other
        return 0
    change_at(lists, head, place_c, c, change)
    if d != c:
        change_at(lists, head, place_d, d, other)
    return 0


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
    room = matrix.nnz + REGION
    classes, weights = np.empty(room, dtype=id_type(n_classes)), np.empty(room, dtype=np.float32)
    classes[: matrix.nnz], weights[: matrix.nnz] = matrix.indices, matrix.data
    dense = np.empty((0, n_classes), dtype=np.float32)
    return PrototypeLists(heads, classes, weights, dense, np.array([matrix.nnz, 0]), np.zeros((0, 4), dtype=np.int64))


def with_shares(lists: PrototypeLists, n_shares: int) -> PrototypeLists:
    """Return the lists with a stock for each share.

    Parameters
    ----------
    lists : PrototypeLists
        The lists.
    n_shares : int
        Number of shares.

    Returns
    -------
    PrototypeLists
        New stocks are empty.
    """
    missing = max(0, n_shares - len(lists.stock))
    return lists._replace(stock=np.concatenate((lists.stock, np.zeros((missing, 4), dtype=np.int64))))


def with_places(lists: PrototypeLists, n_places: int) -> PrototypeLists:
    """Return the lists with so many places of the arena not yet given out.

    Parameters
    ----------
    lists : PrototypeLists
        The lists.
    n_places : int
        Places; memory is taken only for those that will be written to.

    Returns
    -------
    PrototypeLists
        An arena that is too short is copied into one at least twice as long.
    """
    used = int(lists.used[0])
    if used + n_places <= len(lists.classes):
        return lists
    size = max(used + n_places, 2 * len(lists.classes))
    classes, weights = longer_array(lists.classes, size, used), longer_array(lists.weights, size, used)
    return lists._replace(classes=classes, weights=weights)


def restocked(lists: PrototypeLists, share: int, missing: int) -> PrototypeLists:
    """Return the lists with more in the stock of a share.

    Parameters
    ----------
    lists : PrototypeLists
        The lists.
    share : int
        The share whose stock has run out.
    missing : int
        Places of the arena that it needs, or `DENSE_ROW`.

    Returns
    -------
    PrototypeLists
        Arrays that are too short are copied into longer ones.
    """
    used, stock = lists.used, lists.stock[share]
    if missing == DENSE_ROW:
        rows = max(1, int(used[1]) // 16)
        if used[1] + rows > len(lists.dense):
            size = int(used[1]) + max(rows, len(lists.dense) // 2, 8)
            lists = lists._replace(dense=longer_array(lists.dense, size, int(used[1])))
        stock[NEXT_ROW], stock[LAST_ROW] = used[1], used[1] + rows
        used[1] += rows
        return lists
    places = max(missing, REGION, int(used[0]) // 16)
    lists = with_places(lists, places)
    if stock[LAST_PLACE] != used[0]:
        stock[NEXT_PLACE] = used[0]
    stock[LAST_PLACE] = used[0] + places
    used[0] += places
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
    classes = lists.classes.astype(id_type(n_classes), copy=False)
    return lists._replace(heads=heads, classes=classes, dense=np.concatenate((lists.dense, more), axis=1))


def id_type(n_classes: int) -> npt.DTypeLike:
    return np.uint16 if n_classes <= 2**16 else np.int32


def longer_array(array: npt.NDArray[Any], size: int, used: int) -> npt.NDArray[Any]:
    longer = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    longer[:used] = array[:used]
    return longer
