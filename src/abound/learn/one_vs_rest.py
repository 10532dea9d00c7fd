"""All classes of a one-vs-rest model, sixteen at a time, each block centred and pruned as it leaves the solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from abound.distribute import Spare, Workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn import _linear_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.light_weights import (
    LEAST_TRIED,
    SAMPLED_CLASSES,
    TRIED_CLASSES,
    lightest_without_harm,
    tried_rows,
    typical_weight,
    without_light,
)
from abound.learn.linear_disk import edges_on_disk, join_edges_on_disk
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import (
    Background,
    Block,
    Costs,
    Edges,
    Outcome,
    heavy_edges,
    padded,
    solve_background,
    start_block,
)
from abound.progress import track
from abound.validation import Float32Array, Float64Array, IntArray, frozen

SWEEPS = 3
"""Sweeps over all rows that a block takes at least; those over the moving ones cost little beside them."""


class Settings(NamedTuple):
    """How the problems are solved and what is kept of them; see `LinearClassifier`."""

    loss: int
    tol: float
    max_sweeps: int
    min_weight: float
    seed: int
    unharmed: bool = False
    """Whether to take less than ``min_weight`` where that would change answers; see `lightest_without_harm`."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A model and, class by class, its primal objective and duality gap."""

    index: ClassIndex
    objective: Float64Array
    gap: Float64Array
    n_sweeps: float
    n_unfinished: int


class Positives(NamedTuple):
    """The rows of each class, in the solver's numbering."""

    indptr: IntArray
    rows: IntArray

    def of_block(self, first: int, n_lanes: int) -> tuple[IntArray, IntArray]:
        """Return the positive rows of a block of classes and their lanes."""
        bounds = self.indptr[first : first + n_lanes + 1]
        return self.rows[bounds[0] : bounds[-1]], np.repeat(np.arange(n_lanes), np.diff(bounds))


def positives_of(labels: Labels, rows: SolverRows) -> Positives:
    """List the rows of each class.

    Parameters
    ----------
    labels : Labels
        Of the user's rows.
    rows : SolverRows
        The same rows as the solver has them.

    Returns
    -------
    Positives
        By class.
    """
    own = labels.take(rows.order)
    of_entry = np.repeat(np.arange(rows.n_rows), np.diff(own.indptr))
    by_class = np.argsort(own.ids, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(own.ids, minlength=labels.n_classes))))
    return Positives(frozen(indptr, np.int64), frozen(of_entry[by_class], np.int64))


@dataclass(frozen=True, slots=True)
class Problem:
    """What all blocks of classes have in common: it is sent to a worker once."""

    rows: SolverRows
    positives: Positives
    costs: tuple[float, ...]
    class_weights: Costs
    settings: Settings
    backgrounds: tuple[Background, ...]
    spare: Spare[Block] = field(default_factory=Spare)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.positives.indptr) - 1


Found = list[tuple[Edges, Outcome, Float32Array]]
"""What is found of a block: heavy edges, outcome and biases for each C."""


def solve_block(part: tuple[int, Sequence[float]], problem: Problem) -> Found:
    """Solve the problems of up to sixteen classes.

    Parameters
    ----------
    part : (int, sequence of float)
        The first class, and for each C the lightest weight to keep.
    problem : Problem
        The rest.

    Returns
    -------
    list of (Edges, Outcome, float32 array)
        For each C.
    """
    first, least = part
    settings, class_weights, featured = problem.settings, problem.class_weights, problem.rows.featured
    block = problem.spare.take(Block, problem.rows)
    n_lanes = min(LANES, problem.n_classes - first)
    start_block(block, problem.backgrounds[0], *problem.positives.of_block(first, n_lanes))
    found = []
    for cost, background, lightest in zip(problem.costs, problem.backgrounds, least, strict=True):
        lane_costs = Costs(*(padded(cost * weights[first : first + n_lanes]) for weights in class_weights))
        outcome = block.solve(
            lane_costs, settings.loss, settings.tol, settings.max_sweeps, settings.seed + 7919 * first
        )
        edges = heavy_edges(featured(block.weights), featured(background.weights), n_lanes, lightest, first)
        edges = edges_on_disk(edges) if problem.rows.window else edges
        own = outcome._replace(objective=outcome.objective[:n_lanes], gap=outcome.gap[:n_lanes])
        found.append((edges, own, problem.rows.biases(block.weights[:, :n_lanes])))
    problem.spare.give(block)
    return found


def solve_one_vs_rest(
    rows: SolverRows,
    labels: Labels,
    costs: Sequence[float],
    class_weights: Costs,
    settings: Settings,
    n_features: int,
    pool: Workers,
) -> list[Solved]:
    """Learn one linear model a class, for each of several values of C.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    labels : Labels
        Of the user's rows.
    costs : sequence of float
        Values of C, ascending; a block starts each from the solution of the one before.
    class_weights : Costs
        The weight of each class's positive and negative rows, two arrays of shape (n_classes,).
    settings : Settings
        Loss, tolerance and pruning.
    n_features : int
        Features of the index.
    pool : Workers
        Who works; the result does not depend on it.

    Returns
    -------
    list of Solved
        One for each C.
    """
    n_classes = labels.n_classes
    room: Spare[Block] = Spare()
    block = room.take(Block, rows)
    common = float(np.median(class_weights.negative)) if n_classes else 1.0
    backgrounds = tuple(
        solve_background(block, cost * common, settings.loss, settings.tol, settings.max_sweeps, settings.seed)
        for cost in costs
    )
    room.give(block)
    problem = Problem(rows, positives_of(labels, rows), tuple(costs), class_weights, settings, backgrounds, room)
    firsts = range(0, n_classes, LANES)
    sample = firsts[:: max(1, len(firsts) * LANES // SAMPLED_CLASSES)]
    solved: dict[int, Found] = {}
    shared = pool.share(problem)
    with track("learn classes", n_classes) as progress:

        def solve(some: Sequence[int], least: Sequence[float]) -> None:
            parts = [(first, least) for first in some]
            found_blocks = pool.map(solve_block, parts, shared, cost=SWEEPS * len(rows.indices))
            for first, found in zip(some, found_blocks, strict=True):
                solved[first] = found
                progress.advance(LANES)

        def prune(least: Sequence[float]) -> None:
            for first, found in solved.items():
                solved[first] = [
                    (without_light(edges, lightest, bool(rows.window)), outcome, biases)
                    for (edges, outcome, biases), lightest in zip(found, least, strict=True)
                ]

        solve(sample, [0.0] * len(costs))
        least = [
            settings.min_weight * typical_weight([solved[first][c][0] for first in sample]) for c in range(len(costs))
        ]
        if settings.unharmed:
            tried = firsts[:: max(1, len(firsts) * LANES // TRIED_CLASSES)]
            floor = [LEAST_TRIED * heaviest for heaviest in least]
            prune(floor)
            solve([first for first in tried if first not in solved], floor)
            some = [first for first in firsts if first in solved]
            classes = np.concatenate([np.arange(first, min(first + LANES, n_classes)) for first in some])
            least = [
                unharmed_threshold(
                    rows,
                    problem.positives,
                    [solved[first][c][0] for first in some],
                    rows.featured(background.weights),
                    np.concatenate([solved[first][c][2] for first in some]),
                    classes,
                    n_features,
                    heaviest,
                )
                for c, (background, heaviest) in enumerate(zip(backgrounds, least, strict=True))
            ]
        prune(least)
        solve([first for first in firsts if first not in solved], least)
    return [
        _join([solved[first][c] for first in firsts], rows, background, n_features, n_classes)
        for c, background in enumerate(backgrounds)
    ]


def unharmed_threshold(
    rows: SolverRows,
    positives: Positives,
    blocks: Sequence[Edges],
    offset: Float32Array,
    biases: Float32Array,
    classes: IntArray,
    n_features: int,
    heaviest: float,
) -> float:
    """Try on some classes, and on rows of theirs, how far pruning may go.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    positives : Positives
        The rows of each class.
    blocks : sequence of Edges
        The edges of some classes, from a threshold on that certainly does no harm.
    offset : float32 array
        What was subtracted from all classes, by the solver's features but the constant one.
    biases : float32 array
        Of these classes.
    classes : int64 array
        These classes.
    n_features : int
        The user's features.
    heaviest : float
        The largest threshold to try.

    Returns
    -------
    float
        See `abound.learn.light_weights.lightest_without_harm`.
    """
    n_classes = len(positives.indptr) - 1
    own = [positives.rows[positives.indptr[c] : positives.indptr[c + 1]] for c in classes.tolist()]
    all_biases, new_ids = np.zeros(n_classes, np.float32), np.full(n_classes, -1, np.int32)
    all_biases[classes], new_ids[classes] = biases, np.arange(len(classes))
    index = join_edges(blocks, rows, offset, all_biases, n_features, n_classes).remap_classes(new_ids, len(classes))
    return lightest_without_harm(index, tried_rows(rows, np.concatenate(own), n_features), heaviest)


def _join(found: Found, rows: SolverRows, background: Background, n_features: int, n_classes: int) -> Solved:
    blocks, outcomes, biases = zip(*found, strict=True)
    return Solved(
        join_edges(blocks, rows, rows.featured(background.weights), np.concatenate(biases), n_features, n_classes),
        np.concatenate([outcome.objective for outcome in outcomes]),
        np.concatenate([outcome.gap for outcome in outcomes]),
        float(np.mean([outcome.n_sweeps for outcome in outcomes])),
        sum(not outcome.converged for outcome in outcomes),
    )


def join_edges(
    blocks: Sequence[Edges],
    rows: SolverRows,
    offset: Float32Array,
    biases: Float32Array,
    n_features: int,
    n_classes: int,
) -> ClassIndex:
    """Put the edges of all blocks into one index over the user's features.

    Parameters
    ----------
    blocks : sequence of Edges
        What left the solver, block by block.
    rows : SolverRows
        Whose features they are.
    offset : float32 array
        What was subtracted from all classes, by the solver's features but the constant one.
    biases : float32 array of shape (n_classes,)
        What is added to the score of each class; left out of the index if there is no constant feature.
    n_features, n_classes : int
        The shape.

    Returns
    -------
    ClassIndex
        With the offset, by the user's features.
    """
    bias = frozen(biases, np.float32) if rows.bias else None
    full = np.zeros(n_features, dtype=np.float32)
    full[rows.features] = offset
    if rows.window:
        return replace(join_edges_on_disk(blocks, rows, frozen(full, np.float32), n_classes), bias=bias)
    degrees = np.zeros(n_features, dtype=np.int64)
    for edges in blocks:
        degrees[rows.features] += edges.counts
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    cursor = indptr[:-1].copy()
    classes, weights = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    for edges in blocks:
        kernels.place_edges(*edges, rows.features, cursor, classes, weights)
    index = ClassIndex.from_lists(
        indptr, classes, weights, n_classes=n_classes, offset=frozen(full, np.float32) if full.any() else None
    )
    return replace(index, bias=bias)
