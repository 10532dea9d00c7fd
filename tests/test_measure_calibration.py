"""Reliability by bins of equal mass, and the calibration error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_measure as naive
from abound.measure import Reliability, calibration_bound, calibration_error, reliability
from abound.measure.calibration import RESAMPLES
from abound.validation import make_generator

PAIRS = st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.booleans()), min_size=1)


@settings(deadline=None)
@given(PAIRS, st.integers(1, 20))
def test_bins_equal_the_twin(pairs, n_bins):
    said, right = [p for p, _ in pairs], [r for _, r in pairs]
    found = reliability(said, right, n_bins)
    expected = naive.reliability(said, right, n_bins)
    assert found.rows.tolist() == [rows for _, _, rows in expected]
    assert found.said == pytest.approx([mean for mean, _, _ in expected], abs=1e-12)
    assert found.right == pytest.approx([share for _, share, _ in expected], abs=1e-12)
    error = calibration_error(said, right, n_bins)
    assert error == pytest.approx(naive.calibration_error(said, right, n_bins), abs=1e-12)
    assert 0 <= error <= 1 and error == found.error


@settings(deadline=None)
@given(PAIRS, st.integers(1, 20), st.randoms())
def test_the_order_of_rows_does_not_matter(pairs, n_bins, random):
    one = calibration_error(*zip(*pairs, strict=True), n_bins=n_bins)
    random.shuffle(pairs)
    assert calibration_error(*zip(*pairs, strict=True), n_bins=n_bins) == pytest.approx(one, abs=1e-12)


def test_masses_are_equal_and_said_rises():
    rng = np.random.default_rng(0)
    said = rng.beta(8, 1, size=1000)
    found = reliability(said, rng.random(1000) < said)
    assert len(found.rows) == 15 and set(found.rows.tolist()) == {66, 67} and found.rows.sum() == 1000
    assert (np.diff(found.said) > 0).all()


def test_honest_probabilities_have_a_small_error_and_others_a_large_one():
    rng = np.random.default_rng(1)
    said = rng.random(20_000)
    assert calibration_error(said, rng.random(20_000) < said) < 0.02
    assert calibration_error(said, rng.random(20_000) < said / 2) == pytest.approx(0.25, abs=0.02)
    assert calibration_error([1.0, 1.0], [0, 0]) == 1 and calibration_error([1.0, 0.0], [1, 0]) == 0


def test_the_bound_is_that_of_resampled_rows_and_falls_with_their_number():
    rng = np.random.default_rng(2)
    said = rng.random(20)
    right = rng.random(20) < said
    draws = make_generator(0)
    errors = []
    for _ in range(RESAMPLES):
        rows = draws.integers(0, 20, 20)
        errors.append(naive.calibration_error(said[rows].tolist(), right[rows].tolist(), 5))
    mean = sum(errors) / RESAMPLES
    spread = (sum((error - mean) ** 2 for error in errors) / (RESAMPLES - 1)) ** 0.5
    assert calibration_bound(said, right, 5) == pytest.approx(calibration_error(said, right, 5) + 1.645 * spread)
    many = rng.random(20_000)
    assert calibration_bound(many, rng.random(20_000) < many) < 0.025
    assert calibration_bound([1.0, 1.0], [0, 0]) == 1


def test_a_reliability_is_three_columns():
    said, right, rows = reliability([0.5], [True])
    assert (said.tolist(), right.tolist(), rows.tolist()) == ([0.5], [1.0], [1])
    assert Reliability(np.array([0.2, 0.9]), np.array([0.4, 0.9]), np.array([3, 1])).error == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("said", "right", "n_bins", "message"),
    [
        ([0.5, 1.5], [True, False], 15, "from 0 to 1, got 1.5 in place 1"),
        ([float("nan")], [True], 15, "from 0 to 1, got nan"),
        ([0.5], [True, False], 15, "equally long"),
        ([], [], 15, "not empty"),
        ([[0.5]], [[True]], 15, "one-dimensional"),
        ([0.5], [2], 15, "true or false"),
        ([0.5], [True], 0, "n_bins=0"),
    ],
)
def test_wrong_input_is_told(said, right, n_bins, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(said, right, n_bins)
