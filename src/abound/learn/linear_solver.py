"""Solve sixteen binary problems to a given duality gap, and all classes of a one-vs-rest model block by block.

A block's solution starts from the *background*, the solution of "no row is of this class", which all classes of a long
list nearly share. One sweep over all rows finds those that the class's own rows disturb; sweeps over these alone
follow; another sweep over all confirms. A row's share of the duality gap decides whether it is looked at again, so that
what is left out is known and bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import spans
from abound.learn import _linear_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.linear_rows import SolverRows, lane_array
from abound.learn.row_views import ENTRIES_A_ROW
from abound.scratch import let_go
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, frozen

LOSSES = ("squared_hinge", "hinge", "logistic")
"""In the order of the kernels' numbers."""

LOGISTIC = LOSSES.index("logistic")

VALUES_A_CALL = 20_000_000
"""Non-zeros that one kernel call reads: a fraction of a second."""

ACTIVE_SWEEPS = 8
"""Sweeps over the moving rows before all rows are looked at again."""

BACKGROUND_TOL = 0.1
"""The background is solved to this part of the tolerance: every class builds on it."""


class Costs(NamedTuple):
    """What a row's loss counts in each lane: C × class weight, for its positive and its negative rows."""

    positive: Float32Array
    negative: Float32Array


class Outcome(NamedTuple):
    """How a block ended, lane by lane."""

    objective: Float64Array
    gap: Float64Array
    n_sweeps: int
    converged: bool


class Block:
    """Room for sixteen problems over the same rows; used again for one block after another.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    """

    def __init__(self, rows: SolverRows) -> None:
        self.rows = rows
        self.weights: Float32Array = lane_array(rows.n_features)
        self.duals: Float32Array = lane_array(rows.n_rows)
        self.targets: npt.NDArray[np.int8] = lane_array(rows.n_rows, np.int8)
        self.active = np.empty(rows.n_rows, dtype=np.int32)
        self._everyone = np.arange(rows.n_rows, dtype=np.int32)

    def clear(self) -> None:
        """Start at zero."""
        self.weights[:] = 0
        self.duals[:] = 0

    def solve(
        self,
        costs: Costs,
        loss: int,
        tol: float,
        max_sweeps: int,
        seed: int,
        origin: Float32Array | None = None,
        expected: Float64Array | None = None,
    ) -> Outcome:
        """Take sweeps until the duality gap of every lane is small, starting from the weights and duals at hand.

        Parameters
        ----------
        costs : Costs
            What errors cost.
        loss : int
            Place in `LOSSES`.
        tol : float
            A lane is done when its gap is at most ``tol`` × its primal objective.
        max_sweeps : int
            Sweeps after which to stop in any case.
        seed : int
            Of the order of the moving rows.
        origin : float32 array of shape (n_features, 16), optional
            ``w₀``, towards which the weights are pulled; None is 0.
        expected : float64 array of shape (16,), optional
            About what the objective is if the start is near the solution: then only rows that matter at that scale
            move, and a look at all rows comes first.

        Returns
        -------
        Outcome
            Objective and gap as seen in the last sweep over all rows.
        """
        n = self.rows.n_rows
        threshold = np.full(LANES, np.float32(1e-9) * costs.positive.max(initial=0), dtype=np.float32)
        if expected is not None:
            threshold = (tol * expected / (4 * max(1, n))).astype(np.float32)
        gap, objective = np.zeros(LANES), np.zeros(LANES)
        goal = np.full(LANES, np.inf)
        n_active, all_rows, n_short = n, True, 0
        for number in range(max_sweeps):
            if all_rows:
                self.active[:] = self._everyone
            else:
                self._shuffle(n_active, seed + number)
            # Sweeps over all rows look, but for a first one far from the solution: what they see is then true of the
            # same weights.
            hold = all_rows and (number > 0 or expected is not None)
            n_active, sums = self._sweep(n_active, costs, loss, threshold, hold)
            seen = sums[0]
            if all_rows:
                gap, objective = seen, sums[1] + self._regulariser(sums[2], origin)
                if hold and (gap <= tol * objective).all():
                    return Outcome(objective, gap, number + 1, True)
                threshold = (tol * objective / (4 * max(1, n))).astype(np.float32)
                goal, all_rows, n_short = 0.1 * gap, False, 0
            else:
                n_short += 1
            near = n_short > 0 and (seen <= np.maximum(goal, 0.25 * tol * objective)).all()
            if n_active == 0 or near or n_short == ACTIVE_SWEEPS:
                n_active, all_rows = n, True
        return Outcome(objective, gap, max_sweeps, False)

    def _shuffle(self, n_active: int, seed: int) -> None:
        """Put the moving rows into a random order, those on disk window by window."""
        rows = self.rows
        if not rows.window:
            kernels.shuffle(self.active, n_active, seed)
            return
        active = self.active[:n_active]
        active.sort()
        costs = np.cumsum(rows.indptr[active + 1] - rows.indptr[active] + ENTRIES_A_ROW)
        for begin, end in spans(np.concatenate(([0], costs)), 1 + int(costs[-1]) // rows.window):
            kernels.shuffle(active[begin:end], end - begin, seed)

    def _regulariser(self, products: Float64Array, origin: Float32Array | None) -> Float64Array:
        """½‖w − w₀‖²: with w₀ = 0 it is ½ Σ α y w·x, which the sweep has summed."""
        if origin is None:
            half: Float64Array = 0.5 * products
            return half
        squares = np.zeros(LANES)
        kernels.lane_squares(self.weights, origin, squares)
        squares *= 0.5
        return squares

    def measure(self, costs: Costs, loss: int) -> Float64Array:
        """Return the loss of each lane at the weights at hand; for logistic loss it is a lower bound.

        Parameters
        ----------
        costs : Costs
            What errors cost.
        loss : int
            Place in `LOSSES`.

        Returns
        -------
        float64 array of shape (16,)
            The losses of all rows, added up.
        """
        self.active[:] = self._everyone
        losses: Float64Array = self._sweep(self.rows.n_rows, costs, loss, np.full(LANES, np.inf, np.float32), True)[1][
            1
        ]
        return losses

    def _sweep(
        self, n_active: int, costs: Costs, loss: int, threshold: Float32Array, hold: bool
    ) -> tuple[int, Float64Array]:
        rows, kept = self.rows, 0
        sums = np.zeros((3, LANES))
        mean = max(1, len(rows.indices) // max(1, rows.n_rows))
        step = max(1, min(VALUES_A_CALL // mean, rows.window // (mean + ENTRIES_A_ROW) if rows.window else n_active))
        for begin in range(0, n_active, step):
            kept = kernels.sweep(
                *(rows.indptr, rows.indices, rows.data, rows.norms, rows.weights),
                *(self.targets, costs.positive, costs.negative, loss, threshold, hold),
                *(self.active, begin, min(begin + step, n_active), kept, self.weights, self.duals, sums),
            )
            let_go(rows.indices, rows.data)
        return kept, sums


class Background(NamedTuple):
    """The solution of "no row is of this class"."""

    weights: Float32Array
    duals: Float32Array


def solve_background(block: Block, cost: float, loss: int, tol: float, max_sweeps: int, seed: int) -> Background:
    """Solve the problem that has negative rows only.

    Parameters
    ----------
    block : Block
        Room.
    cost : float
        C × the weight of negative rows.
    loss, tol, max_sweeps, seed : object
        See `Block.solve`.

    Returns
    -------
    Background
        A copy.
    """
    block.clear()
    block.targets[:] = 0
    block.targets[:, 0] = -1
    costs = Costs(*(np.full(LANES, cost, dtype=np.float32) for _ in range(2)))
    block.solve(costs, loss, BACKGROUND_TOL * tol, max_sweeps, seed)
    return Background(frozen(block.weights[:, 0].copy(), np.float32), frozen(block.duals[:, 0].copy(), np.float32))


def start_block(block: Block, background: Background, rows: IntArray, lanes: IntArray) -> None:
    """Start a block at the background and give it its positive rows.

    Parameters
    ----------
    block : Block
        Room; written.
    background : Background
        Where all classes start.
    rows, lanes : int64 arrays of equal length
        Row ``rows[j]`` is positive in lane ``lanes[j]``.
    """
    data = block.rows
    kernels.start_lanes(
        *(data.indptr, data.indices, data.data, rows, lanes, background.weights, background.duals),
        *(block.targets, block.weights, block.duals),
    )
    let_go(data.indices, data.data)


class Edges(NamedTuple):
    """What leaves a block: its heavy weights by feature, as differences from an offset."""

    counts: npt.NDArray[np.int8]
    """Of each feature; a byte is enough for sixteen classes, and most are 0."""
    classes: IdArray
    weights: Float32Array


def padded(costs: npt.NDArray[np.floating]) -> Float32Array:
    """Return costs for all sixteen lanes; lanes without a class have a problem too, which nobody reads.

    Parameters
    ----------
    costs : array of at most 16 numbers
        Of the lanes in use.

    Returns
    -------
    float32 array of shape (16,)
        The last one again for the others.
    """
    full = np.full(LANES, costs[-1], dtype=np.float32)
    full[: len(costs)] = costs
    return full


def heavy_edges(
    weights: Float32Array, offset: Float32Array, n_lanes: int, min_weight: float, first_class: int
) -> Edges:
    """Take the weights that differ from the offset by at least ``min_weight``.

    Parameters
    ----------
    weights : float32 array of shape (n_features, 16)
        A solved block's.
    offset : float32 array of shape (n_features,)
        What all classes share.
    n_lanes : int
        Lanes in use.
    min_weight : float
        Smallest |difference| that is kept.
    first_class : int
        Class of the first lane.

    Returns
    -------
    Edges
        In the order of the features, then of the classes.
    """
    counts = np.empty(len(weights), dtype=np.int8)
    total = kernels.count_heavy(weights, offset, n_lanes, min_weight, counts)
    classes, values = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.float32)
    kernels.take_heavy(weights, offset, n_lanes, min_weight, first_class, classes, values)
    return Edges(counts, classes, values)
