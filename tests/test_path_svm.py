"""HSVM: the optimum, its certificate, and what the tree means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import abound
from abound import PathSVMClassifier, Taxonomy
from abound.learn.class_tree import class_tree
from abound.learn.margin_dual import MarginDual, Quadratic
from abound.learn.path_svm import path_candidates, shared_nodes
from abound.learn.tree_learner import gather_examples
from abound.validation import as_rows, check_labels, make_generator
from naive_trees import distance, path, path_losses, path_objective, solve_path_svm
from tree_data import CLASSES, NESTED, nested_rows, small_problems

X, Y = nested_rows(0)
rescalings = pytest.mark.parametrize("rescaling", ["slack", "margin"])


def problem_of(taxonomy: Any, X: Any, y: Any, C: float, rescaling: str) -> tuple[Any, MarginDual]:
    rows, labels = as_rows(X), check_labels(y, X.shape[0])
    examples = gather_examples(rows, labels, np.ones(rows.n_rows, np.float32))
    tree = class_tree(taxonomy, labels.classes)
    shared = shared_nodes(tree)
    true = labels.indptr, labels.ids
    return tree, MarginDual(examples, C * examples.shares, true, path_candidates(shared, rescaling), Quadratic(shared))


def node_weights(tree: Any, base: Any) -> Any:
    """The weights of the nodes: a node has the bases of all classes below it."""
    W = np.zeros((tree.n_nodes, base.shape[0]))
    for c, leaf in enumerate(tree.leaf_of_class):
        for z in path(tree.parent, leaf):
            W[z] += base[:, c]
    return W


@rescalings
@given(small_problems())
def test_every_sweep_raises_the_dual_and_keeps_the_bounds(rescaling: str, drawn: Any) -> None:
    taxonomy, rows, y = drawn
    tree, problem = problem_of(taxonomy, rows, y, 5.0, rescaling)
    generator, last = make_generator(0), 0.0
    own = np.unique(y, return_inverse=True)[1]
    for _ in range(4):
        problem.sweep(generator)
        swept = problem.weights.copy()
        problem.refresh()
        np.testing.assert_allclose(swept, problem.weights, atol=1e-9)
        lower, upper = problem.dual_objective(), problem.objective()
        assert lower >= last - 1e-9
        assert upper >= lower - 1e-9
        last = lower
        assert (problem.dual >= 0).all()
        assert (problem.dual.sum(axis=1) <= problem._examples[2] + 1e-9).all()
        W = node_weights(tree, problem.base)
        assert upper == pytest.approx(path_objective(W, rows.toarray(), own, tree, 5.0, rescaling))
        np.testing.assert_allclose(tree.path_sums(W), problem.weights.T, atol=1e-9)


@rescalings
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_the_optimum_is_that_of_a_slow_solver(rescaling: str, C: float) -> None:
    few, labels = X[:10, :3], Y[:10]
    model = PathSVMClassifier(NESTED, C=C, rescaling=rescaling, bias=0, tol=1e-6).fit(few, labels)
    own = np.unique(labels, return_inverse=True)[1]
    _, best = solve_path_svm(few.astype(np.float64), own, model.tree_, C, rescaling)
    last = model.history_[-1]
    assert last["dual"] <= best + 1e-4
    assert last["objective"] == pytest.approx(best, rel=1e-3)
    assert last["objective"] - last["dual"] <= 1e-6 * last["objective"]


@rescalings
def test_a_flat_tree_is_crammer_and_singer(rescaling: str) -> None:
    """Under one root every distance is 2: it doubles the loss or, as a margin, the weights."""
    model = PathSVMClassifier(C=10.0, rescaling=rescaling, bias=0, tol=1e-5).fit(X, Y)
    cost, scale = (20.0, 1) if rescaling == "slack" else (5.0, 2)
    peer = LinearSVC(
        multi_class="crammer_singer", C=cost / len(Y), fit_intercept=False, tol=1e-6, max_iter=100_000
    ).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), scale * peer.decision_function(X), atol=0.02)


def test_distances_and_shared_nodes() -> None:
    tree = class_tree(NESTED, [*CLASSES, "b"])
    shared = shared_nodes(tree)
    candidates = path_candidates(shared, "slack")
    for j, (left, right) in enumerate(zip(candidates.left, candidates.right, strict=True)):
        a, b = tree.leaf_of_class[left], tree.leaf_of_class[right]
        assert candidates.cost[j] == candidates.scale[j] == distance(tree.parent, a, b)
        assert shared[left, right] == len(set(path(tree.parent, a)) & set(path(tree.parent, b)))
    assert (path_candidates(shared, "margin").scale == 1).all()


def test_another_label_of_the_row_is_no_mistake() -> None:
    several = [[label, "c"] if i % 4 == 0 and label != "c" else [label] for i, label in enumerate(Y)]
    tree, problem = problem_of(NESTED, X, several, 5.0, "slack")
    generator = make_generator(0)
    for _ in range(30):
        problem.sweep(generator)
    problem.refresh()
    W = node_weights(tree, problem.base)
    ids = {label: c for c, label in enumerate(CLASSES)}
    losses = [
        max([0.0, *path_losses(W, x, ids[own], tree, "slack", [ids[label] for label in row])])
        for x, row in zip(X, several, strict=True)
        for own in row
    ]
    assert problem.objective() == pytest.approx(0.5 * (W**2).sum() + 5.0 * np.mean(losses))
    assert problem.objective() - problem.dual_objective() < 0.02 * problem.objective()


def test_a_weight_is_a_repeated_row() -> None:
    weights = np.arange(len(Y)) % 3
    weighted = PathSVMClassifier(NESTED, C=5.0, bias=1.0, tol=1e-5).fit(X, Y, weights)
    repeated = PathSVMClassifier(NESTED, C=5.0, bias=1.0, tol=1e-5)
    repeated.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_classes_on_inner_nodes_are_predicted_by_their_names() -> None:
    labels = np.where(Y == "a3", "a", Y)
    model = PathSVMClassifier(NESTED).fit(X, labels)
    assert (model.predict(X) == labels).mean() > 0.9
    assert "a" in set(model.predict(X))


def test_what_was_learned_from_a_taxonomy_survives_a_save(tmp_path: Any) -> None:
    for taxonomy in (NESTED, None):
        model = PathSVMClassifier(taxonomy, C=5.0, calibrate="platt").fit(X, Y)
        model.save(tmp_path / "model")
        loaded = abound.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(loaded.tree_.names, model.tree_.names)
        assert loaded.history_ == model.history_
    model = PathSVMClassifier(NESTED, C=5.0, calibrate="platt").fit(X, Y)
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert loaded.taxonomy.names.tolist() == NESTED.names.tolist()
    sure = loaded.predict(X, min_confidence=0.95)
    np.testing.assert_array_equal(sure, model.predict(X, min_confidence=0.95))
    assert set(sure) & {"r", "a", "b", "b1"}


def test_errors() -> None:
    with pytest.raises(ValueError, match="lacks the class 'cocoa'"):
        PathSVMClassifier(NESTED).fit(X[:2], ["cocoa", "a1"])
    with pytest.raises(ValueError, match="rescaling='none'"):
        PathSVMClassifier(rescaling="none").fit(X, Y)
    with pytest.raises(ValueError, match="bias='much'"):
        PathSVMClassifier(bias="much").fit(X, Y)
    with pytest.raises(ValueError, match="taxonomy=7"):
        PathSVMClassifier(taxonomy=7).fit(X, Y)
    with pytest.raises(ValueError, match="needs a tree"):
        PathSVMClassifier(Taxonomy.from_edges([("r", "a1"), ("a1", "c")], kind="graph")).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="after 1 sweeps the duality gap is"):
        PathSVMClassifier(C=1000, tol=1e-9, max_sweeps=1).fit(X, Y)


def test_tables_that_would_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abound.validation.DENSE_LIMIT", 1000)
    with pytest.raises(MemoryError, match="this learner is for small data"):
        PathSVMClassifier().fit(X, Y)
