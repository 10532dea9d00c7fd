"""Measures of rankings against slow twins, scikit-learn and hand-made cases."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, top_k_accuracy_score

import naive_measure as naive
from abound.labels import Labels, encode
from abound.measure import (
    harmonic_rank,
    inverse_propensities,
    mean_reciprocal_rank,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    ranking_measures,
    recall_at_k,
)
from abound.measure.encoding import encode_ranking
from abound.measure.places import places_of, true_ranks

ALPHABET = "abcdefg"


def ranked_lists(k):
    """A row of k different labels, the last ones perhaps nothing."""
    return st.tuples(st.permutations(ALPHABET), st.integers(0, k)).map(
        lambda drawn: (drawn[0][: drawn[1]] + [None] * k)[:k]
    )


def multi_label_cases(k):
    row = st.tuples(st.lists(st.sampled_from(ALPHABET + "xy"), unique=True, max_size=5), ranked_lists(k))
    return st.lists(row, min_size=1, max_size=12)


def ragged(rows):
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return indptr, np.array([i for row in rows for i in row], dtype=np.int32)


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[st.lists(st.integers(-1, 6), unique=True, max_size=6)] * 2), max_size=8),
    st.booleans(),
)
def test_places_equal_the_twin(pairs, read_only):
    rows, others = [a for a, _ in pairs], [b for _, b in pairs]
    arrays = [*ragged(rows), *ragged(others)]
    for array in arrays:
        array.flags.writeable = not read_only
    expected = [place for row in naive.places(rows, others) for place in row]
    assert places_of(*arrays).tolist() == expected


def test_places_in_memory_maps_and_wide_types(tmp_path):
    np.save(tmp_path / "ids.npy", np.array([3, 1, 2], dtype=np.int64))
    ids = np.load(tmp_path / "ids.npy", mmap_mode="r")
    indptr = np.array([0, 2, 3], dtype=np.int32)
    assert places_of(indptr, ids, np.array([0, 1, 3]), np.array([1, 0, 2])).tolist() == [0, 1, 2]


def test_long_work_comes_in_parts(monkeypatch):
    monkeypatch.setattr("abound.measure.places._COMPARISONS_A_CALL", 10)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(9)[: rng.integers(0, 6)].tolist() for _ in range(40)]
    others = [rng.permutation(9)[: rng.integers(0, 6)].tolist() for _ in range(40)]
    expected = [place for row in naive.places(rows, others) for place in row]
    assert places_of(*ragged(rows), *ragged(others)).tolist() == expected


@settings(deadline=None)
@given(multi_label_cases(4), st.integers(1, 4))
def test_multi_label_measures_equal_the_twins(case, k):
    true, ranked = [t for t, _ in case], [r for _, r in case]
    assert recall_at_k(true, ranked, k) == pytest.approx(naive.recall(true, ranked, k))
    assert mean_reciprocal_rank(true, ranked) == pytest.approx(naive.mean_reciprocal_rank(true, ranked))
    assert precision_at_k(true, ranked, k) == pytest.approx(naive.precision(true, ranked, k))
    assert ndcg_at_k(true, ranked, k) == pytest.approx(naive.ndcg(true, ranked, k))


@settings(deadline=None)
@given(
    multi_label_cases(4),
    st.lists(st.lists(st.sampled_from(ALPHABET), unique=True, max_size=4), min_size=1, max_size=30),
    st.integers(1, 4),
)
def test_propensity_scored_measures_equal_the_twins(case, train, k):
    true, ranked = [t for t, _ in case], [r for _, r in case]
    assert ps_precision_at_k(true, ranked, k, train) == pytest.approx(naive.ps_precision(true, ranked, k, train))
    assert ps_ndcg_at_k(true, ranked, k, train) == pytest.approx(naive.ps_ndcg(true, ranked, k, train))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(1, 30))
def test_recall_equals_top_k_accuracy(seed, n_classes, n_rows):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(n_classes), (n_rows, 1)), axis=1).astype(float)
    y = rng.integers(0, n_classes, n_rows)
    ranked = np.argsort(-scores, axis=1)
    for k in range(1, n_classes):
        expected = top_k_accuracy_score(y, scores, k=k, labels=np.arange(n_classes))
        assert recall_at_k(y, ranked, k) == pytest.approx(expected)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 30))
def test_ndcg_equals_scikit_learn(seed, n_classes, n_rows):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(n_classes), (n_rows, 1)), axis=1).astype(float)
    indicator = (rng.random((n_rows, n_classes)) < 0.3).astype(int)
    ranked = np.argsort(-scores, axis=1)
    for k in range(1, n_classes + 1):
        assert ndcg_at_k(sp.csr_array(indicator), ranked, k) == pytest.approx(ndcg_score(indicator, scores, k=k))


def test_harmonic_rank_as_the_paper_explains_it():
    perfect_half_the_time = [["a", "b", "c"], ["b", "c", "d"]]
    always_third = [["b", "c", "a"], ["c", "b", "a"]]
    assert harmonic_rank(["a", "a"], perfect_half_the_time) == pytest.approx(2)
    assert harmonic_rank(["a", "a"], always_third) == pytest.approx(3)
    assert harmonic_rank(["z", "z"], always_third) == math.inf


def test_only_the_best_ranked_true_class_counts():
    assert ranking_measures([[2, 0, 1]], encode([["a", "b"]]), ks=(1, 2)) == {"R1": 0, "R2": 1, "MRR": 0.5, "HR": 2}


def test_unseen_labels_are_errors_whichever_way_they_are_numbered():
    classes = np.array(["a", "b"])
    appended = encode(["a", "x", "y"], known=classes)
    minus_one = encode(["a", "x", "y"]).onto(classes)
    assert (minus_one.ids == -1).sum() == 2
    ranked = np.array([[0, 1], [0, -1], [-1, -1]])
    for truth in (appended, minus_one):
        assert ranking_measures(ranked, truth, ks=(1, 2)) == pytest.approx(
            {"R1": 1 / 3, "R2": 1 / 3, "MRR": 1 / 3, "HR": 3}
        )


def test_labels_of_any_kind():
    topk = np.empty((2, 2), dtype=object)
    topk[:] = [[("a", 1), ("b", 2)], [("b", 2), None]]
    assert recall_at_k([("a", 1), ("a", 1)], topk, 1) == 0.5
    assert recall_at_k([3, 5], np.array([[3, 4], [4, 5]]), 2) == 1
    assert encode_ranking([], np.array(["a"])).shape == (0, 0)


def test_propensities_grow_with_the_class_and_stay_above_one():
    inverse = inverse_propensities(np.array([0, 1, 10, 1000]), n_train=100_000)
    assert (np.diff(inverse) < 0).all()
    assert (inverse >= 1).all()
    assert inverse_propensities([5], n_train=1).tolist() == [1.0]
    assert inverse_propensities([3], 1000, a=0.6, b=2.6)[0] == pytest.approx(
        1 + (math.log(1000) - 1) * 3.6**0.6 * 5.6**-0.6
    )


def test_errors_say_what_to_do():
    truth = encode(["a", "b"])
    with pytest.raises(ValueError, match="k=3, but only 2 classes"):
        ranking_measures([[0, 1], [1, 0]], truth, ks=(3,))
    with pytest.raises(ValueError, match="3 rows, the truth 2"):
        true_ranks([[0], [1], [0]], truth)
    with pytest.raises(ValueError, match="two-dimensional"):
        true_ranks([0, 1], truth)
    with pytest.raises(ValueError, match="two-dimensional"):
        true_ranks([[0.5], [1.0]], truth)
    with pytest.raises(TypeError, match=r"known=model\.classes_"):
        true_ranks([[0], [1]], ["a", "b"])
    with pytest.raises(ValueError, match="no rows"):
        true_ranks(np.empty((0, 1), int), Labels(np.zeros(1, np.int64), np.empty(0, np.int32), np.array([]), "lists"))
    with pytest.raises(ValueError, match="no rows"):
        recall_at_k([], [], 1)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        recall_at_k(["a", "b"], np.array(["a", "b"]), 1)
    with pytest.raises(ValueError, match="k=0"):
        recall_at_k(["a"], [["a"]], 0)
