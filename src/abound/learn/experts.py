"""EDGE, error-driven generalist + experts: where the generalist confuses classes, experts of a few classes help.

After Huang, Madani and Giles, Error-driven generalist+experts (CIKM 2008); the reconstruction is ours. A generalist
ranks all classes. ``A[c, c']`` counts the rows of ``c`` that it puts into ``c'``, out of fold. Class ``c`` gets an
expert on ``G_c = {c} ∪ {c': A[c, c'] + A[c', c] ≥ min_confusion}``, strongest first, trained on the rows of ``G_c``
alone; none if ``G_c = {c}``. A row is ranked by ``z_c + η·e_c``: ``z`` the generalist's scores, standardised per row,
``e`` the mean score of the experts of its ``top`` best classes, standardised per row over their groups, 0 elsewhere.
The best η of 0, 0.1, ..., 1 on held-out rows is taken; 0 is the generalist alone.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import get_tags

from abound.distribute import Workers, spans, workers
from abound.index.class_index import ClassIndex
from abound.learn import _expert_kernels as kernels
from abound.learn.base import RankingClassifier
from abound.learn.checkpoint import training_workers
from abound.learn.expert_lists import ExpertLists, experts_from, join_experts
from abound.learn.expert_training import Data, confused_groups, confusions, rows_by_class, train_expert, train_fold
from abound.learn.fitted_values import history_from, number_from
from abound.learn.index_parts import folded, prefixed
from abound.learn.pa import PAClassifier
from abound.learn.row_views import add_constant
from abound.measure.places import true_ranks
from abound.measure.ranking import recall
from abound.progress import track
from abound.rank._topk_kernels import no_votes
from abound.rank.topk import Ranking, spread
from abound.store import Section
from abound.validation import (
    LARGEST,
    Float32Array,
    IdArray,
    Rows,
    check_labels,
    check_number,
    check_rows,
    check_sample_weight,
    frozen,
    make_generator,
)

WEIGHTS = tuple(tenth / 10 for tenth in range(11))
"""Candidates for η."""

EDGES_A_CALL = 10_000_000
"""Edges that one kernel call touches: a fraction of a second, so that Ctrl-C is heard."""


class Team(NamedTuple):
    """A fitted generalist and its experts."""

    generalist: RankingClassifier
    experts: ExpertLists


PASSES = 5
"""About how often training an expert reads its rows, each of which a few experts have."""


class ExpertsClassifier(RankingClassifier):
    """EDGE: a generalist, and experts for the classes that it confuses.

    Parameters
    ----------
    generalist : learner, default=None
        Ranks all classes; None is ``PAClassifier()``. It must rank by its index alone.
    expert : learner, default=None
        Trained for each class that is confused with others, on their rows alone; None is ``PAClassifier()``. It must
        rank by its index alone.
    n_folds : int, default=3
        Folds of the out-of-fold predictions that tell which classes are confused.
    top : int, default=5
        Experts of so many best classes of the generalist are asked.
    max_group : int, default=20
        Classes of an expert at most, its own included; the most confused ones are taken.
    min_confusion : int, default=2
        Rows of two classes put into the other one from which they count as confused.
    weight : float or "auto", default="auto"
        η: how much the experts count beside the generalist. "auto" chooses among 0, 0.1, ..., 1 by R1 on a held-out
        part, the smaller of equals, with generalist and experts trained on the rest; then all is trained on all rows.
    validation_fraction : float, default=0.1
        Part of the rows that "auto" holds out.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the folds and the held-out part; the learners have their own.
    n_jobs : int or None, default=None
        Threads; folds and experts are trained, and rows are ranked, in parallel. They do not change the result.
    cluster : None, "processes", "local" or "host:port", default=None
        Where folds and experts are trained: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine
        alone, or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished folds and experts: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.

    Attributes
    ----------
    generalist_ : learner
        The generalist, fitted; it cannot learn on.
    groups_ : dict
        The classes of each expert by the class it is for. With weight 0 no experts are trained.
    weight_ : float
        The weight used.
    history_ : list of dict
        ``weight`` and ``R1`` of each candidate.
    index_ : ClassIndex
        The generalist's, over the user's features. `explain` speaks for the generalist.

    Notes
    -----
    With weight 0 scores are the generalist's; otherwise they are in standard deviations of a row's scores.

    Examples
    --------
    >>> from abound import ExpertsClassifier
    >>> model = ExpertsClassifier(weight=0.5).fit([[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "both"])
    >>> model.predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "edge"
    ranks_every_class: ClassVar[bool] = True

    generalist_: RankingClassifier
    weight_: float
    history_: list[dict[str, float]]
    _experts: ExpertLists
    _template: RankingClassifier

    def __init__(
        self,
        generalist: Any = None,
        expert: Any = None,
        n_folds: int = 3,
        top: int = 5,
        max_group: int = 20,
        min_confusion: int = 2,
        weight: float | str = "auto",
        validation_fraction: float = 0.1,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        cluster: str | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.generalist = generalist
        self.expert = expert
        self.n_folds = n_folds
        self.top = top
        self.max_group = max_group
        self.min_confusion = min_confusion
        self.weight = weight
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the generalist and the experts.

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
            The fitted ensemble.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        data = Data(rows, labels, weights)
        if not weights.all():
            data = data.take(np.flatnonzero(weights))
        generator = make_generator(self.random_state)
        self._template = clone(_or_pa(self.expert))
        with training_workers(self, rows, labels, weights) as pool:
            history = self._try_weights(data, generator, pool) if self.weight == "auto" else []
            # The best one, the smaller of equals; without rows to try them on the generalist alone.
            best = max(history, key=lambda entry: (entry["R1"], -entry["weight"]), default={"weight": 0.0})
            weight = best["weight"] if self.weight == "auto" else float(self.weight)
            self.generalist_, self._experts = self._train(data, generator, weight > 0, pool)
            self.weight_, self.history_ = weight, history
            self._remember(labels)
            return self._learn_decisions(X, labels, weights)

    @property
    def groups_(self) -> dict[Any, list[Any]]:
        """The classes of each expert by the class it is for, most confused first."""
        groups = [self.classes_[self._experts.group(e)].tolist() for e in range(self._experts.n_experts)]
        return {group[0]: group for group in groups}

    @property
    def index_(self) -> ClassIndex:
        """The generalist's index, over the user's features."""
        return folded(self.generalist_.index_, self.n_features_in_)

    @property
    def n_edges_(self) -> int:
        """|W|: the edges of the generalist and all experts."""
        return self.generalist_.n_edges_ + self._experts.n_edges

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("generalist", "expert"):
            learner = _or_pa(getattr(self, name))
            if not isinstance(learner, RankingClassifier) or not learner._ranks_by_index():
                raise ValueError(f"{name}={learner!r}: it must be a learner that ranks by its index alone")
            learner._check_parameters()
        check_number("n_folds", self.n_folds, 2, whole=True)
        check_number("top", self.top, 1, whole=True)
        check_number("max_group", self.max_group, 2, whole=True)
        check_number("min_confusion", self.min_confusion, 1, whole=True)
        if self.weight != "auto":
            check_number("weight", self.weight, 0)
        check_number("validation_fraction", self.validation_fraction, 0, 0.9, above=True)

    def _try_weights(self, data: Data, generator: np.random.Generator, pool: Workers) -> list[dict[str, float]]:
        """R1 of each candidate on held-out rows; nothing if there are too few rows to hold any out."""
        n_held = int(self.validation_fraction * data.rows.n_rows)
        if n_held == 0:
            return []
        shuffled = generator.permutation(data.rows.n_rows)
        held = data.take(np.sort(shuffled[:n_held]))
        team = self._train(data.take(np.sort(shuffled[n_held:])), generator, True, pool)
        rankings = [self._rank_by(team, weight, held.rows, 1, None).ids for weight in WEIGHTS]
        recalls = [recall(true_ranks(ids, held.labels), 1) for ids in rankings]
        return [{"weight": weight, "R1": found} for weight, found in zip(WEIGHTS, recalls, strict=True)]

    def _train(self, data: Data, generator: np.random.Generator, with_experts: bool, pool: Workers) -> Team:
        """Train the generalist on all rows and on all folds but one, then the experts that its mistakes call for."""
        learner, n_rows = _or_pa(self.generalist), data.rows.n_rows
        fold_of = generator.permutation(n_rows) % self.n_folds
        n_folds = min(n_rows, self.n_folds) if with_experts and n_rows > 1 else 0
        first_choices = np.full(n_rows, -1, dtype=np.int32)

        generalist: RankingClassifier | None = None
        shared, folds = pool.share(data), pool.share(fold_of)
        with track("train generalist", 1 + n_folds) as progress:
            for found in pool.map(train_fold, range(-1, n_folds), shared, folds, pool.share(learner)):
                first_choices[found.home] = found.choices
                generalist = found.fitted or generalist
                progress.advance()
        assert generalist is not None
        groups = confused_groups(confusions(first_choices, data.labels), self.min_confusion, self.max_group)
        rows_of, template = pool.share(rows_by_class(data.labels)), pool.share(self._template)
        experts = []
        with track("train experts", len(groups)) as progress:
            cost = PASSES * len(data.rows.indices) // max(1, len(groups))
            for expert in pool.map(train_expert, groups, shared, rows_of, template, cost=cost):
                experts.append(expert)
                progress.advance()
        return Team(generalist, join_experts(experts))

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        return self._rank_by(Team(self.generalist_, self._experts), self.weight_, rows, k, allowed)

    def _rank_by(self, team: Team, weight: float, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        generalist, experts = copy.copy(team.generalist), team.experts
        generalist.n_jobs = self.n_jobs
        seen = generalist._view(rows)
        if weight == 0 or not experts.n_experts:
            return generalist._rank(seen, k, allowed)
        index, n_classes = generalist.index_, len(generalist.class_counts_)
        if index.bias is not None:
            index, seen = index.with_bias_as_feature(), add_constant(seen, 1.0)
        ids = np.full((rows.n_rows, min(k, n_classes)), -1, dtype=np.int32)
        scores = np.full(ids.shape, -np.inf, dtype=np.float32)
        expert_rows = add_constant(self._template._view(rows), 1.0)
        mask = frozen(np.empty(0) if allowed is None else allowed, np.bool_)
        n_allowed = n_classes if allowed is None else max(1, int(allowed.sum()))
        by_class = experts.by_class(n_classes)
        edges = int(np.diff(seen.indptr).sum() * (1 + index.n_edges / max(1, index.n_features)))

        def rank_span(span: tuple[int, int]) -> int:
            kernels.rank_with_experts(
                *(seen.indptr, seen.indices, seen.data, index.indptr, index.classes, index.weights),
                *(expert_rows.indptr, expert_rows.indices, expert_rows.data, experts, by_class, weight),
                *(mask, n_allowed, generalist.ranks_every_class, *span),
                *_scratch(n_classes, self.top, experts.largest_group),
                *(ids, scores),
            )
            return span[1] - span[0]

        with workers(self.n_jobs) as pool, track("rank", rows.n_rows) as progress:
            n_parts = max(4 * pool.n_workers, edges // EDGES_A_CALL + 1)
            for done in pool.map(rank_span, spans(np.arange(rows.n_rows + 1), n_parts)):
                progress.advance(done)
        silent = ids[:, 0] < 0
        ids[silent, 0] = generalist._most_frequent(allowed)
        scores[silent & (ids[:, 0] >= 0), 0] = 0
        return Ranking(ids, scores)

    def _score_all(self, rows: Rows) -> Float32Array:
        if self.weight_ == 0 or not self._experts.n_experts:
            return self.generalist_._score_and_fill(self.generalist_._view(rows))
        n_classes = len(self.class_counts_)
        return spread(self._rank(rows, n_classes, None), n_classes)

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        return self.generalist_._contributions(self.generalist_._view(rows), c)

    def _renumber(self, new_ids: IdArray, classes: npt.NDArray[Any]) -> Self:
        self.generalist_._renumber(new_ids, classes)
        return super()._renumber(new_ids, classes)

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self._experts = self._experts.remap_classes(new_ids)

    def _pruned(self, **limits: Any) -> Self:
        twin = copy.copy(self)
        twin.generalist_ = self.generalist_._pruned(**limits)
        return twin

    def _copy_to_train(self) -> Self:
        twin = super()._copy_to_train()
        twin.set_params(weight=self.weight_)
        return twin

    def _frozen_copy(self) -> Self:
        twin = super()._frozen_copy()
        twin.generalist_ = self.generalist_._frozen_copy()
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        from abound.learn.persist import part_arrays  # it knows all learners, this one too

        generalist = prefixed("generalist/", part_arrays(self.generalist_))
        return generalist | prefixed("experts/", self._experts._asdict())

    def _fitted_values(self) -> dict[str, Any]:
        from abound.learn.persist import part_meta

        return {"generalist": part_meta(self.generalist_), "weight": self.weight_, "history": self.history_}

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        from abound.learn.persist import part_from

        weight = number_from(stored, fitted, "weight")
        if not 0 <= weight <= LARGEST:
            raise stored.fault("meta", "the weight of the experts is missing or below 0")
        self.generalist_ = part_from(stored.section("generalist/"), fitted.get("generalist"), self)
        if not self.generalist_._ranks_by_index():
            raise stored.fault("meta", f"the learner {self.generalist_.learner!r} cannot be a generalist")
        self._template = clone(_or_pa(self.expert))
        width = self._template._width_of_view(self.n_features_in_) + 1
        self._experts = experts_from(stored.section("experts/"), width, len(self.class_counts_))
        self.weight_, self.history_ = weight, history_from(stored, fitted)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("this ensemble ranks by a generalist and experts and not by one index")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        generalist = _or_pa(self.generalist)
        if isinstance(generalist, RankingClassifier):
            tags.classifier_tags.poor_score = get_tags(generalist).classifier_tags.poor_score
        return tags


def _or_pa(learner: Any) -> Any:
    return PAClassifier() if learner is None else learner


def _scratch(n_classes: int, top: int, largest_group: int) -> tuple[Any, ...]:
    """What `rank_with_experts` works in, in its order."""
    return (
        no_votes(n_classes),
        np.zeros(n_classes),
        np.zeros(n_classes, dtype=np.int32),
        np.empty(n_classes, dtype=np.int32),
        np.empty(largest_group, dtype=np.float32),
        np.empty(min(top, n_classes), dtype=np.int32),
        np.empty(min(top, n_classes), dtype=np.float32),
    )
