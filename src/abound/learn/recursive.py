"""HR-SVM and HR-LR: classes of a taxonomy or graph are learned together, each pulled towards its neighbours."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy.typing as npt

from abound.distribute import Workers, count_workers, workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.checkpoint import training_workers
from abound.learn.class_costs import check_class_weight, class_costs, weighted_rows
from abound.learn.class_tree import check_taxonomy, class_tree, nodes_of
from abound.learn.disk_gather import refuse_elsewhere, solver_rows_on_disk
from abound.learn.fitted_values import history_from, known_numbers, number_from
from abound.learn.index_parts import prefixed
from abound.learn.light_weights import Lightest
from abound.learn.linear_choice import C_GRID, check_cost, choose_cost, own_cost, typical_square
from abound.learn.linear_rows import solver_rows
from abound.learn.linear_solver import LOSSES
from abound.learn.one_vs_rest import Settings, positives_of
from abound.learn.recursive_graph import ClassGraph, RecursiveGraph, class_graph
from abound.learn.recursive_needs import graph_needs, tree_needs
from abound.learn.recursive_shape import ShortTree, short_tree
from abound.learn.recursive_tree import RecursiveTree
from abound.learn.row_views import check_bias, own_bias
from abound.memory import check_memory, require_memory
from abound.read.taxonomy import Taxonomy
from abound.scratch import is_mapped
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
    make_generator,
)

USUAL_COST = {"squared_hinge": 1.0, "hinge": 1.0, "logistic": 100.0}
"""The C of rows of unit length; chosen on held-out rows."""

LIGHTEST = Lightest(hinges=0.025, logistic=0.015)

ROUND_TOL = {"squared_hinge": 0.02, "hinge": 0.02, "logistic": 0.02}
"""Least part of the objective that is worth another round, chosen by errors on held-out rows."""


class RecursiveClassifier(RankingClassifier):
    """Recursive regularization: one linear model a class, pulled towards its parent or its neighbours.

    On a tree, ``Σ_n ½‖w_n − w_π(n)‖² + C Σ_leaf Σ_i loss``, all nodes together, the root's parent being 0; rows of an
    inner node are those of a leaf spawned under it. On a DAG or graph, ``Σ_edges ½‖w_i − w_j‖² + C Σ_n Σ_i loss``.

    Parameters
    ----------
    taxonomy : Taxonomy, path or None, default=None
        A tree, a DAG or a graph, or its file; None puts all classes under one root.
    loss : {"squared_hinge", "hinge", "logistic"}, default="squared_hinge"
        HR-SVM with hinge or squared hinge loss, or HR-LR.
    C : float, "auto" or "cv", default="auto"
        What errors cost against the springs. "auto" and "cv" as for `LinearClassifier`.
    C_grid : sequence of float, default=(0.001, 0.003, 0.01, ..., 300, 1000)
        Candidates of "cv".
    n_folds : int, default=3
        Folds of "cv".
    root : {"free", "zero"}, default="free"
        Whether a tree's root has weights of its own, pulled towards 0, or is 0: then a tree of depth one is the flat
        problem of `LinearClassifier`.
    bias : float or "auto", default="auto"
        See `LinearClassifier`.
    class_weight : None, "balanced" or dict, default=None
        See `LinearClassifier`.
    tol : float, default=1e-2
        Duality gap to which the classes are solved in each round, as a part of their objective.
    round_tol : float or None, default=None
        Stop when a round lowers the objective by less than this part of it. None: 0.02, or 0.03 with the logistic loss.
        Further rounds gain little each: for the optimum itself set it to 0.001 and ``tol`` to 0.001, say.
    max_rounds : int, default=50
        Rounds after which to stop in any case.
    max_sweeps : int, default=1000
        Sweeps over the rows after which a block of classes is left as it is.
    min_weight : float or None, default=None
        Weights that differ little from what all classes share are left out: by less than this part of the largest such
        difference of a typical class. None: 0.025, or 0.015 with the
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
        Where classes are solved: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine alone,
        or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished classes of each round: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        On a tree, support vectors and solved classes that could be too large for it go to temporary files, with the
        same model; rows on disk that are too large for it stay there and are shuffled in windows.

    Attributes
    ----------
    C_ : float
        The C used.
    history_ : list of dict
        ``round``, ``objective`` and ``seconds`` of each round. The objective never rises.
    choice_ : list of dict
        With ``C="cv"``, ``C`` and the mean held-out ``R1`` of each candidate.

    References
    ----------
    Gopal, Yang: Recursive Regularization for Large-scale Classification with Hierarchical and Graphical Dependencies,
    KDD 2013.

    Examples
    --------
    >>> from abound import RecursiveClassifier, Taxonomy
    >>> taxonomy = Taxonomy.from_edges([("drinks", "hot"), ("hot", "tea"), ("hot", "coffee"), ("drinks", "milk")])
    >>> X, y = [[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "milk"]
    >>> RecursiveClassifier(taxonomy).fit(X, y).predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "hr-svm"
    ranks_every_class: ClassVar[bool] = True
    _rows_on_disk: bool
    _spills: bool

    def __init__(
        self,
        taxonomy: Any = None,
        loss: str = "squared_hinge",
        C: float | str = "auto",
        C_grid: Any = C_GRID,
        n_folds: int = 3,
        root: str = "free",
        bias: float | str = "auto",
        class_weight: Any = None,
        tol: float = 1e-2,
        round_tol: float | None = None,
        max_rounds: int = 50,
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
        self.taxonomy = taxonomy
        self.loss = loss
        self.C = C
        self.C_grid = C_grid
        self.n_folds = n_folds
        self.root = root
        self.bias = bias
        self.class_weight = class_weight
        self.tol = tol
        self.round_tol = round_tol
        self.max_rounds = max_rounds
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
        """Solve all classes together, in rounds.

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
        taxonomy = self._read_taxonomy()
        self._rows_on_disk, self._spills = self._check_needs(rows, labels, taxonomy)
        weights = weighted_rows(self.class_weight, labels, check_sample_weight(sample_weight, rows.n_rows))
        self._remember(labels)
        self._taxonomy = taxonomy
        self.choice_: list[dict[str, float]] = []
        with training_workers(self, rows, labels, weights) as pool:
            chosen = self.C if self.C != "cv" else self._choose(rows, labels, weights, pool)
            self.C_ = own_cost(chosen, USUAL_COST[self.loss], typical_square(rows, weights))
            self._index, self.history_ = self._solve(rows, labels, weights, self.C_, pool)
            return self._learn_decisions(X, labels, weights)

    @property
    def index_(self) -> ClassIndex:
        """The weights of the classes that are kept, as differences from the offset."""
        return self._index

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_taxonomy(self.taxonomy)
        check_choice("loss", self.loss, LOSSES)
        check_cost(self.C, "cv")
        for cost in self.C_grid:
            check_number("C_grid", cost, 0, above=True)
        check_number("n_folds", self.n_folds, 2, whole=True)
        check_choice("root", self.root, ("free", "zero"))
        check_bias(self.bias)
        check_class_weight(self.class_weight)
        check_number("tol", self.tol, 0, above=True)
        check_number("round_tol", self.round_tol, 0, or_none=True)
        check_number("max_rounds", self.max_rounds, 1, whole=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)
        check_number("min_weight", self.min_weight, 0, or_none=True)
        check_memory(self.memory)

    def _read_taxonomy(self) -> Taxonomy | None:
        given = self.taxonomy
        return given if given is None or isinstance(given, Taxonomy) else Taxonomy.from_file(given)

    def _own_taxonomy(self) -> Taxonomy | None:
        return self._taxonomy

    def _check_needs(self, rows: Rows, labels: Labels, taxonomy: Taxonomy | None) -> tuple[bool, bool]:
        """Tell what goes to files; refuse, before anything is done, what ``memory`` does not allow."""
        memory = check_memory(self.memory)
        if memory is None:
            return False, False
        shape, n_workers = self._shape(taxonomy, labels), count_workers(self.n_jobs)
        given, width = (len(labels.ids), memory, n_workers), rows.n_features + int(self.bias != 0)
        if isinstance(shape, ShortTree):
            needs = tree_needs(rows, shape, *given, self.max_rounds, width)
            advice = "use fewer threads or features, a smaller max_rounds, or rows on disk (abound convert)"
        else:
            needs = graph_needs(rows, shape, *given, width)
            advice = "use a tree, fewer features, or LinearClassifier: on a graph every node keeps all its weights"
        require_memory(memory, needs.parts, advice)
        if needs.rows_on_disk:
            refuse_elsewhere(self)
        return needs.rows_on_disk, needs.spills

    def _shape(self, taxonomy: Taxonomy | None, labels: Labels) -> ShortTree | ClassGraph:
        if taxonomy is None or taxonomy.is_tree:
            return short_tree(class_tree(taxonomy, labels.classes), root_is_zero=self.root == "zero")
        return class_graph(taxonomy, nodes_of(taxonomy, labels.classes))

    def _solve(
        self, rows: Rows, labels: Labels, weights: Float32Array, cost: float, pool: Workers
    ) -> tuple[ClassIndex, list[dict[str, float]]]:
        generator = make_generator(self.random_state)
        some = rows, weights, generator, own_bias(self.bias, rows, weights)
        memory = check_memory(self.memory)
        on_disk = self._rows_on_disk and memory is not None and is_mapped(rows.data)
        prepared = solver_rows_on_disk(*some, memory or 0) if on_disk else solver_rows(*some)
        seed = int(generator.integers(2**31))
        min_weight = LIGHTEST.of(self.min_weight, self.loss)
        unharmed = self.min_weight is None
        settings = Settings(LOSSES.index(self.loss), self.tol, self.max_sweeps, min_weight, seed, unharmed)
        given = (
            prepared,
            positives_of(labels, prepared),
            cost,
            class_costs(self.class_weight, labels, weights),
            settings,
        )
        shape = self._shape(self._taxonomy, labels)
        state: RecursiveTree | RecursiveGraph
        if isinstance(shape, ShortTree):
            state = RecursiveTree(shape, *given, self._spills)
        else:
            state = RecursiveGraph(shape, *given)
        with workers(self.n_jobs) as threads:
            limits = self.max_rounds, ROUND_TOL[self.loss] if self.round_tol is None else self.round_tol
            if isinstance(state, RecursiveTree):
                history = list(state.rounds(*limits, pool, threads))
            else:
                history = list(state.rounds(*limits, pool))
            return state.index(rows.n_features, threads), history

    def _choose(self, rows: Rows, labels: Labels, weights: Float32Array, pool: Workers) -> float:
        def solve(some: Rows, own: Labels, counts: Float32Array, costs: list[float]) -> list[ClassIndex]:
            return [self._solve(some, own, counts, cost, pool)[0] for cost in costs]

        best, self.choice_ = choose_cost(
            solve, rows, labels, weights, self.C_grid, self.n_folds, self.random_state, self.n_jobs
        )
        return best

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self._index = self._index.remap_classes(new_ids, n_classes)

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays = super()._model_arrays()
        return arrays if self._taxonomy is None else arrays | prefixed("taxonomy/", self._taxonomy.to_arrays())

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        part = stored.section("taxonomy/")
        self._taxonomy = None
        if len(part):
            try:
                self._taxonomy = Taxonomy.from_arrays(dict(part))
            except (ValueError, TypeError) as error:
                raise stored.fault("taxonomy", str(error)) from None
        if self.taxonomy is None:
            self.taxonomy = self._taxonomy
        super()._restore_model(stored, n_edges, fitted)

    def _fitted_values(self) -> dict[str, Any]:
        return {"history": self.history_, "choice": self.choice_} | known_numbers(C=self.C_)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._index = index
        choice = fitted.get("choice")
        self.C_ = number_from(state, fitted, "C")
        self.history_ = history_from(state, fitted)
        self.choice_ = choice if isinstance(choice, list) else []
