"""Recursive regularization: closed form, monotone rounds, and the cases in which it is the flat problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive_linear as naive
import naive_recursive
from abound import LinearClassifier, RecursiveClassifier, Taxonomy
from abound.distribute import Spare, workers
from abound.learn import _recursive_kernels as kernels
from abound.learn import recursive_tree
from abound.learn._lanes import LANES
from abound.learn.class_tree import class_tree
from abound.learn.linear_rows import solver_rows
from abound.learn.linear_solver import LOSSES, Block
from abound.learn.recursive_graph import class_graph
from abound.learn.recursive_inner import STRETCH, SWING, InnerNodes, Path
from abound.learn.recursive_leaves import support_vectors
from abound.learn.recursive_shape import short_tree
from abound.learn.recursive_vectors import Pile, RowVectors
from abound.validation import as_rows, frozen
from generate import make_rows


def named_rows(seed: int, n: int) -> Any:
    rows, y = make_rows(seed, n=n, noise=0.5)
    return rows, np.array([f"class {label}" for label in y])


X, Y = named_rows(4, n=240)
CLASSES = np.unique(Y).tolist()
EDGES = [("all", "a"), ("all", "b"), ("b", "c")] + [(("a", "b", "c")[i % 3], name) for i, name in enumerate(CLASSES)]
TREE = Taxonomy.from_edges(EDGES)


def random_tree(data: st.DataObject, names: list[str]) -> Taxonomy:
    """A tree with the given leaves, chains and inner nodes of any number of children."""
    n_inner = data.draw(st.integers(1, 6))
    inner = [f"inner {i}" for i in range(n_inner)]
    edges = [(inner[data.draw(st.integers(0, i - 1))], inner[i]) for i in range(1, n_inner)]
    edges += [(inner[data.draw(st.integers(0, n_inner - 1))], name) for name in names]
    return Taxonomy.from_edges(edges, root=inner[0])


def random_leaves(rng: Any, tree: Any, n_rows: int, *, on_disk: bool) -> tuple[RowVectors, Any]:
    """What leaves differ by from their parents: some rows each, in the order of the parents; and in full, by class."""
    dense = np.zeros((len(tree.leaf_parent), n_rows), dtype=np.float32)
    pile = Pile(on_disk)
    for c in np.argsort(tree.leaf_parent, kind="stable").tolist():
        rows = np.flatnonzero(rng.random(n_rows) < 0.4).astype(np.int32)
        dense[c, rows] = rng.normal(size=len(rows))
        pile.add(rows, dense[c, rows])
    return pile.whole(), dense


@pytest.mark.parametrize("root_is_zero", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
@given(data=st.data())
def test_inner_nodes_are_the_mean_of_their_neighbours(root_is_zero: bool, on_disk: bool, data: st.DataObject) -> None:
    """All inner nodes as sums of rows, move after move; the twin has all their weights."""
    names = [f"leaf {i}" for i in range(data.draw(st.integers(1, 7)))]
    tree = short_tree(class_tree(random_tree(data, names), names), root_is_zero=root_is_zero)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    # With few features vectors of inner nodes are kept by features, with many by rows.
    shape = data.draw(st.integers(1, 8)), data.draw(st.sampled_from([6, 40]))
    matrix = sp.random_array(shape, density=0.4, rng=rng, dtype=np.float32, format="csr")
    rows = solver_rows(as_rows(matrix), np.ones(matrix.shape[0], np.float32), rng)
    full = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features)).toarray()
    base = np.float32(not root_is_zero) * rng.normal(size=rows.n_features).astype(np.float32)
    nodes = InnerNodes(tree, rows, frozen(base, np.float32), Spare(), on_disk)
    path, wanted = Path(rows, tree.parent), np.repeat(base[None].astype(np.float64), tree.n_inner, axis=0)
    older = wanted
    for number in range(data.draw(st.integers(1, 5))):
        vectors, dense = random_leaves(rng, tree, rows.n_rows, on_disk=on_disk)
        swing = data.draw(st.sampled_from([0.0, SWING])) if number else 0.0
        position = nodes.position()
        with workers(data.draw(st.sampled_from([1, 2]))) as threads:
            nodes.make(nodes.find_move(vectors, 0.5 * swing, threads))
            nodes.return_to(position)
            move = nodes.find_move(vectors, swing, threads)
        nodes.make(move)
        minimum = naive_recursive.move_inner(tree, wanted, dense @ full, STRETCH)
        older, before, wanted = wanted, wanted, minimum + swing * (wanted - older)
        order = rng.permutation(tree.n_inner)
        found = np.empty_like(wanted)
        found[order] = [path.weights(n, nodes.inner).copy() for n in order.tolist()]
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        np.testing.assert_allclose(move.moved, np.sum((wanted - before) ** 2, axis=1), rtol=1e-3, atol=1e-4)
        lengths = naive_recursive.squared_lengths(tree, wanted)[int(root_is_zero) :]
        stiffness = tree.stiffness[int(root_is_zero) :]
        assert nodes.objective == pytest.approx(0.5 * (stiffness * lengths).sum(), rel=1e-3, abs=1e-4)


@given(data=st.data())
def test_short_trees_have_the_same_minimum(data: st.DataObject) -> None:
    """Nodes with one child are left out; the twin takes all nodes one by one until nothing changes."""
    names = [f"leaf {i}" for i in range(data.draw(st.integers(1, 6)))]
    tree = class_tree(random_tree(data, names), names)
    short = short_tree(tree, root_is_zero=False)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    leaves = rng.normal(size=(len(names), 5))
    inner = naive_recursive.move_inner(short, np.zeros((short.n_inner, 5)), leaves, 1.0)
    everything = np.zeros((tree.n_nodes, 5))
    everything[tree.leaf_of_class] = leaves
    is_inner = [n for n in range(tree.n_nodes) if n not in set(tree.leaf_of_class.tolist())]
    wanted = naive.inner_nodes(tree.parent.tolist(), everything, is_inner)
    np.testing.assert_allclose(inner[0], wanted[0], atol=1e-4)
    springs = 0.5 * (short.stiffness * naive_recursive.squared_lengths(short, inner)).sum() + sum(
        0.5 * s * np.sum((leaf - inner[p]) ** 2)
        for leaf, p, s in zip(leaves, short.leaf_parent, short.leaf_stiffness, strict=True)
    )
    assert springs == pytest.approx(naive.tree_objective(tree.parent.tolist(), wanted), rel=1e-3, abs=1e-4)


@given(data=st.data())
def test_what_is_below_a_node_comes_right_after_it(data: st.DataObject) -> None:
    names = [f"leaf {i}" for i in range(data.draw(st.integers(1, 12)))]
    tree = short_tree(class_tree(random_tree(data, names), names), root_is_zero=False)
    for n in range(tree.n_inner):
        below = [m for m in range(tree.n_inner) if n in ancestors(tree.parent, m)]
        assert below == list(range(n + 1, n + 1 + len(below)))


def ancestors(parent: Any, node: int) -> list[int]:
    """The nodes above a node."""
    found = []
    while node:
        node = int(parent[node])
        found.append(node)
    return found


@given(data=st.data())
def test_the_objective_never_rises(data: st.DataObject) -> None:
    rows, y = named_rows(data.draw(st.integers(0, 50)), n=60)
    names = np.unique(y).tolist()
    if data.draw(st.booleans()):
        taxonomy = random_tree(data, names)
    else:
        pairs = st.tuples(st.sampled_from(names), st.sampled_from([*names, "x", "y"]))
        edges = [pair for pair in data.draw(st.lists(pairs, min_size=1, max_size=12)) if pair[0] != pair[1]]
        lonely = [name for name in names if name not in {n for pair in edges for n in pair}]
        taxonomy = (
            Taxonomy([*{n: 0 for pair in edges for n in pair}, *lonely], [], kind="graph")
            if not edges
            else (Taxonomy.from_edges(edges + [(name, "hub") for name in lonely], kind="graph"))
        )
    loss = data.draw(st.sampled_from(LOSSES))
    cost = data.draw(st.sampled_from([0.1, 1.0, 10.0]))
    model = RecursiveClassifier(taxonomy, loss=loss, C=cost, round_tol=0, max_rounds=6, tol=0.05).fit(rows, y)
    objectives = np.array([entry["objective"] for entry in model.history_])
    assert np.isfinite(objectives).all()
    assert (np.diff(objectives) <= 2e-5 * objectives[:-1]).all()


def test_a_move_that_swings_too_far_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted(swing: float) -> Any:
        monkeypatch.setattr(recursive_tree, "SWING", swing)
        return RecursiveClassifier(TREE, "logistic", C=10.0, round_tol=0.0, max_rounds=6, min_weight=0).fit(X, Y)

    plain, swung, too_far = (fitted(swing) for swing in (0.0, SWING, 50.0))
    objectives = [[entry["objective"] for entry in model.history_] for model in (plain, swung, too_far)]
    assert objectives[2] == objectives[0]
    assert (too_far.decision_function(X) == plain.decision_function(X)).all()
    assert objectives[1][:3] == objectives[0][:3]
    assert objectives[1][3:] != objectives[0][3:]


@pytest.mark.parametrize("loss", LOSSES)
def test_depth_one_with_the_root_at_zero_is_the_flat_problem(loss: str) -> None:
    flat = LinearClassifier(loss=loss, C=1.0, tol=1e-6, min_weight=0).fit(X, Y)
    tree = RecursiveClassifier(
        None, loss=loss, C=1.0, tol=1e-6, round_tol=0, max_rounds=2, min_weight=0, root="zero"
    ).fit(X, Y)
    np.testing.assert_allclose(tree.decision_function(X), flat.decision_function(X), atol=5e-3)
    if loss != "logistic":
        assert tree.history_[-1]["objective"] == pytest.approx(flat.objective_.sum(), rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_graph_without_edges_is_the_flat_problem(loss: str) -> None:
    lonely = Taxonomy(CLASSES, np.empty((0, 2), np.int32), kind="graph")
    flat = LinearClassifier(loss=loss, C=1.0, tol=1e-6, min_weight=0).fit(X, Y)
    graph = RecursiveClassifier(lonely, loss=loss, C=1.0, tol=1e-6, round_tol=0, max_rounds=2, min_weight=0).fit(X, Y)
    np.testing.assert_allclose(graph.decision_function(X), flat.decision_function(X), atol=5e-3)


def test_the_optimum_of_a_small_tree() -> None:
    """All nodes at once, by a general minimiser, reach the same objective."""
    rows, y = X[:60].toarray().astype(np.float64), Y[:60]
    names = np.unique(y).tolist()
    taxonomy = Taxonomy.from_edges([("r", "p"), ("r", "q")] + [("pq"[i % 2], name) for i, name in enumerate(names)])
    model = RecursiveClassifier(taxonomy, loss="squared_hinge", bias=2.0, tol=1e-5, round_tol=0, max_rounds=60)
    model.fit(X[:60], y)
    rows = np.hstack([rows, np.full((60, 1), 2.0)])
    tree = class_tree(taxonomy, names)
    signs = np.where(y[:, None] == np.array(names), 1, -1)
    best = naive.solve_tree(rows, signs, tree.leaf_of_class.tolist(), tree.parent.tolist())
    assert best * (1 - 1e-5) <= model.history_[-1]["objective"] <= best * 1.002


def test_same_bits_for_any_number_of_threads() -> None:
    graph = Taxonomy.from_edges(EDGES, kind="graph")
    for taxonomy in (TREE, graph):
        first, second = (RecursiveClassifier(taxonomy, n_jobs=n, max_rounds=3).fit(X, Y) for n in (1, 2))
        for name in ("indptr", "classes", "weights", "offset", "bias"):
            np.testing.assert_array_equal(getattr(first.index_, name), getattr(second.index_, name))


def test_classes_on_inner_nodes() -> None:
    edges = [(CLASSES[0], name) for name in CLASSES[1:]]
    model = RecursiveClassifier(Taxonomy.from_edges([("root", CLASSES[0]), *edges])).fit(X, Y)
    assert set(model.predict(X).tolist()) == set(CLASSES)


def test_neighbours_help_a_class_with_few_rows() -> None:
    """Two classes share a feature and a parent; one of them has a single row, which lacks the shared feature."""
    rows = np.array([[1, 1, 0, 0]] * 8 + [[0, 0, 1, 0]] + [[0, 0, 0, 1]] * 9, dtype=np.float32)
    y = ["cat"] * 8 + ["lion"] + ["car"] * 9
    taxonomy = Taxonomy.from_edges([("all", "animal"), ("all", "car"), ("animal", "cat"), ("animal", "lion")])
    shared = np.array([[0, 1, 0, 0]], dtype=np.float32)

    def lead(model: Any) -> float:
        scores = dict(zip(model.classes_.tolist(), model.decision_function(shared)[0].tolist(), strict=True))
        return scores["lion"] - scores["car"]

    options = {"loss": "squared_hinge", "C": 0.03, "bias": 0, "min_weight": 0, "round_tol": 0, "max_rounds": 30}
    flat = RecursiveClassifier(None, **options).fit(rows, y)
    tree = RecursiveClassifier(taxonomy, **options).fit(rows, y)
    assert lead(tree) > lead(flat) + 0.02


def test_several_labels_on_a_dag() -> None:
    edges = [("all", "a"), ("all", "b")] + [(parent, name) for name in CLASSES for parent in ("a", "b")]
    dag = Taxonomy.from_edges(edges)
    lists = [[label, "a"] if i % 2 else [label] for i, label in enumerate(Y)]
    model = RecursiveClassifier(dag, loss="logistic", C=10.0).fit(X, lists)
    assert dag.kind == "dag"
    assert any("a" in found for found in model.predict(X))


def test_colours_part_neighbours() -> None:
    graph = class_graph(TREE, np.arange(len(CLASSES), dtype=np.int32))
    for a, b in TREE.edges.tolist():
        assert graph.colour[a] != graph.colour[b]


def test_wrong_taxonomies() -> None:
    with pytest.raises(ValueError, match="the taxonomy lacks"):
        RecursiveClassifier(Taxonomy.from_edges([("r", CLASSES[0])])).fit(X, Y)
    with pytest.raises(ValueError, match="cycle"):
        RecursiveClassifier(Taxonomy.from_edges([("a", "b"), ("b", "a")])).fit(X, Y)
    with pytest.raises(ValueError, match="it must be an abound"):
        RecursiveClassifier(taxonomy=3).fit(X, Y)


def test_save_and_load(tmp_path: Any) -> None:
    import abound

    model = RecursiveClassifier(TREE, C=2.0, calibrate="platt").fit(X, Y)
    model.save(tmp_path / "model.abound")
    loaded = abound.load(tmp_path / "model.abound").estimator
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.history_ == model.history_
    assert loaded.predict(X[:5], min_confidence=0.9).tolist() == model.predict(X[:5], min_confidence=0.9).tolist()


@given(st.integers(0, 10**6), st.integers(0, 40), st.sampled_from([0.0, 0.02, 0.5, 1.0]))
def test_support_vectors_are_the_duals_above_0_with_the_sign_of_their_targets(seed: int, n: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    rows = as_rows(sp.random_array((n, 3), density=0.5, rng=rng, format="csr"))
    block = Block(solver_rows(rows, np.ones(n, np.float32), rng))
    block.duals[:] = rng.random(block.duals.shape) * (rng.random(block.duals.shape) < share)
    block.targets[:] = rng.choice([-1, 0, 1], block.targets.shape)
    for lane, (kept, coefficients) in enumerate(support_vectors(block)):
        assert kept.tolist() == naive_recursive.support_vectors(block.duals[:, lane].tolist())
        assert np.array_equal(coefficients, (block.duals * block.targets)[kept, lane])


@given(st.integers(0, 10**6), st.integers(0, 30), st.sampled_from([0.01, 1.0, 30.0, 1000.0]))
def test_the_logistic_loss_is_that_of_the_naive_sum(seed: int, n: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 5), density=0.5, rng=rng, format="csr", dtype=np.float32)
    weights = rng.normal(0, size, (5, LANES)).astype(np.float32)
    targets = rng.choice([-1, 0, 1], (n, LANES)).astype(np.int8)
    row_weights, costs = rng.random(n).astype(np.float32), rng.random((2, LANES)).astype(np.float32)
    sums = np.zeros(LANES)
    parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, row_weights, targets
    kernels.logistic_loss(*parts, *costs, 0, n, weights, sums)
    scores = (X @ weights).tolist()
    for lane in range(LANES):
        truth = naive_recursive.logistic_loss(
            *([row[lane] for row in scores], targets[:, lane].tolist(), row_weights.tolist()),
            *(float(costs[0, lane]), float(costs[1, lane])),
        )
        assert sums[lane] == pytest.approx(truth, rel=1e-5, abs=1e-5)


@given(st.integers(0, 10**6), st.integers(0, 30))
def test_light_duals_are_taken_off_the_weights(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 5), density=0.5, rng=rng, format="csr", dtype=np.float32)
    targets = rng.choice([-1, 0, 1], (n, LANES)).astype(np.int8)
    duals = rng.choice([0, 0.1, 0.5, 2.0], (n, LANES)).astype(np.float32)
    least = rng.choice([0, 0.3, 1.0], LANES).astype(np.float32)
    weights = (X.T @ (duals * targets)).astype(np.float32)
    heavy = np.where(duals < least, 0, duals)
    parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    kernels.drop_light(*parts, targets, least, 0, n, duals, weights)
    assert np.array_equal(duals, heavy)
    assert np.allclose(weights, X.T @ (heavy * targets), atol=1e-4)
