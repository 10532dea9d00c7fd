"""Walk down trees: the best classes of each row, without scoring those that the walk does not come near.

A walk gives a node the score of its parent plus the logarithm of a chance, which its own score ``s`` stands for:
``−max(0, 1 − s)²`` if its model was trained with the squared hinge loss, ``log 1/(1 + exp(−s))`` if with the logistic.
*Greedy* follows the best child; *beam* the best few nodes of each level, opened best first and as long as they may
change the result; *best first* opens the best node of all that are waiting, until the best that waits are leaves: that
is exact, and takes as long as it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import spans, workers
from abound.progress import track
from abound.rank import _descend_kernels as kernels
from abound.rank._lane_sums import LANES
from abound.rank._topk_kernels import Votes, no_votes
from abound.rank.topk import Ranking
from abound.rank.tree_weights import TreeWeights
from abound.validation import Float32Array, IdArray, IntArray, Rows, frozen

LINKS = ("squared_hinge", "logistic")
"""In the order of the kernels' numbers."""

WALKS = ("beam", "best")

KEPT = 100
"""Leaves of each tree that are averaged in a forest."""

ROWS_A_CALL = 2048
VALUES_A_CALL = 100_000
"""One kernel call walks so many rows at most, and about so many non-zeros: milliseconds."""


class LookedUp(NamedTuple):
    """What some rows find at a node each: the cells of their features, their values, and the scores of children."""

    rows: IntArray
    nodes: IntArray
    cells: IntArray
    values: Float32Array
    counts: IntArray
    sums: Float32Array


class Room(NamedTuple):
    """What the walks work in: for some rows the best nodes of each level, and how many of these are open."""

    looked: LookedUp
    waiting: IdArray
    chances: Float32Array
    n_waiting: IdArray
    n_opened: IdArray
    level: IntArray
    above: Float32Array
    found: IdArray
    queue_ids: IdArray
    queue_scores: Float32Array


class Descent(NamedTuple):
    """The result: the best classes with their chances, and whether any tree knows something of the row."""

    ranking: Ranking
    known: npt.NDArray[np.bool_]
    """Whether the root of a tree knows a feature of the row, or has a bias."""


def descend(
    trees: Sequence[TreeWeights],
    rows: Rows,
    k: int,
    n_classes: int,
    *,
    link: str = "squared_hinge",
    walk: str = "beam",
    beam: int = 10,
    allowed: npt.NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> Descent:
    """Rank the classes of each row by the mean of the chances that several trees give them.

    Parameters
    ----------
    trees : sequence of TreeWeights
        At least one, over the same features and classes.
    rows : Rows
        The rows.
    k : int
        Number of classes wanted.
    n_classes : int
        Number of classes.
    link : {"squared_hinge", "logistic"}
        What scores stand for.
    walk : {"beam", "best"}
        The best nodes of each level, or the best of all first.
    beam : int
        Nodes of a level that a beam follows; 1 is greedy.
    allowed : bool array of shape (n_classes,), optional
        Which classes may be ranked.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    Descent
        Best first, ties by the lower id; -1 and -inf where the walk found fewer classes. Of several trees, or of
        classes with several leaves, the `KEPT` best leaves of each tree count.
    """
    k, n = min(k, n_classes), rows.n_rows
    ids = np.full((n, k), -1, dtype=np.int32)
    scores = np.full((n, k), -np.inf, dtype=np.float32)
    known = np.full(n, any(tree.knows_every_row for tree in trees))
    if k == 0 or n == 0:
        return Descent(Ranking(ids, scores), known)
    alone = len(trees) == 1 and _is_once(trees[0].leaf_classes, n_classes)
    kept = k if alone else min(KEPT, max(len(tree.leaf_classes) for tree in trees))
    gates = [_gates(tree, allowed) for tree in trees]
    take = kernels.beam_rows if walk == "beam" else kernels.best_rows
    parts = _parts(rows)
    longest = int(np.diff(rows.indptr).max())
    spare: list[tuple[list[Room], Votes, npt.NDArray[np.float64]]] = []

    def walk_part(part: tuple[int, int]) -> int:
        begin, end = part
        rooms, votes, sums = spare.pop() if spare else _rooms(trees, longest, beam, walk, n_classes, k)
        leaves = np.full((len(trees), end - begin, kept), -1, dtype=np.int32)
        chances = np.full(leaves.shape, -np.inf, dtype=np.float32)
        knows = np.zeros((len(trees), end - begin), dtype=np.bool_)
        view = rows.part(begin, end)
        for t, (tree, room) in enumerate(zip(trees, rooms, strict=True)):
            take(
                *(view.indptr, view.indices, view.data, 0, end - begin, tree, LINKS.index(link), *gates[t], room),
                *(leaves[t], chances[t], knows[t]),
            )
        kernels.mean_of_trees(leaves, chances, begin, votes, sums, ids, scores)
        known[begin:end] |= knows.any(axis=0)
        spare.append((rooms, votes, sums))
        return end - begin

    with workers(n_jobs) as pool, track("rank", n) as progress:
        for done in pool.map(walk_part, parts):
            progress.advance(done)
    return Descent(Ranking(ids, scores), known)


def _is_once(classes: IdArray, n_classes: int) -> bool:
    """Whether no class is there twice."""
    is_there = np.zeros(n_classes, dtype=np.bool_)
    is_there[classes] = True
    return int(np.count_nonzero(is_there)) == len(classes)


def _gates(
    tree: TreeWeights, allowed: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Where the walk may go, as kernels take it: nodes and classes, empty if anywhere."""
    classes = frozen(np.empty(0) if allowed is None else allowed, np.bool_)
    nodes = np.empty(0, dtype=np.bool_) if allowed is None else tree.open_nodes(classes)
    return frozen(nodes, np.bool_), classes


def _parts(rows: Rows) -> list[tuple[int, int]]:
    """Cut the rows so that no kernel call is long."""
    n = rows.n_rows
    cost = (rows.indptr - rows.indptr[0]) / VALUES_A_CALL + np.arange(n + 1) / ROWS_A_CALL
    return spans(cost, int(cost[-1]) + 1)


def _rooms(trees: Sequence[TreeWeights], n_values: int, beam: int, walk: str, n_classes: int, k: int) -> Any:
    rooms = [room_for(tree, n_values, beam if walk == "beam" else 0) for tree in trees]
    return rooms, no_votes(n_classes, np.float64), np.empty(k)


def room_for(tree: TreeWeights, n_values: int, beam: int) -> Room:
    """Make room for walks down a tree.

    Parameters
    ----------
    tree : TreeWeights
        The tree.
    n_values : int
        Values of the longest row.
    beam : int
        Nodes of a level that are followed; 0 for a walk that opens the best of all first.

    Returns
    -------
    Room
        For several rows at a time, or for one without a beam.
    """
    n = kernels.TOGETHER if beam else 1
    beam = min(beam, tree.n_nodes)

    def ids(*shape: int) -> IdArray:
        return np.empty(shape, dtype=np.int32)

    def places(*shape: int) -> IntArray:
        return np.empty(shape, dtype=np.int64)

    def numbers(*shape: int) -> Float32Array:
        return np.empty(shape, dtype=np.float32)

    sums = numbers(n * tree.most_blocks, LANES)
    looked = LookedUp(places(n), places(n), places(n, n_values), numbers(n, n_values), places(n), sums)
    queue, levels = 0 if beam else len(tree.slots) + 1, tree.n_levels
    return Room(
        *(looked, ids(n, levels, beam), numbers(n, levels, beam), ids(n, levels), ids(n, levels)),
        *(places(n), numbers(n), ids(n), ids(queue), numbers(queue)),
    )
