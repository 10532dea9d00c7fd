"""Recursive regularization on a tree: leaves in their duals around their parents, inner nodes in closed form, in turn.

Gopal, Yang: Recursive Regularization for Large-scale Classification with Hierarchical and Graphical Dependencies
(KDD 2013). A leaf is its support vectors: ``w_l = w_π + Σ α_i y_i x_i``; only inner nodes have weights for every
feature. The paper updates odd and even levels in turn. Here all leaves are solved at once and then all inner nodes,
whose equations (4) form a tree and are solved exactly by one walk up and one down: the same minimum in fewer rounds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import Workers
from abound.index.class_index import ClassIndex
from abound.learn import _linear_kernels
from abound.learn import _recursive_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.class_tree import ClassTree
from abound.learn.light_weights import SAMPLED_CLASSES, typical_column
from abound.learn.linear_rows import SolverRows, lane_array
from abound.learn.linear_solver import LOGISTIC, Block, Costs, Edges, heavy_edges, padded, solve_background
from abound.learn.one_vs_rest import Positives, Settings, join_edges
from abound.progress import track
from abound.validation import Float32Array, Float64Array, IdArray, frozen

FEATURES_A_CALL = 256
"""Features whose inner nodes one kernel call solves: their weights fit in the cache."""

FEATURE_PARTS = 8
"""Parts of the features that the inner nodes are solved in: the sums of one part are what that needs as room."""


START_CLASSES = 100
"""The shared start counts so many classes at most: more of them hardly move it, but make it hard to solve."""

START_TOL = 0.1
"""Tolerance of the shared start, which later rounds improve."""

STRETCH = 1.9
"""How far inner nodes move towards their minimum. Below 2 the objective falls: the springs bound its curvature."""

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


class RecursiveTree:
    """The state of the alternation.

    Parameters
    ----------
    tree : ShortTree
        The nodes.
    rows : SolverRows
        The rows.
    positives : Positives
        The rows of each class.
    cost : float
        C.
    class_weights : Costs
        The weight of each class's positive and negative rows.
    settings : Settings
        Loss, tolerance, pruning.
    """

    def __init__(
        self,
        tree: ShortTree,
        rows: SolverRows,
        positives: Positives,
        cost: float,
        class_weights: Costs,
        settings: Settings,
    ) -> None:
        self.tree, self.rows, self.positives, self.settings = tree, rows, positives, settings
        self.costs = Costs(*((cost * weights / tree.leaf_stiffness).astype(np.float32) for weights in class_weights))
        self.order = np.argsort(tree.leaf_parent, kind="stable")
        self.inner = np.zeros((tree.n_inner, rows.n_features), dtype=np.float32)
        self.moved = np.zeros(tree.n_inner)
        self.inner_objective = 0.0
        self.leaves: list[Leaf | None] = [None] * len(tree.leaf_parent)
        self._spare = [Block(rows)]
        self._origins: list[Float32Array] = []
        self._start(cost, class_weights)

    def _start(self, cost: float, class_weights: Costs) -> None:
        """Put all inner nodes where all classes would be if none had a positive row: what they share costs once."""
        if np.isinf(self.tree.stiffness[0]):
            return
        settings, n_classes = self.settings, len(self.tree.leaf_parent)
        common = cost * min(n_classes, START_CLASSES) * float(np.median(class_weights.negative))
        background = solve_background(
            self._spare[0], common, settings.loss, START_TOL, settings.max_sweeps, settings.seed
        )
        self.inner[:] = background.weights
        self.inner_objective = 0.5 * float(np.square(background.weights, dtype=np.float64).sum())

    def rounds(self, max_rounds: int, round_tol: float, pool: Workers) -> Iterator[dict[str, float]]:
        """Alternate until the objective falls by less than ``round_tol`` of itself; yield each round's record.

        Parameters
        ----------
        max_rounds : int
            Rounds after which to stop in any case.
        round_tol : float
            Smallest relative decrease that is worth another round.
        pool : Workers
            Who works.

        Yields
        ------
        dict
            ``round``, ``objective``, ``seconds``, ``support_vectors``.
        """
        last = np.inf
        for number in range(1, max_rounds + 1):
            began = time.perf_counter()
            if number > 1:
                self._solve_inner(pool)
            self._solve_leaves(pool)
            leaves = [leaf for leaf in self.leaves if leaf is not None]
            springs = 0.5 * self.tree.leaf_stiffness * np.array([leaf.square for leaf in leaves])
            objective = self.inner_objective + float(springs.sum()) + sum(leaf.loss for leaf in leaves)
            yield {
                "round": number,
                "objective": objective,
                "seconds": time.perf_counter() - began,
                "support_vectors": float(sum(len(leaf.rows) for leaf in leaves)),
            }
            if last - objective < round_tol * last:
                return
            last = objective

    def _solve_inner(self, pool: Workers) -> None:
        """Eq. (4) for all inner nodes at once, from the full weights of the leaves, some features at a time."""
        tree, rows = self.tree, self.rows
        held = np.zeros(tree.n_inner)
        np.add.at(held, tree.leaf_parent, tree.leaf_stiffness)
        first = np.searchsorted(tree.leaf_parent[self.order], np.arange(tree.n_inner + 1))
        moved, lengths = np.zeros((2, tree.n_inner))
        width = -(-rows.n_features // FEATURE_PARTS)
        sums = np.empty((tree.n_inner, width), dtype=np.float32)
        for low in range(0, rows.n_features, width):
            high = min(low + width, rows.n_features)

            def gather(n: int, low: int = low, high: int = high) -> None:
                sums[n] = 0
                for c in self.order[first[n] : first[n + 1]].tolist():
                    leaf = self.leaves[c]
                    assert leaf is not None
                    kernels.add_leaf(
                        *(rows.indptr, rows.indices, rows.data, leaf.rows, leaf.coefficients),
                        *(tree.leaf_stiffness[c], low, high, sums[n]),
                    )

            def eliminate(begin: int, low: int = low, high: int = high) -> tuple[Float64Array, Float64Array]:
                gains = np.zeros((2, tree.n_inner))
                end = min(begin + FEATURES_A_CALL, high - low)
                kernels.eliminate(
                    *(tree.parent, tree.stiffness, held, STRETCH, low, begin, end, sums, self.inner, gains[0], gains[1])
                )
                return gains[0], gains[1]

            for _ in pool.map(gather, range(tree.n_inner)):
                pass
            for more_moved, more_lengths in pool.map(eliminate, range(0, high - low, FEATURES_A_CALL)):
                moved += more_moved
                lengths += more_lengths
        self.moved = moved
        self.inner_objective = 0.5 * float(lengths[np.isfinite(tree.stiffness)].sum())

    def _solve_leaves(self, pool: Workers) -> None:
        firsts = range(0, len(self.order), LANES)
        with track("solve leaves", len(self.order)) as progress:
            for first, solved in zip(firsts, pool.map(self._solve_block, firsts), strict=True):
                for c, leaf in zip(self.order[first : first + LANES].tolist(), solved, strict=True):
                    self.leaves[c] = leaf
                progress.advance(len(solved))

    def _solve_block(self, first: int) -> list[Leaf]:
        classes = self.order[first : first + LANES]
        n_lanes, settings = len(classes), self.settings
        block, origin = self._load(classes)
        costs = Costs(*(padded(part[classes]) for part in self.costs))
        stiffness = _padded64(self.tree.leaf_stiffness[classes])
        squares, products = np.zeros((2, LANES))
        before = np.full(LANES, np.inf)
        if self.leaves[classes[0]] is not None:
            kernels.lane_products(block.weights, origin, squares, products)
            for lane, c in enumerate(classes.tolist()):
                leaf = self.leaves[c]
                assert leaf is not None
                moved = self.moved[self.tree.leaf_parent[c]]
                # ‖w − w_π‖² with the leaf where it was and the parent where it is now.
                apart = leaf.square + 2 * (leaf.product - products[lane]) + moved
                before[lane] = leaf.loss / stiffness[lane] + 0.5 * apart
        for part in TIGHTER:
            outcome = block.solve(
                *(costs, settings.loss, part * settings.tol, settings.max_sweeps, settings.seed + 7919 * first),
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
        self._spare.append(block)
        self._origins.append(origin)
        return leaves

    def _load(self, classes: npt.NDArray[np.int64]) -> tuple[Block, Float32Array]:
        """Put the parents' weights and the leaves' support vectors into a block's lanes."""
        rows = self.rows
        block = self._spare.pop() if self._spare else Block(rows)
        origin = self._origins.pop() if self._origins else lane_array(rows.n_features)
        parents = np.zeros(LANES, dtype=np.int32)
        parents[: len(classes)] = self.tree.leaf_parent[classes]
        kernels.fill_lanes(self.inner, parents, origin, block.weights)
        block.duals[:] = 0
        block.targets[:] = -1
        block.targets[:, len(classes) :] = 0
        used = []
        for lane, c in enumerate(classes.tolist()):
            own = self.positives.rows[self.positives.indptr[c] : self.positives.indptr[c + 1]]
            block.targets[own, lane] = 1
            leaf = self.leaves[c]
            if leaf is not None:
                block.duals[leaf.rows, lane] = np.abs(leaf.coefficients)
                used.append(leaf.rows)
        if used:
            some = np.unique(np.concatenate(used))
            _linear_kernels.add_some_rows(
                *(rows.indptr, rows.indices, rows.data, some, block.targets, block.duals, block.weights)
            )
        return block, origin

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

    def index(self, n_features: int, pool: Workers) -> ClassIndex:
        """Return the leaves' weights as an index, as differences from the median of some of them.

        Parameters
        ----------
        n_features : int
            Features of the index.
        pool : Workers
            Who works.

        Returns
        -------
        ClassIndex
            Pruned by the settings' ``min_weight``; the medians are its offset.
        """
        offset, typical = self._middle(pool)
        least = self.settings.min_weight * typical

        def take(first: int) -> Edges:
            classes = self.order[first : first + LANES]
            block, origin = self._load(classes)
            counts, lanes, weights = heavy_edges(block.weights, offset, len(classes), least, 0)
            self._spare.append(block)
            self._origins.append(origin)
            return Edges(counts, classes[lanes].astype(np.int32), weights)

        blocks = list(pool.map(take, range(0, len(self.order), LANES)))
        return join_edges(blocks, self.rows, offset, n_features, len(self.order))

    def _middle(self, pool: Workers) -> tuple[Float32Array, float]:
        """Each feature's median over some leaves, drawn at random, and how far a typical leaf is from it at most."""
        generator = np.random.default_rng(self.settings.seed)
        some = generator.permutation(len(self.order))[:SAMPLED_CLASSES]
        parts = [some[first : first + LANES] for first in range(0, len(some), LANES)]

        def weights(classes: npt.NDArray[np.int64]) -> Float32Array:
            block, origin = self._load(classes)
            found: Float32Array = block.weights[:, : len(classes)].copy()
            self._spare.append(block)
            self._origins.append(origin)
            return found

        sample = np.hstack(list(pool.map(weights, parts)))
        medians = frozen(np.median(sample, axis=1), np.float32)
        return medians, typical_column(sample - medians[:, None])


def _padded64(values: Float64Array) -> Float64Array:
    full = np.ones(LANES)
    full[: len(values)] = values
    return full
