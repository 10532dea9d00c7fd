"""The leaves of a recursively regularised tree: sixteen at a time, each in its dual around its parent's weights.

What all leaves have in common goes to a worker once. A round sends the last move of the inner nodes, once to each node
of a cluster, and with each block of leaves its own support vectors.
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
from abound.learn.recursive_inner import Inner, Path
from abound.learn.recursive_shape import ShortTree
from abound.learn.recursive_vectors import RowVectors, spans_to_read
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, frozen

TIGHTER = (1.0, 0.1, 0.01, 0.001)
"""Parts of the tolerance that a leaf is solved to until its objective is no higher than before."""

LIGHT_DUAL = 1e-8
"""Rows whose dual is below this part of its bound are left out."""


class Leaf(NamedTuple):
    """A class: its support vectors, and what its objective is made of."""

    rows: IdArray
    coefficients: Float32Array
    """α_i y_i of each support vector."""
    loss: float
    square: float
    """‖w − w_π‖²."""
    product: float
    """(w − w_π)·w_π, for the parent it was solved with."""


class LeafBlock(NamedTuple):
    """Up to sixteen leaves to be solved together."""

    first: int
    """Place of the first one in the order of all leaves."""
    classes: npt.NDArray[np.int64]
    leaves: Sequence[Leaf | None]
    """As the last round left them."""


class Leaves(NamedTuple):
    """All leaves after a round, in the order in which they are solved."""

    vectors: RowVectors
    """How each differs from its parent."""
    loss: Float64Array
    square: Float64Array
    product: Float64Array

    def of(self, place: int) -> Leaf:
        """Return a leaf.

        Parameters
        ----------
        place : int
            In the order of all leaves.

        Returns
        -------
        Leaf
            Views.
        """
        figures = (float(part[place]) for part in (self.loss, self.square, self.product))
        return Leaf(*self.vectors.of(place), *figures)


@dataclass(frozen=True, slots=True)
class LeafSolver:
    """What all leaves have in common."""

    tree: ShortTree
    rows: SolverRows
    positives: Positives
    costs: Costs
    settings: Settings
    blocks: Spare[Block] = field(default_factory=Spare)
    origins: Spare[Float32Array] = field(default_factory=Spare)
    parents: Spare[Float32Array] = field(default_factory=Spare)
    paths: Spare[Path] = field(default_factory=Spare)

    def solve(self, part: LeafBlock, inner: Inner) -> list[Leaf]:
        """Solve a block of leaves around their parents.

        Parameters
        ----------
        part : LeafBlock
            The leaves.
        inner : Inner
            The inner nodes as they are now.

        Returns
        -------
        list of Leaf
            As they are then.
        """
        classes, known = part.classes, part.leaves
        n_lanes, settings = len(classes), self.settings
        block, origin = self.load(classes, known, inner)
        costs = Costs(*(padded(part[classes]) for part in self.costs))
        stiffness = _padded64(self.tree.leaf_stiffness[classes])
        squares, products = np.zeros((2, LANES))
        before = np.full(LANES, np.inf)
        if known[0] is not None:
            kernels.lane_products(block.weights, origin, squares, products)
            for lane, (c, leaf) in enumerate(zip(classes.tolist(), known, strict=True)):
                assert leaf is not None
                moved = inner.moved[self.tree.leaf_parent[c]]
                # ‖w − w_π‖² with the leaf where it was and the parent where it is now.
                apart = leaf.square + 2 * (leaf.product - products[lane]) + moved
                before[lane] = leaf.loss / stiffness[lane] + 0.5 * apart
        for tighter in TIGHTER:
            outcome = block.solve(
                *(costs, settings.loss, tighter * settings.tol, settings.max_sweeps, settings.seed + 7919 * part.first),
                *(origin, None if np.isinf(before).any() else before),
            )
            objective = outcome.objective
            if settings.loss == LOGISTIC:
                self._drop_light_duals(block, costs)
            kernels.lane_products(block.weights, origin, squares, products)
            if settings.loss == LOGISTIC:
                objective = self._logistic_loss(block, costs) + 0.5 * squares
            if (objective <= before)[:n_lanes].all():
                break
        figures = np.stack((stiffness * (objective - 0.5 * squares), squares, products), axis=1)
        vectors = support_vectors(block)
        self.give(block, origin)
        return [Leaf(*vectors[lane], *figures[lane].tolist()) for lane in range(n_lanes)]

    def load(
        self, classes: npt.NDArray[np.int64], leaves: Sequence[Leaf | None], inner: Inner
    ) -> tuple[Block, Float32Array]:
        """Put the parents' weights and the leaves' support vectors into a block's lanes.

        Parameters
        ----------
        classes : int64 array
            Up to sixteen.
        leaves : sequence of Leaf or None
            Theirs, None before the first round.
        inner : Inner
            The nodes above them.

        Returns
        -------
        tuple of Block and float32 array
            The block, and the parents' weights in its lanes; to be given back.
        """
        rows = self.rows
        block = self.blocks.take(Block, rows)
        origin = self.origins.take(lane_array, rows.n_features)
        parents = self.parents.take(np.zeros, (LANES, rows.n_features), np.float32)
        kernels.fill_lanes(parents, self._load_parents(classes, inner, parents), origin, block.weights)
        self.parents.give(parents)
        block.duals[:] = 0
        block.targets[:] = -1
        block.targets[:, len(classes) :] = 0
        used = np.zeros(rows.n_rows, dtype=np.bool_)
        for lane, (c, leaf) in enumerate(zip(classes.tolist(), leaves, strict=True)):
            own = self.positives.rows[self.positives.indptr[c] : self.positives.indptr[c + 1]]
            block.targets[own, lane] = 1
            if leaf is not None:
                kernels.place_duals(leaf.rows, leaf.coefficients, lane, block.duals, used)
        if used.any():
            self._add_rows(block, np.flatnonzero(used).astype(np.int32))
        return block, origin

    def _load_parents(self, classes: npt.NDArray[np.int64], inner: Inner, parents: Float32Array) -> IntArray:
        """Make the weights of the nodes above some leaves, those of a node once, and tell where each leaf has them."""
        above, which = self.tree.leaf_parent[classes], np.zeros(LANES, dtype=np.int64)
        if not inner.steps:
            # Before the first move all nodes are in one place.
            parents[0] = inner.base
            return which
        changes = np.concatenate(([True], above[1:] != above[:-1]))
        which[: len(above)] = np.cumsum(changes) - 1
        path = self.paths.take(Path, self.rows, self.tree.parent)
        for row, node in enumerate(above[changes].tolist()):
            parents[row] = path.weights(node, inner)
        self.paths.give(path)
        return which

    def give(self, block: Block, origin: Float32Array) -> None:
        """Give back what `load` gave.

        Parameters
        ----------
        block, origin : Block, float32 array
            Not used any more.
        """
        self.blocks.give(block)
        self.origins.give(origin)

    def _drop_light_duals(self, block: Block, costs: Costs) -> None:
        """Leave the rows out that hardly count: in logistic regression every row has a dual."""
        rows, least = self.rows, (LIGHT_DUAL * np.minimum(*costs)).astype(np.float32)
        for begin, end in spans_to_read(rows, rows.n_rows):
            kernels.drop_light(
                *(rows.indptr, rows.indices, rows.data, block.targets, least, begin, end, block.duals, block.weights)
            )

    def _add_rows(self, block: Block, some: IdArray) -> None:
        """Add what the duals of some rows are in the weights."""
        rows = self.rows
        for begin, end in spans_to_read(rows, len(some)):
            _linear_kernels.add_some_rows(
                *(rows.indptr, rows.indices, rows.data, some[begin:end], block.targets, block.duals, block.weights)
            )

    def _logistic_loss(self, block: Block, costs: Costs) -> Float64Array:
        rows, sums = self.rows, np.zeros(LANES)
        for begin, end in spans_to_read(rows, rows.n_rows):
            kernels.logistic_loss(
                *(rows.indptr, rows.indices, rows.data, rows.weights, block.targets, *costs),
                *(begin, end, block.weights, sums),
            )
        return sums


def support_vectors(block: Block) -> list[tuple[IdArray, Float32Array]]:
    """Return for each lane the rows that count, and their duals with the sign of the target.

    Parameters
    ----------
    block : Block
        Solved.

    Returns
    -------
    list of (int32 array, float32 array)
        Read-only, a pair a lane, which are parts of two arrays.
    """
    ends, nothing = np.zeros(LANES, dtype=np.int64), (np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32))
    kernels.list_duals(block.duals, block.targets, ends, *nothing)
    ends = np.cumsum(ends)
    rows, coefficients = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1], dtype=np.float32)
    if len(rows):
        kernels.list_duals(block.duals, block.targets, np.concatenate(([0], ends[:-1])), rows, coefficients)
    parts = zip(np.split(rows, ends[:-1]), np.split(coefficients, ends[:-1]), strict=True)
    return [(frozen(some, np.int32), frozen(values, np.float32)) for some, values in parts]


def solve_leaves(part: LeafBlock, solver: LeafSolver, inner: Inner) -> list[Leaf]:
    """Solve a block of leaves; see `LeafSolver.solve`.

    Parameters
    ----------
    part, solver, inner : LeafBlock, LeafSolver, Inner
        The leaves, what all have in common, and the nodes above them.

    Returns
    -------
    list of Leaf
        Solved.
    """
    return solver.solve(part, inner)


def _padded64(values: Float64Array) -> Float64Array:
    full = np.ones(LANES)
    full[: len(values)] = values
    return full
