"""Top-down: a classifier at each inner node of a taxonomy tells its children apart; a row descends.

Two ways down. *Greedy* (pachinko machine; the baseline TD of Gopal and Yang, KDD 2013): from the root to the child with
the best score, again and again. Further places, ours: a child pays what it scores below its best sibling,
``max_z' s_z' − s_z``, and leaves come in the order of what their path pays in all.

*Probability* (Madani, Connor, Greiner, JMLR 2009, figure 7): a sigmoid turns scores into probabilities (Platt 1999),
``p_z = 1 / (1 + exp(A_z s_z + B_z))``, which multiply down a path; a path ends where the product falls below ``p_min``.
The sigmoids are fitted to the scores of held-out rows, pooled over several trials of 80 to 20.

A node learns from the rows below it alone. Training costs about depth × what one level of classes costs.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import get_tags

from abound.index.class_index import ClassIndex
from abound.learn.base import RankingClassifier
from abound.learn.class_tree import class_tree
from abound.learn.committee import CommitteeClassifier
from abound.learn.committee_parts import is_linear
from abound.learn.expert_training import Data
from abound.learn.fitted_values import history_from, number_from
from abound.learn.index_parts import bias_part, index_arrays, index_from, prefixed
from abound.learn.linear import LinearClassifier
from abound.learn.top_down_reasons import column_shares
from abound.learn.top_down_training import Trained, train_nodes
from abound.learn.top_down_walk import Descent, Walk, leading_nodes, make_walk, walk_topk
from abound.learn.tree_learner import TreeLearner
from abound.measure.places import true_ranks
from abound.measure.ranking import recall
from abound.rank.topk import Ranking, score_all, silent_rows, spread
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

LEAST = tuple(twentieth / 20 for twentieth in range(2, 11))
"""Candidates for p_min: 0.05 + 0.05 k."""

HELD_FRACTION = 0.1
"""Part of the rows on which p_min is chosen."""


class TopDownClassifier(TreeLearner):
    """A classifier at each node of a taxonomy, from the root down to a class.

    Parameters
    ----------
    taxonomy : Taxonomy, path or None, default=None
        The tree of the classes, or a file with ``parent child`` a line; None puts all classes under one root, where
        the greedy mode is ``node_learner`` alone.
    node_learner : learner, default=None
        Trained at each node to tell its children apart; None is ``LinearClassifier()``. It must rank by its index
        alone, or be a `CommitteeClassifier` with ``vote="mean"``.
    mode : {"greedy", "probability"}, default="greedy"
        Descend to the best child, or multiply the probabilities down all paths that stay probable.
    platt_trials : int, default=3
        Trials whose held-out scores fit the sigmoids of the mode "probability", each trained on 80% of a node's rows;
        then the node is trained on all of them. With 0 the sigmoids have A = -2 and B = 0.
    min_probability : float or "auto", default=0.1
        p_min: classes and paths of a smaller probability are left out. "auto" chooses among 0.1, 0.15, ..., 0.5 by R1
        on a held-out tenth, the smaller of equals.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the trials and the held-out part; ``node_learner`` has its own.
    n_jobs : int or None, default=None
        Threads; nodes are trained, and rows are ranked, in parallel. They do not change the result.

    Attributes
    ----------
    tree_ : ClassTree
        The taxonomy, resolved against the classes.
    sigmoids_ : float64 array of shape (n_nodes, 2)
        A and B of each node of ``tree_`` among its siblings.
    min_probability_ : float
        The p_min used.
    history_ : list of dict
        With "auto", ``min_probability`` and ``R1`` of each candidate.
    node_index_ : ClassIndex
        The classifiers of all nodes, feature → (node, weight); column ``n_nodes + z`` is what the children of ``z``
        have in common.
    index_ : ClassIndex
        Of these, the weights of the leaves, by class.

    Notes
    -----
    A class that is an inner node of the taxonomy has a leaf of its own below that node, and competes with its children.
    Where no child of a node reaches p_min, its own class takes the probability of the node. A row for which no class
    reaches p_min gets the most probable one alone.

    In the mode "greedy", scores are the sum of the scores on the greedy path less what a class's path pays; in
    "probability" they are probabilities, and `explain` tells of the scores behind them. Ties go to the node with more
    training rows. With ``include`` and ``exclude``, the descent is among the nodes that lead to a class that is left.

    Examples
    --------
    >>> from abound import Taxonomy, TopDownClassifier
    >>> taxonomy = Taxonomy.from_edges([("drinks", "hot"), ("hot", "tea"), ("hot", "coffee"), ("drinks", "milk")])
    >>> X, y = [[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "milk"]
    >>> TopDownClassifier(taxonomy).fit(X, y).predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "top-down"

    bias = 0.0
    min_probability_: float
    _trained: Trained
    _walk: Walk
    _alive: npt.NDArray[np.bool_]
    _leaf_index: list[ClassIndex]
    """The index of the leaves, once it has been asked for; in a list, for predicting sets no attribute."""

    def __init__(
        self,
        taxonomy: Any = None,
        node_learner: Any = None,
        mode: str = "greedy",
        platt_trials: int = 3,
        min_probability: float | str = 0.1,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.node_learner = node_learner
        self.mode = mode
        self.platt_trials = platt_trials
        self.min_probability = min_probability
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the classifier of each node.

        Ctrl-C stops without a model.

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
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self._remember(labels)
        self.tree_ = class_tree(self.taxonomy, labels.classes)
        data = Data(rows, labels, weights)
        if not weights.all():
            data = data.take(np.flatnonzero(weights))
        if not len(data.labels.ids):
            raise ValueError("no row has both a label and a weight above 0: there is nothing to learn")
        generator = make_generator(self.random_state)
        self.history_ = []
        if self.mode == "probability" and self.min_probability == "auto":
            self.history_ = self._try_least(data, generator)
        # The best one, the smaller of equals; without rows to try them on the smallest.
        best = max(self.history_, key=lambda entry: (entry["R1"], -entry["min_probability"]), default=None)
        chosen = LEAST[0] if best is None else best["min_probability"]
        self.min_probability_ = chosen if self.min_probability == "auto" else float(self.min_probability)
        self._take_over(self._train(data, generator))
        return self._learn_decisions(X, labels, weights)

    @property
    def node_index_(self) -> ClassIndex:
        """The classifiers of all nodes."""
        return self._trained.index

    @property
    def sigmoids_(self) -> npt.NDArray[np.float64]:
        """A and B of each node."""
        return self._trained.sigmoids

    @property
    def index_(self) -> ClassIndex:
        """The weights of the leaves, by class; all there is if the tree is flat."""
        if not self._leaf_index:
            tree, index = self.tree_, self.node_index_
            columns = np.concatenate((tree.class_of_node, np.full(tree.n_nodes, -1, np.int32)))
            leaves = index.remap_classes(columns, tree.n_classes)
            if tree.is_flat:
                common = index.classes == tree.n_nodes
                offset = np.zeros(index.n_features, np.float32)
                offset[np.repeat(np.arange(index.n_features), index.degrees)[common]] = index.weights[common]
                if offset.any():
                    lists = leaves.indptr, leaves.classes, leaves.weights
                    leaves = ClassIndex(*lists, leaves.n_classes, frozen(offset, np.float32), leaves.bias)
            self._leaf_index.append(leaves)
        return self._leaf_index[0]

    @property
    def n_edges_(self) -> int:
        """|W|: the weights of all nodes."""
        return self.node_index_.n_edges

    def _check_parameters(self) -> None:
        super()._check_parameters()
        learner = _or_linear(self.node_learner)
        if not isinstance(learner, RankingClassifier) or not _scores_by_index(learner):
            raise ValueError(
                f"node_learner={learner!r}: it must be a learner that ranks by its index alone, or a "
                "CommitteeClassifier of one kind of them with vote='mean'"
            )
        learner._check_parameters()
        check_choice("mode", self.mode, ("greedy", "probability"))
        check_number("platt_trials", self.platt_trials, 0, whole=True)
        if self.min_probability != "auto":
            check_number("min_probability", self.min_probability, 0, 1)

    def _try_least(self, data: Data, generator: np.random.Generator) -> list[dict[str, float]]:
        """R1 of each candidate for p_min on held-out rows; nothing if there are too few rows to hold any out."""
        order = generator.permutation(data.rows.n_rows)
        n_held = int(HELD_FRACTION * data.rows.n_rows)
        kept, held = data.take(np.sort(order[n_held:])), data.take(np.sort(order[:n_held]))
        if not n_held or not len(kept.labels.ids) or not len(held.labels.ids):
            return []
        self._take_over(self._train(kept, generator))
        history = []
        for least in LEAST:
            self.min_probability_ = least
            found = self._rank(self._view(held.rows), 1, None).ids
            history.append({"min_probability": least, "R1": recall(true_ranks(found, held.labels), 1)})
        return history

    def _train(self, data: Data, generator: np.random.Generator) -> Trained:
        n_trials = self.platt_trials if self.mode == "probability" else 0
        return train_nodes(data, self.tree_, clone(_or_linear(self.node_learner)), n_trials, generator, self.n_jobs)

    def _take_over(self, trained: Trained) -> None:
        """Keep what was trained, with what ranking needs of it."""
        self._trained, self._leaf_index = trained, []
        self._walk = make_walk(self.tree_, trained.index, trained.sigmoids, self.class_counts_)
        self._alive = leading_nodes(self.tree_, None)

    def _view(self, rows: Rows) -> Rows:
        return _or_linear(self.node_learner)._view(rows)  # type: ignore[no-any-return]

    def _width_of_view(self, n_features: int) -> int:
        return _or_linear(self.node_learner)._width_of_view(n_features)  # type: ignore[no-any-return]

    def _feature_behind(self, feature: int) -> int:
        return _or_linear(self.node_learner)._feature_behind(feature)  # type: ignore[no-any-return]

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        alive = self._alive if allowed is None else leading_nodes(self.tree_, allowed)
        descent = Descent(self.mode == "probability", self.min_probability_)
        n_classes = len(self.class_counts_)
        ranking = walk_topk(self._walk, alive, rows, k, n_classes, descent, self.n_jobs)
        silent, frequent = np.flatnonzero(silent_rows(self.node_index_, rows)), self._most_frequent(allowed)
        if len(silent) and frequent >= 0:
            others = ranking.ids[silent[0]]
            ranking.ids[silent] = np.concatenate(([frequent], others[others != frequent]))[: len(others)]
        return ranking

    def _score_all(self, rows: Rows) -> Float32Array:
        return self._score_and_fill(rows)

    def _score_and_fill(self, rows: Rows) -> Float32Array:
        n_classes = len(self.class_counts_)
        ranking = self._rank(rows, n_classes, None)
        scores, best = spread(ranking, n_classes), ranking.ids[:, 0]
        tied = np.flatnonzero(scores.argmax(axis=1) != best)
        level = scores[tied, best[tied]]
        # Above 0 the next number would be subnormal, which some processors take for 0.
        above = np.where(level == 0, np.finfo(np.float32).tiny, np.nextafter(level, np.float32(np.inf)))
        scores[tied, best[tied]] = above
        return scores

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        index = self.node_index_
        scores = score_all(index, rows)[0]
        shares = column_shares(self.tree_, self._walk, self._alive, scores, c, self.mode == "probability")
        parts: list[tuple[Any, float]] = []
        span = slice(rows.indptr[0], rows.indptr[-1])
        for f, value in zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True):
            edges = slice(index.indptr[f], index.indptr[f + 1])
            weight = float(shares[index.classes[edges]] @ index.weights[edges])
            if weight != 0:
                parts.append((self._feature_behind(f), value * weight))
        return parts + bias_part(0.0 if index.bias is None else float(shares @ index.bias))

    def _renumber(self, new_ids: IdArray, classes: npt.NDArray[Any]) -> Self:
        super()._renumber(new_ids, classes)
        self._take_over(self._trained)
        return self

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        """Take leaves without a class out; greedily, siblings that become one class add up."""
        tree = self.tree_.remap_classes(new_ids, n_classes)
        classes = tree.class_of_node.copy()
        columns = np.arange(2 * tree.n_nodes, dtype=np.int32)
        if self.mode == "greedy":
            leaves = np.flatnonzero(classes >= 0)
            kin = tree.parent[leaves].astype(np.int64) * n_classes + classes[leaves]
            _, first, place = np.unique(kin, return_index=True, return_inverse=True)
            columns[leaves] = leaves[first][place]
            classes[leaves[leaves != columns[leaves]]] = -1
        self.tree_ = replace(tree, class_of_node=frozen(classes, np.int32))
        dead = ~leading_nodes(tree, None)
        columns[np.concatenate((dead, dead))] = -1
        index = self.node_index_.remap_classes(columns, 2 * tree.n_nodes)
        self._trained = replace(self._trained, index=index)

    def _pruned(self, **limits: Any) -> Self:
        twin = copy.copy(self)
        twin._take_over(replace(self._trained, index=self.node_index_.prune(**limits)))
        return twin

    def _copy_to_train(self) -> Self:
        twin = super()._copy_to_train()
        twin.set_params(min_probability=self.min_probability_)
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays = prefixed("nodes/", index_arrays(self.node_index_)) | prefixed("tree/", self.tree_.to_arrays())
        return arrays | {"sigmoids": self.sigmoids_}

    def _fitted_values(self) -> dict[str, Any]:
        return super()._fitted_values() | {"min_probability": self.min_probability_}

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._restore_tree(stored)
        n_nodes = self.tree_.n_nodes
        shape = self._width_of_view(self.n_features_in_), 2 * n_nodes
        index = index_from(stored.section("nodes/"), *shape, getattr(self.node_learner, "bias", 0.0))
        sigmoids = stored.require_numbers("sigmoids", np.float64, (n_nodes, 2))
        least = number_from(stored, fitted, "min_probability")
        if not 0 <= least <= 1:
            raise stored.fault("meta", "min_probability is missing or not from 0 to 1")
        self.min_probability_, self.history_ = least, history_from(stored, fitted)
        self._take_over(Trained(index, sigmoids))

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("this learner ranks by the classifiers of its nodes and not by one index of classes")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = _or_linear(self.node_learner)
        if isinstance(learner, RankingClassifier):
            tags.classifier_tags.poor_score = get_tags(learner).classifier_tags.poor_score
        return tags


def _or_linear(learner: Any) -> Any:
    return LinearClassifier() if learner is None else learner


def _scores_by_index(learner: RankingClassifier) -> bool:
    """Whether a learner's index is all that its scores come from."""
    if not isinstance(learner, CommitteeClassifier):
        return learner._ranks_by_index()
    members = learner._learners()
    if len({type(member) for member in members}) != 1 or not isinstance(members[0], RankingClassifier):
        return False
    return learner.vote == "mean" and all(is_linear(member) for member in members)
