"""Recursive regularization on a class graph: each node is pulled towards the mean of its neighbours, colour by colour.

Objective of the KDD 2013 paper for graphs: ``Σ_{(i,j) ∈ E} ½ ‖w_i − w_j‖² + C Σ_n Σ_i loss``. With its neighbours
fixed, a node with rows is a flat problem around their mean with ``C / S_n``, S_n its number of neighbours (eq. 11); a
node without rows is their mean. Nodes of one colour share no edge and are solved together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound import validation
from abound.distribute import Workers
from abound.index.class_index import ClassIndex
from abound.learn import _linear_kernels
from abound.learn import _recursive_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.light_weights import SAMPLED_CLASSES, typical_column
from abound.learn.linear_rows import SolverRows, lane_array
from abound.learn.linear_solver import LOGISTIC, Block, Costs, Edges, heavy_edges, padded
from abound.learn.one_vs_rest import Positives, Settings, join_edges
from abound.progress import track
from abound.read.taxonomy import Taxonomy
from abound.read.taxonomy_structure import Links
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, frozen


class ClassGraph(NamedTuple):
    """A graph with the classes of a learner at some of its nodes."""

    neighbours: Links
    node_of_class: IdArray
    colour: IntArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.neighbours.indptr) - 1


def class_graph(taxonomy: Taxonomy, node_of_class: IdArray) -> ClassGraph:
    """Colour a graph so that no edge joins two nodes of one colour: nodes with many neighbours first.

    Parameters
    ----------
    taxonomy : Taxonomy
        Any kind; the direction of edges does not matter.
    node_of_class : int32 array
        The node of each class.

    Returns
    -------
    ClassGraph
        With the colours.
    """
    neighbours = taxonomy.neighbour_links
    colour = np.full(len(taxonomy), -1)
    for node in np.argsort(-np.diff(neighbours.indptr), kind="stable").tolist():
        taken = set(colour[neighbours.of(node)].tolist())
        colour[node] = next(c for c in range(len(taken) + 1) if c not in taken)
    return ClassGraph(neighbours, node_of_class, colour)


class RecursiveGraph:
    """The state of the rounds.

    Parameters
    ----------
    graph : ClassGraph
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
        graph: ClassGraph,
        rows: SolverRows,
        positives: Positives,
        cost: float,
        class_weights: Costs,
        settings: Settings,
    ) -> None:
        size = 8 * graph.n_nodes * rows.n_features
        if size > 2 * validation.DENSE_LIMIT:
            raise MemoryError(
                f"{graph.n_nodes} nodes × {rows.n_features} features would take {size / 2**30:.1f} GiB: on a graph "
                "every node keeps all its weights. Use a tree, fewer features, or LinearClassifier"
            )
        self.graph, self.rows, self.positives, self.settings = graph, rows, positives, settings
        self.degree = np.diff(graph.neighbours.indptr)
        springs = np.maximum(1, self.degree[graph.node_of_class])
        self.costs = Costs(*((cost * weights / springs).astype(np.float32) for weights in class_weights))
        self.class_of_node = np.full(graph.n_nodes, -1)
        self.class_of_node[graph.node_of_class] = np.arange(len(graph.node_of_class))
        self.weights = np.zeros((graph.n_nodes, rows.n_features), dtype=np.float32)
        self.losses = np.full(len(graph.node_of_class), np.inf)
        self.duals: list[tuple[IdArray, Float32Array] | None] = [None] * len(graph.node_of_class)
        self._spare: list[Block] = []

    def rounds(self, max_rounds: int, round_tol: float, pool: Workers) -> Iterator[dict[str, float]]:
        """Solve colour after colour until the objective falls by less than ``round_tol`` of itself.

        Parameters
        ----------
        max_rounds : int
            Rounds after which to stop in any case.
        round_tol : float
            Smallest relative decrease that is worth another round.
        pool : Workers
            Threads of this process: a block needs all weights of its neighbours.

        Yields
        ------
        dict
            ``round``, ``objective``, ``seconds``.
        """
        last = np.inf
        for number in range(1, max_rounds + 1):
            began = time.perf_counter()
            with track("solve nodes", self.graph.n_nodes) as progress:
                for colour in range(int(self.graph.colour.max(initial=-1)) + 1):
                    nodes = np.flatnonzero(self.graph.colour == colour)
                    learning = nodes[self.class_of_node[nodes] >= 0]
                    parts = [learning[first : first + LANES] for first in range(0, len(learning), LANES)]
                    for _ in pool.map(self._solve_block, parts):
                        pass
                    for node in nodes[self.class_of_node[nodes] < 0].tolist():
                        self.weights[node] = self._mean(node)
                    progress.advance(len(nodes))
            objective = self.objective()
            yield {"round": number, "objective": objective, "seconds": time.perf_counter() - began}
            if last - objective < round_tol * last:
                return
            last = objective

    def objective(self) -> float:
        """Return the objective at the weights at hand."""
        total = float(self.losses.sum())
        for node, low in enumerate(self.graph.neighbours.indptr[:-1].tolist()):
            high = int(self.graph.neighbours.indptr[node + 1])
            if low == high:
                total += 0.5 * float(np.square(self.weights[node], dtype=np.float64).sum())
            for other in self.graph.neighbours.indices[low:high].tolist():
                if other > node:
                    difference = self.weights[node] - self.weights[other]
                    total += 0.5 * float(np.square(difference, dtype=np.float64).sum())
        return total

    def _mean(self, node: int) -> Float32Array:
        others = self.graph.neighbours.of(node)
        if not len(others):
            return np.zeros(self.rows.n_features, dtype=np.float32)
        mean: Float32Array = self.weights[others].mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

    def _solve_block(self, nodes: npt.NDArray[np.int64]) -> None:
        classes, settings, rows = self.class_of_node[nodes], self.settings, self.rows
        block = self._spare.pop() if self._spare else Block(rows)
        origin = lane_array(rows.n_features)
        block.duals[:] = 0
        block.targets[:] = 0
        for lane, (node, c) in enumerate(zip(nodes.tolist(), classes.tolist(), strict=True)):
            origin[:, lane] = self._mean(node)
            block.targets[:, lane] = -1
            block.targets[self.positives.rows[self.positives.indptr[c] : self.positives.indptr[c + 1]], lane] = 1
            known = self.duals[c]
            if known is not None:
                block.duals[known[0], lane] = known[1]
        block.weights[:] = origin
        _linear_kernels.add_rows(rows.indptr, rows.indices, rows.data, block.targets, block.duals, block.weights)
        costs = Costs(*(padded(part[classes]) for part in self.costs))
        outcome = block.solve(costs, settings.loss, settings.tol, settings.max_sweeps, settings.seed, origin)
        losses = self._losses(block, costs, outcome.objective, origin)
        for lane, (node, c) in enumerate(zip(nodes.tolist(), classes.tolist(), strict=True)):
            springs = max(1, int(self.degree[node]))
            new, old = block.weights[:, lane], self.weights[node]
            loss = float(losses[lane]) * springs
            # A loosely solved dual may be above where the node was: then it stays there.
            if loss + springs * _half_square(new, origin[:, lane]) <= self.losses[c] + springs * _half_square(
                old, origin[:, lane]
            ):
                self.weights[node], self.losses[c] = new, loss
                kept = np.flatnonzero(block.duals[:, lane])
                self.duals[c] = frozen(kept, np.int32), frozen(block.duals[kept, lane], np.float32)
        self._spare.append(block)

    def _losses(self, block: Block, costs: Costs, objective: Float64Array, origin: Float32Array) -> Float64Array:
        rows, sums = self.rows, np.zeros(LANES)
        if self.settings.loss == LOGISTIC:
            kernels.logistic_loss(
                *(rows.indptr, rows.indices, rows.data, rows.weights, block.targets, *costs),
                *(0, rows.n_rows, block.weights, sums),
            )
            return sums
        _linear_kernels.lane_squares(block.weights, origin, sums)
        losses: Float64Array = objective - 0.5 * sums
        return losses

    def index(self, n_features: int, pool: Workers) -> ClassIndex:
        """Return the classes' weights as an index, as differences from their medians.

        Parameters
        ----------
        n_features : int
            Features of the index.
        pool : Workers
            Who works.

        Returns
        -------
        ClassIndex
            Pruned by the settings' ``min_weight``.
        """
        own = self.weights[self.graph.node_of_class]
        sample = own[:: max(1, len(own) // SAMPLED_CLASSES)]
        offset = frozen(np.median(sample, axis=0), np.float32)
        least = self.settings.min_weight * typical_column((sample - offset).T)

        def take(first: int) -> Edges:
            lanes = np.ascontiguousarray(own[first : first + LANES].T)
            full = np.zeros((len(lanes), LANES), dtype=np.float32)
            full[:, : lanes.shape[1]] = lanes
            return heavy_edges(full, offset, lanes.shape[1], least, first)

        blocks = list(pool.map(take, range(0, len(own), LANES)))
        return join_edges(blocks, self.rows, offset, n_features, len(own))


def _half_square(weights: Float32Array, origin: Float32Array) -> float:
    return 0.5 * float(np.square(weights - origin, dtype=np.float64).sum())
