"""Walks down trees against their twins: what a node keeps and finds again, beams, the best first, forests."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive_label_tree as naive
from abound.learn.label_tree_shape import nested_tree
from abound.rank import _fault_kernels as checks
from abound.rank import _node_kernels as kernels
from abound.rank import descend as walks
from abound.rank.descend import descend
from abound.rank.tree_weights import TreeWeights
from abound.validation import as_rows, frozen
from label_tree_data import rows_for, shapes, tree_of, trees


def fault_of(tree: Any, n_features: int) -> int:
    """What the check of a model file finds, node by node."""
    seen = np.full(2 * checks.LONGEST_RUN, -1, np.int32)
    found = [
        int(checks.faults(tree, n_features, node, node + 1, np.uint64(0x9E3779B97F4A7C15), seen)[0])
        for node in range(tree.n_nodes)
    ]
    assert (seen == -1).all() or any(found)
    return next((fault for fault in found if fault), checks.SOUND)


@given(trees(), st.data())
def test_faults_of_a_damaged_tree_equal_their_twin(given_tree: Any, data: Any) -> None:
    tree, _ = given_tree
    table, cells = tree.table.copy(), tree.cells.copy()
    for _ in range(data.draw(st.integers(1, 3))):
        array = data.draw(st.sampled_from([table, table, cells]))
        if len(array):
            place = data.draw(st.integers(0, len(array) - 1))
            other = int(array[data.draw(st.integers(0, len(array) - 1))])
            values = st.sampled_from([other, -1, 0, 1, 5, 6, 2**31 - 1, -(2**31), 1 << 16, 0x7F800000, 0x7FC00000])
            array[place] = data.draw(values)
    damaged = tree._replace(table=frozen(table, np.int32), cells=frozen(cells, np.int32))
    assert (fault_of(damaged, 6) == checks.SOUND) == naive.is_sound(damaged, 6)


def crowded(features: Any, size: int) -> Any:
    """A tree of one node whose table has these features at the first free places from their own on."""
    table = np.full(2 * size, -1, np.int32)
    homes = [kernels.place_of(int(feature), size) for feature in features]
    free = 0
    for home, feature in sorted(zip(homes, features.tolist(), strict=True)):
        free = max(free, home)
        table[2 * free] = feature
        free += 1
    assert free <= size
    taken = np.flatnonzero(table[::2] >= 0)
    table[2 * taken + 1] = 2 * np.arange(len(taken))
    cells = np.tile(np.array([0, -(2**31)], np.int32), len(taken))
    shape = np.array([0, 16]), np.full(16, ~0, np.int32), np.array([0, size])
    return TreeWeights(*shape, table, np.array([0, len(cells)]), cells, np.empty(0, np.float32))


def colliding(n: int) -> Any:
    """Features whose hashes are next to each other: multiples of what the hash's factor is the inverse of."""
    found = np.arange(4 * n, dtype=np.int64) * pow(2654435769, -1, 2**32) % 2**32
    return found[found < 2**31][:n]


def test_a_table_whose_features_collide_is_checked_in_one_go_and_refused() -> None:
    n = 2**20
    tree = crowded(colliding(n), 2 * n + 1)
    begin = time.perf_counter()
    assert fault_of(tree, 2**31 - 1) == checks.CROWDED
    assert time.perf_counter() - begin < 10
    short = crowded(colliding(checks.LONGEST_RUN), 2 * checks.LONGEST_RUN + 1)
    assert fault_of(short, 2**31 - 1) == checks.SOUND, "the longest run that is allowed"
    table = short.table.copy()
    taken = np.flatnonzero(table[::2] >= 0)
    table[2 * taken[-1]] = table[2 * taken[0]]
    assert fault_of(short._replace(table=table), 2**31 - 1) == checks.BAD_TABLE, "a feature twice"


def test_features_that_share_all_cells_are_refused() -> None:
    """Checking them would take as long as there are features times cells."""
    n = 2000
    tree = crowded(np.arange(n), 2 * n + 1)
    lists = np.concatenate(([0], np.repeat(np.array([0]), 10**6), [-(2**31)])).astype(np.int32)
    table = tree.table.copy()
    table[1::2] = np.where(table[::2] >= 0, 0, -1)
    shared = tree._replace(table=table, cells=lists, cell_indptr=np.array([0, len(lists)]))
    begin = time.perf_counter()
    assert fault_of(shared, n) == checks.BAD_CELLS
    assert time.perf_counter() - begin < 10


def with_cells(starts: list[int], numbers: list[float | int]) -> Any:
    """A tree of a node with 32 children and two features, of these cells: heads are integers, weights are not."""
    table = np.full(10, -1, np.int32)
    for feature, start in enumerate(starts):
        kernels.enter(feature, start, 0, 5, table)
    cells = np.array([np.float32(x).view(np.int32) if isinstance(x, float) else x for x in numbers], np.int32)
    slots = np.concatenate((~np.arange(20, dtype=np.int32), np.full(12, kernels.EMPTY)))
    shape = np.array([0, 32]), frozen(slots, np.int32), np.array([0, 5]), frozen(table, np.int32)
    return TreeWeights(*shape, np.array([0, len(cells)]), frozen(cells, np.int32), frozen(np.empty(0), np.float32))


LAST, FIRST_BLOCK, SECOND_BLOCK = -(2**31), 1, 1 << 16 | 1


def test_features_may_share_cells_that_others_leave() -> None:
    tree = with_cells([2, 2], [7.0, 7.0, 0.5, FIRST_BLOCK, 0.25, SECOND_BLOCK + LAST, -0.5, 7.0, 7.0, 7.0, 7.0, 7.0])
    assert fault_of(tree, 2) == checks.SOUND
    again = tree.with_edges(tree.edges())
    assert fault_of(again, 2) == checks.SOUND
    for each in (tree, again):
        dense = naive.dense_node(each, 0, 2)
        assert dense[[0, 1, 16]].tolist() == [[0.75, 0.75], [0.5, 0.5], [0.0, 0.0]]
        found = descend([each], as_rows(np.ones((1, 2))), 20, 20).ranking
        assert dict(zip(*(part[0].tolist() for part in found), strict=True)) == pytest.approx(
            {c: float(np.exp(naive.link(dense[c].sum(), "squared_hinge"))) for c in range(20)}
        )


@pytest.mark.parametrize("heads", [(1, 1, SECOND_BLOCK), (FIRST_BLOCK, 2, SECOND_BLOCK), (SECOND_BLOCK, 1, 1)])
def test_a_block_that_comes_twice_or_late_is_refused(heads: Any) -> None:
    """What was packed of such a tree, pruned or not, had weights where a walk looked for heads."""
    cells = [0.5, heads[0], 1.0, heads[1], 2.0, heads[2] + LAST, 3.0]
    assert fault_of(with_cells([0], cells), 2) == checks.BAD_CELLS
    assert not naive.is_sound(with_cells([0], cells), 2)


@given(shapes(), st.integers(0, 2**32 - 1))
def test_what_is_laid_out_is_found(given_shape: Any, seed: int) -> None:
    shape, n_classes = given_shape
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, 30))
    matrices = [
        (rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.1)).astype(np.float32)
        for n in shape.n_children.tolist()
    ]
    offsets = [(rng.normal(size=n_features) * (rng.random(n_features) < 0.2)).astype(np.float32) for _ in matrices]
    tree = tree_of(shape, matrices, offsets)
    for node, (matrix, offset) in enumerate(zip(matrices, offsets, strict=True)):
        found = naive.dense_node(tree, node, n_features)
        np.testing.assert_allclose(found[: len(matrix)], matrix.astype(np.float64) + offset, atol=1e-6)
        for feature in [*range(n_features), 2**31 - 1]:
            assert kernels.find_entry(tree, node, feature) == naive.find_entry(tree, node, feature)
    assert sorted(tree.leaf_classes.tolist()) == list(range(n_classes))
    assert tree.n_weights == sum(np.count_nonzero(part) for part in [*matrices, *offsets])
    assert fault_of(tree, n_features) == checks.SOUND
    assert fault_of(tree, 0) == (checks.BAD_TABLE if tree.n_weights else checks.SOUND)
    for node in range(tree.n_nodes):
        for entry in range(*tree.table_indptr[node : node + 2].tolist()):
            if tree.table[2 * entry] >= 0:
                offset, own = naive.entry_weights(tree, node, entry)
                for place in range(len(matrices[node])):
                    assert kernels.weight_of(tree, node, entry, place) == np.float32(offset) + np.float32(
                        own.get(place, 0)
                    )


@given(trees(), st.integers(0, 2**32 - 1))
def test_edges_are_listed_and_packed_again(given_tree: Any, seed: int) -> None:
    tree, _ = given_tree
    edges = tree.edges()
    kept = np.random.default_rng(seed).random(len(edges.entries)) < 0.5
    some = edges._replace(
        entries=edges.entries[kept],
        places=edges.places[kept],
        weights=edges.weights[kept],
        offsets=np.where(edges.offsets > 0, edges.offsets, np.float32(0)),
    )
    packed = tree.with_edges(some)
    assert fault_of(packed, 6) == checks.SOUND
    for ours, theirs in zip(packed.edges(), some, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for node in range(tree.n_nodes):
        same = naive.dense_node(tree.with_edges(edges), node, 6)
        np.testing.assert_array_equal(same, naive.dense_node(tree, node, 6))


@given(trees(), st.integers(0, 6), st.sampled_from([0.25, -2.0]))
def test_a_constant_feature_becomes_the_bias(given_tree: Any, feature: int, value: float) -> None:
    tree = given_tree[0]._replace(biases=np.empty(0, np.float32))
    changed = tree.with_constant(feature, value)
    assert fault_of(changed, 6) == checks.SOUND
    knows = [naive.find_entry(tree, node, feature) >= 0 for node in range(tree.n_nodes)]
    assert len(changed.biases) == (len(tree.slots) if any(knows) else 0)
    x = np.random.default_rng(feature).choice([-0.5, 0.0, 1.0], size=7)
    for node in range(tree.n_nodes):
        assert naive.find_entry(changed, node, feature) < 0
        for f in range(6):
            at = naive.find_entry(changed, node, f)
            assert kernels.find_entry(changed, node, f) == at
            assert (at >= 0) == (f != feature and naive.find_entry(tree, node, f) >= 0)
        row, without = x.copy(), x.copy()
        row[feature], without[feature] = value, 0
        assert naive.scores_of(changed, node, without).tolist() == naive.scores_of(tree, node, row).tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@given(st.data())
def test_features_behind_one_that_goes_are_found(size: int, data: Any) -> None:
    """Also where a table is nearly full, and runs go on at its begin."""
    features = data.draw(st.lists(st.integers(0, 40), max_size=size - 1, unique=True))
    table = np.full(2 * size, -1, np.int32)
    for number, feature in enumerate(features):
        kernels.enter(feature, number, 0, size, table)
    gone = data.draw(st.sampled_from([*features, 41]))
    kernels.forget_feature(gone, np.array([0, size]), table)
    tree = crowded(np.arange(0), size)._replace(table=table)
    for number, feature in enumerate(features):
        at = kernels.find_entry(tree, 0, feature)
        assert at < 0 if feature == gone else table[2 * at + 1] == number
    assert (table[::2] >= 0).sum() == len(set(features) - {gone})


@given(trees(), trees())
def test_a_row_is_known_by_its_features_or_by_a_bias(one: Any, other: Any) -> None:
    rows, n_classes = as_rows(sp.csr_array(np.eye(7, 6, dtype=np.float32))), max(one[1], other[1])
    biased = [bool(tree.biases[: tree.slot_indptr[1]].any()) for tree, _ in (one, other)]
    for forest in ([one], [one, other]):
        for walk in walks.WALKS:
            known = descend([tree for tree, _ in forest], rows, 1, n_classes, walk=walk).known
            expected = [
                any(naive.find_entry(tree, 0, f) >= 0 for tree, _ in forest) or any(biased[: len(forest)])
                for f in range(7)
            ]
            assert known.tolist() == expected


@given(st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_places_are_in_range(feature: int, size: int) -> None:
    assert kernels.place_of(feature, size) == (feature * 2654435769 % 2**32) * size // 2**32


@given(trees(), st.integers(0, 2**32 - 1))
def test_sixteen_sums_equal_their_twin(given_tree: Any, seed: int) -> None:
    tree, _ = given_tree
    rows, matrix = as_rows(rows_for(seed, 3)), rows_for(seed, 3).toarray()
    looked = walks.room_for(tree, int(np.diff(rows.indptr).max()), beam=2).looked
    looked.sums[:] = np.nan
    where = np.random.default_rng(seed).integers(0, tree.n_nodes, size=(4, 3))
    for nodes in where.tolist():
        looked.rows[:3], looked.nodes[:3] = range(3), nodes
        kernels.look_up(rows.indptr, rows.indices, rows.data, 3, tree, looked)
        kernels.add_up(3, tree, looked)
        for i, (node, x) in enumerate(zip(nodes, matrix, strict=True)):
            scores = naive.scores_of(tree, node, x)
            sums = looked.sums[i * tree.most_blocks :].ravel()
            assert sums[: len(scores)].tolist() == scores.tolist()
            assert looked.counts[i] == sum(naive.find_entry(tree, node, f) >= 0 for f in np.flatnonzero(x))


@given(
    trees(), st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 60), st.sampled_from(walks.LINKS), st.data()
)
def test_beams_equal_their_twin(tree: Any, seed: int, beam: int, k: int, link: str, data: Any) -> None:
    model, n_classes = tree
    allowed = None
    if data.draw(st.booleans()):
        allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes)))
    X = rows_for(seed, 4)
    ids, scores = descend([model], as_rows(X), k, n_classes, link=link, beam=beam, allowed=allowed).ranking
    assert ids.shape == (4, min(k, n_classes))
    may = np.ones(n_classes, bool) if allowed is None else allowed
    for i, x in enumerate(X.toarray().astype(np.float64)):
        found = naive.beam_leaves(model, x, link, beam, may)
        check_ranking(ids[i], scores[i], found, exact=link == "squared_hinge")


@given(trees(), st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from(walks.LINKS), st.data())
def test_the_best_first_is_exact(tree: Any, seed: int, k: int, link: str, data: Any) -> None:
    model, n_classes = tree
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes)))
    X = rows_for(seed, 4)
    for may in (np.ones(n_classes, bool), allowed):
        ids, scores = descend([model], as_rows(X), k, n_classes, link=link, walk="best", allowed=may).ranking
        for i, x in enumerate(X.toarray().astype(np.float64)):
            found = [(c, score) for c, score in naive.leaves(model, x, link) if may[c]]
            check_ranking(ids[i], scores[i], found, exact=link == "squared_hinge")


def check_ranking(ids: Any, scores: Any, found: list[tuple[int, float]], exact: bool) -> None:
    """A row's ranking against the leaves that a twin found, whose sums are logarithms."""
    expected = naive.best(found, len(ids))
    n = len(expected)
    assert (ids[n:] == -1).all()
    assert np.isneginf(scores[n:]).all()
    if exact:
        assert ids[:n].tolist() == [c for c, _ in expected]
    by_class = dict(found)
    lift = max(expected[0][1], -60.0) - expected[0][1] if expected else 0
    chances = [np.exp(score + lift) for _, score in expected]
    np.testing.assert_allclose(scores[:n], chances, rtol=1e-4)
    np.testing.assert_allclose(scores[:n], [np.exp(by_class[c] + lift) for c in ids[:n].tolist()], rtol=1e-4)


@given(st.lists(trees(), min_size=2, max_size=3), st.integers(0, 2**32 - 1), st.integers(1, 10))
def test_forests_average_chances(forest: Any, seed: int, beam: int) -> None:
    """Also of classes with several leaves, and with trees of which each finds other classes."""
    n_classes = min(n for _, n in forest)
    new_ids = [np.arange(n, dtype=np.int32) % n_classes for _, n in forest]
    models = [model.remap_classes(ids, n_classes) for (model, _), ids in zip(forest, new_ids, strict=True)]
    X = rows_for(seed, 3)
    ids, scores = descend(models, as_rows(X), n_classes, n_classes, beam=beam).ranking
    anything = np.ones(n_classes, bool)
    for i, x in enumerate(X.toarray().astype(np.float64)):
        found = [naive.beam_leaves(model, x, "squared_hinge", beam, anything) for model in models]
        expected = naive.mean_chances(found, walks.KEPT, n_classes)
        known = ids[i] >= 0
        assert set(ids[i][known].tolist()) == {c for tree in found for c, _ in naive.best(tree, walks.KEPT)}
        if max(score for tree in found for _, score in tree) > -50:
            np.testing.assert_allclose(scores[i][known], expected[ids[i][known]], rtol=1e-4, atol=1e-30)
        assert (np.diff(scores[i][known]) <= 0).all()


@given(trees(), st.data())
def test_open_nodes_equal_their_twin(tree: Any, data: Any) -> None:
    model, n_classes = tree
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes)))
    expected = [naive.leads_to(model, node, allowed) for node in range(model.n_nodes)]
    assert model.open_nodes(allowed).tolist() == expected
    kept = np.flatnonzero(allowed)
    if len(kept):
        new_ids = np.full(n_classes, -1, np.int32)
        new_ids[kept] = np.arange(len(kept))
        without = model.remap_classes(new_ids, len(kept))
        np.testing.assert_array_equal(without.biases, model.biases)
        assert sorted(without.leaf_classes.tolist()) == list(range(len(kept)))
        assert without.open_nodes(np.ones(len(kept), bool)).tolist() == expected


@given(trees(), st.integers(0, 2**32 - 1), st.integers(1, 10), st.sampled_from(walks.WALKS))
def test_parts_and_threads_do_not_show(tree: Any, seed: int, k: int, walk: str) -> None:
    model, n_classes = tree
    rows = as_rows(rows_for(seed, 9))
    whole = descend([model, model], rows, k, n_classes, walk=walk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks, "ROWS_A_CALL", 2)
        parts = descend([model, model], rows, k, n_classes, walk=walk, n_jobs=2)
    np.testing.assert_array_equal(whole.ranking.ids, parts.ranking.ids)
    np.testing.assert_array_equal(whole.ranking.scores, parts.ranking.scores)
    np.testing.assert_array_equal(whole.known, parts.known)


def test_vanishing_chances_are_lifted() -> None:
    """A row all of whose classes are hopeless still has a best class, with a number that float32 can hold."""
    shape = nested_tree(np.arange(3, dtype=np.int32), [np.array([0, 3])])
    matrix = np.array([[-20.0], [-21.0], [-30.0]], np.float32)
    tree = tree_of(shape, [matrix], [np.zeros(1, np.float32)])
    ids, scores = descend([tree], as_rows(np.ones((1, 1))), 3, 3).ranking
    assert ids[0].tolist() == [0, 1, 2]
    assert scores[0, 0] == pytest.approx(np.exp(-60))
    assert (np.diff(scores[0]) <= 0).all()


def test_no_rows_and_no_classes_wanted() -> None:
    shape = nested_tree(np.arange(3, dtype=np.int32), [np.array([0, 3])])
    tree = tree_of(shape, [np.ones((3, 1), np.float32)], [np.zeros(1, np.float32)])
    assert descend([tree], as_rows(sp.csr_array((0, 1), dtype=np.float32)), 2, 3).ranking.ids.shape == (0, 2)
