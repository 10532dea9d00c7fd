"""Cuts of rankings against their slow twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_thresholds as naive
from abound.labels import Labels, encode
from abound.measure import compare_cuts, learn_cut, take
from abound.measure.cuts import ClassCut, InstanceCut, RankCut, ShareCut, ZeroCut, highest_scores
from abound.measure.thresholds import CUTS, FACTORS, RIDGES, ROW_CUTS, _ridge, best_thresholds, right_places


@st.composite
def rankings(draw: Any, max_rows: int = 12, n_classes: int = 5) -> tuple[Any, Any, Labels, list[set[int]]]:
    """Rankings of some of the classes, with ties, empty rows and rows without labels, and true labels."""
    k = draw(st.integers(1, n_classes))
    n = draw(st.integers(1, max_rows))
    ids, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)
    truth = []
    for i in range(n):
        order = draw(st.permutations(range(n_classes)))
        width = draw(st.integers(0, k))
        levels = draw(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]), min_size=width, max_size=width))
        ids[i, :width], scores[i, :width] = order[:width], sorted(levels, reverse=True)
        truth.append(draw(st.sets(st.integers(0, n_classes - 1), max_size=3)))
    labels = encode([sorted(row) for row in truth], known=np.arange(n_classes))
    ids.flags.writeable = scores.flags.writeable = False
    return ids, scores, labels, truth


def sets(ids: Any, taken: Any) -> list[set[int]]:
    return [set(row[mask].tolist()) for row, mask in zip(ids, taken, strict=True)]


@given(rankings())
def test_right_places(case: Any) -> None:
    ids, _, labels, truth = case
    for i, row in enumerate(right_places(ids, labels)):
        assert row.tolist() == [c in truth[i] for c in ids[i].tolist()]


@given(rankings())
def test_rank_cut_takes_the_best_r(case: Any) -> None:
    ids, scores, labels, truth = case
    rule = learn_cut("rcut", ids, scores, labels)
    assert isinstance(rule, RankCut)
    assert rule.r == naive.best_r(naive.rows_of(ids, scores), truth, ids.shape[1])
    assert sets(ids, rule(ids, scores)) == [{c for c in row[: rule.r].tolist() if c >= 0} for row in ids]


@given(rankings())
def test_best_thresholds_make_fewest_mistakes(case: Any) -> None:
    ids, scores, labels, truth = case
    found = best_thresholds(ids, scores, right_places(ids, labels))
    expected = [naive.best_threshold(row, truth[i]) for i, row in enumerate(naive.rows_of(ids, scores))]
    np.testing.assert_allclose(found, expected)


@given(rankings())
def test_highest_scores_are_padded_with_the_lowest(case: Any) -> None:
    ids, scores, _, _ = case
    found = highest_scores(ids, scores, 7)
    for row, levels in zip(naive.rows_of(ids, scores), found.tolist(), strict=True):
        known = [s for _, s in row]
        assert levels == known + [known[-1] if known else 0.0] * (7 - len(known))


@pytest.mark.parametrize("n", [4, 30])
def test_ridge_leaves_one_row_out(n: int) -> None:
    generator = np.random.default_rng(n)
    features, targets = generator.normal(size=(n, 6)), generator.normal(size=n)
    features[:, 1] = features[:, 0]
    features -= features.mean(axis=0)
    targets -= targets.mean()
    errors = [naive.ridge_left_out(features, targets, penalty) for penalty in RIDGES]
    best = RIDGES[int(np.argmin(errors))]
    np.testing.assert_allclose(_ridge(features, targets), naive.ridge(features, targets, best)[0], atol=1e-8)


@given(rankings())
def test_instance_cut_takes_at_least_the_best(case: Any) -> None:
    ids, scores, labels, _ = case
    rule = learn_cut("instance", ids, scores, labels)
    assert isinstance(rule, InstanceCut)
    taken = rule(ids, scores)
    np.testing.assert_array_equal(taken[:, 0], ids[:, 0] >= 0)
    assert not taken[ids < 0].any()
    for i in range(len(ids)):
        np.testing.assert_array_equal(rule(ids[i : i + 1], scores[i : i + 1])[0], taken[i])


def test_instance_cut_learns_a_threshold_that_moves_with_the_row() -> None:
    generator = np.random.default_rng(0)
    scale = generator.uniform(1, 9, size=(400, 1))
    n_true = generator.integers(1, 4, size=(400, 1))
    places = np.arange(8)
    scores = scale * np.where(places < n_true, 1.0, 0.3) - 0.001 * places
    ids = np.tile(np.arange(8, dtype=np.int32), (400, 1))
    truth = encode([list(range(n)) for n in n_true[:, 0].tolist()], known=np.arange(8))
    known, new = np.arange(300), np.arange(300, 400)
    expected = right_places(ids[new], truth.take(new))
    moving = learn_cut("instance", ids[known], scores[known], truth.take(known))(ids[new], scores[new])
    fixed = learn_cut("scut", ids[known], scores[known], truth.take(known))(ids[new], scores[new])
    assert (moving != expected).mean() < 0.5 * (fixed != expected).mean()


@given(rankings(), st.booleans())
def test_class_cut_has_the_best_f1_of_each_class(case: Any, fbr: bool) -> None:
    ids, scores, labels, truth = case
    rule = learn_cut("scut-fbr" if fbr else "scut", ids, scores, labels)
    assert isinstance(rule, ClassCut)
    rows = naive.rows_of(ids, scores)
    if not any(rows):
        assert not rule(ids, scores).any()
        return
    expected = [naive.class_threshold(rows, truth, c, fbr, rule.otherwise) for c in range(labels.n_classes)]
    np.testing.assert_allclose(rule.thresholds, expected, rtol=0, atol=1e-12)
    taken = [{c for c, s in row if s >= expected[c]} for row in rows]
    assert sets(ids, rule(ids, scores)) == taken


@given(rankings())
def test_pooled_threshold_is_that_of_one_class(case: Any) -> None:
    ids, scores, labels, truth = case
    rows = naive.rows_of(ids, scores)
    if not any(rows):
        return
    pooled = [[(0, s)] for row in rows for _, s in row]
    hits = [{0} if c in truth[i] else set() for i, row in enumerate(rows) for c, _ in row]
    missed = [{0}] * (sum(map(len, truth)) - sum(map(len, hits)))
    expected = naive.class_threshold(pooled + [[] for _ in missed], hits + missed, 0, False, 0.0)
    rule = learn_cut("scut", ids, scores, labels)
    if any(hits):
        assert isinstance(rule, ClassCut)
        assert rule.otherwise == pytest.approx(expected)


def test_a_weak_class_takes_its_highest_score_with_fbr() -> None:
    ids = np.zeros((40, 1), np.int32)
    scores = np.arange(40, 0, -1, dtype=np.float32)[:, None]
    truth = encode([[]] * 39 + [[0]], known=np.arange(1))
    plain = learn_cut("scut", ids, scores, truth)(ids, scores)
    weak = learn_cut("scut-fbr", ids, scores, truth)(ids, scores)
    assert (int(plain.sum()), int(weak.sum())) == (40, 1)


@given(rankings(), st.lists(st.floats(0, 2), min_size=5, max_size=5))
def test_share_cut_gives_classes_their_best_rows(case: Any, shares: list[float]) -> None:
    ids, scores, _, _ = case
    rule = ShareCut(np.array(shares))
    assert sets(ids, rule(ids, scores)) == naive.share_taken(naive.rows_of(ids, scores), shares)


@given(rankings())
def test_share_cut_takes_the_best_factor(case: Any) -> None:
    ids, scores, labels, truth = case
    rule = learn_cut("pcut", ids, scores, labels)
    assert isinstance(rule, ShareCut)
    rows, priors = naive.rows_of(ids, scores), labels.counts / len(labels)
    results = [naive.f1(naive.share_taken(rows, (factor * priors).tolist()), truth) for factor in FACTORS]
    assert naive.f1(sets(ids, rule(ids, scores)), truth) == pytest.approx(max(results))
    known = learn_cut("pcut", ids, scores, labels, priors=np.array([1.0, 0, 0, 0, 0]))
    assert not known(ids, scores)[ids > 0].any()


@given(rankings())
def test_zero_cut(case: Any) -> None:
    ids, scores, labels, _ = case
    rule = learn_cut("zero", ids, scores, labels)
    assert isinstance(rule, ZeroCut)
    assert sets(ids, rule(ids, scores)) == [{c for c, s in row if s > 0} for row in naive.rows_of(ids, scores)]


@given(rankings(), st.sampled_from(CUTS))
def test_at_least_one_class_if_so_asked(case: Any, name: str) -> None:
    ids, scores, labels, _ = case
    rule = learn_cut(name, ids, scores, labels)
    plain, filled = rule(ids, scores), take(rule, ids, scores, True)
    np.testing.assert_array_equal(take(rule, ids, scores, False), plain)
    some = plain.any(axis=1)
    np.testing.assert_array_equal(filled[some], plain[some])
    np.testing.assert_array_equal(filled[~some, 0], ids[~some, 0] >= 0)
    assert not filled[~some, 1:].any()


@pytest.mark.parametrize("name", ROW_CUTS)
def test_rules_of_rows_do_not_look_at_other_rows(name: str) -> None:
    generator = np.random.default_rng(1)
    ids = np.argsort(generator.random((60, 9)), axis=1).astype(np.int32)[:, :6]
    scores = -np.sort(-generator.normal(size=(60, 6)).astype(np.float32), axis=1)
    labels = encode([[int(c)] for c in generator.integers(0, 9, size=60)], known=np.arange(9))
    rule = learn_cut(name, ids, scores, labels)
    whole = rule(ids, scores)
    for i in range(60):
        np.testing.assert_array_equal(rule(ids[[i]], scores[[i]])[0], whole[i])


def test_comparison_is_by_rows_that_were_not_learned_from() -> None:
    generator = np.random.default_rng(2)
    ids = np.argsort(generator.random((90, 30)), axis=1).astype(np.int32)
    scores = -np.sort(-generator.normal(size=(90, 30)), axis=1)
    labels = encode([[int(c)] for c in generator.integers(0, 30, size=90)], known=np.arange(30))
    compared = compare_cuts(("rcut", "scut"), ids, scores, labels)
    own = learn_cut("scut", ids, scores, labels)(ids, scores)
    truth = right_places(ids, labels)
    assert compared["scut"] < 0.8 * 2 * (own & truth).sum() / (own.sum() + truth.sum())
    assert set(compared) == {"rcut", "scut"}


def test_rules_follow_their_classes() -> None:
    moved = np.array([1, -1, 0, 0], np.int32)
    thresholds = ClassCut(np.array([1.0, 2.0, 3.0, 4.0]), 0.5).remap_classes(moved, 3)
    assert thresholds.thresholds.tolist() == [4.0, 1.0, 0.5]
    assert ShareCut(np.array([0.1, 0.2, 0.3, 0.4])).remap_classes(moved, 2).shares.tolist() == [0.7, 0.1]
    late = np.array([[2, 3]], np.int32), np.array([[0.6, 0.4]])
    assert ClassCut(np.array([1.0, 1.0]), 0.5)(*late).tolist() == [[True, False]]
    assert ShareCut(np.array([1.0, 1.0]))(*late).tolist() == [[False, False]]


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(ValueError, match="'deep'"):
        learn_cut("deep", np.zeros((1, 1), np.int32), np.zeros((1, 1)), encode([[0]]))
