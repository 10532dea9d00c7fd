"""OT: a large-margin learner that walks down the tree, a node's weights orthogonal to its ancestors'.

Objective, N examples::

    min ½ Σ_ij K_ij |w_i·w_j| + C/N Σ_k ξ_k
    ξ_k = max(0, max over i ∈ path(y_k), j ∈ siblings(i) of 1 − (w_i − w_j)·x_k)

with K as in `Orthogonal`. Zhou, Xiao and Wu minimise it by regularised dual averaging, with steps of 1/(λ_min t); the
smallest eigenvalue λ_min of K is so small that this takes very many passes. Here it is solved in the dual, by the steps
of `_margin_kernels` for the examples and by L-BFGS for the signs of the products, to a duality gap. A sweep costs
non-zeros × nodes, and nodes³ for the signs.
Zhou, Xiao, Wu: Hierarchical Classification via Orthogonal Transfer, ICML 2011.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.distribute import spans, workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn._descent_kernels import score_by_descent
from abound.learn._vote_kernels import take_best
from abound.learn.class_tree import ClassTree
from abound.learn.fitted_values import history_from
from abound.learn.index_parts import index_arrays, index_from, prefixed
from abound.learn.margin_dual import Candidates, MarginDual, solve_dual
from abound.learn.orthogonal_penalty import Orthogonal
from abound.learn.tree_learner import TreeLearner, check_table
from abound.progress import track
from abound.rank.topk import Ranking, score_all, silent_rows
from abound.store import Section
from abound.validation import Float32Array, IdArray, IntArray, Rows, check_number, frozen, make_generator

BLOCK_NUMBERS = 2**22
"""Scores of nodes that are held at a time."""


class OrthogonalTransferClassifier(TreeLearner):
    """OT: at each node of a tree the best child is chosen, by weights that are orthogonal to its ancestors'.

    Parameters
    ----------
    taxonomy : Taxonomy, path or None, default=None
        The tree of the classes, or a file with ``parent child`` a line; None puts all classes under one root, where
        this is the multi-class SVM of Crammer and Singer.
    C : float, default=100.0
        Weight of the mean loss against the penalty.
    tol : float, default=0.01
        Stop when the duality gap is below this part of the objective.
    max_sweeps : int, default=1000
        Sweeps over the rows after which the weights are taken as they are, with a warning.
    bias : float or "auto", default="auto"
        See `LinearClassifier`.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the order of the rows.
    n_jobs : int or None, default=None
        Threads for ranking; learning uses one.

    Attributes
    ----------
    nodes_ : ClassIndex
        The weights of the nodes of ``tree_``; they rank.
    index_ : ClassIndex
        The sums of the weights on each class's path. `explain` speaks for them; for the best class they add up to its
        score.
    tree_ : ClassTree
        The taxonomy, resolved against the classes.
    history_ : list of dict
        Objective and dual objective at the sweeps where they were measured.

    Notes
    -----
    The best class is where the greedy walk ends. Its score is the sum of ``w_i·x`` over its path; another class scores
    less by what its own path lacks at each fork, the score of the best child less that of its own. So a class that
    nearly was chosen comes before one that was far from it. A row with several labels counts once for each, and the
    paths of its other labels are no mistakes. The learner is meant for small data.

    Examples
    --------
    >>> from abound import OrthogonalTransferClassifier, Taxonomy
    >>> taxonomy = Taxonomy.from_edges([("drinks", "hot"), ("hot", "tea"), ("hot", "coffee"), ("drinks", "milk")])
    >>> X, y = [[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "milk"]
    >>> OrthogonalTransferClassifier(taxonomy).fit(X, y).predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "ot"

    nodes_: ClassIndex

    def __init__(
        self,
        taxonomy: Any = None,
        C: float = 100.0,
        tol: float = 0.01,
        max_sweeps: int = 1000,
        bias: float | str = "auto",
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.C = C
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.bias = bias
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of all nodes together.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        y : array, list of lists or indicator
            Their labels.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        self
            The fitted learner.
        """
        examples = self._gather(X, y, sample_weight)
        check_table("the products of all nodes", self.tree_.n_nodes, self.tree_.n_nodes)
        problem = MarginDual(
            examples,
            self.C * examples.shares,
            nodes_of_rows(self.tree_, examples.labels),
            sibling_candidates(self.tree_),
            Orthogonal(self.tree_),
        )
        generator = make_generator(self.random_state)
        solution = solve_dual(problem, max_sweeps=self.max_sweeps, tol=self.tol, generator=generator)
        self._take(ClassIndex.from_matrix(solution.weights).with_constant(self._constant), solution.history)
        return self._learn_decisions(X, examples.labels, examples.weights)

    @property
    def n_edges_(self) -> int:
        """|W|: the weights of all nodes."""
        return self.nodes_.n_edges

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, 0, above=True)
        check_number("tol", self.tol, 0, above=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)

    def _take(self, nodes: ClassIndex, history: list[dict[str, Any]]) -> None:
        """Rank by the weights of nodes."""
        self.nodes_ = nodes
        self._index = nodes.combine(path_incidence(self.tree_))
        self.history_ = history

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        n_classes = self.tree_.n_classes
        ids = np.full((rows.n_rows, min(k, n_classes)), -1, dtype=np.int32)
        scores = np.full(ids.shape, -np.inf, dtype=np.float32)
        mask = frozen(np.empty(0) if allowed is None else allowed, np.bool_)

        def rank_span(span: tuple[int, int]) -> int:
            begin, end = span
            dense = self._score_block(rows.part(begin, end), allowed)
            take_best(dense, mask, True, ids[begin:end], scores[begin:end])
            return end - begin

        with workers(self.n_jobs) as pool, track("rank", rows.n_rows) as progress:
            n_parts = max(pool.n_workers, -(-rows.n_rows * self.tree_.n_nodes // BLOCK_NUMBERS))
            for done in pool.map(rank_span, spans(np.arange(rows.n_rows + 1), n_parts)):
                progress.advance(done)
        return Ranking(ids, scores)

    def _score_all(self, rows: Rows) -> Float32Array:
        return self._score_block(rows, None)

    def _score_block(self, rows: Rows, allowed: npt.NDArray[np.bool_] | None) -> Float32Array:
        """Dense scores; where no node has a vote, the most frequent class is a little above the others."""
        tree = self.tree_
        scores = np.zeros((rows.n_rows, tree.n_classes), dtype=np.float32)
        scratch = np.empty(tree.n_nodes, dtype=np.int64), np.empty(tree.n_nodes)
        score_by_descent(score_all(self.nodes_, rows), tree.parent, tree.class_of_node, *scratch, scores)
        frequent = self._most_frequent(allowed)
        if frequent >= 0:
            scores[silent_rows(self.nodes_, rows), frequent] = np.finfo(np.float32).tiny
        return scores

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self.tree_ = self.tree_.remap_classes(new_ids, n_classes)
        self._take(self.nodes_, self.history_)

    def _pruned(self, **limits: Any) -> Self:
        twin = self._frozen_copy()
        twin._take(self.nodes_.prune(**limits), self.history_)
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return prefixed("nodes/", index_arrays(self.nodes_)) | prefixed("tree/", self.tree_.to_arrays())

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._restore_tree(stored)
        shape = self.n_features_in_, self.tree_.n_nodes
        self._take(index_from(stored.section("nodes/"), *shape, self.bias), history_from(stored, fitted))

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("orthogonal transfer ranks by the nodes of a tree and not by one index")


def sibling_candidates(tree: ClassTree) -> Candidates:
    """List, for each class, the nodes of its path with each of their siblings.

    Parameters
    ----------
    tree : ClassTree
        The tree.

    Returns
    -------
    Candidates
        Vertices are nodes; scales and costs are 1.
    """
    pairs: list[tuple[int, int]] = []
    ends = [0]
    for c in range(tree.n_classes):
        for node in tree.paths.of(c).tolist():
            siblings = tree.children.of(int(tree.parent[node])).tolist()
            pairs += [(node, other) for other in siblings if other != node]
        ends.append(len(pairs))
    left, right = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    ones = np.ones(len(pairs))
    return Candidates(np.array(ends, dtype=np.int64), left.copy(), right.copy(), ones, ones)


def nodes_of_rows(tree: ClassTree, labels: Labels) -> tuple[IntArray, IdArray]:
    """List the nodes on the paths of each row's labels.

    Parameters
    ----------
    tree : ClassTree
        The tree.
    labels : Labels
        The labels.

    Returns
    -------
    indptr, nodes : int64 and int32 arrays
        Those of row i are ``nodes[indptr[i]:indptr[i + 1]]``; one may be there twice.
    """
    lengths = np.diff(tree.paths.indptr)[labels.ids]
    ends = np.concatenate(([0], np.cumsum(lengths)))
    places = np.arange(ends[-1]) + np.repeat(tree.paths.indptr[labels.ids] - ends[:-1], lengths)
    return ends[labels.indptr], tree.paths.indices[places]


def path_incidence(tree: ClassTree) -> Any:
    """Tell which nodes are on the path of which class.

    Parameters
    ----------
    tree : ClassTree
        The tree.

    Returns
    -------
    float32 csr_array of shape (n_nodes, n_classes)
        How many of the class's leaves are below the node, or are it: at most 1 unless classes were merged.
    """
    incidence = sp.lil_array((tree.n_nodes, tree.n_classes), dtype=np.float32)
    for leaf in np.flatnonzero(tree.class_of_node >= 0).tolist():
        node = leaf
        while node > 0:
            incidence[node, tree.class_of_node[leaf]] += 1
            node = int(tree.parent[node])
    return incidence.tocsr()
