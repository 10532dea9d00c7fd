"""OT: the penalty, the optimum and its certificate, and the greedy walk."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import abound
from abound import OrthogonalTransferClassifier, PathSVMClassifier
from abound.learn._descent_kernels import score_by_descent
from abound.learn.class_tree import class_tree
from abound.learn.margin_dual import MarginDual
from abound.learn.orthogonal_penalty import Orthogonal
from abound.learn.orthogonal_transfer import nodes_of_rows, path_incidence, sibling_candidates
from abound.learn.tree_learner import gather_examples
from abound.validation import as_rows, check_labels, make_generator
from naive_trees import dual_averaging, greedy_leaf, orthogonal_matrix, orthogonal_objective, path
from tree_data import CLASSES, NESTED, nested_rows, small_problems

X, Y = nested_rows(0)


def problem_of(taxonomy: Any, X: Any, y: Any, C: float) -> tuple[Any, MarginDual]:
    rows, labels = as_rows(X), check_labels(y, X.shape[0])
    examples = gather_examples(rows, labels, np.ones(rows.n_rows, np.float32))
    tree = class_tree(taxonomy, labels.classes)
    true, candidates = nodes_of_rows(tree, labels), sibling_candidates(tree)
    return tree, MarginDual(examples, C * examples.shares, true, candidates, Orthogonal(tree))


@given(small_problems(), st.integers(0, 9))
def test_the_penalty_is_convex_for_all_signs(drawn: Any, seed: int) -> None:
    taxonomy, _, y = drawn
    tree = class_tree(taxonomy, np.unique(y))
    penalty, K = Orthogonal(tree), orthogonal_matrix(tree)
    ones = np.ones(len(penalty.signs))
    np.testing.assert_allclose(penalty.matrix(ones)[1:, 1:], K)
    rng = np.random.default_rng(seed)
    for signs in (ones, -ones, rng.uniform(-1, 1, len(ones)), np.sign(rng.normal(size=len(ones)))):
        assert np.linalg.eigvalsh(penalty.matrix(signs)).min() > 0
    W = rng.normal(size=(tree.n_nodes, 3))
    W[0] = 0
    assert penalty.value(W.T, W.T) == pytest.approx(0.5 * (K * np.abs(W[1:] @ W[1:].T)).sum())
    V = rng.normal(size=W.shape)
    V[0] = 0
    middle = penalty.value(W.T, (W.T + V.T) / 2)
    assert middle <= (penalty.value(W.T, W.T) + penalty.value(V.T, V.T)) / 2 + 1e-9


@given(small_problems())
def test_every_sweep_raises_the_dual_below_the_objective(drawn: Any) -> None:
    taxonomy, rows, y = drawn
    tree, problem = problem_of(taxonomy, rows, y, 5.0)
    own = np.unique(y, return_inverse=True)[1]
    generator, last = make_generator(0), 0.0
    for _ in range(4):
        problem.sweep(generator)
        problem.refresh()
        lower, upper = problem.dual_objective(), problem.objective()
        assert lower >= last - 1e-9
        assert upper >= lower - 1e-9
        last = lower
        assert upper == pytest.approx(orthogonal_objective(problem.weights.T, rows.toarray(), own, tree, 5.0)[0])


@pytest.mark.parametrize("C", [1.0, 4.0])
def test_the_optimum_is_below_what_dual_averaging_finds(C: float) -> None:
    few, labels = X[:12, :3].astype(np.float64), Y[:12]
    model = OrthogonalTransferClassifier(NESTED, C=C, bias=0, tol=1e-4).fit(few, labels)
    first, last = model.history_[0], model.history_[-1]
    own = np.unique(labels, return_inverse=True)[1]
    found = dual_averaging(few, own, model.tree_, C, 4000)
    assert last["dual"] <= last["objective"] <= found
    assert found == pytest.approx(last["objective"], rel=0.02)
    assert last["objective"] - last["dual"] <= 1e-4 * last["objective"]
    assert last["objective"] <= first["objective"]
    W = model.nodes_.to_matrix().toarray().T.astype(np.float64)
    assert orthogonal_objective(W, few, own, model.tree_, C)[0] == pytest.approx(last["objective"], rel=1e-4)


def test_weights_turn_away_from_those_of_ancestors() -> None:
    model = OrthogonalTransferClassifier(NESTED, C=50.0, bias=0, tol=1e-4).fit(X, Y)
    W = model.nodes_.to_matrix().toarray().T
    lengths = np.linalg.norm(W, axis=1)
    node, above = Orthogonal(model.tree_).pairs
    counted = (lengths[node] > 1e-3) & (lengths[above] > 1e-3)
    cosines = np.abs((W[node] * W[above]).sum(axis=1)[counted] / (lengths[node] * lengths[above])[counted])
    assert counted.sum() >= 3
    assert np.median(cosines) < 0.01


def test_a_flat_tree_is_the_path_svm_up_to_scale() -> None:
    """Under one root the distance 2 doubles the path SVM's loss, and subtrees have size 1."""
    model = OrthogonalTransferClassifier(C=20.0, tol=1e-5).fit(X, Y)
    peer = PathSVMClassifier(C=10.0, tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=0.02)


@given(small_problems(), st.integers(0, 99))
def test_classes_are_scored_by_greedy_descent(drawn: Any, seed: int) -> None:
    taxonomy, _, y = drawn
    tree = class_tree(taxonomy, np.unique(y))
    node_scores = np.random.default_rng(seed).normal(size=(5, tree.n_nodes)).astype(np.float32)
    scores = np.zeros((5, tree.n_classes), np.float32)
    scratch = np.empty(tree.n_nodes, np.int64), np.empty(tree.n_nodes)
    score_by_descent(node_scores, tree.parent, tree.class_of_node, *scratch, scores)
    for own, found in zip(node_scores.astype(np.float64), scores, strict=True):
        end = greedy_leaf(own, tree)
        assert found.argmax() == tree.class_of_node[end]
        total = sum(own[z] for z in path(tree.parent, end))
        for c, leaf in enumerate(tree.leaf_of_class):
            lacks = 0.0
            for z in path(tree.parent, leaf):
                lacks += max(own[s] for s in range(1, tree.n_nodes) if tree.parent[s] == tree.parent[z]) - own[z]
            assert found[c] == pytest.approx(total - lacks, abs=1e-5)


def test_predict_is_the_end_of_the_walk_and_explain_its_score() -> None:
    model = OrthogonalTransferClassifier(NESTED).fit(X, Y)
    W = model.nodes_.to_matrix().toarray().T.astype(np.float64)
    labels, scores = model.predict_topk(X, k=len(CLASSES))
    for i in range(0, len(X), 7):
        end = greedy_leaf(W @ X[i] + model.nodes_.bias, model.tree_)
        assert labels[i, 0] == model.predict(X[[i]])[0] == model.classes_[model.tree_.class_of_node[end]]
        parts = model.explain(X[[i]], labels[i, 0])
        assert sum(value for _, value in parts) == pytest.approx(float(scores[i, 0]), abs=1e-4)
    assert model.score(X, Y) > 0.9


def test_candidates_are_the_siblings_on_the_way() -> None:
    tree = class_tree(NESTED, CLASSES)
    candidates = sibling_candidates(tree)
    c = CLASSES.index("b11")
    span = slice(candidates.indptr[c], candidates.indptr[c + 1])
    pairs = zip(tree.names[candidates.left[span]], tree.names[candidates.right[span]], strict=True)
    assert sorted(pairs) == [("b", "a"), ("b", "c"), ("b11", "b12")]


def test_the_paths_of_other_labels_are_no_mistakes() -> None:
    tree = class_tree(NESTED, CLASSES)
    indptr, nodes = nodes_of_rows(tree, check_labels([["a1", "b12"], ["c"], []], 3, np.array(CLASSES)))
    assert [set(tree.names[nodes[a:b]]) for a, b in pairwise(indptr)] == [
        {"a", "a1", "b", "b1", "b12"},
        {"c"},
        set(),
    ]
    several = [[label, "c"] if i % 4 == 0 and label != "c" else [label] for i, label in enumerate(Y)]
    _, problem = problem_of(NESTED, X, several, 5.0)
    generator = make_generator(0)
    for _ in range(30):
        problem.sweep(generator)
        problem.refresh()
    assert problem.objective() - problem.dual_objective() < 0.02 * problem.objective()
    indptr, nodes = nodes_of_rows(tree, check_labels(several, len(Y)))
    for e, (row, own) in enumerate(zip(*problem._examples[:2], strict=True)):
        asked = problem.candidates.right[problem.candidates.indptr[own] + np.flatnonzero(problem.dual[e])]
        assert not set(asked) & set(nodes[indptr[row] : indptr[row + 1]])


def test_path_incidence_counts_the_leaves_of_merged_classes() -> None:
    tree = class_tree(NESTED, CLASSES)
    merged = tree.remap_classes(np.array([0, 0, 1, 2, 3, 4], np.int32), 5)
    incidence = path_incidence(merged).toarray()
    assert incidence[:, 0].tolist() == [{"a": 2, "a1": 1, "a2": 1}.get(name, 0) for name in tree.names]


def test_a_save_keeps_tree_and_nodes(tmp_path: Any) -> None:
    model = OrthogonalTransferClassifier(NESTED, bias=1.0).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.index_.weights, model.index_.weights)
    assert loaded.taxonomy.names.tolist() == NESTED.names.tolist()
    assert loaded.n_edges_ == model.nodes_.n_edges


def test_classes_leave_and_the_light_edges_too() -> None:
    model = OrthogonalTransferClassifier(NESTED).fit(X, Y)
    before = model.predict_topk(X, 3, exclude=["a2"])
    pruned = model._pruned(max_degree=2)
    assert pruned.n_edges_ <= 2 * X.shape[1] < model.n_edges_
    after = model.drop_classes(["a2"]).predict_topk(X, 3)
    np.testing.assert_array_equal(after.labels, before.labels)


def test_errors() -> None:
    with pytest.raises(ValueError, match="lacks the class 'cocoa'"):
        OrthogonalTransferClassifier(NESTED).fit(X[:2], ["cocoa", "a1"])
    with pytest.warns(ConvergenceWarning, match="after 1 sweeps the duality gap is"):
        OrthogonalTransferClassifier(C=1000, tol=1e-9, max_sweeps=1).fit(X, Y)
