"""Paired tests against SciPy and enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, wilcoxon

import naive_measure as naive
from abound.measure import class_f1_test, decision_sign_test, sign_test, wilcoxon_test

VALUE_PAIR = st.tuples(*[st.integers(0, 6).map(lambda i: i / 8)] * 2)
VALUES = st.lists(VALUE_PAIR, min_size=1, max_size=25)
ROW = st.lists(st.sampled_from("abcd"), unique=True, max_size=3)


@settings(deadline=None)
@given(VALUES)
def test_sign_test_equals_scipy_and_enumeration(pairs):
    first, second = zip(*pairs, strict=True)
    result = sign_test(first, second)
    wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    assert (result.wins, result.losses, result.ties) == (wins, losses, len(pairs) - wins - losses)
    assert result.p_value == pytest.approx(naive.sign_p(wins, losses))
    if wins + losses:
        assert result.p_value == pytest.approx(binomtest(wins, wins + losses).pvalue)
    assert result.better == (None if wins == losses else "first" if wins > losses else "second")
    mirrored = sign_test(first, second, higher_is_better=False)
    assert (mirrored.wins, mirrored.losses, mirrored.p_value) == (losses, wins, result.p_value)


def test_ten_splits_as_in_the_paper():
    """At p <= 0.05 nine or ten wins of ten are significant, eight are not."""
    for wins, significant in ((8, False), (9, True), (10, True)):
        result = sign_test([1.0] * wins + [0.0] * (10 - wins), [0.5] * 10)
        assert result.significant() is significant
    assert not sign_test([1, 0], [0, 1]).significant(1.0)


def check_wilcoxon(pairs):
    first, second = map(np.array, zip(*pairs, strict=True))
    result = wilcoxon_test(first, second)
    assert result.wins + result.losses + result.ties == len(pairs)
    if (first == second).all():
        assert (result.p_value, result.better) == (1.0, None)
    else:
        assert result.p_value == pytest.approx(min(1.0, wilcoxon((first - second)[first != second]).pvalue))
    return result


@settings(deadline=None)
@given(st.lists(VALUE_PAIR, min_size=30, max_size=60).filter(lambda pairs: sum(a != b for a, b in pairs) > 15))
def test_wilcoxon_equals_scipy(pairs):
    result = check_wilcoxon(pairs)
    mirrored = check_wilcoxon([(b, a) for a, b in pairs])
    assert mirrored.p_value == pytest.approx(result.p_value)
    assert {result.better, mirrored.better} in ({None}, {"first", "second"})


# SciPy goes through all signs of few tied differences, which takes a tenth of a second.
@settings(max_examples=8, deadline=None)
@given(st.lists(VALUE_PAIR, min_size=1, max_size=10))
def test_wilcoxon_of_few_tied_values_equals_scipy(pairs):
    check_wilcoxon(pairs)


@settings(deadline=None)
@given(st.lists(st.integers(1, 100), unique=True, min_size=1, max_size=9), st.data())
def test_wilcoxon_equals_enumeration_without_ties(sizes, data):
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(sizes), max_size=len(sizes)))
    gains = [size * sign for size, sign in zip(sizes, signs, strict=True)]
    assert wilcoxon_test(gains, [0] * len(gains)).p_value == pytest.approx(naive.wilcoxon_p(gains))


def test_a_few_large_gains_outweigh_many_small_losses():
    gains = [10, 9, 8, 7, -1, -2, -3, -4, -5]
    result = wilcoxon_test(gains, [0] * 9)
    assert (result.wins, result.losses, result.better) == (4, 5, "first")


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from("abc")] * 3), min_size=1, max_size=30))
def test_decisions_of_single_labels_are_rows(rows):
    y_true, first, second = map(list, zip(*rows, strict=True))
    result = decision_sign_test(y_true, first, second)
    assert result.wins == sum(a == t != b for t, a, b in rows)
    assert result.losses == sum(b == t != a for t, a, b in rows)
    assert result.wins + result.losses + result.ties == len(rows)
    assert result.p_value == pytest.approx(naive.sign_p(result.wins, result.losses))


@settings(deadline=None)
@given(st.lists(st.tuples(ROW, ROW, ROW), min_size=1, max_size=12))
def test_decisions_of_several_labels_are_rows_and_classes(rows):
    y_true, first, second = map(list, zip(*rows, strict=True))
    labels = sorted({label for row in rows for part in row for label in part})
    wins = losses = 0
    for truth, a, b in rows:
        for label in labels:
            right_a, right_b = ((label in predicted) == (label in truth) for predicted in (a, b))
            wins += right_a > right_b
            losses += right_b > right_a
    result = decision_sign_test(y_true, first, second)
    assert (result.wins, result.losses) == (wins, losses)
    assert result.ties == len(rows) * len(labels) - wins - losses


@settings(deadline=None)
@given(st.lists(st.tuples(ROW, ROW, ROW), min_size=1, max_size=12))
def test_class_f1_test_compares_classes(rows):
    y_true, first, second = map(list, zip(*rows, strict=True))
    labels = sorted({label for row in rows for part in row for label in part})
    pairs = [(naive.f1(label, y_true, first), naive.f1(label, y_true, second)) for label in labels]
    result = class_f1_test(y_true, first, second)
    assert result.wins == sum(a > b for a, b in pairs)
    assert result.losses == sum(a < b for a, b in pairs)
    assert result.ties == sum(a == b for a, b in pairs)


def test_many_decisions():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 1000, 100_000)
    first = np.where(rng.random(len(y)) < 0.60, y, -1)
    second = np.where(rng.random(len(y)) < 0.55, y, -1)
    result = decision_sign_test(y, first, second)
    assert result.better == "first"
    assert result.significant(1e-6)
    assert "first is better" in str(result)


def test_infinite_values_and_bad_input():
    assert sign_test([math.inf, math.inf], [math.inf, 2.0], higher_is_better=False).losses == 1
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        sign_test([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="pair 1 holds NaN"):
        wilcoxon_test([1, math.nan], [1, 2])
    assert str(sign_test([1], [1])) == "neither is better: 0 wins, 0 losses, 1 ties, p = 1 (sign test)"
