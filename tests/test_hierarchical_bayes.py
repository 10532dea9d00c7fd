"""HBLR: every update raises the bound, and the fixed point is that of the closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

import abound
from abound import HierarchicalBayesClassifier
from abound.distribute import workers
from abound.learn import _softmax_kernels as kernels
from abound.learn.class_tree import class_tree
from abound.learn.hierarchical_bayes import PRIORS
from abound.learn.variational import Posterior
from naive_trees import NaiveBayes, lambda_of
from tree_data import CLASSES, NESTED, nested_rows, small_problems

X, Y = nested_rows(0)
TREE = class_tree(NESTED, CLASSES)
OWN = np.array([CLASSES.index(label) for label in Y], dtype=np.int32)


def posterior_of(n: int, width: int, prior: float = 1.0, full: bool = True) -> Posterior:
    rows = X[:n, :width].astype(np.float64)
    return Posterior(TREE, rows if full else sp.csr_array(rows), OWN[:n], np.ones(n), prior, full)


def sweep(posterior: Posterior) -> None:
    with workers(None) as pool:
        posterior.update_leaves(pool)
    posterior.update_inner()
    posterior.update_means()
    posterior.update_precisions()


def bound_at(beta: float, scores: Any, variances: Any, own: int) -> float:
    """Bouchard's bound as it is written, at the best ξ."""
    total = beta - scores[own]
    for s, v in zip(scores, variances, strict=True):
        xi = np.sqrt(v + (s - beta) ** 2)
        total += (s - beta - xi) / 2 + lambda_of(xi) * (v + (s - beta) ** 2 - xi**2) + np.log1p(np.exp(xi))
    return float(total)


numbers = st.floats(-6, 6).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(numbers, st.sampled_from([0.0, 0.01, 1.0, 9.0])), min_size=1, max_size=6), numbers)
def test_the_bound_of_the_softmax(drawn: Any, start: float) -> None:
    scores, variances = (np.array(each, dtype=np.float64)[None] for each in zip(*drawn, strict=True))
    betas, slopes, bends = np.array([start]), np.empty_like(scores), np.empty_like(scores)
    own, counts = np.zeros(1, np.int32), np.array([2.0])
    value = kernels.bound_rows(0, 1, scores, variances, own, counts, betas, slopes)
    assert value == pytest.approx(2 * bound_at(betas[0], scores[0], variances[0], 0), abs=1e-9)
    exact = np.log(np.exp(scores).sum()) - scores[0, 0]
    assert value >= 2 * exact - 1e-9
    kernels.bend_rows(0, 1, scores, variances, counts, betas, bends)
    xi = np.sqrt(variances + (scores - betas) ** 2)
    np.testing.assert_allclose(bends[0], [4 * lambda_of(each) for each in xi[0]])
    if len(drawn) < 2:
        return
    best = minimize_scalar(bound_at, bracket=(-1, 1), args=(scores[0], variances[0], 0), tol=1e-12)
    assert value / 2 <= best.fun + 1e-9
    assert slopes.sum() == pytest.approx(0, abs=1e-7)
    weights = bends[0] / 4
    formula = (0.5 * (len(drawn) / 2 - 1) + weights @ scores[0]) / weights.sum()
    assert betas[0] == pytest.approx(formula, abs=1e-6)
    for k in range(len(drawn)):
        moved, spare = scores.copy(), np.empty_like(scores)
        moved[0, k] += 1e-5
        risen = kernels.bound_rows(0, 1, moved, variances, own, counts, betas.copy(), spare)
        assert (risen - value) / 1e-5 == pytest.approx(slopes[0, k], abs=1e-3)


@pytest.mark.parametrize("prior", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("full", [True, False])
def test_no_update_lowers_the_bound(prior: float, full: bool) -> None:
    posterior = posterior_of(60, 5, prior, full)
    last = -np.inf
    for _ in range(6):
        for update in ("leaves", "inner", "means", "precisions"):
            if update == "leaves":
                with workers(None) as pool:
                    posterior.update_leaves(pool)
                posterior._loss = posterior._bound_rows(posterior.scores)
            else:
                getattr(posterior, f"update_{update}")()
            bound = posterior.bound()
            assert bound >= last - 1e-9 * abs(bound), update
            last = bound


@given(small_problems(max_rows=6))
def test_the_bound_rises_on_any_tree(drawn: Any) -> None:
    taxonomy, rows, y = drawn
    classes, own = np.unique(y, return_inverse=True)
    tree = class_tree(taxonomy, classes)
    dense = rows.toarray().astype(np.float64)
    posterior = Posterior(tree, dense, own.astype(np.int32), np.ones(len(y)), 0.5, True)
    last = -np.inf
    for _ in range(3):
        sweep(posterior)
        bound = posterior.bound()
        assert bound >= last - 1e-9 * abs(bound)
        last = bound


def test_each_update_is_the_twins() -> None:
    """Both start alike, and the twin is given the other's means, β and ξ, whose updates are not in closed form."""
    n, width, prior = 20, 3, 0.5
    posterior = posterior_of(n, width, prior)
    naive = NaiveBayes(TREE, X[:n, :width].astype(np.float64), OWN[:n], prior)
    for _ in range(3):
        naive.beta = posterior.betas.copy()
        naive.xi = np.sqrt(posterior.spreads + (posterior.scores - naive.beta[:, None]) ** 2)
        sweep(posterior)
        for c in range(TREE.n_classes):
            naive.update_leaf(c)
            np.testing.assert_allclose(posterior.covariances[c], naive.psi[TREE.leaf_of_class[c]], rtol=1e-9)
        for z in posterior.inner.tolist():
            naive.update_inner(z)
            np.testing.assert_allclose(posterior.variances[z], np.diag(naive.psi[z]))
        naive.mu = posterior.means.copy()
        for z in posterior.inner.tolist():
            naive.update_precision(z)
            np.testing.assert_allclose(posterior.precisions[z], naive.r[z])
        naive.beta = posterior.betas.copy()
        naive.xi = np.sqrt(posterior.spreads + (posterior.scores - naive.beta[:, None]) ** 2)
        assert posterior.bound() == pytest.approx(naive.bound(), rel=1e-9)


def test_the_fixed_point_is_that_of_the_closed_forms() -> None:
    n, width, prior = 18, 2, 2.0
    posterior = posterior_of(n, width, prior)
    naive = NaiveBayes(TREE, X[:n, :width].astype(np.float64), OWN[:n], prior)
    bounds = []
    for _ in range(150):
        naive.sweep()
        bounds.append(naive.bound())
    assert (np.diff(bounds) > -1e-9).all(), "the twin is one that rises"
    for _ in range(30):
        sweep(posterior)
    assert posterior.bound() == pytest.approx(bounds[-1], rel=1e-4)
    assert posterior.bound() >= bounds[-1] - 1e-6
    # What all classes have in common changes no ranking, and the closed forms move it hardly at all.
    leaves = [means[TREE.leaf_of_class] for means in (posterior.means, naive.mu)]
    np.testing.assert_allclose(*(each - each.mean(axis=0) for each in leaves), atol=0.05)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_it_learns_and_its_history_rises(covariance: str) -> None:
    model = HierarchicalBayesClassifier(NESTED, covariance=covariance).fit(X, Y)
    bounds = [entry["bound"] for entry in model.history_]
    assert bounds == sorted(bounds)
    assert bounds[-1] - bounds[-2] <= 1e-4 * abs(bounds[-1])
    assert model.score(X, Y) > 0.95


def test_covariances_are_full_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {
        covariance: HierarchicalBayesClassifier(covariance=covariance).fit(X, Y).decision_function(X)
        for covariance in ("auto", "full", "diagonal")
    }
    np.testing.assert_array_equal(scores["auto"], scores["full"])
    assert not np.array_equal(scores["auto"], scores["diagonal"])
    monkeypatch.setattr("abound.learn.hierarchical_bayes.FULL_NUMBERS", 100)
    few = HierarchicalBayesClassifier().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(few, scores["diagonal"])


def test_the_prior_is_chosen_on_held_out_rows(tmp_path: Any) -> None:
    model = HierarchicalBayesClassifier(NESTED, prior="auto", tol=1e-3).fit(X[:60], Y[:60])
    assert [entry["prior"] for entry in model.choice_] == list(PRIORS)
    best = max(entry["R1"] for entry in model.choice_)
    assert model.prior_ == next(entry["prior"] for entry in model.choice_ if entry["R1"] == best)
    given = HierarchicalBayesClassifier(NESTED, prior=model.prior_, tol=1e-3).fit(X[:60], Y[:60])
    np.testing.assert_array_equal(given.decision_function(X), model.decision_function(X))
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert (loaded.prior_, loaded.choice_, loaded.prior) == (model.prior_, model.choice_, "auto")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert HierarchicalBayesClassifier(prior="auto").fit(X[:3], Y[:3]).choice_ == []


def test_a_weight_is_a_repeated_row() -> None:
    weights = np.arange(len(Y)) % 3
    weighted = HierarchicalBayesClassifier(NESTED, bias=1.0).fit(X, Y, weights)
    repeated = HierarchicalBayesClassifier(NESTED, bias=1.0).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="prior=0: it must be"):
        HierarchicalBayesClassifier(prior=0).fit(X, Y)
    with pytest.raises(ValueError, match="covariance='none'"):
        HierarchicalBayesClassifier(covariance="none").fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="after 1 sweeps"):
        HierarchicalBayesClassifier(tol=1e-12, max_sweeps=1).fit(X, Y)
    monkeypatch.setattr("abound.validation.DENSE_LIMIT", 1000)
    with pytest.raises(MemoryError, match="this learner is for small data"):
        HierarchicalBayesClassifier().fit(X, Y)
