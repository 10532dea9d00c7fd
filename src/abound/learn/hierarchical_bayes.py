"""HBLR: hierarchical Bayesian logistic regression, a node's weights drawn around its parent's.

Model and updates are in `variational`. A sweep costs classes × rows × features² with full covariances, else non-zeros ×
classes; the means take a few dozen products of rows and weights.
Gopal, Yang, Bai, Niculescu-Mizil: Bayesian Models for Large-scale Hierarchical Classification, NIPS 2012.
"""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from abound.distribute import workers
from abound.index.class_index import ClassIndex
from abound.learn.fitted_values import known_numbers, number_from
from abound.learn.row_views import take_rows
from abound.learn.tree_learner import Examples, TreeLearner, check_table, gather_examples
from abound.learn.variational import Posterior
from abound.measure.places import true_ranks
from abound.measure.ranking import recall
from abound.progress import track
from abound.rank.topk import rank_topk
from abound.store import Section
from abound.validation import check_choice, check_number, make_generator

PRIORS = (1000.0, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001)
"""Candidates of ``prior="auto"``; the first of equals is taken."""

FULL_NUMBERS = 2**24
"""Numbers in all covariances up to which ``covariance="auto"`` keeps them full."""


class HierarchicalBayesClassifier(TreeLearner):
    """HBLR: multinomial logistic regression whose classes share what they have in common along a tree.

    The weights of a node are drawn around those of its parent, with a precision for each feature that is learned, too:
    where the children of a node differ little in a feature, they hold together. No regularisation has to be chosen but
    the prior of the precisions.

    Parameters
    ----------
    taxonomy : Taxonomy, path or None, default=None
        The tree of the classes, or a file with ``parent child`` a line; None puts all classes under one root.
    prior : float or "auto", default=100.0
        a = b of the precisions' prior Γ(a, b), of mean 1 and variance 1/b: a large one keeps them near 1, a small one
        lets the data say. "auto" takes the one of 0.001, 0.01, ..., 1000 with the best R1 on held-out rows.
    covariance : {"auto", "full", "diagonal"}, default="auto"
        Whether the posterior of a class's weights has a covariance of all features or of each alone. "auto" is full up
        to 2²⁴ numbers, classes × features².
    tol : float, default=1e-4
        Stop when a sweep changes the bound by no more than this part.
    max_sweeps : int, default=200
        Sweeps after which the weights are taken as they are, with a warning.
    bias : float or "auto", default="auto"
        See `LinearClassifier`.
    validation_fraction : float, default=0.2
        Part of the rows held out to choose the prior; the model is then learned from all rows.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the rows that are held out.
    n_jobs : int or None, default=None
        Threads; classes are taken in parallel. They do not change the result.

    Attributes
    ----------
    index_ : ClassIndex
        The mean weights of the classes, which rank.
    prior_ : float
        The prior used.
    tree_ : ClassTree
        The taxonomy, resolved against the classes.
    history_ : list of dict
        The bound after each sweep.
    choice_ : list of dict
        With ``prior="auto"``, R1 on the held-out rows for each candidate.

    Notes
    -----
    The prior knows no scale: it expects weights of the order of 1, so features should be of the order of 1, too.
    Columns divided by twice their standard deviation suit it well. A row with several labels counts once for each. The
    learner is meant for small data: it holds examples × classes and nodes × features.

    Examples
    --------
    >>> from abound import HierarchicalBayesClassifier, Taxonomy
    >>> taxonomy = Taxonomy.from_edges([("drinks", "hot"), ("hot", "tea"), ("hot", "coffee"), ("drinks", "milk")])
    >>> X, y = [[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "milk"]
    >>> HierarchicalBayesClassifier(taxonomy).fit(X, y).predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "hblr"

    prior_: float
    choice_: list[dict[str, float]]

    def __init__(
        self,
        taxonomy: Any = None,
        prior: float | str = 100.0,
        covariance: str = "auto",
        tol: float = 1e-4,
        max_sweeps: int = 200,
        bias: float | str = "auto",
        validation_fraction: float = 0.2,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.prior = prior
        self.covariance = covariance
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.bias = bias
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the posterior of all weights.

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
        self.choice_ = self._try_priors(examples) if self.prior == "auto" else []
        best = max(self.choice_, key=lambda entry: entry["R1"], default={"prior": PRIORS[0]})
        self.prior_ = best["prior"] if self.prior == "auto" else float(self.prior)
        index, self.history_ = self._train(examples, self.prior_)
        self._index = index.with_constant(self._constant)
        if len(self.history_) == self.max_sweeps and self._still_rises(self.history_):
            warnings.warn(
                f"the bound still rises by more than tol={self.tol:g} a sweep after {self.max_sweeps} sweeps: raise "
                "max_sweeps or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._learn_decisions(X, examples.labels, examples.weights)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.prior != "auto":
            check_number("prior", self.prior, 0, above=True)
        check_choice("covariance", self.covariance, ("auto", "full", "diagonal"))
        check_number("tol", self.tol, 0, above=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)
        check_number("validation_fraction", self.validation_fraction, 0, 0.9, above=True)

    def _train(self, examples: Examples, prior: float) -> tuple[ClassIndex, list[dict[str, float]]]:
        """The mean weights of the classes, and the bound sweep by sweep."""
        posterior = self._posterior(examples, prior)
        history: list[dict[str, float]] = []
        start = perf_counter()
        with workers(self.n_jobs) as pool, track("sweep", self.max_sweeps) as progress:
            for sweep in range(1, self.max_sweeps + 1):
                posterior.update_leaves(pool)
                posterior.update_inner()
                posterior.update_means()
                posterior.update_precisions()
                history.append({"sweep": sweep, "bound": posterior.bound(), "seconds": perf_counter() - start})
                progress.advance()
                if not self._still_rises(history):
                    break
        return ClassIndex.from_matrix(posterior.means[self.tree_.leaf_of_class].T), history

    def _still_rises(self, history: list[dict[str, float]]) -> bool:
        bounds = [entry["bound"] for entry in history[-2:]]
        return len(bounds) < 2 or bounds[1] - bounds[0] > self.tol * abs(bounds[1])

    def _posterior(self, examples: Examples, prior: float) -> Posterior:
        rows = take_rows(examples.rows, examples.row)
        n_features, n_classes = rows.n_features, self.tree_.n_classes
        check_table("the scores, examples × classes,", rows.n_rows, n_classes)
        check_table("the weights, nodes × features, of which several are needed,", 8 * self.tree_.n_nodes, n_features)
        full = self.covariance == "full"
        if self.covariance == "auto":
            full = n_classes * n_features**2 <= FULL_NUMBERS
        if full:
            check_table("the covariances, classes × features²,", n_classes * n_features, n_features)
            check_table("the rows, written out,", rows.n_rows, n_features)
        X = sp.csr_array((rows.data.astype(np.float64), rows.indices, rows.indptr), shape=(rows.n_rows, n_features))
        return Posterior(self.tree_, X.toarray() if full else X, examples.own, examples.counts, prior, full)

    def _try_priors(self, examples: Examples) -> list[dict[str, float]]:
        """R1 of each candidate on held-out rows; nothing if there are too few rows to hold any out."""
        counted = np.unique(examples.row)
        n_held = int(self.validation_fraction * len(counted))
        if n_held == 0:
            return []
        shuffled = make_generator(self.random_state).permutation(counted)
        held, kept = np.sort(shuffled[:n_held]), np.sort(shuffled[n_held:])
        rows, labels, weights = examples.rows, examples.labels, examples.weights
        part = gather_examples(take_rows(rows, kept), labels.take(kept), weights[kept])
        held_rows, truth = take_rows(rows, held), labels.take(held)
        choice = []
        with track("choose the prior", len(PRIORS)) as progress:
            for prior in PRIORS:
                ranking = rank_topk(self._train(part, prior)[0], held_rows, 1, every_class=True, n_jobs=self.n_jobs)
                choice.append({"prior": prior, "R1": recall(true_ranks(ranking.ids, truth), 1)})
                progress.advance()
        return choice

    def _copy_to_train(self) -> Self:
        twin = super()._copy_to_train()
        twin.prior = self.prior_
        return twin

    def _fitted_values(self) -> dict[str, Any]:
        return super()._fitted_values() | {"choice": self.choice_} | known_numbers(prior=self.prior_)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        super()._restore(index, state, n_edges, fitted)
        choice = fitted.get("choice")
        self.prior_ = number_from(state, fitted, "prior")
        self.choice_ = choice if isinstance(choice, list) else []
