"""Recursive regularization on a tree: leaves in their duals around their parents, inner nodes in closed form, in turn.

Gopal, Yang: Recursive Regularization for Large-scale Classification with Hierarchical and Graphical Dependencies
(KDD 2013). A leaf is its support vectors: ``w_l = w_π + Σ α_i y_i x_i``, and so are inner nodes, see
`abound.learn.recursive_inner`. The paper updates odd and even levels in turn. Here all leaves are solved at once and
then all inner nodes, whose equations (4) form a tree and are solved exactly: the same minimum in fewer rounds. Inner
nodes go further than to that solution, and every second time also on in the direction of their last move; should the
objective rise, that move is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.distribute import Workers
from abound.index.class_index import ClassIndex
from abound.learn._lanes import LANES
from abound.learn.checkpoint import once
from abound.learn.light_weights import LEAST_TRIED, SAMPLED_CLASSES, TRIED_CLASSES, typical_column, without_light
from abound.learn.linear_disk import edges_on_disk, join_edges_on_disk
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import Block, Costs, Edges, heavy_edges, solve_background
from abound.learn.one_vs_rest import SWEEPS, Positives, Settings, join_edges, unharmed_threshold
from abound.learn.recursive_inner import SWING, InnerNodes, Move
from abound.learn.recursive_leaves import Leaf, LeafBlock, LeafSolver, Leaves, solve_leaves
from abound.learn.recursive_shape import ShortTree
from abound.learn.recursive_vectors import Pile, RowVectors
from abound.progress import track
from abound.validation import Float32Array, Float64Array, frozen

START_CLASSES = 100
"""The shared start counts so many classes at most: more of them hardly move it, but make it hard to solve."""

START_TOL = 0.1
"""Tolerance of the shared start, which later rounds improve."""


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
    on_disk : bool
        Whether what is solved goes to temporary files.
    """

    def __init__(
        self,
        tree: ShortTree,
        rows: SolverRows,
        positives: Positives,
        cost: float,
        class_weights: Costs,
        settings: Settings,
        on_disk: bool = False,
    ) -> None:
        self.tree, self.rows, self.settings, self.on_disk = tree, rows, settings, on_disk
        costs = Costs(*(frozen(cost * weights / tree.leaf_stiffness, np.float32) for weights in class_weights))
        self.solver = LeafSolver(tree, rows, positives, costs, settings)
        self.order = np.argsort(tree.leaf_parent, kind="stable")
        self.nodes = InnerNodes(tree, rows, self._start(cost, class_weights), self.solver.paths, on_disk)
        self.leaves: Leaves | None = None

    def _start(self, cost: float, class_weights: Costs) -> Float32Array:
        """Put all inner nodes where all classes would be if none had a positive row: what they share costs once."""
        if np.isinf(self.tree.stiffness[0]):
            nothing: Float32Array = frozen(np.zeros(self.rows.n_features), np.float32)
            return nothing
        settings, n_classes = self.settings, len(self.tree.leaf_parent)
        common = cost * min(n_classes, START_CLASSES) * float(np.median(class_weights.negative))
        block = self.solver.blocks.take(Block, self.rows)
        background = solve_background(block, common, settings.loss, START_TOL, settings.max_sweeps, settings.seed)
        self.solver.blocks.give(block)
        return background.weights

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
            ``round``, ``objective``, ``seconds``, ``support_vectors`` of the leaves, and ``inner_entries``, the length
            of the vectors of the inner nodes.
        """
        last, shared = np.inf, pool.share(self.solver)
        sent: list[Any] = []
        number, swings, began = 0, True, time.perf_counter()
        while number < max_rounds:
            before, position = self.leaves, self.nodes.position()
            swing = SWING if swings and self.nodes.can_swing else 0.0
            if before is not None:
                self._move_inner(before.vectors, swing, pool, threads)
                sent.append(pool.share(self.nodes.inner.steps[-1]))
            self.leaves = self._solve_leaves(pool, shared, sent)
            springs = 0.5 * self.tree.leaf_stiffness[self.order] * self.leaves.square
            objective = self.nodes.objective + float(springs.sum()) + float(self.leaves.loss.sum())
            if swing and objective > last:
                # It swung too far: back to where it was, and on without.
                self.leaves, swings = before, False
                self.nodes.return_to(position)
                sent.pop()
                continue
            number += 1
            yield {
                "round": number,
                "objective": objective,
                "seconds": time.perf_counter() - began,
                "support_vectors": float(self.leaves.vectors.n_entries),
                "inner_entries": float(sum(step.vectors.n_entries for step in self.nodes.inner.steps[-1:])),
            }
            if last - objective < round_tol * last:
                return
            last, began = objective, time.perf_counter()

    def _move_inner(self, leaves: RowVectors, swing: float, pool: Workers, threads: Workers) -> None:
        def find() -> tuple[tuple[Any, ...], Float64Array, float]:
            # Without names, which a checkpoint would have to know.
            move = self.nodes.find_move(leaves, swing, threads)
            return tuple(move.vectors), move.moved, move.objective

        vectors, moved, objective = once(pool, find)
        given = RowVectors(*vectors)
        # What comes from a checkpoint is in memory.
        self.nodes.make(Move(given.to_disk() if self.on_disk else given, moved, objective, swing))

    def _solve_leaves(self, pool: Workers, shared: Any, sent: list[Any]) -> Leaves:
        firsts = range(0, len(self.order), LANES)
        before, found = self.leaves, Pile(self.on_disk)
        figures = np.empty((3, len(self.order)))
        inner = pool.share(self.nodes.inner._replace(steps=tuple(sent)))
        effort = SWEEPS * len(self.rows.indices)
        solved = pool.map(solve_leaves, (self._part(first) for first in firsts), shared, inner, cost=effort)
        with track("solve leaves", len(self.order)) as progress:
            for first, block in zip(firsts, solved, strict=True):
                for place, leaf in enumerate(block, start=first):
                    found.add(leaf.rows, leaf.coefficients)
                    figures[:, place] = leaf.loss, leaf.square, leaf.product
                if before is not None:
                    before.vectors.let_go(first, first + len(block))
                progress.advance(len(block))
        return Leaves(found.whole(), *figures)

    def _part(self, first: int) -> LeafBlock:
        classes = self.order[first : first + LANES]
        return LeafBlock(first, classes, self._some_leaves(range(first, first + len(classes))))

    def _some_leaves(self, places: Iterable[int]) -> list[Leaf | None]:
        return [None if self.leaves is None else self.leaves.of(place) for place in places]

    def _load(self, places: npt.NDArray[np.int64]) -> tuple[Block, Float32Array]:
        return self.solver.load(self.order[places], self._some_leaves(places.tolist()), self.nodes.inner)

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
        medians, typical = self._middle(pool)
        least = self.settings.min_weight * typical
        offset, biases = self.rows.featured(medians), np.zeros(len(self.order), np.float32)
        firsts = range(0, len(self.order), LANES)

        def take(first: int) -> Edges:
            places = np.arange(first, min(first + LANES, len(self.order)))
            block, origin = self._load(places)
            biases[self.order[places]] = self.rows.biases(block.weights[:, : len(places)])
            counts, lanes, weights = heavy_edges(self.rows.featured(block.weights), offset, len(places), least, 0)
            self.solver.give(block, origin)
            if self.leaves is not None:
                self.leaves.vectors.let_go(first, first + len(places))
            edges = Edges(counts, self.order[places][lanes].astype(np.int32), weights)
            return edges_on_disk(edges) if self.on_disk else edges

        known: dict[int, Edges] = {}
        if self.settings.unharmed:
            heaviest, least = least, LEAST_TRIED * least
            tried = firsts[:: max(1, len(firsts) * LANES // TRIED_CLASSES)]
            classes = np.concatenate([self.order[first : first + LANES] for first in tried])
            some = list(pool.map(take, tried))
            least = unharmed_threshold(
                *(self.rows, self.solver.positives, some, offset, biases[classes], classes, n_features, heaviest)
            )
            known = {first: without_light(edges, least, self.on_disk) for first, edges in zip(tried, some, strict=True)}
        others = iter(pool.map(take, [first for first in firsts if first not in known]))
        blocks = [known[first] if first in known else next(others) for first in firsts]
        if not self.on_disk:
            return join_edges(blocks, self.rows, offset, biases, n_features, len(self.order))
        full = np.zeros(n_features, dtype=np.float32)
        full[self.rows.features] = offset
        index = join_edges_on_disk(blocks, self.rows, frozen(full, np.float32), len(self.order))
        return replace(index, bias=frozen(biases, np.float32)) if self.rows.bias else index

    def _middle(self, pool: Workers) -> tuple[Float32Array, float]:
        """Each feature's median over some leaves, drawn at random, and how far a typical leaf is from it at most."""
        generator = np.random.default_rng(self.settings.seed)
        some = np.sort(generator.permutation(len(self.order))[:SAMPLED_CLASSES])
        parts = [some[first : first + LANES] for first in range(0, len(some), LANES)]

        def weights(places: npt.NDArray[np.int64]) -> Float32Array:
            block, origin = self._load(places)
            found: Float32Array = block.weights[:, : len(places)].copy()
            self.solver.give(block, origin)
            return found

        sample = np.hstack(list(pool.map(weights, parts)))
        medians = frozen(np.median(sample, axis=1), np.float32)
        apart = self.rows.featured(sample - medians[:, None])
        return medians, typical_column(apart)
