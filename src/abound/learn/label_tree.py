"""Label trees: classes as leaves of a tree that is made for them, a linear model for each branch, a beam to walk it.

A node's problems are those of `LinearClassifier` among siblings: for each child the rows below it against the node's
other rows, ``½‖w‖² + C Σ_i loss(y_i w·x_i)``. A branch is taken with the chance that its score ``s = w·x`` stands for,
``exp(−max(0, 1 − s)²)`` for the squared hinge loss and ``1/(1 + exp(−s))`` for the logistic; a class has the product of
the chances on its path. A row costs what the nodes on its way cost, however many classes there are.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from abound.distribute import workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn._lanes import LANES
from abound.learn.base import RankingClassifier
from abound.learn.checkpoint import once, training_workers
from abound.learn.class_tree import ClassTree, check_taxonomy, class_tree, class_tree_from
from abound.learn.disk_gather import solver_rows_on_disk
from abound.learn.index_parts import prefixed
from abound.learn.label_tree_centroids import class_centroids
from abound.learn.label_tree_confusion import confusion_vectors
from abound.learn.label_tree_disk import budget_on_disk, train_tree_on_disk
from abound.learn.label_tree_nodes import Settings
from abound.learn.label_tree_parts import leaf_index, path_contributions, pruned_trees, tree_from
from abound.learn.label_tree_shape import (
    TreeShape,
    check_widths,
    cluster_tree,
    level_widths,
    taxonomy_tree,
)
from abound.learn.label_tree_training import train_tree
from abound.learn.linear_choice import check_cost, own_cost, typical_square
from abound.learn.linear_rows import SolverRows, solver_rows
from abound.learn.linear_solver import LOSSES
from abound.learn.row_views import check_bias, own_bias
from abound.memory import check_memory
from abound.rank.descend import LINKS, WALKS, descend
from abound.rank.topk import Ranking
from abound.rank.tree_weights import TreeWeights
from abound.read.taxonomy import Taxonomy
from abound.store import Section
from abound.validation import (
    Float32Array,
    IdArray,
    Rows,
    check_choice,
    check_labels,
    check_number,
    check_rows,
    check_sample_weight,
    frozen,
    make_generator,
)

CLUSTERINGS = ("kmeans", "spectral")
"""What ``tree`` may be beside a taxonomy."""

USUAL_COST, COST_OF_SEVERAL = 1.0, 0.7
"""C where rows have unit length and one label each, and where they have more on average; chosen on held-out rows."""

LIGHTEST = 0.05
"""The lightest weight to keep where rows have unit length; chosen on held-out rows."""


class LabelTreeClassifier(RankingClassifier):
    """A forest of label trees: fast and accurate for 10⁴ to 10⁶ classes.

    Parameters
    ----------
    n_trees : int, default=1
        Trees, whose chances are averaged; the clusters of each start from other classes. With a taxonomy all trees
        would be the same, so there is one.
    tree : {"kmeans", "spectral"}, Taxonomy, path or None, default="kmeans"
        Where the tree comes from: balanced clusters of the classes' centroids; balanced spectral clusters of the
        confusions of a flat model; a taxonomy, or its file, as it is; None puts all classes under one root.
    arity : int, default=32
        Children of a node, a multiple of 16; up to twice as many where that saves a level, and fewer on the last of
        several levels where fewer will do. A taxonomy has its own.
    max_leaf : int, default=64
        Classes of a node whose children are classes, at most.
    beam : int, default=10
        Nodes of a level that are followed when ranking; 1 is greedy.
    walk : {"beam", "best"}, default="beam"
        "best" opens the best node of all levels first, until the classes wanted are certain, whatever that takes.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        What the models of the branches minimise.
    C : float or "auto", default="auto"
        What errors cost against the length of the weights; "auto" is 1, or 0.7 where rows have several
        labels, over the mean square length of the rows.
    bias : float or "auto", default="auto"
        See `LinearClassifier`. Classes are clustered without it.
    tol : float, default=0.03
        A row rests for good once its share of the duality gap is at most this part of the mean loss of the first sweep.
    max_sweeps : int, default=50
        Sweeps over the rows of a node after which its models are left as they are.
    min_weight : float or None, default=None
        Lighter weights are left out. None: 0.05 over the root mean square length of the rows. 0 keeps all.
    validation_fraction : float, default=0.2
        Part of the rows on which "spectral" counts confusions.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the order of the rows and of the clusters.
    n_jobs : int or None, default=None
        Threads, in training and when ranking; -1 for all cores. The model does not depend on it.
    cluster : None, "processes", "local" or "host:port", default=None
        Where nodes are trained: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine alone,
        or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished nodes: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are too large for it stay there, with the same model.

    Attributes
    ----------
    trees_ : list of TreeWeights
        The trees.
    index_ : ClassIndex
        Of their weights, those of the leaves, by class, without what all children of a node share.

    Notes
    -----
    Scores are chances between 0 and 1; classes that the walk does not reach are not ranked. In a forest the 100 best
    classes of each tree count. `explain` tells of the chance that the class has on its own path, reached or not.

    References
    ----------
    Bengio, Weston, Grangier: Label Embedding Trees for Large Multi-Class Tasks, NIPS 2010.
    Prabhu, Kag, Harsola, Agrawal, Varma: Parabel, WWW 2018.
    Khandagale, Xiao, Babbar: Bonsai, Machine Learning 2020.

    Examples
    --------
    >>> from abound import LabelTreeClassifier
    >>> model = LabelTreeClassifier().fit([[1, 0], [0, 1], [1, 1]], ["a", "b", "a"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    """

    learner: ClassVar[str] = "label-tree"

    trees_: list[TreeWeights]
    _n_edges: int
    _class_tree: ClassTree | None
    _leaf_index: list[ClassIndex]
    """The index of the leaves, once it has been asked for; in a list, for predicting sets no attribute."""

    def __init__(
        self,
        n_trees: int = 1,
        tree: Any = "kmeans",
        arity: int = 32,
        max_leaf: int = 64,
        beam: int = 10,
        walk: str = "beam",
        loss: str = "squared_hinge",
        C: float | str = "auto",
        bias: float | str = "auto",
        tol: float = 0.03,
        max_sweeps: int = 50,
        min_weight: float | None = None,
        validation_fraction: float = 0.2,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        cluster: str | None = None,
        checkpoint: Any = None,
        memory: str | int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.tree = tree
        self.arity = arity
        self.max_leaf = max_leaf
        self.beam = beam
        self.walk = walk
        self.loss = loss
        self.C = C
        self.bias = bias
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.min_weight = min_weight
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.checkpoint = checkpoint
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make the trees and solve the problems of their nodes.

        Ctrl-C stops without a model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        y : array, list of lists or indicator
            Their labels.
        sample_weight : array of shape (n,), optional
            Multiplies C, row by row.

        Returns
        -------
        self
            The fitted learner.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        memory = budget_on_disk(self, rows, labels)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self._remember(labels)
        generator = make_generator(self.random_state)
        given = rows, weights, generator, own_bias(self.bias, rows, weights)
        prepared = solver_rows(*given) if memory is None else solver_rows_on_disk(*given, memory)
        own = labels.take(prepared.order)
        square = typical_square(rows, weights)
        cost = own_cost(self.C, COST_OF_SEVERAL if len(labels.ids) > rows.n_rows else USUAL_COST, square)
        lightest = LIGHTEST / math.sqrt(square) if self.min_weight is None else self.min_weight
        costs = frozen(np.full(LANES, cost), np.float32)
        settings = Settings(LOSSES.index(self.loss), costs, self.tol, self.max_sweeps, lightest)
        self._class_tree = None
        with training_workers(self, rows, labels, weights) as pool:
            if self.tree not in CLUSTERINGS:
                self._class_tree = class_tree(_taxonomy(self.tree), labels.classes)
                shapes = [taxonomy_tree(self._class_tree)]
            else:
                shapes = once(
                    pool, lambda: self._cluster(rows, labels, weights, prepared, own, cost, generator, memory)
                )
            check_widths(shapes)
            self._take_over(
                [
                    train_tree(prepared, own, shape, settings, pool)
                    if memory is None
                    else train_tree_on_disk(prepared, own, shape, settings, self.n_jobs, memory)
                    for shape in shapes
                ]
            )
            return self._learn_decisions(X, labels, weights)

    @property
    def index_(self) -> ClassIndex:
        """The weights of the leaves, by class."""
        if not self._leaf_index:
            self._leaf_index.append(leaf_index(self.trees_, self.n_features_in_, len(self.class_counts_)))
        return self._leaf_index[0]

    @property
    def n_edges_(self) -> int:
        """|W|: the weights of all nodes that are not 0."""
        return self._n_edges

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_trees", self.n_trees, 1, whole=True)
        if self.tree not in CLUSTERINGS:
            check_taxonomy(self.tree)
        check_number("arity", self.arity, LANES, whole=True)
        if self.arity % LANES:
            raise ValueError(f"arity={self.arity!r}: it must be a multiple of {LANES}")
        check_number("max_leaf", self.max_leaf, 2, whole=True)
        check_number("beam", self.beam, 1, whole=True)
        check_choice("walk", self.walk, WALKS)
        check_choice("loss", self.loss, LINKS)
        check_cost(self.C)
        check_bias(self.bias)
        check_number("tol", self.tol, 0, above=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)
        check_number("min_weight", self.min_weight, 0, or_none=True)
        check_number("validation_fraction", self.validation_fraction, 0, 0.9, above=True)
        check_memory(self.memory)

    def _cluster(
        self,
        rows: Rows,
        labels: Labels,
        weights: Float32Array,
        prepared: SolverRows,
        own: Labels,
        cost: float,
        generator: np.random.Generator,
        memory: int | None,
    ) -> list[TreeShape]:
        """The shape of each tree, from clusters of classes."""
        if self.tree == "kmeans":
            vectors = class_centroids(prepared, own, memory)
        else:
            how = cost, prepared.bias, self.validation_fraction
            vectors = confusion_vectors(rows, labels, weights, *how, generator, self.n_jobs)
        widths = level_widths(labels.n_classes, self.arity, self.max_leaf)
        seeds = generator.integers(2**31, size=self.n_trees).tolist()

        with workers(self.n_jobs) as pool:
            return list(pool.map(lambda seed: cluster_tree(vectors, widths, seed), seeds))

    def _take_over(self, trees: list[TreeWeights], n_edges: int | None = None) -> None:
        self.trees_, self._leaf_index = trees, []
        self._n_edges = sum(tree.n_weights for tree in trees) if n_edges is None else n_edges

    def _own_taxonomy(self) -> Taxonomy | None:
        return None if self._class_tree is None else self._class_tree.taxonomy

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        found = descend(
            self.trees_,
            rows,
            k,
            len(self.class_counts_),
            link=self.loss,
            walk=self.walk,
            beam=self.beam,
            allowed=allowed,
            n_jobs=self.n_jobs,
        )
        ranking, frequent = found.ranking, self._most_frequent(allowed)
        if frequent >= 0:
            for row in np.flatnonzero(~found.known).tolist():
                others = ranking.ids[row]
                ranking.ids[row] = np.concatenate(([frequent], others[others != frequent]))[: len(others)]
            ranking.scores[(ranking.ids >= 0) & np.isneginf(ranking.scores)] = 0
        return ranking

    def _score_all(self, rows: Rows) -> Float32Array:
        """The chances of the classes that the walk reaches, 0 for the others."""
        n_classes = len(self.class_counts_)
        ranking = self._rank(rows, n_classes, None)
        scores = np.zeros((rows.n_rows, n_classes), dtype=np.float32)
        found = ranking.ids >= 0
        scores[np.nonzero(found)[0], ranking.ids[found]] = ranking.scores[found]
        return scores

    def _score_and_fill(self, rows: Rows) -> Float32Array:
        scores, best = self._score_all(rows), self._rank(rows, 1, None).ids[:, 0]
        tied = np.flatnonzero(scores.argmax(axis=1) != best)
        scores[tied, best[tied]] = np.nextafter(scores[tied].max(axis=1), np.float32(np.inf))
        return scores

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        return path_contributions(self.trees_, rows, c, LINKS.index(self.loss))

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self.trees_ = [tree.remap_classes(new_ids, n_classes) for tree in self.trees_]
        self._leaf_index = []
        if self._class_tree is not None:
            self._class_tree = self._class_tree.remap_classes(new_ids, n_classes)

    def _pruned(self, **limits: Any) -> Self:
        twin = copy.copy(self)
        twin._take_over(pruned_trees(self.trees_, **limits))
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, tree in enumerate(self.trees_):
            arrays |= prefixed(f"trees/{number}/", tree.to_arrays())
        if self._class_tree is not None:
            arrays |= prefixed("tree/", self._class_tree.to_arrays())
        return arrays

    def _fitted_values(self) -> dict[str, Any]:
        return {"n_trees": len(self.trees_)}

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        n_trees, n_classes = fitted.get("n_trees"), len(self.class_counts_)
        if not isinstance(n_trees, int) or not 1 <= n_trees <= len(stored):
            raise stored.fault("meta", f"the number of trees is {n_trees!r}")
        sections = [stored.section(f"trees/{number}/") for number in range(n_trees)]
        trees = [tree_from(section, self.n_features_in_, n_classes, self.bias) for section in sections]
        self._take_over(trees, n_edges if all(map(_is_as_stored, trees, sections)) else None)
        own = stored.section("tree/")
        self._class_tree = class_tree_from(own, n_classes) if len(own) else None
        if self.tree is None and self._class_tree is not None:
            self.tree = self._class_tree.taxonomy

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("label trees rank by the weights of their nodes and not by one index")


def _is_as_stored(tree: TreeWeights, section: Section) -> bool:
    """Whether a tree is as the file has it: not if its bias was a feature there."""
    return not len(tree.biases) or "biases" in section


def _taxonomy(tree: Any) -> Any:
    """What ``tree`` is if it names no clustering."""
    if isinstance(tree, str) and not Path(tree).exists():
        raise ValueError(f"tree={tree!r}: it is neither one of {', '.join(CLUSTERINGS)} nor the file of a taxonomy")
    return tree
