"""Nodes of a class graph that share no edge: sixteen at a time, each in its dual around the mean of its neighbours.

What all nodes have in common goes to a worker once. With a block of nodes go the means of their neighbours and their
support vectors; the weights of those that have moved come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import Spare
from abound.learn import _linear_kernels
from abound.learn import _recursive_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.linear_rows import SolverRows, lane_array
from abound.learn.linear_solver import LOGISTIC, Block, Costs, padded
from abound.learn.one_vs_rest import Positives, Settings
from abound.validation import Float32Array, Float64Array, IdArray, frozen


class Duals(NamedTuple):
    """The support vectors of a node."""

    rows: IdArray
    values: Float32Array


class Node(NamedTuple):
    """A node that has moved: its weights, its loss, times its springs, and its support vectors."""

    weights: Float32Array
    loss: float
    duals: Duals


class NodeBlock(NamedTuple):
    """Up to sixteen nodes of one colour."""

    classes: npt.NDArray[np.int64]
    means: Float32Array
    """Of their neighbours' weights, nodes × features."""
    duals: Sequence[Duals | None]
    """As the last round left them."""
    before: Float64Array
    """Their objectives where they are now."""


@dataclass(frozen=True, slots=True)
class NodeSolver:
    """What all nodes have in common."""

    rows: SolverRows
    positives: Positives
    costs: Costs
    springs: npt.NDArray[np.int64]
    """How many each class has; one at least."""
    settings: Settings
    blocks: Spare[Block] = field(default_factory=Spare)
    origins: Spare[Float32Array] = field(default_factory=Spare)


def solve_nodes(part: NodeBlock, solver: NodeSolver) -> list[Node | None]:
    """Solve a block of nodes around the means of their neighbours.

    Parameters
    ----------
    part : NodeBlock
        The nodes.
    solver : NodeSolver
        The rest.

    Returns
    -------
    list of Node or None
        As they are then; None for one that stays where it was.
    """
    classes, settings, rows = part.classes, solver.settings, solver.rows
    block = solver.blocks.take(Block, rows)
    origin = solver.origins.take(lane_array, rows.n_features)
    origin[:, len(classes) :] = 0
    block.duals[:] = 0
    block.targets[:] = 0
    for lane, (c, duals) in enumerate(zip(classes.tolist(), part.duals, strict=True)):
        origin[:, lane] = part.means[lane]
        block.targets[:, lane] = -1
        own = solver.positives.rows[solver.positives.indptr[c] : solver.positives.indptr[c + 1]]
        block.targets[own, lane] = 1
        if duals is not None:
            block.duals[duals.rows, lane] = duals.values
    block.weights[:] = origin
    _linear_kernels.add_rows(rows.indptr, rows.indices, rows.data, block.targets, block.duals, block.weights)
    costs = Costs(*(padded(part[classes]) for part in solver.costs))
    outcome = block.solve(costs, settings.loss, settings.tol, settings.max_sweeps, settings.seed, origin)
    losses = _losses(solver, block, costs, outcome.objective, origin)
    solved: list[Node | None] = []
    for lane, springs in enumerate(solver.springs[classes].tolist()):
        weights, loss = block.weights[:, lane].copy(), float(losses[lane]) * springs
        node = None
        # A loosely solved dual may be above where the node was: then it stays there.
        if loss + springs * half_square(weights, part.means[lane]) <= part.before[lane]:
            kept = np.flatnonzero(block.duals[:, lane])
            duals = Duals(frozen(kept, np.int32), frozen(block.duals[kept, lane], np.float32))
            node = Node(frozen(weights, np.float32), loss, duals)
        solved.append(node)
    solver.blocks.give(block)
    solver.origins.give(origin)
    return solved


def half_square(weights: Float32Array, origin: Float32Array) -> float:
    """Return half the squared distance of two vectors.

    Parameters
    ----------
    weights, origin : float32 arrays of equal length
        The vectors.

    Returns
    -------
    float
        Added up in double precision.
    """
    return 0.5 * float(np.square(weights - origin, dtype=np.float64).sum())


def _losses(
    solver: NodeSolver, block: Block, costs: Costs, objective: Float64Array, origin: Float32Array
) -> Float64Array:
    rows, sums = solver.rows, np.zeros(LANES)
    if solver.settings.loss == LOGISTIC:
        kernels.logistic_loss(
            *(rows.indptr, rows.indices, rows.data, rows.weights, block.targets, *costs),
            *(0, rows.n_rows, block.weights, sums),
        )
        return sums
    _linear_kernels.lane_squares(block.weights, origin, sums)
    losses: Float64Array = objective - 0.5 * sums
    return losses
