"""Repeated splits and their summary."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.measure import Summary, repeated_splits, summarise


@settings(deadline=None)
@given(st.integers(2, 60), st.integers(1, 5), st.floats(0.01, 1.0), st.integers(0, 5))
def test_each_split_divides_the_rows(n_rows, n_splits, test_fraction, seed):
    splits = list(repeated_splits(n_rows, n_splits, test_fraction, seed))
    assert len(splits) == n_splits
    for train, test in splits:
        assert np.array_equal(np.sort(np.concatenate((train, test))), np.arange(n_rows))
        assert len(test) == min(max(1, round(n_rows * test_fraction)), n_rows - 1)


def test_the_same_seed_gives_the_same_splits_however_many():
    three, five = (list(repeated_splits(100, n, random_state=7)) for n in (3, 5))
    for (train, test), (train_again, test_again) in zip(three, five, strict=False):
        assert np.array_equal(train, train_again)
        assert np.array_equal(test, test_again)
    other = next(repeated_splits(100, 1, random_state=8))
    assert not np.array_equal(three[0][1], other[1])
    assert not np.array_equal(three[0][1], three[1][1])


def test_bad_requests_fail_at_once():
    for bad, name in (
        ({"n_rows": 1}, "n_rows"),
        ({"n_splits": 0}, "n_splits"),
        ({"test_fraction": 0}, "test_fraction"),
    ):
        with pytest.raises(ValueError, match=name):
            repeated_splits(**({"n_rows": 10} | bad))


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_summary_is_mean_and_sample_deviation(values):
    summary = summarise([{"R1": value} for value in values])["R1"]
    assert summary.mean == pytest.approx(np.mean(values))
    assert summary.sd == pytest.approx(np.std(values, ddof=1))


def test_summary_prints_as_in_tables():
    assert str(Summary(0.2716, 0.0021)) == "0.272 ± 0.002"
    one = summarise([{"R1": 0.25, "HR": math.inf}])
    assert str(one["R1"]) == "0.250"
    assert str(one["HR"]) == "inf"
    assert summarise([{"HR": math.inf}, {"HR": 2.0}])["HR"].mean == math.inf


def test_results_must_hold_the_same_measures():
    with pytest.raises(ValueError, match=r"result 1 and result 0 .*: R5"):
        summarise([{"R1": 0.1}, {"R1": 0.1, "R5": 0.2}])
    with pytest.raises(ValueError, match="no results"):
        summarise([])
