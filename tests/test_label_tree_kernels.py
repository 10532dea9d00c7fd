"""The kernels that make label trees against their twins: clusters of classes, rows of nodes, their problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_label_tree as naive
from abound.distribute import Serial
from abound.labels import Labels
from abound.learn import _label_tree_clustering as clustering
from abound.learn import label_tree_nodes as nodes
from abound.learn.label_tree_centroids import ENOUGH, HEAVIEST, Vectors, class_centroids
from abound.learn.label_tree_confusion import spectral_vectors
from abound.learn.label_tree_nodes import Desk, Settings, solve_large_node, solve_small_nodes
from abound.learn.label_tree_shape import (
    cluster_tree,
    level_widths,
    nested_tree,
)
from abound.learn.label_tree_training import list_pairs, plan_tasks, train_tree
from abound.learn.linear_rows import solver_rows
from abound.rank._lane_sums import LANES
from abound.validation import as_rows, make_generator
from generate import labels_for, sparse_rows
from label_tree_data import joined, shapes


def as_labels(lists: list[list[int]], n_classes: int) -> Labels:
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in lists]))).astype(np.int64)
    return Labels(indptr, np.array([c for row in lists for c in row], np.int32), np.arange(n_classes), "lists")


def dense_of(vectors: Any) -> Any:
    n = len(vectors.indptr) - 1
    return sp.csr_array((vectors.data, vectors.indices, vectors.indptr), shape=(n, vectors.n_features)).toarray()


def scratch_of(vectors: Any) -> tuple[Any, ...]:
    n = vectors.n_features
    sides, seen = np.zeros((n, 2), np.float32), np.zeros(n, np.bool_)
    return sides, seen, np.empty(n, np.int32), np.empty(len(vectors.indptr) - 1, np.float32)


@given(sparse_rows(max_rows=15), st.data())
def test_centroids_equal_their_twin(X: Any, data: Any) -> None:
    labels = data.draw(labels_for(X.shape[0], multi=True))
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=len(labels), max_size=len(labels)))
    )
    bias = data.draw(st.sampled_from([0.0, 3.0]))
    rows = solver_rows(as_rows(X), weights.astype(np.float32), make_generator(0), bias)
    own = as_labels(labels, 5).take(rows.order)
    for step in (10_000_000, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("abound.learn.label_tree_centroids.VALUES_A_CALL", step)
            found = np.zeros((5, X.shape[1]))
            found[:, rows.features] = dense_of(class_centroids(rows, own))
        expected = naive.centroids(X.toarray().astype(np.float64), weights, labels, 5)
        kept = np.linalg.norm(found, axis=1) > 0
        np.testing.assert_allclose(found[kept], expected[kept], atol=1e-4)


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]), max_size=12), st.integers(1, 15))
def test_the_heaviest_features_of_a_centroid_equal_their_twin(numbers: list[float], room: int) -> None:
    n = min(room, len(numbers))
    out_indices, out_data = np.full(n, -1, np.int32), np.full(n, np.nan, np.float32)
    given_indices = np.arange(len(numbers), dtype=np.int32) + 7
    clustering.write_heaviest(given_indices, np.array(numbers, np.float32), out_indices, out_data)
    heaviest = sorted(sorted(range(len(numbers)), key=lambda t: (-abs(numbers[t]), t))[:n])
    assert out_indices.tolist() == [t + 7 for t in heaviest]
    np.testing.assert_allclose(out_data, naive.unit(np.array([numbers[t] for t in heaviest])), atol=1e-6)


def test_denormal_rows_have_directions() -> None:
    """One over their length is beyond a float32: centroids were infinite, and clusters were written past their end."""
    X = sp.csr_array(np.eye(6, 4, dtype=np.float32) * np.float32(1e-45) + np.eye(6, 4, 1, dtype=np.float32) * 3e-45)
    rows = solver_rows(as_rows(X), np.ones(6, np.float32), make_generator(0), 1.0)
    vectors = class_centroids(rows, as_labels([[c] for c in range(6)], 6).take(rows.order))
    lengths = np.linalg.norm(dense_of(vectors).astype(np.float64), axis=1)
    assert sorted(np.round(lengths, 5).tolist()) == [0, 0, 1, 1, 1, 1]


@given(scores=st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1.0]), min_size=2, max_size=9), data=st.data())
def test_both_sides_have_their_sizes(scores: list[float], data: Any) -> None:
    n = len(scores)
    cut = data.draw(st.integers(1, n - 1))
    memory = np.arange(n + 20, dtype=np.int32)
    clustering.part_members(memory, 3, 3 + cut, 3 + n, np.array(scores, np.float32))
    assert sorted(memory[3 : 3 + n].tolist()) == list(range(3, 3 + n))
    assert memory[3 + n :].tolist() == list(range(3 + n, n + 20)), "nothing is written behind"


def test_classes_of_many_features_are_clustered_by_their_heaviest() -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((6, HEAVIEST + 40)) + 0.01)
    rows = solver_rows(as_rows(X), np.ones(6, np.float32), make_generator(0))
    own = as_labels([[0], [0], [1], [1], [1], [2]], 3).take(rows.order)
    vectors = class_centroids(rows, own)
    biased = class_centroids(solver_rows(as_rows(X), np.ones(6, np.float32), make_generator(0), 5.0), own)
    assert_same(vectors, biased)
    assert np.diff(vectors.indptr).tolist() == [HEAVIEST] * 3
    np.testing.assert_allclose(np.linalg.norm(dense_of(vectors), axis=1), 1, atol=1e-5)


@given(sparse_rows(max_rows=20, unit=True), st.sampled_from([np.inf, 10.0, 0.5]), st.data())
def test_a_round_of_2_means_equals_its_twin(X: Any, enough: float, data: Any) -> None:
    rows = as_rows(sp.vstack([X, X[:1]]).tocsr())
    vectors = Vectors(rows.indptr, rows.indices, rows.data, rows.n_features, enough)
    n, dense = rows.n_rows, dense_of(vectors).astype(np.float64)
    begin = data.draw(st.integers(0, n - 2))
    end = data.draw(st.integers(begin + 2, n))
    cut = data.draw(st.integers(begin + 1, end - 1))
    first, second = data.draw(st.permutations(range(begin, end)))[:2]
    scratch = scratch_of(vectors)
    members = np.arange(n, dtype=np.int32)
    few = np.array([first, second], np.int32)
    found, goes_on = clustering.bisect(*vectors[:3], members, begin, cut, end, few, 1, 1, -np.inf, enough, *scratch)
    near = naive.nearness(dense, dense[first], dense[second], enough)[members[begin:end]]
    assert near[: cut - begin].max() <= near[cut - begin :].min() + 1e-5, "parted by which centre is nearer"
    gain = (near[cut - begin :].sum() - near[: cut - begin].sum()) / (end - begin)
    assert found == pytest.approx(gain, abs=1e-5)
    assert goes_on
    assert sorted(members[begin:end].tolist()) == list(range(begin, end))
    assert members[:begin].tolist() + members[end:].tolist() == [*range(begin), *range(end, n)]
    before = members.copy()
    few = before[begin:end].copy()
    clustering.bisect(*vectors[:3], members, begin, cut, end, few, cut - begin, 1, -np.inf, enough, *scratch)
    given_back = before.copy(), begin, cut, end, few, cut - begin, 1, 9.0, enough
    assert not clustering.bisect(*vectors[:3], *given_back, *scratch)[1]
    sides = dense[before[begin:cut]].sum(axis=0), dense[before[cut:end]].sum(axis=0)
    # A centre whose members cancel has no direction but that of rounding.
    if min(np.linalg.norm(side) for side in sides) > 1e-3:
        near = naive.nearness(dense, *sides, enough)[members[begin:end]]
        assert near[: cut - begin].max() <= near[cut - begin :].min() + 1e-4
    assert not scratch[0].any()
    assert not scratch[1].any()


@given(sparse_rows(max_rows=20, unit=True), st.integers(0, 2**31), st.sampled_from([2, 5, 2048]), st.booleans())
def test_rounds_of_2_means_may_be_called_one_by_one(X: Any, seed: int, sample: int, all_count: bool) -> None:
    rows = as_rows(X)
    vectors = Vectors(rows.indptr, rows.indices, rows.data, rows.n_features, np.inf if all_count else 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abound.learn.label_tree_shape.GROWTH", 2)
        patch.setattr("abound.learn.label_tree_shape.SAMPLE", sample)
        shape = cluster_tree(vectors, [3, 2], seed)
        patch.setattr("abound.learn.label_tree_shape.VALUES_A_CALL", 0)
        again = cluster_tree(vectors, [3, 2], seed)
    np.testing.assert_array_equal(shape.children, again.children)
    np.testing.assert_array_equal(shape.indptr, again.indptr)


@given(st.integers(1, 60), st.lists(st.integers(1, 5), max_size=3), st.integers(0, 99))
def test_clusters_are_balanced_and_hold_every_class_once(n_classes: int, widths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array(rng.random((n_classes, 4)) * (rng.random((n_classes, 4)) < 0.5))
    rows = as_rows(matrix)
    shape = cluster_tree(Vectors(rows.indptr, rows.indices, rows.data, 4), widths, seed)
    paths = naive.class_paths(shape.indptr, shape.children, n_classes)
    assert all(len(path) == len(widths) + 1 for path in paths)
    assert sorted((~shape.children[shape.children < 0]).tolist()) == list(range(n_classes))
    if n_classes >= np.prod(widths, initial=1):
        sizes = np.unique([path[-1][0] for path in paths], return_counts=True)[1]
        assert sizes.max() <= n_classes / np.prod(widths, initial=1) + 2 * len(widths) + 1


def test_like_classes_come_together() -> None:
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(2), 16))
    dense = np.eye(2)[group] + 0.1 * rng.random((32, 2))
    rows = as_rows(sp.csr_array(dense / np.linalg.norm(dense, axis=1, keepdims=True)))
    shape = cluster_tree(Vectors(rows.indptr, rows.indices, rows.data, 2), [2], 0)
    homes = [path[0][1] for path in naive.class_paths(shape.indptr, shape.children, 32)]
    assert len(set(zip(homes, group.tolist(), strict=True))) == 2


def test_words_that_half_of_all_classes_have_do_not_decide_where_these_go() -> None:
    """Thousands of classes: half of twelve words that their group of a hundred has, and half of eight that all have."""
    rng = np.random.default_rng(0)
    n, group = 4000, rng.permutation(np.repeat(np.arange(40), 100))
    chosen = rng.random((n, 20)) < 0.5
    words = np.where(np.arange(20) < 8, np.arange(20), 12 * group[:, None] + np.arange(20))
    matrix = sp.csr_array((np.ones(chosen.sum()), (np.nonzero(chosen)[0], words[chosen])), shape=(n, 488))
    matrix.data /= np.repeat(np.sqrt(np.diff(matrix.indptr)), np.diff(matrix.indptr))
    rows = as_rows(matrix)

    def alone(enough: float) -> float:
        """The share of classes that are on the side of most of their group."""
        shape = cluster_tree(Vectors(rows.indptr, rows.indices, rows.data, 488, enough), [2], 0)
        sides = np.array([path[0][1] for path in naive.class_paths(shape.indptr, shape.children, n)])
        share = np.bincount(group, sides) / 100
        return float(np.maximum(share, 1 - share).mean())

    assert alone(ENOUGH) > 0.95 > 0.7 > alone(np.inf)


@pytest.mark.parametrize("n", [40, 520])
def test_confused_classes_come_together(n: int) -> None:
    rng = np.random.default_rng(0)
    group = np.resize(np.arange(4), n)
    counts = (group[:, None] == group) * rng.integers(1, 4, size=(n, n))
    counts[0], counts[:, 0] = 0, 0
    vectors = spectral_vectors(sp.csr_array((counts + counts.T) / 2), rng.standard_normal(n))
    dense = dense_of(vectors).astype(np.float64)
    cosines = dense @ dense.T
    same = group[:, None] == group
    same[0], same[:, 0] = False, False
    same[0, 0] = True
    assert cosines[same].min() > 0.5 + cosines[~same].max(), "a class that was never confused is alone"


def test_levels() -> None:
    assert level_widths(100, 16, 128) == []
    assert level_widths(129, 16, 128) == [16]
    assert level_widths(14_400, 16, 128) == [16, 16]
    assert level_widths(10**6, 32, 128) == [32, 32, 16]
    assert level_widths(100_000, 32, 64) == [48, 48], "wider nodes save a level"
    assert level_widths(150_000, 32, 64) == [64, 48], "so do these"
    assert level_widths(300_000, 32, 64) == [32, 32, 16], "but not here"
    assert level_widths(10_000, 32, 64) == [32, 16], "as few as it takes"
    assert level_widths(1_000, 32, 64) == [32], "but not at the root"
    shape = nested_tree(np.array([2, 0, 1], np.int32), [np.array([0, 3]), np.array([0, 1, 3])])
    assert shape.indptr.tolist() == [0, 2, 3, 5]
    assert shape.children.tolist() == [1, 2, ~2, ~0, ~1]


@given(shapes(), st.data())
def test_rows_of_nodes_equal_their_twin(given_shape: Any, data: Any) -> None:
    shape, n_classes = given_shape
    labels = data.draw(labels_for(6, n_classes=n_classes, multi=True))
    X = sp.csr_array(np.ones((6, 2), np.float32))
    rows = solver_rows(as_rows(X), np.ones(6, np.float32), make_generator(0))
    lists = [labels[i] for i in rows.order.tolist()]
    found = list_pairs(rows, as_labels(lists, n_classes), shape)
    expected = naive.pairs(lists, naive.class_paths(shape.indptr, shape.children, n_classes), shape.n_nodes)
    for node in range(shape.n_nodes):
        part = slice(*found.indptr[node : node + 2].tolist())
        assert list(zip(found.rows[part].tolist(), found.places[part].tolist(), strict=True)) == expected[node]
        assert found.values[node] == 2 * len(expected[node])


@given(st.lists(st.integers(0, 1_500_000), min_size=1, max_size=30))
def test_tasks_cover_the_nodes(costs: list[int]) -> None:
    tasks = plan_tasks(np.array(costs))
    assert [node for begin, end in tasks for node in range(begin, end)] == list(range(len(costs)))
    assert all(end == begin + 1 or sum(costs[begin:end]) <= 1_000_000 for begin, end in tasks)


def assert_same(one: Any, other: Any) -> None:
    for name, left, right in zip(one._fields, one, other, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@given(shape=shapes(max_nodes=4), X=sparse_rows(max_rows=12, unit=True), data=st.data())
@settings(max_examples=15)
def test_nodes_are_solved(loss: str, shape: Any, X: Any, data: Any) -> None:
    """To a tight tolerance the weights are the best ones; small and large nodes, and any steps, give the same bits."""
    tree, n_classes = shape
    labels = data.draw(labels_for(X.shape[0], n_classes=n_classes, multi=True))
    weights = np.array(data.draw(st.lists(st.sampled_from([1.0, 0.5]), min_size=len(labels), max_size=len(labels))))
    bias = data.draw(st.sampled_from([0.0, 0.5, 2.0]))
    rows = solver_rows(as_rows(X), weights.astype(np.float32), make_generator(0), bias)
    own = as_labels(labels, n_classes).take(rows.order)
    number = ("squared_hinge", "hinge", "logistic").index(loss)
    how = Settings(number, np.full(LANES, 0.7, np.float32), 1e-7, 3000, 0.0)
    pairs, n_children = list_pairs(rows, own, tree), tree.n_children
    desk = Desk(rows.n_features)
    small = solve_small_nodes(rows, pairs, n_children, 0, tree.n_nodes, how, desk)
    assert (desk.place == -1).all()
    model = joined(tree, [small])
    for step in (10_000_000, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nodes, "VALUES_A_CALL", step)
            parts = [solve_large_node(rows, pairs, n_children, node, how, desk) for node in range(tree.n_nodes)]
        assert_same(model, joined(tree, parts))
    found = naive.pairs(labels, naive.class_paths(tree.indptr, tree.children, n_classes), tree.n_nodes)
    assert len(model.biases) == (len(model.slots) if bias else 0)
    dense = np.hstack([X.toarray().astype(np.float64), np.full((X.shape[0], 1), bias)])
    norms = (dense**2).sum(axis=1)
    for node in range(tree.n_nodes):
        there = [(row, at) for row, at in found[node] if norms[row] > 0]
        if there:
            expected = naive.solve_node(dense, weights, there, int(n_children[node]), 0.7, loss)
            matrix = naive.dense_node(model, node, X.shape[1])
            np.testing.assert_allclose(matrix[: len(expected)], expected[:, :-1], atol=5e-3)
            first = model.slot_indptr[node]
            if bias:
                biases = model.biases[first : first + len(expected)]
                np.testing.assert_allclose(biases, bias * expected[:, -1], atol=1e-2)


@given(shape=shapes(max_nodes=4), X=sparse_rows(max_rows=12, unit=True), data=st.data())
def test_light_weights_are_left_out(shape: Any, X: Any, data: Any) -> None:
    tree, n_classes = shape
    own, bias = data.draw(labels_for(X.shape[0], n_classes=n_classes)), data.draw(st.sampled_from([0.0, 0.1]))
    rows = solver_rows(as_rows(X), np.ones(X.shape[0], np.float32), make_generator(0), bias)
    labels = as_labels(own, n_classes).take(rows.order)
    costs = np.ones(LANES, np.float32)
    everything = train_tree(rows, labels, tree, Settings(0, costs, 0.01, 50, 0.0), Serial())
    heavy = train_tree(rows, labels, tree, Settings(0, costs, 0.01, 50, 0.2), Serial())
    np.testing.assert_array_equal(heavy.biases, everything.biases, err_msg="a bias is never light")
    edges = heavy.edges()
    assert (np.abs(edges.weights) >= np.float32(0.2)).all()
    assert (np.abs(edges.offsets[edges.offsets != 0]) >= np.float32(0.2)).all()
    for node in range(tree.n_nodes):
        difference = naive.dense_node(everything, node, X.shape[1]) - naive.dense_node(heavy, node, X.shape[1])
        assert np.abs(difference).max(initial=0) < 0.4 + 1e-6, "an offset and a weight beside it may be left out"
