"""Learning from rows on disk: the same model as from memory, within a budget, or a refusal before any work."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import abound
from abound import (
    EMAClassifier,
    FeatureFocusClassifier,
    IndependentClassifier,
    LabelTreeClassifier,
    LinearClassifier,
    MMPClassifier,
    OOZClassifier,
    PAClassifier,
    PerceptronClassifier,
    UnweightedIndexClassifier,
)
from abound.learn.disk_gather import gather_rows
from abound.learn.disk_order import BLOCKS, make_windows, window_entries
from abound.learn.disk_sums import add_to_sums
from abound.learn.linear_disk import edges_on_disk
from abound.learn.linear_rows import solver_rows
from abound.learn.linear_solver import heavy_edges
from abound.learn.one_vs_rest import join_edges
from abound.learn.row_views import add_constant, ignore_negative, split_negative, take_rows
from abound.memory import bytes_in_use, check_memory
from abound.read import open_rows, write_rows
from abound.scratch import is_mapped
from abound.validation import Rows, as_rows
from estimators import ESTIMATORS

BUDGET = 100_000
"""Bytes; the rows of `task` take three times as much."""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Rows in memory, the same on disk, and two kinds of labels: X, disk, y, lists."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 40, 1500)
    X = sp.random_array((1500, 400), density=0.05, rng=rng, dtype=np.float32).tolil()
    for row, c in enumerate(y):
        X[row, [5 * c, 5 * c + 1]] = 1
    X = X.tocsr()
    folder = tmp_path_factory.mktemp("disk")
    lists = [[int(c), 40 + int(c) % 3][: 1 + row % 2] for row, c in enumerate(y)]
    write_rows(folder / "single.rows", X, y)
    write_rows(folder / "lists.rows", X, lists)
    return X, open_rows(folder / "single.rows"), y, open_rows(folder / "lists.rows"), lists


@pytest.fixture
def any_size(monkeypatch):
    """Let budgets be smaller than what Python itself takes."""
    for module in ("online", "label_tree_disk", "independent", "linear"):
        monkeypatch.setattr(f"abound.learn.{module}.require_memory", lambda *given: None)


def same_model(one, other):
    arrays, others = one._model_arrays(), other._model_arrays()
    return arrays.keys() == others.keys() and all(np.array_equal(arrays[name], others[name]) for name in arrays)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_every_learner_learns_the_same_from_disk(task, estimator):
    X, disk, y, *_ = task
    few = np.arange(0, 1500, 25)
    X, y = X[few][:, :60], y[few] % 6
    write_rows(disk.path.with_name("few.rows"), X, y)
    few_on_disk = open_rows(disk.path.with_name("few.rows"))
    from_memory = clone(estimator).fit(X, y)
    from_disk = clone(estimator).fit(few_on_disk, few_on_disk.labels)
    assert same_model(from_memory, from_disk)
    assert np.array_equal(from_memory.predict(X), from_disk.predict(few_on_disk))
    assert from_disk.n_features_in_ == 60


@pytest.mark.parametrize("learner", [FeatureFocusClassifier(passes=2), PAClassifier(passes=2)], ids=str)
def test_a_checkpoint_goes_on_from_disk(task, any_size, learner, tmp_path):
    X, disk, y, *_ = task
    learner.set_params(memory=BUDGET)
    alone = clone(learner).fit(disk, disk.labels)
    learner.set_params(checkpoint=tmp_path)
    assert same_model(alone, clone(learner).fit(disk, disk.labels))
    assert same_model(alone, clone(learner).fit(disk, disk.labels))
    with pytest.raises(ValueError, match="window was"):
        clone(learner).fit(X, y)


def test_feature_names_come_along(task, tmp_path):
    X, *_ = task
    names = [f"word {j}" for j in range(X.shape[1])]
    write_rows(tmp_path / "named.rows", X, ["a", "b", "c"] * 500, feature_names=names)
    disk = open_rows(tmp_path / "named.rows")
    learner = FeatureFocusClassifier().fit(disk, disk.labels)
    assert learner.feature_names_in_.tolist() == names
    learner.fit(X, disk.labels)
    assert not hasattr(learner, "feature_names_in_")


def test_another_width_is_refused(task):
    X, disk, y, *_ = task
    learner = FeatureFocusClassifier().fit(X[:, :10], y)
    with pytest.raises(ValueError, match="X has 400 features, but FeatureFocusClassifier is expecting 10"):
        learner.predict(disk)
    learner.partial_fit(disk, disk.labels)
    assert learner.n_features_in_ == 400


@pytest.mark.parametrize(
    "learner",
    [
        FeatureFocusClassifier(passes=2),
        FeatureFocusClassifier(negative="split", boolean=True),
        EMAClassifier(),
        OOZClassifier(rate=0.1),
        UnweightedIndexClassifier(passes=2),
        UnweightedIndexClassifier(passes=2, rank_by="perceptrons", n_perceptrons=2),
        PAClassifier(passes=2, average=False),
        MMPClassifier(passes=1, average=False),
        PerceptronClassifier(passes=2, average=False),
    ],
    ids=str,
)
def test_windows_in_the_same_order_give_the_same_model(task, learner, any_size):
    X, disk, y, *_ = task
    whole = clone(learner).set_params(shuffle=False).fit(X, y)
    windowed = clone(learner).set_params(shuffle=False, memory=BUDGET).fit(disk, disk.labels)
    assert window_entries(disk.rows, BUDGET) is not None
    assert same_model(whole, windowed)
    assert [entry["online_R1"] for entry in whole.history_] == [entry["online_R1"] for entry in windowed.history_]


@pytest.mark.parametrize("settings", [{}, {"threshold": 0.05}, {"counts": "stream"}, {"negative": "split"}], ids=str)
def test_probabilities_are_counted_the_same_from_disk(task, settings, any_size):
    X, disk, y, *_ = task
    usual = IndependentClassifier(**settings).fit(X, y, np.arange(1500) % 3)
    given = disk.labels, np.arange(1500) % 3
    from_disk = IndependentClassifier(**settings, memory=10 * BUDGET).fit(disk, *given)
    assert same_model(usual, from_disk)
    assert usual.threshold_ == from_disk.threshold_


def test_more_rows_are_learned_from_disk_in_their_order(task, any_size):
    X, disk, y, *_ = task
    usual, windowed = FeatureFocusClassifier(), FeatureFocusClassifier(memory=BUDGET)
    for learner, rows in ((usual, X), (windowed, disk)):
        learner.partial_fit(X[:5], y[:5]).partial_fit(rows, y)
    assert same_model(usual, windowed)


@pytest.mark.parametrize("learner", [PAClassifier(passes=2), MMPClassifier(passes=1)], ids=str)
def test_averages_on_disk_differ_in_rounding_only(task, learner, any_size, tmp_path):
    X, disk, y, *_ = task
    whole = clone(learner).set_params(shuffle=False).fit(X, y)
    windowed = clone(learner).set_params(shuffle=False, memory=BUDGET).fit(disk, disk.labels)
    assert is_mapped(windowed._state.sums.data)
    assert np.array_equal(whole.index_.classes, windowed.index_.classes) or np.allclose(
        whole.decision_function(X), windowed.decision_function(X), atol=1e-4
    )
    assert np.mean(whole.predict(X) == windowed.predict(X)) > 0.999
    windowed.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), windowed.predict(X))
    loaded.partial_fit(X[:10], y[:10])


@pytest.mark.parametrize("learner", [FeatureFocusClassifier(), PAClassifier(passes=2)], ids=str)
def test_shuffled_windows_depend_on_the_seed_alone(task, learner, any_size):
    X, disk, y, *_ = task
    trained = [clone(learner).set_params(memory=BUDGET, random_state=seed).fit(disk, disk.labels) for seed in (0, 0, 1)]
    assert same_model(trained[0], trained[1])
    assert not same_model(trained[0], trained[2])
    usual = clone(learner).fit(X, y).score(X, y)
    assert abs(trained[0].score(X, y) - usual) < 0.05


def test_a_budget_changes_nothing_for_rows_that_fit(task):
    X, disk, y, *_ = task
    for learner in (FeatureFocusClassifier(), PAClassifier(passes=2), LabelTreeClassifier(max_leaf=8, arity=16)):
        usual = clone(learner).fit(X, y)
        limited = clone(learner).set_params(memory="100GB")
        assert same_model(usual, clone(limited).fit(X, y))
        assert same_model(usual, clone(limited).fit(disk, disk.labels))


@pytest.mark.parametrize("settings", [{}, {"bias": 0.0}, {"loss": "logistic", "n_trees": 2, "n_jobs": 2}], ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_label_trees_are_the_same_from_disk(task, settings, several, any_size, monkeypatch):
    X, single, y, disk, lists = task
    monkeypatch.setattr("abound.learn.label_tree_disk.SMALL", 3000)
    monkeypatch.setattr("abound.learn.label_tree_training.SMALL", 3000)
    monkeypatch.setattr("abound.learn.label_tree_centroids.VALUES_ON_DISK", 500)
    monkeypatch.setattr("abound.learn.label_tree_shape.VALUES_ON_DISK", 500)
    learner = LabelTreeClassifier(max_leaf=4, arity=16, cut=None, **settings)
    usual = clone(learner).fit(X, lists if several else y)
    given = disk if several else single
    from_disk = learner.set_params(memory=BUDGET).fit(given, given.labels)
    assert is_mapped(from_disk.trees_[0].cells)
    assert same_model(usual, from_disk)
    assert np.array_equal(usual.decision_function(X), from_disk.decision_function(given))


@pytest.mark.parametrize("name", ["cluster", "checkpoint"])
@pytest.mark.parametrize("learner", [LabelTreeClassifier, LinearClassifier])
def test_rows_on_disk_are_learned_here_and_at_once(task, learner, name, any_size, tmp_path):
    _, disk, *_ = task
    given = {"cluster": "processes", "checkpoint": str(tmp_path)}[name]
    with pytest.raises(ValueError, match=f"{name}=.*rows that stay on disk"):
        learner(memory=BUDGET, **{name: given}).fit(disk, disk.labels)


@pytest.mark.parametrize(
    "settings", [{}, {"bias": 1.0, "n_jobs": 2}, {"loss": "logistic", "C": 1.0}, {"C": "cv"}], ids=str
)
def test_linear_models_from_disk_reach_the_same_optimum(task, settings, any_size, monkeypatch):
    X, disk, y, *_ = task
    monkeypatch.setattr("abound.learn.linear_solver.ENTRIES_A_ROW", 2)
    learner = LinearClassifier(tol=1e-4, min_weight=0, C_grid=(0.1, 1.0), **settings)
    usual = clone(learner).fit(X, y)
    from_disk = clone(learner).set_params(memory=BUDGET).fit(disk, disk.labels)
    assert is_mapped(from_disk.index_.weights)
    assert np.allclose(usual.objective_, from_disk.objective_, rtol=1e-3)
    assert np.mean(usual.predict(X) == from_disk.predict(disk)) > 0.99
    again = clone(learner).set_params(memory=BUDGET, n_jobs=1).fit(disk, disk.labels)
    assert same_model(from_disk, again)


@pytest.mark.parametrize("at_once", [1, 100, 2**20])
def test_blocks_that_wait_in_files_make_the_same_index(task, at_once, monkeypatch):
    monkeypatch.setattr("abound.learn.linear_disk.EDGES_JOINED", at_once)
    monkeypatch.setattr("abound.learn.linear_disk.EDGES_AT_ONCE", 20 * at_once)
    X, *_ = task
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(60, 16)).astype(np.float32) * (rng.random((60, 16)) < 0.3)
    offset = rng.normal(size=60).astype(np.float32)
    blocks = [heavy_edges(weights, np.zeros(60, np.float32), 16, 0.1, first) for first in (0, 16, 32)]
    rows = solver_rows(as_rows(X[:, :60]), np.ones(1500, np.float32), np.random.default_rng(0))
    biases = rng.normal(size=48).astype(np.float32)
    rows = rows._replace(bias=1.0)
    one = join_edges(blocks, rows, offset, biases, 60, 48)
    other = join_edges([edges_on_disk(edges) for edges in blocks], rows._replace(window=1), offset, biases, 60, 48)
    for name in ("indptr", "classes", "weights", "offset", "bias"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_large_nodes_take_the_same_steps_from_disk(task, any_size, monkeypatch):
    """Call by call: the sums of a sweep are rounded where a call ends."""
    X, disk, y, *_ = task
    monkeypatch.setattr("abound.learn.label_tree_disk.SMALL", 0)
    monkeypatch.setattr("abound.learn.label_tree_training.SMALL", 0)
    monkeypatch.setattr("abound.learn.label_tree_nodes.VALUES_A_CALL", 2000)
    learner = LabelTreeClassifier(max_leaf=40, arity=16)
    assert same_model(clone(learner).fit(X, y), learner.set_params(memory=BUDGET).fit(disk, disk.labels))


@pytest.mark.parametrize("learner", [FeatureFocusClassifier(), PAClassifier(passes=1), LabelTreeClassifier()], ids=str)
def test_decisions_are_learned_from_disk_too(task, learner, any_size):
    *_, disk, lists = task
    learner = clone(learner).set_params(memory=BUDGET, calibrate="platt").fit(disk, disk.labels)
    assert learner.is_calibrated
    assert learner.cut_ != "mean"
    held_out = clone(learner).set_params(memory=BUDGET, validation_fraction=0.2).fit(disk, disk.labels)
    assert held_out.is_calibrated
    assert len(learner.predict(disk)) == len(lists)


@pytest.mark.parametrize(
    "learner",
    [FeatureFocusClassifier(), PAClassifier(), UnweightedIndexClassifier(), LabelTreeClassifier(), LinearClassifier()],
    ids=str,
)
def test_too_little_memory_is_refused_before_any_work(task, learner, monkeypatch):
    _, disk, *_ = task

    def never(*given, **more):
        raise AssertionError("work began")

    for place in ("online.make_generator", "label_tree.make_generator", "label_tree.solver_rows"):
        monkeypatch.setattr(f"abound.learn.{place}", never)
    learner = clone(learner).set_params(memory="1MB")
    with pytest.raises(MemoryError, match=r"would take about [\d.]+ [MG]B: .*in use already.*memory='1 MB'"):
        learner.fit(disk, disk.labels)
    assert not learner.__sklearn_is_fitted__()


def test_the_estimate_grows_with_the_model(task, monkeypatch):
    _, disk, *_ = task
    monkeypatch.setattr("abound.memory.bytes_in_use", lambda: 0)
    with pytest.raises(MemoryError, match="for the weights"):
        PAClassifier(memory=500_000).fit(disk, disk.labels)
    PAClassifier(memory=30_000_000).fit(disk, disk.labels)


def test_a_committee_of_perceptrons_has_no_budget():
    with pytest.raises(ValueError, match="members of a committee"):
        PerceptronClassifier(n_members=3, memory="4GB").fit([[1.0], [2.0]], ["a", "b"])


@pytest.mark.parametrize("memory", ["much", "0", -1, 0, 2.5, True])
def test_a_budget_that_is_no_size_is_refused(memory):
    with pytest.raises(ValueError, match="memory="):
        check_memory(memory)
    with pytest.raises(ValueError, match="memory="):
        FeatureFocusClassifier(memory=memory).fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(ValueError, match="memory="):
        LabelTreeClassifier(memory=memory).fit([[1.0], [2.0]], ["a", "b"])


@pytest.mark.skipif(not bytes_in_use(), reason="the system does not tell what a process holds")
def test_rows_that_were_learned_leave_memory(tmp_path, any_size):
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, 40, (100_000, 80)) + 40 * np.arange(80), axis=1).astype(np.int32)
    X = sp.csr_array((np.ones(indices.size, np.float32), indices.ravel(), np.arange(0, indices.size + 1, 80)))
    write_rows(tmp_path / "data.rows", X, np.arange(100_000) % 5)
    del X, indices
    disk = open_rows(tmp_path / "data.rows")
    FeatureFocusClassifier(memory=10**7).fit(disk.take(np.arange(100)).X, disk.labels.take(np.arange(100)))
    before, peak = bytes_in_use(), []
    learner = FeatureFocusClassifier(memory=10**7, passes=2)
    learner._watch = frozenset([1, 2]), lambda: peak.append(bytes_in_use())
    learner.fit(disk, disk.labels)
    assert max(peak) - before < disk.nbytes / 2


def random_rows(rng, n_rows, n_features):
    return as_rows(sp.random_array((n_rows, n_features), density=0.3, rng=rng, dtype=np.float32, format="csr"))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 60), st.integers(1, 40), st.booleans())
def test_windows_hold_every_row_once(seed, n_rows, entries, shuffle):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n_rows, 8)
    chosen = np.sort(rng.choice(n_rows, rng.integers(1, n_rows + 1), replace=False))
    windows = make_windows(rows, chosen, entries, np.random.default_rng(1) if shuffle else None)
    again = make_windows(rows, chosen, entries, np.random.default_rng(1) if shuffle else None)
    assert all(np.array_equal(one, other) for one, other in zip(windows, again, strict=True))
    order = np.concatenate(windows)
    assert np.array_equal(np.sort(order), chosen)
    if shuffle:
        lengths = np.diff(rows.indptr)
        assert all(lengths[window].sum() <= entries + BLOCKS * (1 + lengths.max()) for window in windows)
    else:
        assert np.array_equal(order, chosen)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**31), st.integers(1, 50), st.integers(0, 80), st.integers(1, 20_000))
def test_rows_are_gathered_in_any_order(seed, n_rows, n_wanted, memory):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n_rows, 9)
    order = rng.integers(0, n_rows, n_wanted)
    indptr, indices, data = gather_rows(rows, order, memory)
    expected = take_rows(rows, order)
    assert np.array_equal(indptr, expected.indptr)
    assert np.array_equal(indices, expected.indices)
    assert np.array_equal(data, expected.data)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 20), st.integers(1, 20), st.integers(1, 5000), st.booleans())
def test_sums_on_disk_are_sums(seed, n_rows, width, n_bytes, dense):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n_rows, 15)
    X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(n_rows, 15))
    parts = [sp.random_array((n_rows, width), density=0.3, rng=rng, format="csr") for _ in range(3)]
    total = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abound.learn.disk_sums.MOST_READINGS", 64 if dense else 0)
        for part in parts:
            total = add_to_sums(total, rows, part, n_bytes)
    assert np.allclose(total.toarray(), X.T.toarray() @ sum(part.toarray() for part in parts))
    assert total.shape == (15, width)


def test_views_of_mapped_rows_are_mapped_and_the_same(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.3, rng=rng, dtype=np.float32, format="csr")
    X.data -= np.float32(0.5)
    write_rows(tmp_path / "data.rows", X, np.zeros(300))
    mapped, rows = open_rows(tmp_path / "data.rows").rows, as_rows(X)
    monkeypatch.setattr("abound.learn.row_views.ENTRIES_AT_ONCE", 70)
    monkeypatch.setattr("abound.learn.row_views.FEW_ENTRIES", 10)
    some = np.sort(rng.choice(300, 200, replace=False))
    views = [
        ignore_negative,
        split_negative,
        lambda given: add_constant(given, 2.0),
        lambda given: take_rows(given, some),
    ]
    for view in views:
        one, other = view(rows), view(mapped)
        assert isinstance(other, Rows)
        assert is_mapped(other.data)
        assert one.n_features == other.n_features
        assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one[:3], other[:3], strict=True))
