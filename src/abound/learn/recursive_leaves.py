"""The leaves of a recursively regularised tree: sixteen at a time, each in its dual around its parent's weights.

What all leaves have in common goes to a worker once. A round sends the weights of the inner nodes, once to each node of
a cluster, and with each block of leaves its own support vectors.
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
from abound.learn.class_tree import ClassTree
from abound.learn.linear_rows import SolverRows, lane_array
from abound.learn.linear_solver import LOGISTIC, Block, Costs, padded
from abound.learn.one_vs_rest import Positives, Settings
from abound.validation import Float32Array, Float64Array, IdArray, frozen

TIGHTER = (1.0, 0.1, 0.01, 0.001)
"""Parts of the tolerance that a leaf is solved to until its objective is no higher than before."""


class ShortTree(NamedTuple):
    """A tree of classes without the inner nodes that have one child: two springs in a row are one half as stiff.

    Inner nodes come parents first. ``stiffness`` is the ω of the edge to the parent, in ``½ ω ‖w_n − w_π‖²``.
    """

    parent: IdArray
    stiffness: Float64Array
    leaf_parent: IdArray
    leaf_stiffness: Float64Array

    @property
    def n_inner(self) -> int:
        """Number of inner nodes that are left."""
        return len(self.parent)


def short_tree(tree: ClassTree, *, root_is_zero: bool) -> ShortTree:
    """Leave out inner nodes with one child; the objective's minimum over them stays the same.

    Parameters
    ----------
    tree : ClassTree
        The classes at its leaves.
    root_is_zero : bool
        Fix the root's weights at 0: an edge of endless stiffness.

    Returns
    -------
    ShortTree
        By class.
    """
    n_children = np.diff(tree.children.indptr)
    kept = (n_children > 1) & (tree.class_of_node < 0)
    kept[0] = True
    place = np.cumsum(kept) - 1
    above = np.full(tree.n_nodes, -1)
    soft = np.ones(tree.n_nodes)
    for node, parent in enumerate(tree.parent[1:].tolist(), start=1):
        if kept[parent]:
            above[node] = place[parent]
        else:
            above[node], soft[node] = above[parent], 1 + soft[parent]
    stiffness = 1 / soft
    inner = np.flatnonzero(kept)
    if root_is_zero:
        stiffness[0] = np.inf
    leaves = tree.leaf_of_class
    return ShortTree(
        frozen(above[inner], np.int32), stiffness[inner], frozen(above[leaves], np.int32), stiffness[leaves]
    )


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


class Inner(NamedTuple):
    """The inner nodes in a round."""

    weights: Float32Array
    moved: Float64Array
    """How far each has moved since the last round, squared."""


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
        block, origin = self.load(classes, known, inner.weights)
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
                self._round_duals(block, origin)
            kernels.lane_products(block.weights, origin, squares, products)
            if settings.loss == LOGISTIC:
                objective = self._logistic_loss(block, costs) + 0.5 * squares
            if (objective <= before)[:n_lanes].all():
                break
        losses = objective - 0.5 * squares
        leaves = []
        for lane, duals in enumerate(np.ascontiguousarray(block.duals.T)[:n_lanes]):
            kept = np.flatnonzero(duals)
            leaves.append(
                Leaf(
                    frozen(kept, np.int32),
                    frozen(duals[kept] * block.targets[kept, lane], np.float32),
                    float(losses[lane] * stiffness[lane]),
                    float(squares[lane]),
                    float(products[lane]),
                )
            )
        self.give(block, origin)
        return leaves

    def load(
        self, classes: npt.NDArray[np.int64], leaves: Sequence[Leaf | None], inner: Float32Array
    ) -> tuple[Block, Float32Array]:
        """Put the parents' weights and the leaves' support vectors into a block's lanes.

        Parameters
        ----------
        classes : int64 array
            Up to sixteen.
        leaves : sequence of Leaf or None
            Theirs, None before the first round.
        inner : float32 array of shape (n_inner, n_features)
            The weights of the inner nodes.

        Returns
        -------
        tuple of Block and float32 array
            The block, and the parents' weights in its lanes; to be given back.
        """
        rows = self.rows
        block = self.blocks.take(Block, rows)
        origin = self.origins.take(lane_array, rows.n_features)
        parents = np.zeros(LANES, dtype=np.int32)
        parents[: len(classes)] = self.tree.leaf_parent[classes]
        kernels.fill_lanes(inner, parents, origin, block.weights)
        block.duals[:] = 0
        block.targets[:] = -1
        block.targets[:, len(classes) :] = 0
        used = []
        for lane, (c, leaf) in enumerate(zip(classes.tolist(), leaves, strict=True)):
            own = self.positives.rows[self.positives.indptr[c] : self.positives.indptr[c + 1]]
            block.targets[own, lane] = 1
            if leaf is not None:
                block.duals[leaf.rows, lane] = np.abs(leaf.coefficients)
                used.append(leaf.rows)
        if used:
            some = np.unique(np.concatenate(used))
            _linear_kernels.add_some_rows(
                *(rows.indptr, rows.indices, rows.data, some, block.targets, block.duals, block.weights)
            )
        return block, origin

    def give(self, block: Block, origin: Float32Array) -> None:
        """Give back what `load` gave.

        Parameters
        ----------
        block, origin : Block, float32 array
            Not used any more.
        """
        self.blocks.give(block)
        self.origins.give(origin)

    def _round_duals(self, block: Block, origin: Float32Array) -> None:
        """Keep duals as a file of half the size would: every row has one in logistic regression."""
        rows = self.rows
        block.duals[:] = block.duals.astype(np.float16)
        block.weights[:] = origin
        _linear_kernels.add_rows(rows.indptr, rows.indices, rows.data, block.targets, block.duals, block.weights)

    def _logistic_loss(self, block: Block, costs: Costs) -> Float64Array:
        rows, sums = self.rows, np.zeros(LANES)
        step = max(1, 20_000_000 // max(1, len(rows.indices) // max(1, rows.n_rows)))
        for begin in range(0, rows.n_rows, step):
            kernels.logistic_loss(
                *(rows.indptr, rows.indices, rows.data, rows.weights, block.targets, *costs),
                *(begin, min(begin + step, rows.n_rows), block.weights, sums),
            )
        return sums


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
