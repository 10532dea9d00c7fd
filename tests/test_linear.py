"""The blocked solver against one-by-one twins and LIBLINEAR; centring, pruning, threads, C by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import naive_linear as naive
from abound import LinearClassifier, RecursiveClassifier
from abound.learn import _linear_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.linear_rows import lane_array, solver_rows
from abound.learn.linear_solver import LOSSES, Block, Costs
from abound.validation import as_rows
from generate import make_rows, sparse_rows

X, Y = make_rows(3, n=300, noise=0.5)


def weights_of(model: Any) -> Any:
    """Features × classes, with what was subtracted."""
    full = model.index_.to_matrix().toarray().astype(np.float64)
    return full if model.index_.offset is None else full + model.index_.offset[:, None]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cost", [0.1, 1.0, 10.0])
def test_reaches_the_optimum(loss: str, cost: float) -> None:
    """The objective of every class is within the tolerance of the twin's, which runs until nothing changes."""
    rows, y = X[:80].toarray().astype(np.float64), Y[:80]
    model = LinearClassifier(loss=loss, C=cost, tol=1e-4, min_weight=0).fit(X[:80], y)
    w = weights_of(model)
    for c, label in enumerate(model.classes_.tolist()):
        signs = np.where(y == label, 1, -1)
        costs = np.full(len(signs), cost)
        best = naive.primal(rows, signs, naive.solve(rows, signs, costs, loss), costs, loss)
        found = naive.primal(rows, signs, w[:, c], costs, loss)
        assert best * (1 - 1e-6) <= found <= best * 1.0003
        assert model.gap_[c] <= 1e-4 * model.objective_[c]
        if loss != "logistic":
            assert model.objective_[c] == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize(("loss", "solver"), [("squared_hinge", 1), ("hinge", 3), ("logistic", 7)])
def test_reaches_liblinear(loss: str, solver: int) -> None:
    liblinear = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    model = LinearClassifier(loss=loss, tol=1e-4, min_weight=0).fit(X, Y)
    w, rows = weights_of(model), X.toarray().astype(np.float64)
    for c, label in enumerate(model.classes_.tolist()):
        signs = np.where(label == Y, 1, -1)
        options = f"-s {solver} -c 1 -e 1e-6 -q"
        peer = liblinear.train(signs.tolist(), sp.csr_matrix(X.astype(np.float64)), options)
        column = np.array([peer.w[f] for f in range(rows.shape[1])]) * (1 if peer.get_labels()[0] == 1 else -1)
        costs = np.ones(len(signs))
        ours = naive.primal(rows, signs, w[:, c], costs, loss)
        assert ours <= naive.primal(rows, signs, column, costs, loss) * 1.001


@given(data=st.data())
def test_sweep_equals_its_twin(data: st.DataObject) -> None:
    """One sweep, any targets, weights and costs: duals, weights and sums as one lane at a time in float64."""
    matrix = data.draw(sparse_rows(max_rows=7, max_features=6))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    loss = data.draw(st.integers(0, 2))
    rows = solver_rows(as_rows(matrix), np.ones(matrix.shape[0], np.float32), np.random.default_rng(0))
    block = Block(rows)
    block.targets[:] = rng.integers(-1, 2, size=block.targets.shape)
    row_weights = rng.uniform(0.5, 2, size=rows.n_rows).astype(np.float32)
    rows = rows._replace(weights=row_weights)
    costs = Costs(*(rng.uniform(0.3, 3, size=LANES).astype(np.float32) for _ in range(2)))
    threshold = np.zeros(LANES, np.float32) if data.draw(st.booleans()) else np.full(LANES, np.inf, np.float32)
    hold = data.draw(st.booleans())
    sums = np.zeros((3, LANES))
    for _ in range(2):
        start = block.duals.copy().astype(np.float64), block.weights.copy().astype(np.float64)
        active = np.arange(rows.n_rows, dtype=np.int32)
        sums[:] = 0
        kept = kernels.sweep(
            *(rows.indptr, rows.indices, rows.data, rows.norms, rows.weights, block.targets, *costs, loss, threshold),
            *(hold, active, 0, rows.n_rows, 0, block.weights, block.duals, sums),
        )
        duals, weights = start
        dense = (
            sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
            .toarray()
            .astype(np.float64)
        )
        loss_sums, moved = np.zeros(LANES), 0
        for i in range(rows.n_rows):
            margins = block.targets[i] * (dense[i] @ weights)
            cost = np.where(block.targets[i] > 0, costs.positive, costs.negative) * row_weights[i]
            new = np.array(
                [
                    naive.step(m, a, c, float(dense[i] @ dense[i]), LOSSES[loss]) if y else 0.0
                    for m, a, c, y in zip(margins, duals[i], cost, block.targets[i], strict=True)
                ]
            )
            loss_sums += np.where(block.targets[i] != 0, cost * naive.losses(margins, LOSSES[loss]), 0)
            if not hold and np.isfinite(threshold[0]) and (block.targets[i] != 0).any():
                weights += np.outer(dense[i], block.targets[i] * (new - duals[i]))
                duals[i] = new
                moved += 1
        np.testing.assert_allclose(block.duals, duals, atol=2e-4)
        np.testing.assert_allclose(block.weights, weights, atol=2e-3)
        if loss != 2:
            np.testing.assert_allclose(sums[1], loss_sums, rtol=1e-3, atol=1e-3)
        else:
            assert (sums[1] <= loss_sums + 1e-3).all()
        assert (sums[0] >= -1e-3).all()
        assert kept <= rows.n_rows


@given(st.integers(0, 10**6), st.integers(0, 40))
def test_shuffle_is_a_permutation(seed: int, n: int) -> None:
    first, second = (np.arange(50, dtype=np.int32) for _ in range(2))
    kernels.shuffle(first, n, seed)
    kernels.shuffle(second, n, seed)
    assert first.tolist() == second.tolist()
    assert sorted(first[:n].tolist()) == list(range(n))
    assert first[n:].tolist() == list(range(n, 50))


def test_lanes_begin_at_a_cache_line() -> None:
    for n in (0, 1, 7, 100):
        array = lane_array(n)
        assert array.shape == (n, LANES)
        assert array.ctypes.data % 64 == 0 or n == 0


@given(data=st.data())
def test_centring_alone_changes_no_score(data: st.DataObject) -> None:
    """Without pruning, offset and differences give the scores of the full weights back."""
    seed = data.draw(st.integers(0, 100))
    rows, y = make_rows(seed, n=60, noise=0.5)
    model = LinearClassifier(min_weight=0, random_state=seed).fit(rows, y)
    scores = rows @ weights_of(model)
    wanted = model.decision_function(rows)
    np.testing.assert_allclose(wanted, scores, atol=1e-4)
    assert model.index_.offset is not None
    best = model.predict(rows)
    clear = np.sort(scores, axis=1)[:, -1] - np.sort(scores, axis=1)[:, -2] > 1e-4
    assert (best[clear] == model.classes_[scores.argmax(axis=1)][clear]).all()


def test_pruning_shortens_the_index_and_keeps_the_answers() -> None:
    full = LinearClassifier(min_weight=0).fit(X, Y)
    short = LinearClassifier(min_weight=0.05).fit(X, Y)
    weights = abs(full.index_.to_matrix()).toarray()
    least = 0.05 * np.median(weights.max(axis=0))
    assert short.index_.n_edges == np.count_nonzero(weights >= least) < full.index_.n_edges
    assert np.abs(short.index_.weights).min() >= least
    assert (short.predict(X) == full.predict(X)).mean() > 0.98


@pytest.mark.parametrize("loss", LOSSES)
def test_pruning_does_not_depend_on_how_heavy_weights_are(loss: str) -> None:
    for cost in (1e-4, 1.0, 10.0):
        models = (LinearClassifier(loss=loss, C=cost, tol=0.01, min_weight=least) for least in (0, 0.05))
        full, short = (model.fit(X, Y) for model in models)
        assert 0.01 * full.index_.n_edges < short.index_.n_edges < full.index_.n_edges
        assert (short.predict(X) == full.predict(X)).mean() > 0.9


@pytest.mark.parametrize(("loss", "least"), [("hinge", 0.06), ("squared_hinge", 0.06), ("logistic", 0.015)])
@pytest.mark.parametrize("learner", [LinearClassifier, RecursiveClassifier])
def test_unless_told_pruning_depends_on_the_loss(learner: Any, loss: str, least: float) -> None:
    if learner is RecursiveClassifier:
        least = min(least, 0.025)
    usual, told = (learner(loss=loss, min_weight=given).fit(X, Y) for given in (None, least))
    assert usual.index_.n_edges == told.index_.n_edges > 0
    assert (usual.index_.weights == told.index_.weights).all()


def test_the_typical_class_is_looked_for_among_some() -> None:
    many = np.array([f"{label} {i % 20}" for i, label in enumerate(Y)])
    full, short = (LinearClassifier(min_weight=least).fit(X, many) for least in (0, 0.2))
    assert len(full.classes_) > 2 * 64
    weights = abs(full.index_.to_matrix()).toarray()
    largest = weights.max(axis=0)
    kept = np.count_nonzero(short.index_.to_matrix().toarray())
    low, high = (np.count_nonzero(weights >= 0.2 * np.quantile(largest, q)) for q in (0.9, 0.1))
    assert low <= kept <= high


def test_same_bits_for_any_number_of_threads() -> None:
    many = np.array([f"{label} {i % 5}" for i, label in enumerate(Y)])
    models = [LinearClassifier(n_jobs=n).fit(X, many) for n in (1, 2, 3)]
    for other in models[1:]:
        for name in ("indptr", "classes", "weights", "offset"):
            np.testing.assert_array_equal(getattr(models[0].index_, name), getattr(other.index_, name))


def test_several_labels_are_several_problems() -> None:
    lists = [[label, "even"] if i % 2 == 0 else [label] for i, label in enumerate(Y)]
    model = LinearClassifier(tol=1e-5, min_weight=0).fit(X, lists)
    alone = LinearClassifier(tol=1e-5, min_weight=0).fit(X, np.where(np.arange(len(Y)) % 2 == 0, "even", "odd"))
    c, other = model.classes_.tolist().index("even"), alone.classes_.tolist().index("even")
    assert model.objective_[c] == pytest.approx(alone.objective_[other], rel=1e-4)


def test_weights_of_rows_and_classes() -> None:
    twice = LinearClassifier(tol=1e-5, min_weight=0).fit(sp.vstack([X, X]), np.concatenate([Y, Y]))
    heavy = LinearClassifier(tol=1e-5, min_weight=0).fit(X, Y, sample_weight=np.full(len(Y), 2.0))
    costly = LinearClassifier(C=2.0, tol=1e-5, min_weight=0).fit(X, Y)
    by_class = LinearClassifier(tol=1e-5, min_weight=0, class_weight=dict.fromkeys(np.unique(Y).tolist(), 2.0)).fit(
        X, Y
    )
    for model in (heavy, costly, by_class):
        np.testing.assert_allclose(model.objective_, twice.objective_, rtol=1e-4)
    with pytest.raises(ValueError, match="class_weight names 'nobody'"):
        LinearClassifier(class_weight={"nobody": 1.0}).fit(X, Y)


def test_bias_is_a_feature_of_its_own() -> None:
    ones = sp.hstack([X, np.full((X.shape[0], 1), 2.0, np.float32)], format="csr")
    given_one = LinearClassifier(tol=1e-6, min_weight=0).fit(ones, Y)
    own = LinearClassifier(tol=1e-6, min_weight=0, bias=2.0).fit(X, Y)
    np.testing.assert_allclose(own.decision_function(X), given_one.decision_function(ones), atol=2e-2)
    assert X.shape[1] in [feature for feature, _ in own.explain(X[[0]], Y[0])]
    own.feature_names_in_ = np.array([f"word {f}" for f in range(X.shape[1])], dtype=object)
    with pytest.warns(UserWarning, match="feature names"):
        named = own.explain(X[[0]], Y[0])
    assert "bias" in [feature for feature, _ in named]


def test_c_is_chosen_where_it_matters() -> None:
    """Labels are noise but for one feature: a large C learns the noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=300)
    signal = np.eye(3)[np.where(rng.random(300) < 0.8, y, rng.integers(0, 3, size=300))]
    noise = rng.random((300, 200)) < 0.05
    rows = sp.csr_array(np.hstack([signal, 2.0 * noise]).astype(np.float32))
    model = LinearClassifier(C="cv", C_grid=[0.01, 100.0], min_weight=0).fit(rows, y)
    assert model.C_ == 0.01
    assert [entry["C"] for entry in model.history_] == [0.01, 100.0]
    assert model.history_[0]["R1"] > model.history_[1]["R1"]


def test_unfinished_business_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match="did not reach tol"):
        LinearClassifier(tol=1e-12, max_sweeps=2).fit(X, Y)


def test_rows_without_features_or_weight_are_left_out() -> None:
    rows = sp.vstack([X, sp.csr_array((3, X.shape[1]), dtype=np.float32)], format="csr")
    y = np.concatenate([Y, Y[:3]])
    with_empty = LinearClassifier(tol=1e-5).fit(rows, y)
    without = LinearClassifier(tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(with_empty.objective_, without.objective_, rtol=1e-4)


def test_rows_without_features_teach_nothing() -> None:
    nothing = sp.csr_array((4, 3), dtype=np.float32)
    model = LinearClassifier().fit(nothing, ["a", "b", "c", "a"])
    assert model.index_.n_edges == 0
    assert model.predict(nothing).tolist() == ["a"] * 4
