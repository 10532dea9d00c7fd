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


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", None, ("a",)]), min_size=2, max_size=40),
    st.floats(0.05, 0.9),
    st.integers(0, 9),
)
def test_groups_stay_together(groups, share, seed):
    together = {group for group in groups if group is not None}
    if len(together) + groups.count(None) < 2:
        with pytest.raises(ValueError, match="two groups are needed"):
            next(repeated_splits(len(groups), 1, share, seed, groups=groups))
        return
    sizes = [groups.count(group) for group in together] + [1] * groups.count(None)
    n_test = min(max(1, round(share * len(groups))), len(groups) - 1)
    for train_rows, test_rows in repeated_splits(len(groups), 2, share, seed, groups=groups):
        assert sorted([*train_rows, *test_rows]) == list(range(len(groups))) and len(train_rows)
        for group in together:
            assert (group in {groups[i] for i in train_rows}) != (group in {groups[i] for i in test_rows})
        assert 1 <= len(test_rows) <= max(n_test, min(sizes))


def test_groups_are_drawn_anew_and_alike_for_a_seed():
    groups = np.repeat(np.arange(50), 4)
    splits = [tuple(test.tolist()) for _, test in repeated_splits(200, 5, 0.1, 3, groups=groups)]
    assert len(set(splits)) == 5 and all(len(rows) == 20 for rows in splits)
    assert splits == [tuple(test.tolist()) for _, test in repeated_splits(200, 5, 0.1, 3, groups=groups)]


def test_wrong_groups_are_told():
    with pytest.raises(ValueError, match="groups has 3 entries, but there are 4 rows"):
        next(repeated_splits(4, groups=["a", "b", "a"]))
    halves = next(repeated_splits(3, 1, 0.3, groups=[float("nan"), float("nan"), float("nan")]))
    assert len(halves[1]) == 1
