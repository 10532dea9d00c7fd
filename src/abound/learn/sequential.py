"""SaDyC, sequential dynamic classification: each row chooses, step by step, which classifiers to ask.

Puget, Baskiotis, Gallinari: Sequential Dynamic Classification for Large Scale Multiclass Problems (Extreme
Classification workshop, 2015). A pool of classifiers, each of which tells two groups of classes apart, votes for and
against classes. ``q[v, i]`` is the expected vote of classifier v for class i when class i is right. A class with T
votes of mean μ, where Q was to be expected, fits with ``b = exp(−2 T max(0, Q − μ)²)`` (Hoeffding); at ``b_min`` it is
discarded. In each step an oracle picks the classifier that is expected to leave the smallest sum of b over the classes
left. The classes are ranked by μ.

Slips of the print that are repaired here: T stands in the bound where the print has the number of steps; votes against
a class count 0; any classifier that knows a class left may be picked, as a random pool soon has none that knows them
alone.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from abound.distribute import workers
from abound.index.class_index import ClassIndex
from abound.learn._sequential_kernels import LEVELS
from abound.learn.base import RankingClassifier, TopK
from abound.learn.checkpoint import training_workers
from abound.learn.dichotomizers import Dichotomizers, dichotomizers_from, train_dichotomizers
from abound.learn.index_parts import prefixed
from abound.learn.linear_rows import solver_rows
from abound.learn.one_vs_rest import Settings
from abound.learn.output_code import put_first, warn_unfinished
from abound.learn.row_views import check_bias, own_bias
from abound.learn.sequential_pool import DESIGNS, draw_pool, pool_size
from abound.learn.sequential_run import Budget, Levels, Run, Runs, Steps, Trajectory
from abound.learn.sequential_votes import VoteCounter, as_votes, expected_levels, measure_loss, slope_of
from abound.progress import track
from abound.rank.topk import Ranking, score_all, spread
from abound.store import Section
from abound.validation import (
    Float32Array,
    Float64Array,
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

ROWS_A_PART = 16
"""Rows that a worker takes at once."""


class SequentialClassifier(RankingClassifier):
    """SaDyC: classifiers chosen for each row, step by step, until the budget is spent.

    Parameters
    ----------
    n_classifiers : int or None, default=None
        Size of the pool. None is three a class, at least 300 and at most 10,000.
    b_min : float, default=0.01
        A class that fits this badly is discarded.
    vote : {"soft", "hard"}, default="soft"
        Soft votes are a sigmoid of the classifier's output; hard ones are 0 or 1, as in the paper.
    pool : {"neighbours", "uniform"}, default="neighbours"
        Half of the classifiers split groups of neighbouring classes, or all split random ones, as in the paper.
    smoothing : float, default=5.0
        Expected votes are shrunk towards the classifier's mean, which counts as so many rows of each class; 0 is the
        paper's.
    n_candidates : int or None, default=None
        How many classifiers the oracle looks at in a step, the next ones of the pool; None for all.
    budget : int or None, default=None
        Steps for a row, unless `predict_topk` is given others. None is a fifth of the number of classes, at least 100.
    C : float, default=1.0
        What errors of the classifiers cost against the length of their weights.
    bias : float or "auto", default="auto"
        See `LinearClassifier`.
    tol : float, default=0.02
        A classifier is solved when its duality gap is at most this part of its objective.
    max_sweeps : int, default=1000
        Sweeps over the rows after which classifiers are left as they are, with a warning.
    min_weight : float, default=0.01
        Lighter weights of classifiers are left out. 0 keeps all.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the pool and of the order in which rows are taken.
    n_jobs : int or None, default=None
        Threads, in training and when ranking; -1 for all cores. The model does not depend on it.
    cluster : None, "processes", "local" or "host:port", default=None
        Where classifiers are trained: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine alone,
        or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished classifiers: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.

    Attributes
    ----------
    dichotomizers_ : Dichotomizers
        The pool.
    expected_votes_ : float64 array of shape (n_classes, n_classifiers)
        q, in steps of 1/64; 0 where a classifier does not know a class.
    index_ : ClassIndex
        The mean output of all classifiers, turned towards each class, made when it is asked for; `explain` speaks of
        it.

    Notes
    -----
    The form of the paper is ``SequentialClassifier(vote="hard", pool="uniform", smoothing=0)``. Scores are minus what
    the mean vote of a class lacks to 1, at most 0, and less 1 if the class was discarded. With several labels a row, a
    row with labels on both sides of a classifier is left out of that classifier's training.

    Examples
    --------
    >>> from abound import SequentialClassifier
    >>> X, y = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["tea", "milk", "rum"]
    >>> model = SequentialClassifier(n_classifiers=20).fit(X, y)
    >>> model.predict([[0, 1, 0]]).tolist()
    ['milk']
    >>> model.predict_topk([[0, 1, 0]], k=1, budget=3).labels.tolist()
    [['milk']]
    """

    learner: ClassVar[str] = "sadyc"
    ranks_every_class: ClassVar[bool] = True

    dichotomizers_: Dichotomizers
    _levels: Levels
    _runs: Runs

    def __init__(
        self,
        n_classifiers: int | None = None,
        b_min: float = 0.01,
        vote: str = "soft",
        pool: str = "neighbours",
        smoothing: float = 5.0,
        n_candidates: int | None = None,
        budget: int | None = None,
        C: float = 1.0,
        bias: float | str = "auto",
        tol: float = 0.02,
        max_sweeps: int = 1000,
        min_weight: float = 0.01,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        cluster: str | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_classifiers = n_classifiers
        self.b_min = b_min
        self.vote = vote
        self.pool = pool
        self.smoothing = smoothing
        self.n_candidates = n_candidates
        self.budget = budget
        self.C = C
        self.bias = bias
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.min_weight = min_weight
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the pool, train its classifiers, and learn how far their votes can be trusted.

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
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self._remember(labels)
        generator = make_generator(self.random_state)
        n_classifiers = self.n_classifiers or pool_size(labels.n_classes)
        codes = draw_pool(rows, labels, weights, n_classifiers, self.pool, generator)
        prepared = solver_rows(rows, weights, generator, own_bias(self.bias, rows, weights))
        settings = Settings(0, self.tol, self.max_sweeps, self.min_weight, int(generator.integers(2**31)))
        loss = measure_loss(prepared, labels, codes, self.C, settings)
        counter = VoteCounter(prepared, labels, codes, loss, slope_of(self.vote))
        with training_workers(self, rows, labels, weights) as workforce:
            self.dichotomizers_, counted, n_unfinished = train_dichotomizers(
                prepared, labels, codes, self.C, settings, rows.n_features, workforce, counter
            )
            self._levels = frozen(expected_levels(counted, self.smoothing, len(codes)), np.uint8)
            self._runs = Runs(self.dichotomizers_.codes, self._levels)
            warn_unfinished(n_unfinished, self.tol, self.max_sweeps)
            return self._learn_decisions(X, labels, weights)

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        probabilities: bool = False,
        budget: int | None = None,
        max_ms: float | None = None,
    ) -> TopK:
        """Rank the classes of each row within a budget and return the best k.

        Any budget gives an answer. A larger one goes on from where a smaller one would have ended.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        k : int
            Number of classes wanted.
        include : iterable of labels, optional
            Rank these classes only; the budget is spent on them.
        exclude : iterable of labels, optional
            Leave these classes out.
        probabilities : bool
            Return probabilities in place of scores; the learner must have been fitted with ``calibrate``.
        budget : int, optional
            Classifiers that a row may ask; see the parameter ``budget``.
        max_ms : float, optional
            Milliseconds that a row may take. How many steps that is depends on the machine. A model's first call takes
            longer, as it lays out the pool.

        Returns
        -------
        labels : array of shape (n, min(k, n_classes))
            Best first. Where fewer classes rank, the array is of type object and holds None.
        scores : float32 array of the same shape
            Their scores, -inf beside None. Probabilities are 0 beside None.
        """
        begin = time.perf_counter()
        check_number("k", k, 1, whole=True)
        rows, allowed, limits = self._rows(X), self._allowed(include, exclude), self._limits(budget, max_ms)
        ranking = self._rank_within(rows, max(2, k) if probabilities else k, allowed, limits, begin)
        scores = self._probabilities(ranking).astype(np.float32) if probabilities else ranking.scores
        return TopK(self._labels_of(ranking.ids[:, :k]), scores[:, :k])

    def trajectory(self, x: Any, budget: int | None = None) -> Trajectory:
        """Tell what happens to a row, step by step.

        Parameters
        ----------
        x : array or sparse matrix of one row
            The row.
        budget : int, optional
            Steps; see the parameter ``budget``.

        Returns
        -------
        Trajectory
            One entry a step; fewer steps than the budget if one class was left or no classifier was of use.
        """
        rows = self._rows(x)
        if rows.n_rows != 1:
            raise ValueError(f"trajectory takes one row, got {rows.n_rows}")
        votes, limit = self._votes(rows, 0, 1)[0], self._limits(budget, None).steps
        run = self._runs.borrow(None, self.b_min, self.n_candidates)
        best, more = list[int](), True
        run.begin()
        while more and run.n_steps < limit:
            more = run.advance(votes, 1)
            if run.n_steps > len(best):
                best.append(int(self._best(run, 1)[0][0]))
        steps = Steps(*(each.copy() for each in run.steps.first(run.n_steps)))
        self._runs.give_back(run)
        density = (self.dichotomizers_.codes[:, steps.chosen] != 0).mean(axis=0)
        return Trajectory(*(steps.chosen, density, steps.asked, steps.left, self._labels_of(np.array(best, np.int32))))

    @property
    def expected_votes_(self) -> Float64Array:
        """q: the expected vote for a class of its own rows, 0 where a classifier does not know the class."""
        return np.where(self.dichotomizers_.codes != 0, self._levels / LEVELS, 0)

    @property
    def index_(self) -> ClassIndex:
        """The mean output of all classifiers, turned towards each class."""
        return self.dichotomizers_.linear_index(len(self.class_counts_))

    @property
    def n_edges_(self) -> int:
        """|W|: the weights of the classifiers."""
        return self.dichotomizers_.index.n_edges

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_classifiers", self.n_classifiers, 1, whole=True, or_none=True)
        check_number("b_min", self.b_min, 0, 1)
        check_choice("vote", self.vote, ("soft", "hard"))
        check_choice("pool", self.pool, DESIGNS)
        check_number("smoothing", self.smoothing, 0)
        check_number("n_candidates", self.n_candidates, 1, whole=True, or_none=True)
        check_number("budget", self.budget, 1, whole=True, or_none=True)
        check_number("C", self.C, 0, above=True)
        check_bias(self.bias)
        check_number("tol", self.tol, 0, above=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)
        check_number("min_weight", self.min_weight, 0)

    def _limits(self, budget: int | None, max_ms: float | None) -> Budget:
        n_classifiers, n_classes = self.dichotomizers_.n_classifiers, len(self.class_counts_)
        return Budget.of(budget, max_ms, n_classifiers, self.budget, n_classes)

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        return self._rank_within(rows, k, allowed, self._limits(None, None), 0.0)

    def _rank_within(
        self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None, limits: Budget, begin: float
    ) -> Ranking:
        """Rank the rows; ``begin`` is when the time of the first row began."""
        n_classes = len(self.class_counts_)
        ids = np.full((rows.n_rows, min(k, n_classes)), -1, dtype=np.int32)
        scores = np.full(ids.shape, -np.inf, dtype=np.float32)
        runs, class_of = self._runs, self.dichotomizers_.class_of
        words = None if allowed is None else np.flatnonzero(allowed[class_of])

        def rank_part(first: int) -> int:
            run = runs.borrow(words, self.b_min, self.n_candidates)
            if limits.seconds is not None:
                run.learn_pace()
            last = min(first + ROWS_A_PART, rows.n_rows)
            votes = self._votes(rows, first, last) if limits.seconds is None else None
            for i in range(first, last):
                start = begin if i == 0 else time.perf_counter()
                run.run(self._votes(rows, i, i + 1)[0] if votes is None else votes[i - first], limits, start)
                ids[i], scores[i] = self._best(run, ids.shape[1])
            runs.give_back(run)
            return last - first

        with workers(self.n_jobs) as threads, track("rank", rows.n_rows) as progress:
            for done in threads.map(rank_part, range(0, rows.n_rows, ROWS_A_PART)):
                progress.advance(done)
        frequent = self._most_frequent(allowed)
        if frequent >= 0:
            put_first(ids, scores, frequent, self.dichotomizers_.silent(rows))
        return Ranking(ids, scores)

    def _votes(self, rows: Rows, begin: int, end: int) -> Float64Array:
        return as_votes(score_all(self.dichotomizers_.index, rows.part(begin, end)), slope_of(self.vote))

    def _best(self, run: Run, k: int) -> tuple[IdArray, Float32Array]:
        """The best classes of the row that was run."""
        class_of, room = self.dichotomizers_.class_of, np.empty(len(self.class_counts_), dtype=np.int32)
        ids, scores = np.full(k, -1, dtype=np.int32), np.full(k, -np.inf, dtype=np.float32)
        run.rank(class_of, self.class_counts_[class_of], room, ids, scores)
        return ids, scores

    def _score_all(self, rows: Rows) -> Float32Array:
        n_classes = len(self.class_counts_)
        return spread(self._rank(rows, n_classes, None), n_classes)

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        return self.dichotomizers_.contributions(rows, c, len(self.class_counts_))

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self._levels = frozen(self._levels[self.dichotomizers_.kept_words(new_ids)], np.uint8)
        self.dichotomizers_ = self.dichotomizers_.remap_classes(new_ids)
        self._runs = Runs(self.dichotomizers_.codes, self._levels)

    def _pruned(self, **limits: Any) -> Self:
        twin = copy.copy(self)
        twin.dichotomizers_ = self.dichotomizers_.prune(**limits)
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return prefixed("dichotomizers/", {**self.dichotomizers_.to_arrays(), "levels": self._levels})

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        arrays = stored.section("dichotomizers/")
        self.dichotomizers_ = dichotomizers_from(arrays, self.n_features_in_, len(self.class_counts_))
        self._levels = arrays.require("levels", np.uint8, self.dichotomizers_.codes.shape)
        if self._levels.max(initial=0) > LEVELS:
            raise arrays.fault("levels", f"an expected vote above 1, that is above {LEVELS}")
        self._runs = Runs(self.dichotomizers_.codes, self._levels)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("SaDyC ranks by classifiers and words and not by one index")
