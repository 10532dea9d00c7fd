"""Flat SVM and logistic regression: one binary problem a class, solved sixteen at a time."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from abound.distribute import Workers, count_workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.checkpoint import training_workers
from abound.learn.class_costs import check_class_weight, class_costs, weighted_rows
from abound.learn.disk_gather import refuse_elsewhere, solver_rows_on_disk
from abound.learn.fitted_values import history_from, known_numbers, number_from
from abound.learn.light_weights import Lightest
from abound.learn.linear_choice import C_GRID, check_cost, choose_cost, own_cost, typical_square
from abound.learn.linear_disk import linear_needs
from abound.learn.linear_rows import solver_rows
from abound.learn.linear_solver import LOSSES
from abound.learn.one_vs_rest import Settings, Solved, solve_one_vs_rest
from abound.learn.row_views import check_bias, own_bias
from abound.memory import check_memory, require_memory
from abound.scratch import is_mapped
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
    make_generator,
)

LIGHTEST = Lightest(hinges=0.07, logistic=0.015)

USUAL_COST = {"squared_hinge": 1.0, "hinge": 1.0, "logistic": 100.0}
"""The C of rows of unit length; chosen on held-out rows."""

TOL, LOOSE_TOL = 1e-3, 0.1
"""How far problems are solved; and with the logistic loss at its own large C, where more changes hardly any answer."""


class LinearClassifier(RankingClassifier):
    """One-vs-rest linear SVM or logistic regression for very many classes.

    Each class has the objective of LIBLINEAR, ``½‖w‖² + C Σ_i loss(y_i w·x_i)``, solved in its dual to a certified gap.
    What all classes have in common is kept once, as the index's ``offset``; of the rest, only weights of at least
    ``min_weight`` are kept, so that the model is a short index.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        SVM with squared or plain hinge loss, or logistic regression.
    C : float, "auto" or "cv", default="auto"
        What errors cost against the length of the weights. "auto" is 1, with the logistic loss 100, over the mean
        square length of the rows, which may be 1; "cv" chooses among ``C_grid`` by cross-validation.
    C_grid : sequence of float, default=(0.001, 0.003, 0.01, ..., 300, 1000)
        Candidates of "cv".
    n_folds : int, default=3
        Folds of "cv".
    bias : float or "auto", default="auto"
        Every row has one more feature of this value, whose weight is regularised like the others but never pruned;
        "auto" is the root mean square length of the rows, 1 if they have unit length. 0 is none.
    class_weight : None, "balanced" or dict, default=None
        A dictionary multiplies C for the rows of its classes; "balanced" gives the positive and negative rows of each
        class the same total weight.
    tol : float or None, default=None
        A class is solved when its duality gap is at most this part of its objective. None: 1e-3, but 0.1 for the
        logistic loss with ``C="auto"``.
    max_sweeps : int, default=1000
        Sweeps over the rows after which a block of classes is left as it is, with a warning.
    min_weight : float or None, default=None
        Weights that differ little from what all classes share are left out: by less than this part of the largest such
        difference of a typical class. None: 0.07, or 0.015 with the
        logistic loss, and less where that would change answers. 0 keeps all.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the order in which rows are taken, and of the folds.
    n_jobs : int or None, default=None
        Threads, in training and when ranking; -1 for all cores. The model does not depend on it.
    cluster : None, "processes", "local" or "host:port", default=None
        Where blocks of classes are solved: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine alone,
        or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished blocks of classes: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are too large for it stay there and are shuffled in windows, and so do solved classes.

    Attributes
    ----------
    C_ : float
        The C used.
    objective_ : float64 array of shape (n_classes,)
        Primal objective of each class, before pruning. Rows without features are left out of it.
    gap_ : float64 array of shape (n_classes,)
        Its duality gap: by how much the objective is above the optimum at most.
    history_ : list of dict
        With ``C="cv"``, ``C`` and the mean held-out ``R1`` of each candidate.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi, Sundararajan: A Dual Coordinate Descent Method for Large-scale Linear SVM, ICML 2008.
    Yu, Huang, Lin: Dual Coordinate Descent Methods for Logistic Regression and Maximum Entropy Models, 2011.

    Examples
    --------
    >>> from abound import LinearClassifier
    >>> model = LinearClassifier().fit([[1, 0], [0, 1], [1, 1]], ["a", "b", "a"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    """

    learner: ClassVar[str] = "svm"
    ranks_every_class: ClassVar[bool] = True
    objective_: Float64Array
    gap_: Float64Array
    _on_disk: bool

    def __init__(
        self,
        loss: str = "squared_hinge",
        C: float | str = "auto",
        C_grid: Any = C_GRID,
        n_folds: int = 3,
        bias: float | str = "auto",
        class_weight: Any = None,
        tol: float | None = None,
        max_sweeps: int = 1000,
        min_weight: float | None = None,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        cluster: str | None = None,
        checkpoint: Any = None,
        memory: str | int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.C_grid = C_grid
        self.n_folds = n_folds
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.min_weight = min_weight
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.checkpoint = checkpoint
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the problem of each class.

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
        self._on_disk = self._check_needs(rows, labels)
        weights = weighted_rows(self.class_weight, labels, check_sample_weight(sample_weight, rows.n_rows))
        self._remember(labels)
        self.history_: list[dict[str, float]] = []
        with training_workers(self, rows, labels, weights) as pool:
            chosen = self.C if self.C != "cv" else self._choose(rows, labels, weights, pool)
            self.C_ = own_cost(chosen, USUAL_COST[self.loss], typical_square(rows, weights))
            solved = self._solve(rows, labels, weights, [self.C_], pool)[0]
            self._index = solved.index
            self._learn_decisions(X, labels, weights)
        self.objective_, self.gap_ = solved.objective, solved.gap
        if solved.n_unfinished:
            warnings.warn(
                f"{solved.n_unfinished} blocks of classes did not reach tol={self._own_tol()} within max_sweeps="
                f"{self.max_sweeps}; gap_ tells how far they are; raise max_sweeps or tol, or lower C",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def index_(self) -> ClassIndex:
        """The weights that are kept, as differences from the offset."""
        return self._index

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("loss", self.loss, LOSSES)
        check_cost(self.C, "cv")
        for cost in self.C_grid:
            check_number("C_grid", cost, 0, above=True)
        check_number("n_folds", self.n_folds, 2, whole=True)
        check_bias(self.bias)
        check_class_weight(self.class_weight)
        check_number("tol", self.tol, 0, above=True, or_none=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)
        check_number("min_weight", self.min_weight, 0, or_none=True)
        check_memory(self.memory)

    def _solve(
        self, rows: Rows, labels: Labels, weights: Float32Array, costs: list[float], pool: Workers
    ) -> list[Solved]:
        generator = make_generator(self.random_state)
        given = rows, weights, generator, own_bias(self.bias, rows, weights)
        memory = check_memory(self.memory)
        on_disk = self._on_disk and memory is not None and is_mapped(rows.data)
        prepared = solver_rows_on_disk(*given, memory or 0) if on_disk else solver_rows(*given)
        seed = int(generator.integers(2**31))
        min_weight = LIGHTEST.of(self.min_weight, self.loss)
        unharmed = self.min_weight is None
        settings = Settings(LOSSES.index(self.loss), self._own_tol(), self.max_sweeps, min_weight, seed, unharmed)
        class_weights = class_costs(self.class_weight, labels, weights)
        return solve_one_vs_rest(prepared, labels, costs, class_weights, settings, rows.n_features, pool)

    def _own_tol(self) -> float:
        """The gap at which a class is solved."""
        if self.tol is not None:
            return self.tol
        return LOOSE_TOL if self.loss == "logistic" and self.C == "auto" else TOL

    def _check_needs(self, rows: Rows, labels: Labels) -> bool:
        """Tell whether the rows stay on disk; refuse, before anything is done, what ``memory`` does not allow."""
        memory = check_memory(self.memory)
        if memory is None:
            return False
        on_disk, needs = linear_needs(rows, labels, memory, count_workers(self.n_jobs))
        require_memory(memory, needs, "use fewer threads, or rows on disk (abound convert)")
        if on_disk:
            refuse_elsewhere(self)
        return on_disk

    def _choose(self, rows: Rows, labels: Labels, weights: Float32Array, pool: Workers) -> float:
        def solve(some: Rows, own: Labels, counts: Float32Array, costs: list[float]) -> list[ClassIndex]:
            return [solved.index for solved in self._solve(some, own, counts, costs, pool)]

        best, self.history_ = choose_cost(
            solve, rows, labels, weights, self.C_grid, self.n_folds, self.random_state, self.n_jobs
        )
        return best

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self._index = self._index.remap_classes(new_ids, n_classes)

    def _fitted_values(self) -> dict[str, Any]:
        return {"history": self.history_} | known_numbers(C=self.C_)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._index = index
        self.C_ = number_from(state, fitted, "C")
        self.history_ = history_from(state, fitted)
        self.objective_ = np.full(index.n_classes, np.nan)
        self.gap_ = np.full(index.n_classes, np.nan)
