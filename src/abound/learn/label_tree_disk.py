"""Label trees of rows on disk: the same problems and the same weights, level by level, in bounded memory.

Before a level is learned, its rows are put in the order of its nodes, so that every node reads one stretch of a file. A
large node's own copy of its rows is a file as well, and so is what leaves the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from abound.distribute import Spare, count_workers, workers
from abound.labels import Labels
from abound.learn._lanes import LANES
from abound.learn.disk_gather import COPIES, gather_rows, refuse_elsewhere, stays_on_disk
from abound.learn.disk_order import WINDOW_SHARE, rows_bytes
from abound.learn.label_tree_nodes import VALUES_A_CALL, Desk, Pairs, Settings, solve_large_node, solve_small_nodes
from abound.learn.label_tree_shape import TreeShape
from abound.learn.label_tree_training import SMALL, lay_out_slots, list_pairs, plan_tasks
from abound.learn.linear_rows import SolverRows
from abound.memory import check_memory, require_memory
from abound.progress import track
from abound.rank.tree_weights import Entries, NodeEntries, TreeWeights
from abound.scratch import Spill, is_mapped, let_go
from abound.validation import IntArray, Rows, frozen

BYTES_A_ROW, BYTES_A_PAIR = 180, 40
"""What a row takes in memory while the nodes of its level are learned, and once more for each of its labels."""


def train_tree_on_disk(
    rows: SolverRows, labels: Labels, shape: TreeShape, settings: Settings, n_jobs: int | None, memory: int
) -> TreeWeights:
    """Solve the problems of all nodes; the result is that of `abound.learn.label_tree_training.train_tree`.

    Parameters
    ----------
    rows, labels, shape, settings, n_jobs : object
        As there.
    memory : int
        The budget.

    Returns
    -------
    TreeWeights
        Its large arrays in temporary files.
    """
    pairs, found = list_pairs(rows, labels, shape), Entries(Spill)
    with track("learn nodes", shape.n_nodes) as progress:
        for begin, end in _levels(shape):
            level, own = _level_rows(rows, pairs, begin, end, memory)
            n_children = shape.n_children[begin:end]
            for part, n_nodes in _solve_level(level, own, n_children, settings, n_jobs, memory):
                found.append(part)
                progress.advance(n_nodes)
    return found.tree(*lay_out_slots(shape))


def budget_on_disk(learner: Any, rows: Rows, labels: Labels) -> int | None:
    """Read the budget of a label tree, and refuse what it does not allow.

    Parameters
    ----------
    learner : LabelTreeClassifier
        The tree.
    rows, labels : Rows, Labels
        What it is trained on.

    Returns
    -------
    int or None
        The budget if the rows stay on disk, else None.
    """
    memory = check_memory(learner.memory)
    if memory is None:
        return None
    spectral = isinstance(learner.tree, str) and learner.tree == "spectral"
    advice = "use fewer threads or features" + (", or tree='kmeans'" if spectral else "")
    require_memory(memory, tree_needs(rows, labels, memory, count_workers(learner.n_jobs), spectral), advice)
    if not stays_on_disk(rows, memory):
        return None
    refuse_elsewhere(learner)
    return memory


def tree_needs(rows: Rows, labels: Labels, memory: int, n_workers: int, spectral: bool) -> dict[str, int]:
    """Estimate what training a label tree takes.

    Parameters
    ----------
    rows, labels : Rows, Labels
        What it is trained on.
    memory : int
        The budget.
    n_workers : int
        Threads.
    spectral : bool
        Whether a flat model is trained first, which needs its rows in memory.

    Returns
    -------
    dict
        Bytes, by what they are for.
    """
    lanes = 4 * LANES * rows.n_features * n_workers
    needs = {
        "rows and labels": BYTES_A_ROW * rows.n_rows + BYTES_A_PAIR * len(labels.ids),
        "the weights of a block of children": 3 * lanes + 24 * rows.n_features,
    }
    if stays_on_disk(rows, memory) and not spectral:
        under_way = min(10 * VALUES_A_CALL, 8 * int(rows.indptr[-1]))
        return needs | {"the rows under way": n_workers * under_way + memory // WINDOW_SHARE}
    copies = COPIES + is_mapped(rows.data)
    blocks = 2 * 4 * LANES * min(int(rows.indptr[-1]), rows.n_features * labels.n_classes)
    return needs | {"copies of the rows": copies * rows_bytes(rows) + 160 * rows.n_rows, "the weights": blocks}


def _levels(shape: TreeShape) -> list[tuple[int, int]]:
    """The nodes of each level, which follow one another."""
    levels = [(0, 1)]
    while True:
        begin, end = levels[-1]
        below = shape.children[shape.indptr[begin] : shape.indptr[end]]
        n_nodes = int(np.count_nonzero(below >= 0))
        if n_nodes == 0:
            return levels
        levels.append((end, end + n_nodes))


def _level_rows(rows: SolverRows, pairs: Pairs, begin: int, end: int, memory: int) -> tuple[SolverRows, Pairs]:
    """The rows of a level in the order of its nodes, and which node has which of these."""
    bounds = pairs.indptr[begin : end + 1]
    own = pairs.rows[bounds[0] : bounds[-1]]
    is_new = np.empty(len(own), dtype=np.bool_)
    is_new[:1] = True
    np.not_equal(own[1:], own[:-1], out=is_new[1:])
    starts = bounds[:-1][np.diff(bounds) > 0] - bounds[0]
    is_new[starts] = True
    order = own[is_new].astype(np.int64)
    numbers = np.cumsum(is_new, dtype=np.int64) - 1
    here = Pairs(
        frozen(bounds - bounds[0], np.int64),
        frozen(numbers, np.int32),
        frozen(pairs.places[bounds[0] : bounds[-1]], np.int32),
        pairs.values[begin:end],
    )
    if len(order) == rows.n_rows and (np.diff(order) == 1).all():
        return rows, here
    indptr, indices, data = gather_rows(rows, order, memory)
    norms, weights = frozen(rows.norms[order], np.float32), frozen(rows.weights[order], np.float32)
    return rows._replace(indptr=indptr, indices=indices, data=data, norms=norms, weights=weights), here


def _solve_level(
    rows: SolverRows, pairs: Pairs, n_children: IntArray, settings: Settings, n_jobs: int | None, memory: int
) -> Iterator[tuple[NodeEntries, int]]:
    """What the nodes of a level know, in their order, and how many nodes that are."""
    costs = (pairs.values + np.diff(pairs.indptr)) * -(-n_children // LANES)
    spare: Spare[Desk] = Spare()

    def solve(task: tuple[int, int]) -> tuple[NodeEntries, int]:
        begin, end = task
        if end == begin + 1 and costs[begin] > SMALL:
            on_disk = 8 * int(pairs.values[begin]) > memory // 64
            # Its desk is large, and not kept.
            found = solve_large_node(rows, pairs, n_children, begin, settings, Desk(rows.n_features), on_disk)
        else:
            desk = spare.take(Desk, rows.n_features)
            found = solve_small_nodes(rows, pairs, n_children, begin, end, settings, desk)
            spare.give(desk)
            let_go(rows.indices, rows.data)
        return found, end - begin

    with workers(n_jobs) as pool:
        yield from pool.map(solve, plan_tasks(costs))
