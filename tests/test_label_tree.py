"""Label trees as learners: where trees come from, forests, several labels, threads, weights, reasons, model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import abound
import naive_label_tree as naive
from abound import LabelTreeClassifier, Taxonomy
from abound.learn import label_tree_nodes, label_tree_shape, label_tree_training
from abound.learn.class_tree import class_tree
from abound.learn.label_tree_shape import taxonomy_tree
from abound.rank.descend import descend
from abound.store import ModelFileError, open_arrays, save_arrays
from abound.validation import as_rows
from label_tree_data import CLASSES, NUMBERS, SMALL, TAXONOMY, TREES, N, X, Y, assert_same_trees
from tree_data import small_problems


@TREES
def test_nothing_depends_on_the_scale_of_the_rows(tree: Any) -> None:
    model, other = (LabelTreeClassifier(tree=tree).fit(scale * X, Y) for scale in (1, 2**8))
    assert other.n_edges_ == pytest.approx(model.n_edges_, rel=0.01)
    np.testing.assert_allclose(other.decision_function(2**8 * X), model.decision_function(X), atol=1e-3)
    assert LabelTreeClassifier(tree=tree, min_weight=0).fit(X, Y).n_edges_ > model.n_edges_


@TREES
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_it_learns_with_any_tree(tree: Any, loss: str) -> None:
    model = LabelTreeClassifier(tree=tree, loss=loss, C=1 if loss == "squared_hinge" else 10, **SMALL).fit(X, Y)
    assert model.score(X, Y) > 0.8
    depth = {len(path) for path in naive.class_paths(*shape_of(model.trees_[0]), N)}
    assert depth == ({1} if tree is None else {1, 2} if tree is TAXONOMY else {2})
    found = model.predict_topk(X, 5)
    assert ((found.scores > 0) & (found.scores <= 1)).all()


def shape_of(tree: Any) -> tuple[Any, Any]:
    """Slots and children of a tree without the empty slots."""
    used = tree.slots != naive.EMPTY
    before = np.concatenate(([0], np.cumsum(used)))
    return before[tree.slot_indptr], tree.slots[used]


@TREES
def test_threads_and_steps_do_not_show(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same seed, same trees, same weights: with 1 and 2 threads, with large nodes and small ones."""
    options = {"tree": tree, "n_trees": 3, **SMALL}
    model = LabelTreeClassifier(**options).fit(X, Y)
    monkeypatch.setattr(label_tree_training, "SMALL", 2000)
    monkeypatch.setattr(label_tree_nodes, "VALUES_A_CALL", 500)
    for n_jobs in (1, 2):
        other = LabelTreeClassifier(n_jobs=n_jobs, **options).fit(X, Y)
        assert_same_trees(model, other)
        for one, two in zip(model.predict_topk(X, 9), other.predict_topk(X, 9), strict=True):
            np.testing.assert_array_equal(one, two)
    if tree in ("kmeans", "spectral"):
        seeded = LabelTreeClassifier(random_state=1, **options).fit(X, Y)
        assert seeded.trees_[0].slots.tolist() != model.trees_[0].slots.tolist()


def test_a_forest_has_different_trees_whose_chances_are_averaged() -> None:
    model = LabelTreeClassifier(n_trees=3, beam=16, **SMALL).fit(X, Y)
    assert len({tree.slots.tobytes() for tree in model.trees_}) == 3
    rows = as_rows(X)
    singly = np.zeros((3, X.shape[0], N))
    for t, tree in enumerate(model.trees_):
        ids, scores = descend([tree], rows, N, N, beam=16).ranking
        np.put_along_axis(singly[t], ids.astype(np.int64), scores, axis=1)
    np.testing.assert_allclose(model.decision_function(X), singly.mean(axis=0), rtol=1e-4, atol=1e-7)
    assert len(LabelTreeClassifier(n_trees=3, tree=TAXONOMY).fit(X, Y).trees_) == 1, "a taxonomy gives one tree"


def test_a_wide_beam_is_exact_and_a_narrow_one_greedy() -> None:
    model = LabelTreeClassifier(**SMALL).fit(X, Y)
    exact = model.set_params(walk="best").predict_topk(X, 7)
    wide = model.set_params(walk="beam", beam=100).predict_topk(X, 7)
    np.testing.assert_array_equal(exact.labels, wide.labels)
    np.testing.assert_array_equal(exact.scores, wide.scores)
    greedy = model.set_params(beam=1).predict_topk(X, N).labels
    assert (greedy[:, 0] == exact.labels[:, 0]).mean() > 0.8
    assert (greedy[:, -1] == None).all(), "classes that the walk does not reach are not ranked"  # noqa: E711
    tree = model.trees_[0]
    dense = X.toarray().astype(np.float64)
    for i in range(20):
        best = naive.best(naive.leaves(tree, dense[i], "squared_hinge"), 7)
        assert exact.labels[i].tolist() == [model.classes_[c] for c, _ in best]
        np.testing.assert_allclose(exact.scores[i], np.exp([score for _, score in best]), rtol=1e-4)


@TREES
def test_several_labels_a_row(tree: Any) -> None:
    lists = [[label, CLASSES[0]] if i % 3 == 0 and label != CLASSES[0] else [label] for i, label in enumerate(Y)]
    lists[5] = []
    model = LabelTreeClassifier(tree=tree, **SMALL).fit(X, lists)
    found = model.predict_topk(X, 3).labels
    hits = [any(label in row for label in own) for row, own in zip(found.tolist(), lists, strict=True) if own]
    assert np.mean(hits) > 0.9
    assert isinstance(model.predict(X), list)
    assert model.cut_ is not None


def test_a_taxonomy_is_taken_as_it_is(tmp_path: Path) -> None:
    model = LabelTreeClassifier(tree=TAXONOMY, **SMALL).fit(X, Y)
    paths = naive.class_paths(*shape_of(model.trees_[0]), N)
    groups = {tuple(sorted(c for c in range(N - 1) if paths[c][0] == paths[first][0])) for first in range(3)}
    assert groups == {tuple(range(first, N - 1, 3)) for first in range(3)}
    assert len(paths[N - 1]) == 1, "nodes with one child need no model"
    file = tmp_path / "edges.tsv"
    file.write_text("".join(f"{TAXONOMY.parent(name)}\t{name}\n" for name in TAXONOMY.names.tolist()[1:]))
    assert_same_trees(model, LabelTreeClassifier(tree=str(file), **SMALL).fit(X, Y))
    sure = LabelTreeClassifier(tree=TAXONOMY, calibrate="platt").fit(X, Y).predict(X, min_confidence=0.9)
    assert set(sure.tolist()) <= set(TAXONOMY.names.tolist())


@given(small_problems())
def test_any_small_taxonomy(problem: Any) -> None:
    taxonomy, rows, y = problem
    model = LabelTreeClassifier(tree=taxonomy, min_weight=0).fit(rows, y)
    assert set(model.predict(rows).tolist()) <= set(y.tolist())
    shape = taxonomy_tree(class_tree(taxonomy, model.classes_))
    n_classes = len(model.classes_)
    paths = naive.class_paths(shape.indptr, shape.children, n_classes)
    assert all(paths)
    if n_classes > 1:
        assert (shape.n_children > 1).all()


def test_classes_without_rows_and_rows_without_features() -> None:
    indicator = sp.csr_array((np.ones(400), (np.arange(400), 1 + NUMBERS)), shape=(400, 44)).astype(np.int8)
    nothing = sp.csr_array((400, 3), dtype=np.float32)
    for tree in ("kmeans", "spectral"):
        model = LabelTreeClassifier(tree=tree, **SMALL).fit(X, indicator)
        assert len(model.classes_) == 44
        assert (model.predict_topk(X, 1).labels[:, 0] == 1 + NUMBERS).mean() > 0.7
        silent = LabelTreeClassifier(tree=tree, n_trees=2, **SMALL).fit(nothing, Y)
        assert silent.predict(nothing).tolist() == [CLASSES[0]] * 400
    empty = sp.csr_array((2, 80))
    model = LabelTreeClassifier(bias=0, **SMALL).fit(X, indicator)
    unknown = model.predict_topk(empty, 3)
    assert (unknown.labels[:, 0] == 1).all(), "the most frequent class"
    assert np.isfinite(unknown.scores).all()
    model = LabelTreeClassifier(walk="best", **SMALL).fit(X, indicator)
    best = naive.best(naive.leaves(model.trees_[0], np.zeros(80), "squared_hinge"), 3)
    ranked = model.predict_topk(empty, 3)
    assert ranked.labels[1].tolist() == [c for c, _ in best], "a bias tells of rows without features, too"
    np.testing.assert_allclose(ranked.scores[1], np.exp([score for _, score in best]), rtol=1e-4)


def test_one_class() -> None:
    for tree in ("kmeans", "spectral", None, Taxonomy.from_edges([("all", "some"), ("some", "only")])):
        model = LabelTreeClassifier(tree=tree).fit(X, ["only"] * 400)
        assert set(model.predict(X).tolist()) == {"only"}


def test_weights_of_rows() -> None:
    options = {"tol": 1e-6, "max_sweeps": 2000, "tree": TAXONOMY, "min_weight": 0, "bias": 1.0}
    weights = np.where(np.arange(400) % 4 == 0, 2.0, np.where(np.arange(400) % 4 == 1, 0.0, 1.0))
    weighted = LabelTreeClassifier(**options).fit(X, Y, weights)
    times = np.repeat(np.arange(400), weights.astype(int))
    repeated = LabelTreeClassifier(**options).fit(X[times], Y[times])
    left = weighted.predict_topk(X, N)
    kept = [i for i, c in enumerate(CLASSES) if c in repeated.classes_]
    ours, theirs = weighted.decision_function(X)[:, kept], repeated.decision_function(X)
    if len(kept) == N:
        np.testing.assert_allclose(ours, theirs, atol=0.01)
    assert left.labels.shape == (400, N)
    with pytest.raises(ValueError, match="sample_weight"):
        LabelTreeClassifier().fit(X, Y, weights[:5])


@TREES
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_reasons_add_up(tree: Any, loss: str) -> None:
    model = LabelTreeClassifier(tree=tree, n_trees=2, beam=40, loss=loss, bias=0.5, **SMALL).fit(X, Y)
    dense = model.decision_function(X[:4])
    for i in range(4):
        for c in (0, 7, N - 1):
            parts = model.explain(X[[i]], CLASSES[c])
            assert sum(value for _, value in parts) == pytest.approx(dense[i, c], rel=1e-3, abs=1e-5)
            assert {feature for feature, _ in parts} <= {*X[[i]].indices.tolist(), "bias"}
            nothing = model.explain(sp.csr_array((1, 80)), CLASSES[c])
            assert nothing == [("bias", pytest.approx(dict(parts)["bias"], abs=1e-6))], "what any row has"
    plain = LabelTreeClassifier(tree=tree, n_trees=2, beam=40, loss=loss, bias=0, **SMALL).fit(X, Y)
    parts = plain.explain(X[[0]], CLASSES[0])
    assert sum(value for _, value in parts) == pytest.approx(plain.decision_function(X[[0]])[0, 0], rel=1e-3, abs=1e-5)
    assert {feature for feature, _ in parts} <= {*X[[0]].indices.tolist()}


def test_light_weights_go() -> None:
    model = LabelTreeClassifier(n_trees=2, **SMALL).fit(X, Y)
    pruned = model._pruned(max_edges=1000)
    assert 990 <= pruned.n_edges_ <= 1010 < model.n_edges_
    assert pruned.predict(X).shape == (400,)
    heavy = model._pruned(min_weight=0.1)
    for tree in heavy.trees_:
        edges = tree.edges()
        assert (np.abs(edges.weights) >= np.float32(0.1)).all()
        assert (np.abs(edges.offsets[edges.offsets != 0]) >= np.float32(0.1)).all()
    assert (heavy.predict(X) == model.predict(X)).mean() > 0.9
    nothing = model._pruned(max_edges=0)
    assert nothing.n_edges_ == 0
    assert len({label for label in nothing.predict(X)}) == 1, "biases stay"
    np.testing.assert_array_equal(nothing.trees_[1].biases, model.trees_[1].biases)
    few = model._pruned(max_degree=3)
    for tree, full in zip(few.trees_, model.trees_, strict=True):
        nodes = np.repeat(np.arange(tree.n_nodes), np.diff(tree.table_indptr))
        for entry in np.flatnonzero(tree.table[::2] >= 0).tolist():
            (offset, kept), (same, there) = (naive.entry_weights(one, nodes[entry], entry) for one in (tree, full))
            assert offset == same
            assert kept.items() <= there.items()
            assert sorted(map(abs, kept.values())) == sorted(map(abs, there.values()))[-3:]
    assert LabelTreeClassifier(arity=16, max_leaf=4, min_weight=0.1).fit(X, Y).n_edges_ < model.n_edges_


def test_too_wide_nodes_and_too_many_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_tree_shape, "MOST_CHILDREN", N - 1)
    with pytest.raises(ValueError, match=rf"a node of the tree has {N} children, more than {N - 1}: use a taxonomy"):
        LabelTreeClassifier(tree=None).fit(X, Y)
    monkeypatch.undo()
    monkeypatch.setattr(label_tree_nodes, "MOST_CELLS", 10)
    with pytest.raises(ValueError, match="a larger min_weight, or more levels"):
        LabelTreeClassifier().fit(X, Y)


def test_the_leaves_as_an_index() -> None:
    model = LabelTreeClassifier(n_trees=2, tree=None, **SMALL).fit(X, Y)
    matrix = model.index_.to_matrix().toarray()
    tree = model.trees_[0]
    dense = naive.dense_node(tree, 0, 80)[:N]
    shared = np.zeros(80)
    known = tree.table[: 2 * tree.table_indptr[1] : 2]
    shared[known[known >= 0]] = tree.edges().offsets[: len(known)][known >= 0]
    order = np.argsort(~tree.slots[:N])
    np.testing.assert_allclose(matrix.T, (dense - shared)[order], atol=1e-6)
    np.testing.assert_array_equal(model.index_.bias, tree.biases[:N][order])
    forest = LabelTreeClassifier(n_trees=2, **SMALL).fit(X, Y).merge_classes(CLASSES[3:5], into="merged")
    expected = np.zeros(N - 1)
    for tree in forest.trees_:
        for slot in tree.leaves.tolist():
            expected[~tree.slots[slot]] += tree.biases[slot] / 2
    np.testing.assert_allclose(forest.index_.bias, expected, rtol=1e-5)
    assert LabelTreeClassifier(bias=0, **SMALL).fit(X, Y).index_.bias is None


@TREES
def test_models_are_kept(tree: Any, tmp_path: Path) -> None:
    model = LabelTreeClassifier(tree=tree, n_trees=2, bias=0.5, **SMALL).fit(X, Y)
    model.drop_classes(CLASSES[:2]).merge_classes(CLASSES[3:5], into="merged")
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert_same_trees(model, loaded)
    for one, two in zip(model.predict_topk(X, 9), loaded.predict_topk(X, 9), strict=True):
        np.testing.assert_array_equal(one, two)
    assert loaded.explain(X[[0]], "merged") == model.explain(X[[0]], "merged")
    assert loaded.n_edges_ == model.n_edges_
    if tree is TAXONOMY:
        assert loaded.tree.names.tolist() == TAXONOMY.names.tolist()
        assert loaded._own_taxonomy() is not None
    else:
        assert loaded.tree == tree


def arrays_of(name: str) -> Any:
    """A change of one array of the first tree."""

    def change(at: int, value: Any) -> Any:
        def apply(arrays: Any, meta: Any) -> None:
            arrays[f"trees/0/{name}"].ravel()[at] = value

        return apply

    return change


def at_an_entry(column: int, value: int) -> Any:
    """A change of the first feature in the table of the first tree, or of where its cells begin."""

    def apply(arrays: Any, meta: Any) -> None:
        table = arrays["trees/0/table"]
        table[2 * np.flatnonzero(table[::2] >= 0)[0] + column] = value

    return apply


CRAFTED = [
    arrays_of("slots")(0, 0),
    arrays_of("slots")(0, 10_000),
    arrays_of("slots")(1, 1),
    arrays_of("slots")(-1, ~N),
    arrays_of("slot_indptr")(1, 8),
    arrays_of("slot_indptr")(1, -16),
    arrays_of("slot_indptr")(1, 0),
    arrays_of("slot_indptr")(-1, 16_000),
    arrays_of("table_indptr")(1, 10**9),
    arrays_of("table_indptr")(1, 0),
    arrays_of("table_indptr")(0, 1),
    at_an_entry(0, 80),
    at_an_entry(0, 81),
    at_an_entry(0, 5),
    at_an_entry(1, -1),
    at_an_entry(1, 10**6),
    arrays_of("table")(slice(None, None, 2), 0),
    arrays_of("cell_indptr")(1, 10**9),
    arrays_of("cell_indptr")(0, 1),
    arrays_of("cell_indptr")(1, 0),
    arrays_of("cells")(slice(None), 0),
    arrays_of("cells")(1, 3 << 16 | 1),
    arrays_of("cells")(1, -1),
    arrays_of("biases")(3, np.nan),
    arrays_of("biases")(-1, 2e15),
    lambda arrays, meta: arrays.update({"trees/1/biases": arrays["trees/1/biases"][16:]}),
    lambda arrays, meta: arrays.update({"trees/1/biases": arrays["trees/1/biases"][:0]}),
    lambda arrays, meta: arrays.update({"trees/0/biases": arrays["trees/0/biases"].astype(np.float64)}),
    lambda arrays, meta: arrays.pop("trees/0/cells"),
    lambda arrays, meta: arrays.pop("trees/1/slots"),
    lambda arrays, meta: arrays.update({"trees/0/cells": arrays["trees/0/cells"][:-1]}),
    lambda arrays, meta: arrays.update({"trees/0/cells": arrays["trees/0/cells"].view(np.float32)}),
    lambda arrays, meta: arrays.update({"trees/0/table": arrays["trees/0/table"][:-1]}),
    lambda arrays, meta: meta["fitted"].update(n_trees=3),
    lambda arrays, meta: meta["fitted"].update(n_trees=0),
    lambda arrays, meta: meta["fitted"].update(n_trees="2"),
    lambda arrays, meta: meta["fitted"].pop("n_trees"),
    lambda arrays, meta: meta["parameters"].update(beam=0),
    lambda arrays, meta: meta["parameters"].update(arity=17),
    lambda arrays, meta: meta.update(n_features_in=79),
]


@pytest.mark.parametrize("change", CRAFTED, ids=range(len(CRAFTED)))
def test_crafted_files_are_refused(change: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    LabelTreeClassifier(n_trees=2, bias=1.0, **SMALL).fit(X, Y).save(path)
    abound.load(path)
    stored = open_arrays(path)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    change(arrays, meta["estimator"])
    save_arrays(path, arrays, meta)
    with pytest.raises(ModelFileError, match="model"):
        abound.load(path)


def test_an_interrupt_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(label_tree_training, "solve_small_nodes", interrupted)
    for n_jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            LabelTreeClassifier(n_jobs=n_jobs, **SMALL).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 0}, "n_trees"),
        ({"tree": "binary"}, "kmeans, spectral nor the file"),
        ({"tree": 5}, "taxonomy"),
        ({"tree": Taxonomy.from_edges([("all", "b"), ("all", "c")])}, "the taxonomy lacks"),
        ({"arity": 8}, "arity"),
        ({"arity": 24}, "multiple of 16"),
        ({"max_leaf": 1}, "max_leaf"),
        ({"beam": 0}, "beam"),
        ({"walk": "slow"}, "walk"),
        ({"loss": "hinge"}, "loss"),
        ({"C": 0}, "C=0"),
        ({"bias": "some"}, "bias"),
        ({"tol": 0}, "tol"),
        ({"max_sweeps": 0}, "max_sweeps"),
        ({"min_weight": -1}, "min_weight"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
    ],
)
def test_wrong_settings_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LabelTreeClassifier(**parameters).fit(X, Y)


def test_it_is_known_by_its_name() -> None:
    from abound.learn.registry import make_learner

    assert isinstance(make_learner("label-tree", n_trees=3), LabelTreeClassifier)
