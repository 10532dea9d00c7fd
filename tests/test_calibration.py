"""Probabilities: Platt's sigmoid and isotonic curves against twins and scikit-learn, and what learners make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import naive_thresholds as naive
from abound import FeatureFocusClassifier, PAClassifier
from abound.learn.confidence import fit_calibration
from abound.learn.deciding import spread_to_one
from abound.learn.decisions import Calibration, levels_of
from abound.measure import Isotonic, PowerSigmoid, Sigmoid, calibration_error, fit_isotonic, fit_platt, fit_power
from abound.measure.platt import UNFITTED
from abound.rank.topk import Ranking
from generate import make_rows

cases = st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=2, max_size=20)


class AsIs(ClassifierMixin, BaseEstimator):
    """A binary classifier whose score is its only feature."""

    def fit(self, X: Any, y: Any) -> AsIs:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Any:
        return X[:, 0]

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0).astype(int)


def noisy_scores(n: int = 500, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=n)
    return scores, generator.random(n) < 1 / (1 + np.exp(1 - 2 * scores))


def by_scikit_learn(method: str, scores: Any, right: Any, asked: Any) -> Any:
    model = FrozenEstimator(AsIs().fit(scores[:, None], right))
    calibrated = CalibratedClassifierCV(model, method=method, ensemble=False).fit(scores[:, None], right.astype(int))
    return calibrated.predict_proba(asked[:, None])[:, 1]


@given(cases)
def test_platt_reaches_the_minimum(case: Any) -> None:
    scores, right = [s for s, _ in case], [r for _, r in case]
    sigmoid = fit_platt(scores, right)
    if not any(right):
        assert sigmoid == UNFITTED == Sigmoid(-2.0, 0.0)
        return
    reached = naive.platt_loss(*sigmoid, scores, right)
    start = np.array([0.0, np.log((len(right) - sum(right) + 1) / (sum(right) + 1))])
    least = minimize(lambda x: naive.platt_loss(x[0], x[1], scores, right), start, method="Nelder-Mead").fun
    assert reached <= least + 1e-6


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 1.0, 1e6, 1e37])
def test_platt_agrees_with_scikit_learn_in_any_unit(unit: float) -> None:
    scores, right = noisy_scores()
    asked = np.linspace(-4, 4, 50)
    expected = by_scikit_learn("sigmoid", scores, right, asked)
    np.testing.assert_allclose(fit_platt(unit * scores, right)(unit * asked), expected, atol=1e-4)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e37])
@pytest.mark.parametrize("power", [1.0, 0.5, 0.25])
def test_platt_finds_the_power_of_the_scores(power: float, unit: float) -> None:
    scores, right = noisy_scores(20_000)
    found = fit_power(unit * np.sign(scores) * np.abs(scores) ** (1 / power), right)
    assert found.power == power
    alone = fit_platt(scores, right)
    np.testing.assert_allclose(
        found(unit * np.array([-8.0, -1, 0, 1, 8])), PowerSigmoid(*alone, power)([-8, -1, 0, 1, 8])
    )
    assert (np.diff(found(unit * np.linspace(-9, 9, 99))) > 0).all()


def test_isotonic_agrees_with_scikit_learn_but_for_what_is_certain() -> None:
    scores, right = noisy_scores()
    asked = np.linspace(-4, 4, 50)
    n_right = right.sum()
    bounds = 1 / (len(right) - n_right + 2), (n_right + 1) / (n_right + 2)
    expected = by_scikit_learn("isotonic", scores, right, asked)
    np.testing.assert_allclose(fit_isotonic(scores, right)(asked), expected.clip(*bounds), atol=2e-3)


@given(st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 2.0, 3.0]), st.booleans()), min_size=1, max_size=12))
def test_isotonic_is_the_nearest_rising_curve(case: Any) -> None:
    scores, right = [s for s, _ in case], [r for _, r in case]
    n_right = sum(right)
    bounds = 1 / (len(right) - n_right + 2), (n_right + 1) / (n_right + 2)
    expected = np.clip(naive.isotonic(scores, right), *bounds)
    np.testing.assert_allclose(fit_isotonic(scores, right)(scores), expected, atol=1e-12)


@pytest.mark.parametrize("fit", [fit_platt, fit_isotonic])
def test_a_weight_is_the_same_as_repeating(fit: Any) -> None:
    scores, right = noisy_scores(100)
    weights = np.random.default_rng(1).integers(0, 4, size=100)
    again = fit(np.repeat(scores, weights), np.repeat(right, weights))
    np.testing.assert_allclose(fit(scores, right, weights)(scores), again(scores), rtol=1e-9)


@pytest.mark.parametrize("fit", [fit_platt, fit_isotonic])
@given(case=cases)
def test_probabilities_stay_inside_and_isotonic_never_falls(fit: Any, case: Any) -> None:
    curve = fit([s for s, _ in case], [r for _, r in case])
    asked = np.array([-3e38, -1e3, -5, -0.1, 0, 0.1, 5, 1e3, 3e38])
    found = curve(asked)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found <= 1).all()
    if isinstance(curve, Isotonic) or curve.A <= 0:
        assert (np.diff(found) >= 0).all()


def test_bad_scores_are_named() -> None:
    with pytest.raises(ValueError, match=r"scores\[1\] is inf"):
        fit_platt([0, np.inf], [True, False])
    with pytest.raises(ValueError, match="equally long"):
        fit_platt([0, 1], [True])
    with pytest.raises(ValueError, match="weights"):
        fit_isotonic([0, 1], [True, False], [1, -1])


def test_margins_are_taken_from_the_best_other_class() -> None:
    ids = np.array([[3, 1, 2], [0, 2, -1], [1, -1, -1], [-1, -1, -1]], np.int32)
    scores = np.array([[5, 2, -1], [0.5, 0.5, -np.inf], [4, -np.inf, -np.inf], [-np.inf] * 3], np.float32)
    margins = levels_of(Ranking(ids, scores), "margin")
    assert margins.tolist() == [[3, -3, -6], [0, 0, -0.5], [4, -4, -4], [0, 0, 0]]
    assert levels_of(Ranking(ids, scores), "score").tolist() == [[5, 2, -1], [0.5, 0.5, 0], [4, 0, 0], [0, 0, 0]]
    single = Ranking(ids[:1, :1], scores[:1, :1])
    assert levels_of(single, "margin").tolist() == [[5]]
    huge = Ranking(ids[:1], np.array([[np.inf, 3e38, -3e38]], np.float32))
    assert np.isfinite(levels_of(huge, "margin")).all()


@pytest.mark.parametrize("by", ["score", "margin"])
def test_what_does_not_rank_has_probability_0(by: str) -> None:
    ids = np.array([[1, 0, -1], [-1, -1, -1]], np.int32)
    scores = np.array([[3, 1, -np.inf], [-np.inf] * 3], np.float32)
    found = Calibration(Sigmoid(-1.0, 0.0), by)(Ranking(ids, scores))
    assert (found[ids < 0] == 0).all()
    assert found[0, 0] > found[0, 1] > 0


RANKED = st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=6).map(lambda row: sorted(row, reverse=True))
SLOPES = st.tuples(st.floats(-4, 0), st.floats(-2, 2), st.sampled_from([1.0, 0.5])).map(
    lambda made: PowerSigmoid(*made)
)


@given(RANKED, SLOPES, SLOPES, st.sampled_from(["score", "margin"]))
def test_probabilities_are_those_of_the_twin(
    row: list[float], first: PowerSigmoid, others: PowerSigmoid, by: str
) -> None:
    k = len(row)
    ranking = Ranking(np.arange(k, dtype=np.int32)[None], np.array([row], np.float32))
    calibration = Calibration(first, by, others)
    found = calibration(ranking)[0]
    assert found == pytest.approx(naive.probabilities(levels_of(ranking, by)[0].tolist(), by, first, others))
    assert (np.diff(found) <= 0).all() and found[0] == first(levels_of(ranking, by)[0, 0])
    if k > 2:  # what better ones have does not depend on how many are asked for
        assert (calibration(Ranking(ranking.ids[:, :2], ranking.scores[:, :2]))[0] == found[:2]).all()
    if by == "margin":
        assert found.sum() <= 1 + 1e-12
    else:
        scores = ranking.scores[:, np.random.default_rng(k).permutation(k)]
        ranked = np.argsort(-scores[0], kind="stable")  # of equal scores the lower id is the better one, as in rankings
        np.testing.assert_array_equal(calibration.of_all(scores)[0, ranked], found)


def test_of_equal_best_classes_the_first_has_the_probability_of_the_best() -> None:
    calibration = Calibration(PowerSigmoid(0.0, 0.0, 1.0), "score", PowerSigmoid(0.0, 1.0, 1.0))
    found = calibration.of_all(np.array([[-1, 2, 2]], np.float32))[0]
    assert found.tolist() == pytest.approx([1 / (1 + np.e), 0.5, 1 / (1 + np.e)])


def softmax_rows(n: int, power: float) -> tuple[Ranking, Any]:
    """Rankings of ten classes, and the truth drawn with the chances that a softmax of their scores gives."""
    generator = np.random.default_rng(0)
    scores = -np.sort(-generator.normal(size=(n, 10)) * generator.gamma(1.0, 2.0, size=(n, 1)), axis=1)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    drawn = (generator.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(max=9)
    scores = np.sign(scores) * np.abs(scores) ** power
    ids = np.broadcast_to(np.arange(10, dtype=np.int32), scores.shape)
    return Ranking(ids, scores.astype(np.float32)), np.arange(10) == drawn[:, None]


@pytest.mark.parametrize("power", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_what_is_said_of_fresh_rows_holds(kind: str, power: float) -> None:
    ranking, right = softmax_rows(30_000, power)
    part = [Ranking(ranking.ids[half], ranking.scores[half]) for half in (slice(0, 10_000), slice(10_000, None))]
    found = fit_calibration(kind, "margin", part[0], right[:10_000], np.ones(10_000, np.float32))(part[1])
    fresh = right[10_000:]
    assert calibration_error(found[:, 0], fresh[:, 0]) < 0.025
    assert found.mean(axis=0) == pytest.approx(fresh.mean(axis=0), abs=0.03)


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
@pytest.mark.parametrize("right", [False, True])
def test_rows_that_are_never_or_always_right_make_nothing_certain(kind: str, right: bool) -> None:
    ranking = softmax_rows(98, 1.0)[0]
    truth = np.zeros((98, 10), np.bool_)
    truth[:, 0] = right
    found = fit_calibration(kind, "margin", ranking, truth, np.ones(98, np.float32))(ranking)
    assert found[:, 0] == pytest.approx(0.99 if right else 0.01, abs=0.001)
    assert (found[:, 1:] <= found[:, :1]).all() and found.sum(axis=1).max() <= 1


@given(st.data())
def test_dense_rows_add_up_to_1_and_keep_the_order(data: Any) -> None:
    n_classes = data.draw(st.integers(1, 6))
    k = data.draw(st.integers(1, n_classes))
    width = data.draw(st.integers(1, k))
    ids = np.full((1, k), -1, np.int32)
    ids[0, :width] = data.draw(st.permutations(range(n_classes)))[:width]
    level = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)
    probabilities = np.zeros((1, k))
    probabilities[0, :width] = sorted(data.draw(st.lists(level, min_size=width, max_size=width)), reverse=True)
    dense = spread_to_one(ids, probabilities, n_classes)[0]
    assert dense.sum() == pytest.approx(1)
    assert dense.argmax() == ids[0, 0]
    if probabilities[0, 0] >= 0.5 and dense.max() < 1:
        assert dense.max() == pytest.approx(probabilities[0, 0])
    assert (dense >= 0).all()
    ranked = dense[ids[0, :width]]
    assert (np.diff(ranked) <= 1e-15).all()
    others = np.setdiff1d(np.arange(n_classes), ids[0, :width])
    assert (dense[others] <= ranked[-1] + 1e-15).all()


@pytest.mark.parametrize(
    ("probabilities", "dense"),
    [
        ([5e-324], [0.5, 0.5]),
        ([5e-324, 0.0], [1.0, 0.0]),
        ([0.7, 5e-324], [0.7, 0.3]),
        ([0.6, 1e-20], [0.6, 0.4]),
        ([1.0, 5e-324], [1.0, 0.0]),
    ],
)
def test_dense_rows_of_hardly_any_probability(probabilities: list[float], dense: list[float]) -> None:
    """What was to be multiplied to 1 overflowed, and with warnings as errors `predict_proba` ended there."""
    ids = np.arange(len(probabilities), dtype=np.int32)[None]
    assert spread_to_one(ids, np.array([probabilities]), 2)[0].tolist() == pytest.approx(dense)


@pytest.mark.parametrize("calibrate", ["platt", "isotonic"])
@pytest.mark.parametrize("learner", [FeatureFocusClassifier(), PAClassifier()], ids=repr)
def test_probabilities_say_how_often_the_first_class_is_right(learner: Any, calibrate: str) -> None:
    X, y = make_rows(5, n=3000, noise=0.9, n_classes=10)
    model = type(learner)(calibrate=calibrate).fit(X[:2000], y[:2000])
    labels, found = model.predict_topk(X[2000:], 1, probabilities=True)
    right = labels[:, 0] == y[2000:]
    assert found.mean() == pytest.approx(right.mean(), abs=0.06)
    assert calibration_error(found[:, 0], right, n_bins=5) < 0.06
    sure = found[:, 0] > np.median(found)
    assert right[sure].mean() > right[~sure].mean() + 0.1


@pytest.mark.parametrize("calibrate", ["platt", "isotonic"])
def test_so_they_do_with_several_labels(calibrate: str) -> None:
    X, y = make_rows(5, n=4000, noise=0.9, n_classes=10)
    labels = [[f"class {c}"] if i % 3 else [f"class {c}", "every third"] for i, c in enumerate(y)]
    model = PAClassifier(calibrate=calibrate).fit(X[:3000], labels[:3000])
    best, found = model.predict_topk(X[3000:], 1, probabilities=True)
    right = np.array([label in row for label, row in zip(best[:, 0], labels[3000:], strict=True)])
    assert calibration_error(found[:, 0], right, n_bins=5) < 0.06


def test_two_classes_have_one_margin() -> None:
    X, y = make_rows(6, n=400, n_classes=2, noise=0.9)
    model = FeatureFocusClassifier(calibrate="platt").fit(X, y)
    dense = model.predict_proba(X)
    order = np.argsort(model.decision_function(X), kind="stable")
    assert (np.diff(dense[order, 1]) >= -1e-12).all()


def test_worthless_scores_have_one_probability() -> None:
    generator = np.random.default_rng(3)
    X, y = np.abs(generator.normal(size=(300, 4))), generator.integers(0, 5, size=300)
    model = FeatureFocusClassifier(calibrate="platt").fit(X, y)
    curve = model._decisions.calibration.curve
    assert curve.A <= 0
    assert model.predict_topk(X, 1, probabilities=True).scores.mean() == pytest.approx(0.2, abs=0.15)
