"""The blocked solver against one-by-one twins and LIBLINEAR; centring, pruning, threads, C by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import naive_linear as naive
from abound import ClassIndex, LinearClassifier, RecursiveClassifier
from abound.learn import _linear_kernels as kernels
from abound.learn import linear, recursive
from abound.learn._lanes import LANES
from abound.learn.light_weights import HARM, lightest_without_harm, tried_rows
from abound.learn.linear_rows import lane_array, solver_rows
from abound.learn.linear_solver import LOSSES, Block, Costs
from abound.rank.topk import rank_topk
from abound.validation import as_rows
from generate import make_rows, sparse_rows

X, Y = make_rows(3, n=300, noise=0.5)


def weights_of(model: Any) -> Any:
    """Features × classes, with what was subtracted and, last, the bias: the weights of `with_ones`."""
    full = model.index_.to_matrix().toarray().astype(np.float64)
    full = full if model.index_.offset is None else full + model.index_.offset[:, None]
    return full if model.index_.bias is None else np.vstack([full, model.index_.bias])


def with_ones(rows: Any, model: Any) -> Any:
    """The rows as the weights see them."""
    return rows if model.index_.bias is None else np.hstack([rows, np.ones((len(rows), 1))])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("cost", "bias"), [(0.1, 0.0), (1.0, 1.0), (10.0, 1.0)])
def test_reaches_the_optimum(loss: str, cost: float, bias: float) -> None:
    """The objective of every class is within the tolerance of the twin's, which runs until nothing changes."""
    y = Y[:80]
    model = LinearClassifier(loss=loss, C=cost, bias=bias, tol=1e-4, min_weight=0).fit(X[:80], y)
    rows, w = with_ones(X[:80].toarray().astype(np.float64), model), weights_of(model)
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
    model = LinearClassifier(loss=loss, C=1.0, bias=1.0, tol=1e-4, min_weight=0).fit(X, Y)
    w, rows = weights_of(model), with_ones(X.toarray().astype(np.float64), model)
    for c, label in enumerate(model.classes_.tolist()):
        signs = np.where(label == Y, 1, -1)
        options = f"-s {solver} -c 1 -e 1e-6 -q"
        peer = liblinear.train(signs.tolist(), sp.csr_matrix(rows), options)
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
    scores = with_ones(rows.toarray(), model) @ weights_of(model)
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


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("learner", [LinearClassifier, RecursiveClassifier])
def test_unless_told_pruning_leaves_the_answers(learner: Any, loss: str) -> None:
    full, usual, much = (learner(loss=loss, min_weight=given).fit(X, Y) for given in (0, None, 0.5))
    assert much.index_.n_edges < usual.index_.n_edges < full.index_.n_edges
    assert (usual.predict(X) != full.predict(X)).mean() <= HARM < (much.predict(X) != full.predict(X)).mean()
    heaviest = {LinearClassifier: linear, RecursiveClassifier: recursive}[learner].LIGHTEST.of(None, loss)
    told = learner(loss=loss, min_weight=heaviest).fit(X, Y)
    assert usual.index_.n_edges >= told.index_.n_edges
    assert np.isin(told.index_.weights, usual.index_.weights).all()


@given(st.integers(0, 10**6), st.floats(0.05, 3))
@settings(deadline=None)
def test_pruning_goes_as_far_as_its_twin(seed: int, heaviest: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(12, 4)).astype(np.float32) * (rng.random((12, 4)) < 0.8)
    index = replace(ClassIndex.from_matrix(weights), bias=rng.normal(size=4).astype(np.float32))
    rows = rng.normal(size=(30, 12)).astype(np.float32)
    least = lightest_without_harm(index, as_rows(rows), heaviest)
    assert least == pytest.approx(naive.lightest_without_harm(weights, index.bias, rows, heaviest))


def test_pruning_needs_rows_and_rivals() -> None:
    index = ClassIndex.from_matrix(np.ones((3, 1), np.float32))
    assert lightest_without_harm(index, as_rows(np.eye(3, dtype=np.float32)), 0.7) == 0.7
    two = ClassIndex.from_matrix(np.ones((3, 2), np.float32))
    assert lightest_without_harm(two, as_rows(np.zeros((0, 3), np.float32)), 0.7) == 0.7


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_rows_to_try_are_those_of_the_user(bias: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abound.learn.light_weights.TRIED_ROWS", 40)
    rows = solver_rows(as_rows(X), np.ones(X.shape[0], np.float32), np.random.default_rng(0), bias)
    some = np.arange(0, rows.n_rows, 3)
    found = tried_rows(rows, np.concatenate([some, some[:5]]), X.shape[1])
    users = np.sort(rows.order[some])
    chosen = users[:: -(-len(users) // 40)]
    matrix = sp.csr_array((found.data, found.indices, found.indptr), shape=(found.n_rows, X.shape[1]))
    np.testing.assert_array_equal(matrix.toarray(), X[chosen].toarray())


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
        for name in ("indptr", "classes", "weights", "offset", "bias"):
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


def test_bias_is_a_constant_that_is_no_feature() -> None:
    ones = sp.hstack([X, np.full((X.shape[0], 1), 2.0, np.float32)], format="csr")
    given_one = LinearClassifier(C=1.0, tol=1e-6, min_weight=0, bias=0).fit(ones, Y)
    own = LinearClassifier(C=1.0, tol=1e-6, min_weight=0, bias=2.0).fit(X, Y)
    np.testing.assert_allclose(own.decision_function(X), given_one.decision_function(ones), atol=2e-2)
    np.testing.assert_allclose(own.index_.bias, 2 * weights_of(given_one)[-1], atol=2e-2)
    assert own.index_.n_features == X.shape[1]
    explained = own.explain(X[[0]], Y[0])
    assert sum(value for _, value in explained) == pytest.approx(own.decision_function(X[[0]])[0].max(), abs=1e-4)
    assert "bias" in [feature for feature, _ in explained]
    own.feature_names_in_ = np.array([f"word {f}" for f in range(X.shape[1])], dtype=object)
    with pytest.warns(UserWarning, match="feature names"):
        named = own.explain(X[[0]], Y[0])
    assert [value for feature, value in named if feature == "bias"] == [dict(explained)["bias"]]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 3.0])
def test_bias_has_the_scale_of_the_rows(scale: float) -> None:
    rows = sp.csr_array(X * np.float32(scale))
    own = float(np.sqrt((rows.data.astype(np.float64) ** 2).sum() / rows.shape[0]))
    usual, told = (LinearClassifier(bias=bias).fit(rows, Y) for bias in ("auto", own))
    np.testing.assert_allclose(usual.index_.bias, told.index_.bias, rtol=1e-3, atol=1e-6)
    twice = LinearClassifier(tol=1e-5).fit(sp.vstack([rows, rows[:9]]), np.concatenate([Y, Y[:9]]))
    heavy = LinearClassifier(tol=1e-5).fit(rows, Y, sample_weight=1.0 + (np.arange(len(Y)) < 9))
    np.testing.assert_allclose(heavy.objective_, twice.objective_, rtol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10])
def test_nothing_depends_on_the_scale_of_the_rows(loss: str, scale: float) -> None:
    model, other = (LinearClassifier(loss=loss).fit(factor * X, Y) for factor in (1, scale))
    assert other.C_ == pytest.approx(model.C_ / scale**2)
    np.testing.assert_allclose(other.decision_function(scale * X), model.decision_function(X), rtol=1e-3, atol=1e-3)


def test_c_is_for_rows_of_unit_length() -> None:
    unit = sp.csr_array(np.eye(6, dtype=np.float32))
    y = [0, 1, 2] * 2
    assert LinearClassifier().fit(unit, y).C_ == pytest.approx(linear.USUAL_COST["squared_hinge"])
    assert LinearClassifier(loss="logistic").fit(unit, y).C_ == pytest.approx(linear.USUAL_COST["logistic"])
    assert LinearClassifier().fit(3 * unit, y, sample_weight=[2, 2, 2, 1, 1, 1]).C_ == pytest.approx(1 / 9)
    assert LinearClassifier(C=0.3).fit(3 * unit, y).C_ == 0.3
    assert LinearClassifier().fit(0 * unit, y).C_ == 1
    with pytest.raises(ValueError, match="C="):
        LinearClassifier(C="best").fit(unit, y)


def test_a_large_c_of_the_logistic_loss_is_solved_less_far() -> None:
    """Far enough for the answers, where it would take long; a C that was told is solved as far as that of a hinge."""
    usual, told = (LinearClassifier(loss="logistic", C=cost).fit(X, Y) for cost in ("auto", 1.0))
    for model, tol in ((usual, linear.LOOSE_TOL), (told, linear.TOL)):
        assert (model.gap_ <= tol * model.objective_).all()
    assert (usual.gap_ > linear.TOL * usual.objective_).any()


def test_bias_is_kept_from_pruning() -> None:
    index = LinearClassifier().fit(X, Y).index_
    for shorter in (index.prune(max_degree=1), index.prune(max_edges=3), index.prune(min_weight=1e9)):
        np.testing.assert_array_equal(shorter.bias, index.bias)
    best = rank_topk(index.prune(min_weight=1e9), as_rows(X[:1]), 3, every_class=True).ids[0]
    assert best.tolist() == np.argsort(-index.bias, kind="stable")[:3].tolist()


@pytest.mark.parametrize("bias", ["much", None, np.nan, True, [1.0]])
def test_what_is_no_bias_is_refused(bias: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="bias"):
        LinearClassifier(bias=bias).fit(X, Y)


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
    with_empty = LinearClassifier(tol=1e-5, bias=0).fit(rows, y)
    without = LinearClassifier(tol=1e-5, bias=0).fit(X, Y)
    np.testing.assert_allclose(with_empty.objective_, without.objective_, rtol=1e-4)


def test_rows_without_features_teach_nothing() -> None:
    nothing = sp.csr_array((4, 3), dtype=np.float32)
    model = LinearClassifier().fit(nothing, ["a", "b", "c", "a"])
    assert model.index_.n_edges == 0
    assert model.predict(nothing).tolist() == ["a"] * 4
