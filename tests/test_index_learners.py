"""The index learners against their twins, and what the papers promise."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from abound import (
    EMAClassifier,
    FeatureFocusClassifier,
    FrequencyClassifier,
    IndependentClassifier,
    OOZClassifier,
    UnweightedIndexClassifier,
)
from abound.learn import _ooz_kernels as ooz_kernels
from abound.learn._edge_lists import packed
from generate import labels_for, make_rows, sparse_rows


def learned_lists(model: Any) -> dict[int, list[list[Any]]]:
    """The learner's lists by feature, with labels for ids, in their order."""
    indptr, classes, weights = packed(model._state.lists)
    labels = model.classes_.tolist()
    return {
        f: [[labels[c], w] for c, w in zip(classes[a:b].tolist(), weights[a:b].tolist(), strict=True)]
        for f, (a, b) in enumerate(itertools.pairwise(indptr))
        if a < b
    }


def teach(twin: Any, X: Any, labels: list[list[int]], weights: Any = None) -> None:
    for i, (row, classes) in enumerate(zip(naive.rows_of(X), labels, strict=True)):
        twin.learn(row, classes, 1.0 if weights is None else weights[i])


def votes(model: Any) -> dict[tuple[int, Any], float]:
    index = model.index_
    features = np.repeat(np.arange(index.n_features), index.degrees).tolist()
    labels = model.classes_[index.classes].tolist()
    return dict(zip(zip(features, labels, strict=True), index.weights.tolist(), strict=True))


@given(data=st.data())
def test_feature_focus_equals_its_twin(data: st.DataObject) -> None:
    X = data.draw(sparse_rows())
    labels = data.draw(labels_for(X.shape[0], multi=data.draw(st.booleans())))
    weights = data.draw(
        st.none() | st.lists(st.sampled_from([1.0, 0.5, 2.0]), min_size=len(labels), max_size=len(labels))
    )
    settings = {
        "margin": data.draw(st.sampled_from([0.0, 0.1, 0.5, np.inf])),
        "min_weight": data.draw(st.sampled_from([0.0, 0.01, 0.2, 0.4])),
        "max_degree": data.draw(st.sampled_from([None, 1, 2, 25])),
        "vote_weight": data.draw(st.sampled_from([0.0, 0.3])),
        "rate_features": data.draw(st.sampled_from([None, 2, 10])),
        "leak": data.draw(st.booleans()),
    }
    model = FeatureFocusClassifier(shuffle=False, **settings).fit(X, labels, weights)
    twin = naive.FeatureFocus(**settings)
    teach(twin, X, labels, weights)
    assert learned_lists(model) == {f: edges for f, edges in twin.lists.items() if edges}
    assert model.history_[0]["updates"] == twin.updates
    assert model.history_[0]["online_R1"] == twin.hits / len(labels)
    expected = twin.weights()
    found = votes(model)
    assert found.keys() == expected.keys()
    assert all(found[edge] == pytest.approx(expected[edge], rel=1e-6) for edge in expected)


@given(data=st.data())
def test_ema_equals_its_twin(data: st.DataObject) -> None:
    X = data.draw(sparse_rows())
    labels = data.draw(labels_for(X.shape[0], multi=data.draw(st.booleans())))
    settings = {
        "rate": data.draw(st.sampled_from([0.03, 0.3, 1.0])),
        "margin": data.draw(st.sampled_from([0.0, 0.3])),
        "min_weight": data.draw(st.sampled_from([0.0, 0.001, 0.1])),
        "max_degree": data.draw(st.sampled_from([None, 1, 3])),
        "vote_weight": data.draw(st.sampled_from([0.0, 0.2])),
    }
    model = EMAClassifier(shuffle=False, **settings).fit(X, labels)
    twin = naive.EMA(**settings)
    teach(twin, X, labels)
    assert learned_lists(model) == {f: edges for f, edges in twin.lists.items() if edges}
    assert all(sum(w for _, w in edges) <= 1 + 1e-9 for edges in learned_lists(model).values())


@given(data=st.data())
def test_ooz_equals_its_twin(data: st.DataObject) -> None:
    X = data.draw(sparse_rows())
    labels = data.draw(labels_for(X.shape[0], multi=data.draw(st.booleans())))
    settings = {
        "rate": data.draw(st.sampled_from([0.01, 0.1, 0.5])),
        "margin": data.draw(st.sampled_from([0.005, 0.2, 0.5])),
        "max_negatives": data.draw(st.sampled_from([1, 2, 15])),
        "max_degree": data.draw(st.sampled_from([None, 1, 2])),
        "min_weight": data.draw(st.sampled_from([0.0, 1e-6, 0.01])),
    }
    passes = data.draw(st.integers(1, 3))
    model = OOZClassifier(shuffle=False, passes=passes, **settings).fit(X, labels)
    twin = naive.OOZ(**settings)
    for _ in range(passes):
        teach(twin, X, labels)
    assert learned_lists(model) == {f: edges for f, edges in twin.lists.items() if edges}


@given(data=st.data())
def test_ooz_keeps_its_invariants_on_every_update(data: st.DataObject) -> None:
    X = data.draw(sparse_rows(low=0.0, unit=True))
    labels = data.draw(labels_for(X.shape[0]))
    rate = data.draw(st.sampled_from([0.001, 0.05, 0.3]))
    margin = data.draw(st.sampled_from([0.005, 0.1, 0.5]))
    model = OOZClassifier(rate=rate, margin=margin, max_degree=data.draw(st.sampled_from([None, 2])))
    for i in range(X.shape[0]):
        y = labels[i][0]
        before = 0.0
        if i and y in model.classes_:
            before = float(model._score_all(model._rows(X[[i]]))[0, model._class_id(y)])
        model.partial_fit(X[[i]], [y])
        after = float(model._score_all(model._rows(X[[i]]))[0, model._class_id(y)])
        assert after <= before + min(rate, margin / 2) + 1e-5
        indptr, _, weights = packed(model._state.lists)
        free = model._state.lists.heads["total"]
        assert (weights >= 0).all()
        assert (free >= -1e-12).all()
        sums = np.add.reduceat(np.append(weights, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
        assert (sums + free <= 1 + 1e-9).all()


@given(
    scores=st.lists(st.floats(0, 2, width=32), min_size=0, max_size=20),
    k=st.integers(1, 6),
    rate=st.floats(1e-4, 0.5),
    lowest=st.floats(-0.5, 0.5, width=32),
)
def test_deductions_equal_their_twin(scores: list[float], k: int, rate: float, lowest: float) -> None:
    offending = sorted((s for s in scores if s >= lowest), reverse=True)
    kept = np.zeros(k)
    kept[: len(offending[:k])] = offending[:k]
    found = np.empty(k)
    ooz_kernels.compute_deductions(kept, len(offending), lowest, rate, found)
    expected = naive.deductions([float(s) for s in offending], k, lowest, rate)
    assert found[: len(expected)] == pytest.approx(expected, abs=1e-12)
    assert found.sum() <= rate + 1e-12
    lowered = np.array(offending[:k]) - found[: len(offending[:k])]
    assert (np.diff(lowered) <= 1e-12).all(), "a higher offender never ends below a lower one"


@given(seed=st.integers(0, 10_000), u=st.sampled_from([3.0, 4.0, 6.0]), rate=st.sampled_from([0.02, 0.05, 0.1]))
def test_the_bounded_perceptron_comes_nearer_with_every_mistake(seed: int, u: float, rate: float) -> None:
    """Appendix of the long flat-techniques paper: the squared distance to a separator falls by (u - 2) β² or more."""
    rng = np.random.default_rng(seed)
    n_features = 12
    separator = rng.random(n_features)
    rows = rng.random((80, n_features)) * (rng.random((80, n_features)) < 0.4)
    rows = rows[rows.any(axis=1)]
    rows /= np.sqrt((rows**2).sum(axis=1, keepdims=True))
    lead = rows @ (2 * separator - 1)
    rows, lead = rows[np.abs(lead) >= u * rate], lead[np.abs(lead) >= u * rate]
    if not len(rows):
        return
    model = OOZClassifier(variant="bounded", rate=rate, shuffle=False)
    mistakes = 0
    before = ((0.5 - separator) ** 2).sum()
    for x, side in zip(rows, lead, strict=True):
        model.partial_fit(x[None, :], ["first" if side > 0 else "second"], classes=["first", "second"])
        weights = model._state.lists.heads["total"]
        assert ((weights >= 0) & (weights <= 1)).all()
        after = ((weights - separator) ** 2).sum()
        if model.history_[-1]["updates"]:
            mistakes += 1
            assert before - after >= (u - 2) * rate**2 - 1e-7
            assert before - after >= (u - 1) * rate**2 - 1e-6
        else:
            assert after == before
        before = after
    assert mistakes * (u - 2) * rate**2 <= n_features / 4 + 1e-6


def test_the_bounded_perceptron_is_for_two_classes() -> None:
    with pytest.raises(ValueError, match="two classes"):
        OOZClassifier(variant="bounded").fit(np.eye(3), ["a", "b", "c"])


@given(data=st.data())
def test_unweighted_equals_its_twin(data: st.DataObject) -> None:
    X = data.draw(sparse_rows())
    labels = data.draw(labels_for(X.shape[0], multi=data.draw(st.booleans())))
    tolerance = data.draw(st.sampled_from([0, 1, 5]))
    model = UnweightedIndexClassifier(tolerance=tolerance, passes=2, shuffle=False).fit(X, labels)
    df = dict(enumerate((X > 0).sum(axis=0).tolist()))
    twin = naive.Unweighted(df, tolerance)
    for _ in range(2):
        for row, classes in zip(naive.rows_of(X), labels, strict=True):
            twin.learn(row, classes)
    expected = {(f, c): w for c, v in twin.weights.items() for f, w in v.items() if w >= 0.1}
    assert votes(model) == pytest.approx(expected, rel=1e-5)
    assert model.n_edges_ == len(expected)


@given(data=st.data())
def test_independent_counts_like_its_twin(data: st.DataObject) -> None:
    X = data.draw(sparse_rows())
    labels = data.draw(labels_for(X.shape[0], multi=data.draw(st.booleans())))
    threshold = data.draw(st.sampled_from([0.01, 0.3, 0.5]))
    model = IndependentClassifier(threshold=threshold).fit(X, labels)
    assert votes(model) == pytest.approx(naive.independent(X, labels, threshold), rel=1e-6)


def test_independent_counts_the_same_in_a_stream_when_nothing_is_dropped() -> None:
    X, y = make_rows(0)
    exact = IndependentClassifier(threshold=0.0).fit(X, y).index_
    stream = IndependentClassifier(threshold=0.0, counts="stream").fit(X, y).index_
    np.testing.assert_allclose(exact.to_matrix().toarray(), stream.to_matrix().toarray(), rtol=1e-6)


def test_independent_chooses_the_threshold_with_the_best_recall() -> None:
    X, y = make_rows(1, n=600)
    model = IndependentClassifier().fit(X, y)
    best = max(entry["R1"] for entry in model.history_)
    assert {entry["R1"] for entry in model.history_ if entry["threshold"] == model.threshold_} == {best}
    assert len({entry["R1"] for entry in model.history_}) > 1


def test_mistake_driven_updates_solve_case_1() -> None:
    """JMLR 4.3.1, case 1: f1 marks c1, f2 stands in both; c1 is more frequent. Lazy updates rank c2 first on f2."""
    rows = [[1, 1]] * 60 + [[0, 1]] * 40
    y = ["c1"] * 60 + ["c2"] * 40
    lazy = FeatureFocusClassifier(margin=0, passes=3, rate_features=None).fit(rows, y)
    always = FeatureFocusClassifier(margin=np.inf, rate_features=None).fit(rows, y)
    assert lazy.score(rows, y) == 1.0
    assert always.predict([[0, 1]]).tolist() == ["c1"]
    assert always.score(rows, y) == 0.6


def test_proactive_updates_solve_case_2() -> None:
    """JMLR 4.3.1, case 2: one feature, shares .5, .25, .25; the paper: always .479, lazy .428."""
    rng = np.random.default_rng(0)
    scores: dict[float, list[float]] = {0.0: [], np.inf: []}
    for split in range(100):
        y = rng.choice(["c1", "c2", "c3"], size=2000, p=[0.5, 0.25, 0.25])
        X = np.ones((2000, 1))
        for margin, found in scores.items():
            model = FeatureFocusClassifier(margin=margin, random_state=split).fit(X[:1600], y[:1600])
            found.append(model.score(X[1600:], y[1600:]))
    always, lazy = np.mean(scores[np.inf]), np.mean(scores[0.0])
    assert always == pytest.approx(0.5, abs=0.03)
    assert lazy < always - 0.02


def test_a_leak_weakens_a_feature_that_stands_everywhere() -> None:
    X, y = make_rows(3, n=2000, n_classes=50, n_features=100)
    everywhere = sp.hstack([X, sp.csr_array(np.ones((X.shape[0], 1), dtype=np.float32))]).tocsr()
    settings = {"min_weight": 0.1, "margin": np.inf, "max_degree": None, "rate_features": None}
    leaky = FeatureFocusClassifier(leak=True, **settings).fit(everywhere, y).index_.row_sums()[-1]
    tight = FeatureFocusClassifier(leak=False, **settings).fit(everywhere, y).index_.row_sums()[-1]
    assert leaky < 0.9
    assert tight == pytest.approx(1.0, abs=1e-5)


def test_out_degree_is_bounded_by_the_minimum_weight() -> None:
    X, y = make_rows(4, n=3000, n_classes=80, n_features=30)
    model = FeatureFocusClassifier(min_weight=0.05, max_degree=None, margin=1.0).fit(X, y)
    assert 1 < model.index_.degrees.max() <= 20


def test_boolean_ignores_the_values() -> None:
    X, y = make_rows(5)
    doubled = X.copy()
    doubled.data = doubled.data * np.random.default_rng(0).random(len(X.data)).astype(np.float32) + 0.01
    one = FeatureFocusClassifier(boolean=True, margin=7.0).fit(X, y)
    other = FeatureFocusClassifier(boolean=True, margin=7.0).fit(doubled, y)
    assert votes(one) == votes(other)
    assert votes(one) != votes(FeatureFocusClassifier(margin=7.0).fit(X, y))


def test_split_gives_negative_values_features_of_their_own() -> None:
    X = np.array([[1.0, -1.0], [-1.0, 1.0]] * 20)
    y = ["up", "down"] * 20
    split = FeatureFocusClassifier(negative="split").fit(X, y)
    assert split.index_.n_features == 4
    assert split.predict([[0.0, -1.0]]).tolist() == ["up"]
    features = {feature for feature, _ in split.explain([[1.0, -1.0]], "up")}
    assert features == {0, 1}
    ignored = FeatureFocusClassifier().fit(X, y)
    assert ignored.predict_topk([[0.0, -1.0]], k=1)[1].tolist() == [[0.0]], "nothing votes for a negative value"


def test_frequency_ranks_by_weighted_frequency() -> None:
    model = FrequencyClassifier().fit(np.ones((4, 1)), ["a", "b", "b", "c"], sample_weight=[5, 1, 1, 1])
    labels, scores = model.predict_topk(np.zeros((2, 1)), k=3)
    assert labels.tolist() == [["a", "b", "c"]] * 2
    np.testing.assert_allclose(scores, [[5 / 8, 2 / 8, 1 / 8]] * 2)


def test_ema_follows_a_drift_that_feature_focus_resists() -> None:
    """A feature changes its class: the moving average turns, the lifelong count does not yet."""
    X = np.ones((1200, 1))
    y = ["old"] * 1000 + ["new"] * 200
    ema = EMAClassifier(rate=0.1, margin=np.inf, shuffle=False).fit(X, y)
    ff = FeatureFocusClassifier(margin=np.inf, shuffle=False).fit(X, y)
    assert ema.predict([[1]]).tolist() == ["new"]
    assert ff.predict([[1]]).tolist() == ["old"]


@pytest.mark.parametrize("make", [FeatureFocusClassifier, EMAClassifier, OOZClassifier, UnweightedIndexClassifier])
def test_a_negative_value_does_not_vote_against_a_class(make: Any) -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 30)
    model = make().fit(X, ["left", "right"] * 30)
    with_negative, without = model.predict_topk([[0.5, -1.0]], 2), model.predict_topk([[0.5, 0.0]], 2)
    np.testing.assert_array_equal(with_negative.labels, without.labels)
    np.testing.assert_array_equal(with_negative.scores, without.scores)
