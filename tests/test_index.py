"""ClassIndex: lists in order, and every operation against a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from abound import ClassIndex
from abound.validation import as_rows


@st.composite
def matrices(draw: Any) -> Any:
    n, k = draw(st.integers(0, 6)), draw(st.integers(1, 70))
    value = st.sampled_from([0.0, 0.0, 0.5, -0.5, 1.0]) | st.floats(-1, 1, width=32, allow_subnormal=False)
    rows = draw(st.lists(st.lists(value, min_size=k, max_size=k), min_size=n, max_size=n))
    return np.array(rows, dtype=np.float32).reshape(n, k)


def lists_of(index: ClassIndex) -> list[list[tuple[int, float]]]:
    pairs = list(zip(index.classes.tolist(), index.weights.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(index.indptr[:-1], index.indptr[1:], strict=True)]


@given(matrices())
def test_lists_are_heaviest_first_and_complete(dense: Any) -> None:
    index = ClassIndex.from_matrix(dense)
    expected = [
        sorted(((c, float(w)) for c, w in enumerate(row) if w != 0), key=lambda edge: (-abs(edge[1]), edge[0]))
        for row in dense
    ]
    assert lists_of(index) == expected
    np.testing.assert_array_equal(index.to_matrix().toarray(), dense)
    np.testing.assert_array_equal(index.to_prototypes().toarray(), dense.T)
    assert index.indegrees.tolist() == (dense != 0).sum(axis=0).tolist()
    np.testing.assert_allclose(index.row_sums(), dense.sum(axis=1), atol=1e-5)


@given(
    matrices(),
    st.none() | st.integers(0, 5),
    st.none() | st.sampled_from([0.0, 0.3, 0.5]),
    st.none() | st.integers(0, 40),
)
def test_prune_keeps_the_heaviest(dense: Any, degree: int | None, weight: float | None, edges: int | None) -> None:
    index = ClassIndex.from_matrix(dense)
    pruned = index.prune(max_degree=degree, min_weight=weight, max_edges=edges)
    kept = [edge for edge in lists_of(index)]
    if degree is not None:
        kept = [row[:degree] for row in kept]
    if weight is not None:
        kept = [[edge for edge in row if abs(edge[1]) >= weight] for row in kept]
    if edges is not None:
        ranked = sorted((-abs(w), f, j) for f, row in enumerate(kept) for j, (_, w) in enumerate(row))[:edges]
        chosen = {(f, j) for _, f, j in ranked}
        kept = [[edge for j, edge in enumerate(row) if (f, j) in chosen] for f, row in enumerate(kept)]
    assert lists_of(pruned) == kept
    assert (pruned.n_features, pruned.n_classes) == (index.n_features, index.n_classes)


@given(matrices(), matrices(), st.sampled_from([1.0, 0.5, -1.0]))
def test_merge_adds_scores(first: Any, second: Any, share: float) -> None:
    one, other = ClassIndex.from_matrix(first), ClassIndex.from_matrix(second)
    merged = one.merge(other, share=share)
    expected = np.zeros((max(len(first), len(second)), max(first.shape[1], second.shape[1])), dtype=np.float32)
    expected[: first.shape[0], : first.shape[1]] += np.float32(share) * first
    expected[: second.shape[0], : second.shape[1]] += second
    np.testing.assert_allclose(merged.to_matrix().toarray(), expected, atol=1e-6)


def test_grow_adds_features_and_classes_without_edges() -> None:
    index = ClassIndex.from_matrix(np.array([[0.5, 1.0]], dtype=np.float32))
    grown = index.grow(3, 5)
    assert (grown.n_features, grown.n_classes, grown.n_edges) == (3, 5, 2)
    assert grown.degrees.tolist() == [2, 0, 0]
    with pytest.raises(ValueError, match="cannot shrink"):
        grown.grow(2, 5)


def test_remap_merges_and_drops_classes() -> None:
    index = ClassIndex.from_matrix(np.array([[0.5, 1.0, 0.25]], dtype=np.float32))
    remapped = index.remap_classes(np.array([0, -1, 0], dtype=np.int32), 1)
    assert remapped.to_matrix().toarray().tolist() == [[0.75]]


def test_offsets_travel_along() -> None:
    offset = np.array([0.5, -1.0], dtype=np.float32)
    index = ClassIndex.from_lists([0, 1, 2], [0, 1], [1.0, 2.0], n_classes=2, offset=offset)
    assert index.prune(max_degree=0).offset is offset
    assert index.grow(3, 2).offset.tolist() == [0.5, -1.0, 0.0]
    assert index.merge(index, share=0.5, other_share=0.5).offset.tolist() == offset.tolist()
    assert index.nbytes == 3 * 8 + 2 * 4 + 2 * 4 + 2 * 4


def test_edges_touched_is_the_mean_degree_of_active_features() -> None:
    index = ClassIndex.from_matrix(np.array([[1, 1, 1], [1, 0, 0]], dtype=np.float32))
    rows = as_rows(sp.csr_array(np.array([[1, 1], [0, 1]])))
    assert index.edges_touched(rows) == pytest.approx((3 + 1 + 1) / 3)
    assert index.edges_touched(as_rows(sp.csr_array((1, 2)))) == 0.0


def test_wrong_limits_are_named() -> None:
    index = ClassIndex.from_matrix(np.eye(2))
    with pytest.raises(ValueError, match="max_degree=-1"):
        index.prune(max_degree=-1)
    with pytest.raises(ValueError, match=r"max_edges=0\.5"):
        index.prune(max_edges=0.5)  # type: ignore[arg-type]
