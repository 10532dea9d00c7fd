"""Top-down: the walk against its twin, what nodes learn, sigmoids, p_min, and the model file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import abound
import naive_top_down as naive
from abound import (
    CommitteeClassifier,
    FeatureFocusClassifier,
    LinearClassifier,
    PAClassifier,
    PerceptronClassifier,
    Taxonomy,
    TopDownClassifier,
)
from abound.index.class_index import ClassIndex
from abound.labels import encode
from abound.learn.class_tree import class_tree
from abound.learn.top_down_training import node_problems
from abound.learn.top_down_walk import Descent, leading_nodes, make_walk, walk_topk
from abound.measure.platt import UNFITTED
from abound.rank.topk import score_all
from abound.validation import as_rows
from estimators import ORDER_MATTERS
from generate import make_rows

X, NUMBERS = make_rows(0, n=300)
Y = np.array([f"class {c:02d}" for c in NUMBERS])
CLASSES = np.unique(Y).tolist()
EDGES = [("all", f"group {i % 3}") for i in range(3)] + [
    (f"group {i % 3}", name) for i, name in enumerate(CLASSES[:-1])
]
TAXONOMY = Taxonomy.from_edges([*EDGES, ("all", "chain"), ("chain", CLASSES[-1])])
"""Three groups, and a class at the end of a chain."""

INNER = Taxonomy.from_edges([("all", "b"), ("all", "c"), ("b", "d"), ("b", "e"), ("c", "f"), ("c", "g"), ("f", "h")])
MODES = pytest.mark.parametrize("mode", ["greedy", "probability"])


def inner_task() -> tuple[Any, list[str]]:
    """Rows of leaves and of inner nodes: a feature a class, one that all below b share, and some noise."""
    rng = np.random.default_rng(0)
    names = ["b", "d", "e", "f", "g", "h"]
    y = [names[i] for i in rng.integers(len(names), size=400)]
    rows = rng.random((400, 12)) * (rng.random((400, 12)) < 0.3)
    for i, name in enumerate(y):
        rows[i, names.index(name)] += rng.random() < 0.9
        rows[i, 11] += name in ("b", "d", "e")
    return sp.csr_array(rows), y


@parametrize_with_checks(
    [TopDownClassifier(node_learner=PerceptronClassifier(), mode="probability")],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": ORDER_MATTERS,
        "check_sample_weight_equivalence_on_sparse_data": ORDER_MATTERS,
    },
    xfail_strict=False,
)
def test_scikit_learn_checks_of_the_other_mode(estimator: Any, check: Any) -> None:
    check(estimator)


@st.composite
def walks(draw: Any) -> Any:
    """A random tree with classes on any nodes, an index over its nodes, sigmoids, and rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_names = draw(st.integers(1, 14))
    edges = [("0", str(i)) if i < 2 else (str(rng.integers(i)), str(i)) for i in range(1, n_names + 1)]
    taxonomy = Taxonomy.from_edges(edges)
    names = taxonomy.names.tolist()
    classes = sorted(rng.choice(names, size=rng.integers(1, len(names) + 1), replace=False).tolist())
    tree = class_tree(taxonomy if draw(st.booleans()) else None, classes)
    # Whole numbers make ties.
    weights = rng.integers(-2, 3, size=(5, 2 * tree.n_nodes)) * (rng.random((5, 2 * tree.n_nodes)) < 0.5)
    weights[:, 0] = 0  # the root has no siblings
    sigmoids = np.stack((-2 * rng.random(tree.n_nodes), rng.normal(size=tree.n_nodes)), axis=1)
    index = ClassIndex.from_matrix(weights.astype(np.float32))
    walk = make_walk(tree, index, sigmoids, rng.integers(1, 9, size=len(classes)))
    rows = as_rows(rng.integers(-2, 3, size=(draw(st.integers(0, 4)), 5)).astype(np.float32))
    return tree, walk, index, rows


@given(walks(), st.integers(1, 15))
@settings(deadline=None, max_examples=60)
def test_the_greedy_walk_equals_its_twin(given_walk: Any, k: int) -> None:
    tree, walk, index, rows = given_walk
    ids, scores = walk_topk(walk, leading_nodes(tree, None), rows, k, tree.n_classes, Descent(False, 0.1), None)
    assert ids.shape == (rows.n_rows, min(k, tree.n_classes))
    for i, row in enumerate(score_all(index, rows)):
        paid = naive.regrets(tree, row)
        assert ids[i, 0] == naive.descend(tree, walk, row)
        assert len(set(ids[i].tolist())) == ids.shape[1]
        np.testing.assert_allclose(paid[ids[i]], np.sort(paid)[: ids.shape[1]])
        total = scores[i, 0]
        np.testing.assert_allclose(scores[i], total - paid[ids[i]], atol=1e-5)


@given(walks(), st.integers(1, 15), st.sampled_from([0.0, 0.1, 0.3, 0.9]))
@settings(deadline=None, max_examples=60)
def test_the_walk_by_probability_equals_its_twin(given_walk: Any, k: int, least: float) -> None:
    tree, walk, index, rows = given_walk
    descent = Descent(True, least)
    ids, scores = walk_topk(walk, leading_nodes(tree, None), rows, k, tree.n_classes, descent, None)
    for i, row in enumerate(score_all(index, rows)):
        expected = naive.candidates(tree, walk, row, least)
        kept = ids[i] >= 0
        assert kept.sum() == min(k, len(expected))
        np.testing.assert_allclose(scores[i][kept], [expected[c] for c in ids[i][kept].tolist()], rtol=1e-6)
        best = sorted(expected.values(), reverse=True)[: kept.sum()]
        np.testing.assert_allclose(scores[i][kept], best, rtol=1e-6)


@given(walks(), st.data())
@settings(deadline=None, max_examples=40)
def test_a_walk_among_some_classes(given_walk: Any, data: Any) -> None:
    tree, walk, _, rows = given_walk
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=tree.n_classes, max_size=tree.n_classes)))
    alive = leading_nodes(tree, allowed)
    for descent in (Descent(False, 0.1), Descent(True, 0.0)):
        ids = walk_topk(walk, alive, rows, tree.n_classes, tree.n_classes, descent, None).ids
        for row in ids:
            assert sorted(row[row >= 0].tolist()) == np.flatnonzero(allowed).tolist()
        everything = walk_topk(walk, leading_nodes(tree, None), rows, tree.n_classes, tree.n_classes, descent, None).ids
        if descent.by_probability:
            for row, full in zip(ids, everything, strict=True):
                assert row[row >= 0].tolist() == [c for c in full.tolist() if allowed[c]]


def test_the_greedy_total_is_the_sum_on_the_path() -> None:
    model = TopDownClassifier(TAXONOMY).fit(X, Y)
    nodes = score_all(model.node_index_, as_rows(X))
    expected = [naive.best_sum(model.tree_, row) for row in nodes]
    np.testing.assert_allclose(model.predict_topk(X, 1).scores[:, 0], expected, atol=1e-5)


def test_nodes_learn_from_the_rows_below_them() -> None:
    labels = encode([["d"], ["d", "e"], ["b", "h"], [], ["g"]])
    tree = class_tree(INNER, labels.classes)
    found = {tree.names[problem.node]: problem for problem in node_problems(tree, labels)}
    assert set(found) == {"all", "b", "c"}, "f has one child, so there is nothing to tell apart"
    assert found["all"].rows.tolist() == [0, 1, 2, 4]
    assert found["b"].rows.tolist() == [0, 1, 2]
    below = [tree.names[z] for z in tree.children.of(1)[found["b"].labels.ids].tolist()]
    assert below == ["d", "d", "e", "b"]
    assert found["c"].rows.tolist() == [2, 4]


@pytest.mark.parametrize(
    "learner",
    [
        LinearClassifier(),
        LinearClassifier(bias=1.0, min_weight=0),
        PerceptronClassifier(),
        FeatureFocusClassifier(negative="split"),
        CommitteeClassifier(PAClassifier(), n_seeds=2, keep_passes=(1,), vote="mean"),
    ],
    ids=repr,
)
def test_without_a_taxonomy_it_is_the_learner_itself(learner: Any) -> None:
    model = TopDownClassifier(node_learner=learner).fit(X, Y)
    alone = clone(learner).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_allclose(model.predict_topk(X, 1).scores, alone.predict_topk(X, 1).scores, rtol=1e-5, atol=1e-5)


def test_a_node_is_the_learner_on_its_rows() -> None:
    """Features that a node's rows lack, and the bias, find their columns."""
    learner = LinearClassifier(bias=1.0, min_weight=0, tol=1e-6)
    wide = sp.hstack([sp.csr_array((300, 3)), X, sp.csr_array((300, 2))]).tocsr()
    model = TopDownClassifier(TAXONOMY, learner).fit(wide, Y)
    tree = model.tree_
    node = tree.names.tolist().index("group 1")
    names = tree.names[tree.children.of(node)].tolist()
    below = np.flatnonzero(np.isin(Y, names))
    alone = clone(learner).fit(wide[below], Y[below])
    scores = score_all(model.node_index_, model._view(as_rows(wide)))
    found = scores[:, tree.children.of(node)] + scores[:, [tree.n_nodes + node]]
    expected = alone.decision_function(wide)[:, [alone.classes_.tolist().index(name) for name in names]]
    np.testing.assert_allclose(found, expected, atol=1e-2)


@MODES
def test_it_learns_a_tree_with_classes_on_inner_nodes(mode: str) -> None:
    rows, y = inner_task()
    model = TopDownClassifier(INNER, mode=mode).fit(rows[:300], y[:300])
    assert model.score(rows[300:], y[300:]) > 0.8
    lists = [[name] if i % 4 else [name, "e"] for i, name in enumerate(y)]
    several = TopDownClassifier(INNER, mode=mode).fit(rows, lists)
    assert np.mean([set(found) >= set(true) for found, true in zip(several.predict(rows), lists, strict=True)]) > 0.5


def test_sigmoids_are_fitted_where_there_are_rows() -> None:
    rows, y = inner_task()
    model = TopDownClassifier(INNER, mode="probability").fit(rows, y)
    siblings = [
        z for z in range(1, model.tree_.n_nodes) if len(model.tree_.children.of(int(model.tree_.parent[z]))) > 1
    ]
    assert (model.sigmoids_[siblings, 0] < 0).all()
    assert not (model.sigmoids_[siblings] == np.array(UNFITTED)).all(axis=1).any()
    for fixed in (TopDownClassifier(INNER, mode="probability", platt_trials=0), TopDownClassifier(INNER)):
        assert (fixed.fit(rows, y).sigmoids_ == np.array(UNFITTED)).all()
    nearest = np.argsort(-model.predict_topk(rows, 1).scores[:, 0])
    right = model.predict(rows) == np.array(y)
    assert right[nearest[:100]].mean() > right[nearest[-100:]].mean(), "probable answers are right more often"


def test_p_min_cuts_and_may_be_chosen() -> None:
    rows, y = inner_task()
    low = TopDownClassifier(INNER, mode="probability", min_probability=0).fit(rows, y)
    high = TopDownClassifier(INNER, mode="probability", min_probability=0.4).fit(rows, y)
    assert (low.predict_topk(rows, 6).labels != None).all()  # noqa: E711 - element by element
    labels, scores = high.predict_topk(rows, 6)
    found = np.isfinite(scores)
    assert found[:, 0].all()
    assert not found.all()
    assert (scores[:, 1:][found[:, 1:]] >= 0.4).all()
    assert all(label is None for label in labels[~found])
    chosen = TopDownClassifier(INNER, mode="probability", min_probability="auto").fit(rows, y)
    best = max(entry["R1"] for entry in chosen.history_)
    equals = [entry["min_probability"] for entry in chosen.history_ if entry["R1"] == best]
    assert chosen.min_probability_ == min(equals)


@MODES
def test_explain_adds_up(mode: str) -> None:
    model = TopDownClassifier(TAXONOMY, LinearClassifier(min_weight=0), mode=mode).fit(X, Y)
    tree = model.tree_
    nodes = score_all(model.node_index_, as_rows(X[:5]))
    dense = model.decision_function(X[:5])
    for i in range(5):
        for c, label in enumerate(model.classes_.tolist()):
            total = sum(value for _, value in model.explain(X[[i]], label))
            path = tree.paths.of(c)
            on_path = float(nodes[i, path].sum() + nodes[i, tree.n_nodes + tree.parent[path]].sum())
            assert total == pytest.approx(dense[i, c] if mode == "greedy" else on_path, abs=1e-4)


@MODES
def test_threads_seeds_files_and_pruning(mode: str, tmp_path: Any) -> None:
    model = TopDownClassifier(TAXONOMY, mode=mode).fit(X, Y)
    threads = TopDownClassifier(TAXONOMY, mode=mode, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(model.node_index_.weights, threads.node_index_.weights)
    np.testing.assert_array_equal(model.sigmoids_, threads.sigmoids_)
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    for other in (threads, loaded):
        for one, two in zip(model.predict_topk(X, 6), other.predict_topk(X, 6), strict=True):
            np.testing.assert_array_equal(one, two)
    assert loaded.taxonomy is not None
    assert loaded.min_probability_ == model.min_probability_
    pruned = model._pruned(max_edges=50)
    assert pruned.n_edges_ == 50
    assert pruned.predict(X).shape == (300,)


@MODES
def test_classes_leave_a_tree_and_become_one(mode: str) -> None:
    model = TopDownClassifier(TAXONOMY, mode=mode, min_probability=0).fit(X, Y)
    before = model.predict_topk(X, 11, exclude=[CLASSES[0]])
    model.drop_classes([CLASSES[0]])
    after = model.predict_topk(X, 11)
    np.testing.assert_array_equal(after.labels, before.labels)
    np.testing.assert_array_equal(after.scores, before.scores)
    model.merge_classes([CLASSES[1], CLASSES[2]], into="apart")
    model.merge_classes([CLASSES[4], CLASSES[7]], into="siblings")
    labels = model.predict_topk(X, 20).labels
    assert labels.shape[1] == len(model.classes_)
    for row in labels.tolist():
        assert sorted(row) == sorted(model.classes_.tolist())
    model.explain(X[[0]], "apart")
    model.explain(X[[0]], "siblings")


def test_the_deepest_sure_node() -> None:
    model = TopDownClassifier(TAXONOMY, calibrate="platt").fit(X, Y)
    answers = model.predict(X, min_confidence=0.9)
    assert set(answers.tolist()) - set(CLASSES) <= {"all", "chain", "group 0", "group 1", "group 2"}


def test_rows_of_weight_0_are_not_there() -> None:
    weights = np.where(Y == CLASSES[1], 0, 1)
    model = TopDownClassifier(TAXONOMY).fit(X, Y, weights)
    assert CLASSES[1] in model.classes_
    assert (model.predict(X) != CLASSES[1]).mean() > 0.9
    with pytest.raises(ValueError, match="nothing to learn"):
        TopDownClassifier().fit(X[:2], [["a"], []], [0, 1])


def test_rows_without_features() -> None:
    nothing = sp.csr_array((20, 4))
    names = [CLASSES[i % 3] for i in range(20)]
    for learner in (None, LinearClassifier(bias=1.0)):
        assert TopDownClassifier(TAXONOMY, learner).fit(nothing, names).predict(nothing).tolist() == [CLASSES[0]] * 20


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "careful"}, "mode"),
        ({"platt_trials": -1}, "platt_trials"),
        ({"min_probability": 1.5}, "min_probability"),
        ({"min_probability": "some"}, "min_probability"),
        ({"node_learner": "svm"}, "node_learner"),
        ({"node_learner": CommitteeClassifier()}, "vote='mean'"),
        ({"node_learner": LinearClassifier(C=0)}, "C=0"),
        ({"taxonomy": 5}, "taxonomy"),
        ({"taxonomy": INNER}, "the taxonomy lacks"),
    ],
)
def test_wrong_settings_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TopDownClassifier(**parameters).fit(X, Y)


@pytest.mark.parametrize("name", ["sigmoids", "nodes/classes", "tree/parent"])
def test_a_damaged_file_is_refused(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TopDownClassifier(TAXONOMY, mode="probability").fit(X, Y)
    arrays = model._model_arrays()
    wrong = {"sigmoids": np.nan, "nodes/classes": 10**6, "tree/parent": 10**6}
    damaged = arrays[name].copy()
    damaged.flat[1] = wrong[name]
    monkeypatch.setattr(type(model), "_model_arrays", lambda self: arrays | {name: damaged})
    monkeypatch.setattr("abound.learn.persist._check_floats", lambda arrays: None)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=name.split("/")[-1]):
        abound.load(tmp_path / "model")
