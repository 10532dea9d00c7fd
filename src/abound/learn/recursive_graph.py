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
from abound.learn._lanes import LANES
from abound.learn.light_weights import LEAST_TRIED, SAMPLED_CLASSES, TRIED_CLASSES, typical_column, without_light
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import Costs, Edges, heavy_edges
from abound.learn.one_vs_rest import SWEEPS, Positives, Settings, join_edges, unharmed_threshold
from abound.learn.recursive_nodes import Duals, Node, NodeBlock, NodeSolver, half_square, solve_nodes
from abound.progress import track
from abound.read.taxonomy import Taxonomy
from abound.read.taxonomy_structure import Links
from abound.validation import Float32Array, IdArray, IntArray, frozen


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
        self.graph, self.rows, self.settings = graph, rows, settings
        springs = np.maximum(1, np.diff(graph.neighbours.indptr)[graph.node_of_class])
        costs = Costs(*(frozen(cost * weights / springs, np.float32) for weights in class_weights))
        self.solver = NodeSolver(rows, positives, costs, springs, settings)
        self.class_of_node = np.full(graph.n_nodes, -1)
        self.class_of_node[graph.node_of_class] = np.arange(len(graph.node_of_class))
        self.weights = np.zeros((graph.n_nodes, rows.n_features), dtype=np.float32)
        self.losses = np.full(len(graph.node_of_class), np.inf)
        self.duals: list[Duals | None] = [None] * len(graph.node_of_class)

    def rounds(self, max_rounds: int, round_tol: float, pool: Workers) -> Iterator[dict[str, float]]:
        """Solve colour after colour until the objective falls by less than ``round_tol`` of itself.

        Parameters
        ----------
        max_rounds : int
            Rounds after which to stop in any case.
        round_tol : float
            Smallest relative decrease that is worth another round.
        pool : Workers
            Who solves the nodes that have rows; the result does not depend on it.

        Yields
        ------
        dict
            ``round``, ``objective``, ``seconds``.
        """
        last, shared, effort = np.inf, pool.share(self.solver), SWEEPS * len(self.rows.indices)
        for number in range(1, max_rounds + 1):
            began = time.perf_counter()
            with track("solve nodes", self.graph.n_nodes) as progress:
                for colour in range(int(self.graph.colour.max(initial=-1)) + 1):
                    nodes = np.flatnonzero(self.graph.colour == colour)
                    learning = nodes[self.class_of_node[nodes] >= 0]
                    parts = [learning[first : first + LANES] for first in range(0, len(learning), LANES)]
                    solved = pool.map(solve_nodes, (self._part(part) for part in parts), shared, cost=effort)
                    for part, found in zip(parts, solved, strict=True):
                        self._take(part, found)
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

    def _part(self, nodes: npt.NDArray[np.int64]) -> NodeBlock:
        classes = self.class_of_node[nodes]
        means = np.stack([self._mean(node) for node in nodes.tolist()])
        apart = [half_square(self.weights[node], mean) for node, mean in zip(nodes.tolist(), means, strict=True)]
        before = self.losses[classes] + self.solver.springs[classes] * np.array(apart)
        return NodeBlock(classes, frozen(means, np.float32), [self.duals[c] for c in classes.tolist()], before)

    def _take(self, nodes: npt.NDArray[np.int64], solved: list[Node | None]) -> None:
        for node, found in zip(nodes.tolist(), solved, strict=True):
            if found is not None:
                c = self.class_of_node[node]
                self.weights[node], self.losses[c], self.duals[c] = found.weights, found.loss, found.duals

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
        apart, own_weights = (sample - offset).T, own.T
        biases = self.rows.biases(own_weights)
        apart, own_weights, offset = map(self.rows.featured, (apart, own_weights, offset))
        least = self.settings.min_weight * typical_column(apart)
        firsts = range(0, len(own), LANES)

        def take(first: int) -> Edges:
            lanes = np.ascontiguousarray(own_weights[:, first : first + LANES])
            full = np.zeros((len(lanes), LANES), dtype=np.float32)
            full[:, : lanes.shape[1]] = lanes
            return heavy_edges(full, offset, lanes.shape[1], least, first)

        known: dict[int, Edges] = {}
        if self.settings.unharmed:
            heaviest, least = least, LEAST_TRIED * least
            tried = firsts[:: max(1, len(firsts) * LANES // TRIED_CLASSES)]
            classes = np.concatenate([np.arange(first, min(first + LANES, len(own))) for first in tried])
            some = list(pool.map(take, tried))
            least = unharmed_threshold(
                *(self.rows, self.solver.positives, some, offset, biases[classes], classes, n_features, heaviest)
            )
            known = {first: without_light(edges, least) for first, edges in zip(tried, some, strict=True)}
        others = iter(pool.map(take, [first for first in firsts if first not in known]))
        blocks = [known[first] if first in known else next(others) for first in firsts]
        return join_edges(blocks, self.rows, offset, biases, n_features, len(own))
