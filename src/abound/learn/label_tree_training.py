"""The nodes of a label tree as linear problems: one against its siblings, sixteen children at a time.

A node learns from the rows that have a label below it; a child's positive rows are those with a label below the child.
Small nodes are solved many to a compiled call, large ones step by step, all of them in any order: nothing but their
rows is shared, so threads change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abound.distribute import Spare, Workers
from abound.labels import Labels
from abound.learn import _label_tree_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.label_tree_nodes import Desk, Pairs, Settings, solve_large_node, solve_small_nodes
from abound.learn.label_tree_shape import TreeShape
from abound.learn.linear_rows import SolverRows
from abound.progress import track
from abound.rank.tree_weights import EMPTY, Entries, NodeEntries, TreeWeights
from abound.scratch import Growing
from abound.validation import IdArray, IntArray, frozen

SMALL = 250_000
"""Non-zeros times blocks that one compiled call solves: a fraction of a second."""

SWEEPS = 10
"""About how often the rows of a node are read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What all nodes have in common: it is sent to a worker once."""

    rows: SolverRows
    pairs: Pairs
    n_children: IntArray
    settings: Settings
    spare: Spare[Desk] = field(default_factory=Spare)


def solve_nodes(part: tuple[int, int, bool], problem: Problem) -> NodeEntries:
    """Solve some consecutive nodes.

    Parameters
    ----------
    part : (int, int, bool)
        The first node, the one after the last, and whether the first is large.
    problem : Problem
        The rest.

    Returns
    -------
    NodeEntries
        What they know.
    """
    begin, end, is_large = part
    rows, pairs, n_children, settings = problem.rows, problem.pairs, problem.n_children, problem.settings
    desk = problem.spare.take(Desk, rows.n_features)
    if is_large:
        found = solve_large_node(rows, pairs, n_children, begin, settings, desk)
    else:
        found = solve_small_nodes(rows, pairs, n_children, begin, end, settings, desk)
    problem.spare.give(desk)
    return found


def train_tree(rows: SolverRows, labels: Labels, shape: TreeShape, settings: Settings, pool: Workers) -> TreeWeights:
    """Solve the problems of all nodes.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    labels : Labels
        Theirs, in their order.
    shape : TreeShape
        The tree.
    settings : Settings
        Loss, cost, tolerance, pruning.
    pool : Workers
        Who works; the result does not depend on it.

    Returns
    -------
    TreeWeights
        Over the user's features.
    """
    pairs, n_children = list_pairs(rows, labels, shape), frozen(shape.n_children, np.int64)
    costs = (pairs.values + np.diff(pairs.indptr)) * -(-n_children // LANES)
    tasks = plan_tasks(costs)
    spans = [(*task, bool(costs[task[0]] > SMALL)) for task in tasks]
    shared = pool.share(Problem(rows, pairs, n_children, settings))
    effort = SWEEPS * int(costs.sum()) // len(tasks)
    # In the order of the nodes, so that parts are put behind one another as they come. The large ones are above the
    # small ones: no thread has a long one left at the end.
    found = Entries(Growing)
    with track("learn nodes", shape.n_nodes) as progress:
        for task, part in zip(tasks, pool.map(solve_nodes, spans, shared, cost=effort), strict=True):
            found.append(part)
            progress.advance(task[1] - task[0])
    return found.tree(*lay_out_slots(shape))


def lay_out_slots(shape: TreeShape) -> tuple[IntArray, IdArray]:
    """Give every node whole blocks of slots.

    Parameters
    ----------
    shape : TreeShape
        The tree.

    Returns
    -------
    slot_indptr, slots : arrays
        As in `TreeWeights`.
    """
    n_slots = -(-shape.n_children // LANES) * LANES
    slot_indptr = np.concatenate(([0], np.cumsum(n_slots)))
    slots = np.full(slot_indptr[-1], EMPTY, dtype=np.int32)
    shift = np.repeat(slot_indptr[:-1] - shape.indptr[:-1], shape.n_children)
    slots[np.arange(len(shape.children)) + shift] = shape.children
    return slot_indptr, slots


def list_pairs(rows: SolverRows, labels: Labels, shape: TreeShape) -> Pairs:
    """List the rows of every node.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    labels : Labels
        Theirs.
    shape : TreeShape
        The tree.

    Returns
    -------
    Pairs
        By node, in the order of the rows.
    """
    levels = shape.levels(labels.n_classes)
    counts, values = np.zeros(shape.n_nodes, dtype=np.int64), np.zeros(shape.n_nodes, dtype=np.int64)
    for nodes, _ in levels:
        kernels.count_pairs(rows.indptr, labels.indptr, labels.ids, nodes, counts, values)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    pair_rows, places = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.int32)
    cursor = indptr[:-1].copy()
    for nodes, at in levels:
        kernels.list_pairs(labels.indptr, labels.ids, nodes, at, cursor, pair_rows, places)
    return Pairs(
        frozen(indptr, np.int64), frozen(pair_rows, np.int32), frozen(places, np.int32), frozen(values, np.int64)
    )


def plan_tasks(costs: IntArray) -> list[tuple[int, int]]:
    """Put consecutive nodes together until they are worth a call.

    Parameters
    ----------
    costs : int64 array of shape (n_nodes,)
        What each node takes.

    Returns
    -------
    list of (begin, end)
        Spans of nodes. A node that takes more than `SMALL` is alone.
    """
    tasks, begin, total = [], 0, 0
    for node, cost in enumerate(costs.tolist()):
        if node > begin and total + cost > SMALL:
            tasks.append((begin, node))
            begin, total = node, 0
        total += cost
    return [*tasks, (begin, len(costs))]
