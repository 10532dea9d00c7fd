"""Top-k ranking against a dense twin, with ties, limits, offsets and threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from abound import ClassIndex
from abound.rank import rank_topk, score_all
from abound.rank.common_features import LEAST_USES, common_features
from abound.validation import as_rows
from generate import make_rows, sparse_rows


@st.composite
def weight_matrices(draw: Any, n_features: int) -> Any:
    n_classes = draw(st.integers(1, 9))
    value = st.sampled_from([0.0, 0.0, 0.5, 1.0, -0.5, -1.0])
    row = st.lists(value, min_size=n_classes, max_size=n_classes)
    return np.array(draw(st.lists(row, min_size=n_features, max_size=n_features)), dtype=np.float32)


@given(data=st.data())
def test_ranking_equals_its_twin(data: st.DataObject) -> None:
    X = data.draw(sparse_rows(max_rows=8, max_features=5))
    # Often enough, a feature is written out in full.
    X = sp.vstack([X] * data.draw(st.sampled_from([1, LEAST_USES])), format="csr")
    dense = X.toarray()
    weights = data.draw(weight_matrices(X.shape[1]))
    n_classes = weights.shape[1]
    k = data.draw(st.integers(1, 12))
    every_class = data.draw(st.booleans())
    mask = st.none() | st.lists(st.booleans(), min_size=n_classes, max_size=n_classes).map(np.array)
    allowed = data.draw(mask)
    offset = data.draw(st.none() | st.just(np.linspace(-1, 1, X.shape[1], dtype=np.float32)))
    index = ClassIndex.from_matrix(weights)
    index = ClassIndex(index.indptr, index.classes, index.weights, n_classes, offset)
    found = rank_topk(index, as_rows(X), k, every_class=every_class, allowed=allowed)
    assert found.ids.shape == found.scores.shape == (X.shape[0], min(k, n_classes))
    for i in range(X.shape[0]):
        expected = naive.rank(weights, dense[i], k, every_class, allowed, offset)
        got = [(c, s) for c, s in zip(found.ids[i].tolist(), found.scores[i].tolist(), strict=True) if c >= 0]
        assert [c for c, _ in got] == [c for c, _ in expected]
        assert [s for _, s in got] == pytest.approx([s for _, s in expected], abs=1e-5)
        assert (found.ids[i, len(got) :] == -1).all()
        assert np.isneginf(found.scores[i, len(got) :]).all()


@given(data=st.data())
def test_dense_scores_are_the_matrix_product(data: st.DataObject) -> None:
    X = data.draw(sparse_rows(max_rows=8, max_features=5))
    weights = data.draw(weight_matrices(X.shape[1]))
    offset = np.linspace(-1, 1, X.shape[1], dtype=np.float32)
    index = ClassIndex.from_matrix(weights)
    plain = score_all(index, as_rows(X))
    np.testing.assert_allclose(plain, X.toarray() @ weights, atol=1e-5)
    shifted = ClassIndex(index.indptr, index.classes, index.weights, index.n_classes, offset)
    np.testing.assert_allclose(score_all(shifted, as_rows(X)), X.toarray() @ (weights + offset[:, None]), atol=1e-5)


@pytest.mark.parametrize("every_class", [False, True])
def test_threads_change_no_bit(every_class: bool) -> None:
    X, _ = make_rows(0, n=500)
    rng = np.random.default_rng(0)
    weights = sp.random_array((X.shape[1], 300), density=0.2, rng=rng, dtype=np.float32)
    index = ClassIndex.from_matrix(weights)
    one = rank_topk(index, as_rows(X), 7, every_class=every_class)
    two = rank_topk(index, as_rows(X), 7, every_class=every_class, n_jobs=2)
    np.testing.assert_array_equal(one.ids, two.ids)
    np.testing.assert_array_equal(one.scores.view(np.int32), two.scores.view(np.int32))


@pytest.mark.parametrize("every_class", [False, True])
def test_features_written_out_in_full_change_no_bit(every_class: bool) -> None:
    X, _ = make_rows(4, n=200)
    weights = np.random.default_rng(0).normal(size=(X.shape[1], 50)).astype(np.float32)
    weights[::2, 5:] = 0
    index, rows = ClassIndex.from_matrix(weights), as_rows(X)
    assert len(common_features(index, rows).weights) > 1
    assert not len(common_features(index, rows.part(0, 10)).place)
    together = rank_topk(index, rows, 7, every_class=every_class)
    for i in range(rows.n_rows):
        alone = rank_topk(index, rows.part(i, i + 1), 7, every_class=every_class)
        np.testing.assert_array_equal(alone.ids[0], together.ids[i])
        np.testing.assert_array_equal(alone.scores[0], together.scores[i])


def test_a_part_of_the_rows_ranks_like_the_whole() -> None:
    X, _ = make_rows(1)
    index = ClassIndex.from_matrix(np.random.default_rng(0).random((X.shape[1], 9), dtype=np.float32))
    rows = as_rows(X)
    whole = rank_topk(index, rows, 3)
    part = rank_topk(index, rows.part(20, 70), 3)
    np.testing.assert_array_equal(whole.ids[20:70], part.ids)


def test_marks_of_rows_begin_anew() -> None:
    """A byte has 255 of them: more rows in one call rank as each alone does."""
    rng = np.random.default_rng(3)
    X = sp.random_array((700, 30), density=0.1, rng=rng, format="csr", dtype=np.float32)
    weights = sp.random_array((30, 100), density=0.1, rng=rng, dtype=np.float32).toarray()
    index, rows = ClassIndex.from_matrix(weights), as_rows(X)
    together = rank_topk(index, rows, 5)
    for i in range(0, 700, 7):
        alone = rank_topk(index, rows.part(i, i + 1), 5)
        np.testing.assert_array_equal(together.ids[i], alone.ids[0])
        np.testing.assert_array_equal(together.scores[i], alone.scores[0])
    expected = X @ weights
    np.testing.assert_allclose(np.maximum(together.scores[:, 0], 0), expected.max(axis=1), atol=1e-5)


def test_scores_that_cancel_or_vanish_are_counted_once() -> None:
    """A score of 0 after votes, or a vote too small for float32, must not make a class appear twice."""
    tiny = np.float32(1e-30)
    index = ClassIndex.from_edges([0, 1, 2], [0, 0, 0], [1.0, -1.0, tiny], n_features=3, n_classes=2)
    rows = as_rows(sp.csr_array(np.array([[1.0, 1.0, tiny]], dtype=np.float32)))
    found = rank_topk(index, rows, 2, every_class=True)
    assert found.ids.tolist() == [[0, 1]]
    assert rank_topk(index, rows, 2).ids.tolist() == [[-1, -1]]


@pytest.mark.parametrize("n_classes", [4, 500])
@pytest.mark.parametrize("every_class", [False, True])
def test_a_class_whose_score_is_minus_infinity_is_listed_once(every_class: bool, n_classes: int) -> None:
    """It was taken for one without votes, and listed at every vote: where there are many classes, it ranked at 0."""
    n = 50
    edges: Any = np.repeat(np.arange(n), 2), np.tile([0, 1], n), np.tile([-np.inf, 1.0], n)
    index = ClassIndex.from_edges(*edges, n_features=n, n_classes=n_classes)
    found = rank_topk(index, as_rows(sp.csr_array(np.ones((3, n), dtype=np.float32))), 4, every_class=every_class)
    ranked = [1, 2, 3, 4][: n_classes - 1] if every_class else [1]
    for row, scores in zip(found.ids.tolist(), found.scores.tolist(), strict=True):
        assert row == ranked + [-1] * (4 - len(ranked))
        assert scores == [n, 0, 0, 0][: len(ranked)] + [-np.inf] * (4 - len(ranked))


def test_no_rows_and_no_features() -> None:
    index = ClassIndex.from_edges([], [], [], n_features=0, n_classes=3)
    found = rank_topk(index, as_rows(sp.csr_array((2, 0), dtype=np.float32)), 2)
    assert found.ids.tolist() == [[-1, -1], [-1, -1]]
    assert rank_topk(index, as_rows(sp.csr_array((0, 0), dtype=np.float32)), 2).ids.shape == (0, 2)


def test_classes_by_bias_are_sorted_once() -> None:
    index = ClassIndex.from_matrix(np.eye(4, dtype=np.float32))
    assert len(index.by_bias) == 0
    biased = replace(index, bias=np.array([0, 2, -1, 2], np.float32))
    assert biased.by_bias.tolist() == [1, 3, 0, 2]
    assert biased.by_bias is biased.by_bias
    assert replace(biased, bias=-biased.bias).by_bias.tolist() == [2, 0, 1, 3], "another index sorts its own"
