"""Recursive regularization within a budget: the same model from files, or a refusal before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from sklearn.base import clone

from abound import RecursiveClassifier, Taxonomy
from abound.distribute import Serial
from abound.learn import recursive
from abound.learn.linear_rows import solver_rows
from abound.learn.recursive_inner import Inner, Step
from abound.learn.recursive_leaves import LeafSolver
from abound.learn.recursive_vectors import Pile, add_vector, shortened, spans_to_read
from abound.read import open_rows, write_rows
from abound.scratch import is_mapped
from abound.validation import as_rows
from cluster_data import TREE, assert_same_model, make_rows
from tree_data import small_problems

BUDGET = 10_000
"""Bytes: everything that can goes to files."""


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let budgets be smaller than what Python itself takes."""
    monkeypatch.setattr(recursive, "require_memory", lambda *given: None)


def assert_same_but_for_the_budget(one: Any, other: Any) -> None:
    assert is_mapped(other.index_.weights) or not other.index_.n_edges
    assert_same_model(one, other.set_params(memory=None, n_jobs=one.n_jobs))


@pytest.mark.parametrize(
    "learner",
    [
        RecursiveClassifier(TREE, max_rounds=4, round_tol=0.0),
        RecursiveClassifier(TREE, loss="logistic", max_rounds=2, bias=1.0, root="zero"),
        RecursiveClassifier(max_rounds=3, round_tol=0.0, loss="hinge", min_weight=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_waits_in_files_gives_the_same_model(learner: Any, n_jobs: int, any_size: None) -> None:
    X, y = make_rows()
    usual = clone(learner).fit(X, y)
    assert_same_but_for_the_budget(usual, clone(learner).set_params(memory=BUDGET, n_jobs=n_jobs).fit(X, y))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=small_problems())
def test_small_trees_are_the_same_from_files(problem: Any, any_size: None) -> None:
    """Classes on inner nodes, nodes without rows, one class, empty rows."""
    taxonomy, X, y = problem
    learner = RecursiveClassifier(taxonomy, max_rounds=3, round_tol=0.0, min_weight=0)
    assert_same_but_for_the_budget(clone(learner).fit(X, y), clone(learner).set_params(memory=1).fit(X, y))


def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    X, y = make_rows()
    learner = RecursiveClassifier(TREE)
    limited = clone(learner).set_params(memory="100GB").fit(X, y)
    assert not is_mapped(limited.index_.weights)
    assert_same_model(learner.fit(X, y), limited.set_params(memory=None))


def test_processes_and_checkpoints_go_with_files(any_size: None, tmp_path: Path) -> None:
    X, y = make_rows()
    learner = RecursiveClassifier(TREE, max_rounds=3, round_tol=0.0)
    usual = clone(learner).fit(X, y)
    kept = clone(learner).set_params(memory=BUDGET, checkpoint=tmp_path)
    for _ in range(2):
        assert_same_but_for_the_budget(usual, clone(kept).fit(X, y).set_params(checkpoint=None))
    elsewhere = clone(learner).set_params(memory=BUDGET, n_jobs=2, cluster="processes").fit(X, y)
    assert_same_but_for_the_budget(usual, elsewhere.set_params(cluster=None))


def test_a_round_sends_the_last_move_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def share(self: Serial, value: Any) -> Any:
        sent.append(value)
        return Handle(value) if isinstance(value, Step) else value

    class Handle:
        def __init__(self, value: Any) -> None:
            self.open = lambda: value

    X, y = make_rows()
    learner = RecursiveClassifier(TREE, max_rounds=3, round_tol=0.0)
    usual = clone(learner).fit(X, y)
    monkeypatch.setattr(Serial, "share", share)
    assert_same_model(usual, clone(learner).fit(X, y))
    assert [type(value) for value in sent] == [LeafSolver, Inner, Step, Inner, Step, Inner]
    assert [value.vectors.n_entries for value in sent if isinstance(value, Step)] == [
        entry["inner_entries"] for entry in usual.history_[1:]
    ]


@pytest.mark.parametrize("options", [{}, {"bias": 1.0, "n_jobs": 2}, {"loss": "logistic"}], ids=str)
def test_rows_on_disk_reach_the_same_optimum(
    options: Any, any_size: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("abound.learn.linear_solver.ENTRIES_A_ROW", 2)
    monkeypatch.setattr("abound.learn.recursive_vectors.ENTRIES_A_ROW", 2)
    X, y = make_rows()
    write_rows(tmp_path / "data.rows", X, y)
    disk = open_rows(tmp_path / "data.rows")
    learner = RecursiveClassifier(TREE, tol=1e-4, max_rounds=6, round_tol=0.0, min_weight=0, **options)
    usual = clone(learner).fit(X, y)
    from_disk = clone(learner).set_params(memory=BUDGET).fit(disk, disk.labels)
    assert is_mapped(from_disk.index_.weights)
    # The common start is solved loosely, and in another order of the rows: a few rounds even it out.
    assert usual.history_[-1]["objective"] == pytest.approx(from_disk.history_[-1]["objective"], rel=0.01)
    assert np.mean(usual.predict(X) == from_disk.predict(X)) > 0.95
    assert_same_model(from_disk, clone(from_disk).set_params(n_jobs=1).fit(disk, disk.labels))


@pytest.mark.parametrize("name", ["cluster", "checkpoint"])
def test_rows_on_disk_are_learned_here_and_at_once(name: str, any_size: None, tmp_path: Path) -> None:
    X, y = make_rows()
    write_rows(tmp_path / "data.rows", X, y)
    disk = open_rows(tmp_path / "data.rows")
    given = {"cluster": "processes", "checkpoint": str(tmp_path / "kept")}[name]
    with pytest.raises(ValueError, match=f"{name}=.*rows that stay on disk"):
        RecursiveClassifier(TREE, memory=BUDGET, **{name: given}).fit(disk, disk.labels)


@pytest.mark.parametrize("kind", ["tree", "graph"])
def test_too_little_memory_is_refused_before_any_work(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: Any) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(recursive, "make_generator", never)
    X, y = make_rows()
    edges = [("root", str(label)) for label in np.unique(y).tolist()]
    learner = RecursiveClassifier(Taxonomy.from_edges(edges, kind=kind), memory="1MB")
    with pytest.raises(MemoryError, match=r"would take about [\d.]+ [MG]B: .*in use already.*memory='1 MB'") as refused:
        learner.fit(X, y)
    assert ("every node keeps all its weights" in str(refused.value)) == (kind == "graph")
    assert not learner.__sklearn_is_fitted__()


@pytest.mark.parametrize("memory", ["much", 0, True])
def test_a_budget_that_is_no_size_is_refused(memory: Any) -> None:
    with pytest.raises(ValueError, match="memory="):
        RecursiveClassifier(memory=memory).fit([[1.0], [2.0]], ["a", "b"])


@pytest.mark.parametrize("on_disk", [False, True])
def test_vectors_come_back_as_they_were_piled(on_disk: bool) -> None:
    rng = np.random.default_rng(0)
    given = [(np.arange(n, dtype=np.int32), rng.normal(size=n).astype(np.float32)) for n in (3, 0, 5, 1)]
    pile = Pile(on_disk)
    for rows, values in given:
        pile.add(rows, values)
    found = pile.whole(np.array([2, 0, 3, 1]))
    for number, (rows, values) in zip([2, 0, 3, 1], given, strict=True):
        np.testing.assert_array_equal(found.of(number)[0], rows)
        np.testing.assert_array_equal(found.to_disk().of(number)[1], values)
    assert is_mapped(found.values) == on_disk
    assert is_mapped(found.to_disk().values)
    assert not len(Pile(on_disk).whole().rows)


@pytest.mark.parametrize("n_rows", [1, 40])
def test_sums_of_many_rows_are_kept_by_features(n_rows: int) -> None:
    """By rows or by features, whichever does not take much more room; the vectors are the same."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, 5)).astype(np.float32) + 1
    rows = solver_rows(as_rows(X), np.ones(n_rows, np.float32), rng)
    features = n_rows + np.arange(5, dtype=np.int32)
    own, values = np.arange(n_rows, dtype=np.int32), rng.random((2, n_rows)).astype(np.float32)
    found, *short = shortened(rows, features, own, *values)
    assert found is (own if n_rows == 1 else features)
    for one, other in zip(values, short, strict=True):
        sums, again = np.zeros((2, 5))
        add_vector(rows, own, one, sums)
        add_vector(rows, found, other, again)
        np.testing.assert_allclose(sums, again, rtol=1e-6)
    again_found, *again_short = shortened(rows, features, found, *short)
    assert again_found is found
    np.testing.assert_array_equal(again_short, short)


@pytest.mark.parametrize("on_disk", [False, True])
def test_vectors_of_all_features_share_the_list_of_them(on_disk: bool) -> None:
    rng = np.random.default_rng(0)
    features = np.arange(4, 7, dtype=np.int32)
    given = [(np.arange(2, dtype=np.int32), 2), (features, 3), (features, 3), (np.arange(4, dtype=np.int32), 4)]
    pile, vectors = Pile(on_disk, features), [rng.normal(size=n).astype(np.float32) for _, n in given]
    for (rows, _), values in zip(given, vectors, strict=True):
        pile.add(rows, values)
    found = pile.whole()
    assert (found.n_entries, len(found.rows)) == (12, 6)
    found.let_go(1, 3)
    found.let_go(0, 4)
    for number, (rows, _) in enumerate(given):
        np.testing.assert_array_equal(found.of(number)[0], rows)
        np.testing.assert_array_equal(found.of(number)[1], vectors[number])
    assert found.of(1)[0] is features


def test_lists_of_rows_are_cut_for_the_window() -> None:
    X = sp.csr_array(np.ones((9, 2), dtype=np.float32))
    rows = solver_rows(as_rows(X), np.ones(9, np.float32), np.random.default_rng(0))
    assert list(spans_to_read(rows, 9)) == [(0, 9)]
    assert list(spans_to_read(rows._replace(window=4 * (2**10 + 2)), 9)) == [(0, 4), (4, 8), (8, 9)]
