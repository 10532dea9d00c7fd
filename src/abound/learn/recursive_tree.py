"""Recursive regularization on a tree: leaves in their duals around their parents, inner nodes in closed form, in turn.

Gopal, Yang: Recursive Regularization for Large-scale Classification with Hierarchical and Graphical Dependencies
(KDD 2013). A leaf is its support vectors: ``w_l = w_π + Σ α_i y_i x_i``; only inner nodes have weights for every
feature. The paper updates odd and even levels in turn. Here all leaves are solved at once and then all inner nodes,
whose equations (4) form a tree and are solved exactly by one walk up and one down: the same minimum in fewer rounds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.distribute import Workers
from abound.index.class_index import ClassIndex
from abound.learn import _recursive_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.checkpoint import once
from abound.learn.light_weights import SAMPLED_CLASSES, typical_column
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import Block, Costs, Edges, heavy_edges, solve_background
from abound.learn.one_vs_rest import SWEEPS, Positives, Settings, join_edges
from abound.learn.recursive_leaves import Inner, Leaf, LeafBlock, LeafSolver, ShortTree, solve_leaves
from abound.progress import track
from abound.validation import Float32Array, Float64Array, frozen

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
        self.tree, self.rows, self.settings = tree, rows, settings
        costs = Costs(*(frozen(cost * weights / tree.leaf_stiffness, np.float32) for weights in class_weights))
        self.solver = LeafSolver(tree, rows, positives, costs, settings)
        self.order = np.argsort(tree.leaf_parent, kind="stable")
        self.inner = np.zeros((tree.n_inner, rows.n_features), dtype=np.float32)
        self.moved = np.zeros(tree.n_inner)
        self.inner_objective = 0.0
        self.leaves: list[Leaf | None] = [None] * len(tree.leaf_parent)
        self._start(cost, class_weights)

    def _start(self, cost: float, class_weights: Costs) -> None:
        """Put all inner nodes where all classes would be if none had a positive row: what they share costs once."""
        if np.isinf(self.tree.stiffness[0]):
            return
        settings, n_classes = self.settings, len(self.tree.leaf_parent)
        common = cost * min(n_classes, START_CLASSES) * float(np.median(class_weights.negative))
        block = self.solver.blocks.take(Block, self.rows)
        background = solve_background(block, common, settings.loss, START_TOL, settings.max_sweeps, settings.seed)
        self.solver.blocks.give(block)
        self.inner[:] = background.weights
        self.inner_objective = 0.5 * float(np.square(background.weights, dtype=np.float64).sum())

    def rounds(self, max_rounds: int, round_tol: float, pool: Workers, threads: Workers) -> Iterator[dict[str, float]]:
        """Alternate until the objective falls by less than ``round_tol`` of itself; yield each round's record.

        Parameters
        ----------
        max_rounds : int
            Rounds after which to stop in any case.
        round_tol : float
            Smallest relative decrease that is worth another round.
        pool : Workers
            Who solves the leaves.
        threads : Workers
            Threads of this process, which solve the inner nodes.

        Yields
        ------
        dict
            ``round``, ``objective``, ``seconds``, ``support_vectors``.
        """
        last, shared = np.inf, pool.share(self.solver)
        for number in range(1, max_rounds + 1):
            began = time.perf_counter()
            if number > 1:
                self.inner, self.moved, self.inner_objective = once(pool, lambda: self._solve_inner(threads))
            self._solve_leaves(pool, shared)
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

    def _solve_inner(self, pool: Workers) -> tuple[Float32Array, Float64Array, float]:
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
        return self.inner, moved, 0.5 * float(lengths[np.isfinite(tree.stiffness)].sum())

    def _solve_leaves(self, pool: Workers, shared: Any) -> None:
        parts = [self._part(first) for first in range(0, len(self.order), LANES)]
        inner = pool.share(Inner(frozen(self.inner, np.float32), frozen(self.moved, np.float64)))
        effort = SWEEPS * len(self.rows.indices)
        with track("solve leaves", len(self.order)) as progress:
            for part, solved in zip(parts, pool.map(solve_leaves, parts, shared, inner, cost=effort), strict=True):
                for c, leaf in zip(part.classes.tolist(), solved, strict=True):
                    self.leaves[c] = leaf
                progress.advance(len(solved))

    def _part(self, first: int) -> LeafBlock:
        classes = self.order[first : first + LANES]
        return LeafBlock(first, classes, [self.leaves[c] for c in classes.tolist()])

    def _load(self, classes: npt.NDArray[np.int64]) -> tuple[Block, Float32Array]:
        leaves = [self.leaves[c] for c in classes.tolist()]
        return self.solver.load(classes, leaves, frozen(self.inner, np.float32))

    def index(self, n_features: int, pool: Workers) -> ClassIndex:
        """Return the leaves' weights as an index, as differences from the median of some of them.

        Parameters
        ----------
        n_features : int
            Features of the index.
        pool : Workers
            Threads of this process.

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
            self.solver.give(block, origin)
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
            self.solver.give(block, origin)
            return found

        sample = np.hstack(list(pool.map(weights, parts)))
        medians = frozen(np.median(sample, axis=1), np.float32)
        return medians, typical_column(sample - medians[:, None])
