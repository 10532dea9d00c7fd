"""EDGE: groups from mistakes, experts against their twin, and never worse than the generalist where it was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import abound
import naive_ensembles as naive
from abound import (
    ClassIndex,
    CommitteeClassifier,
    ExpertsClassifier,
    FeatureFocusClassifier,
    IndependentClassifier,
    LinearClassifier,
    MMPClassifier,
    PAClassifier,
)
from abound.labels import encode
from abound.learn.expert_lists import Expert, experts_from, join_experts
from abound.learn.expert_training import Data, confused_groups, confusions, rows_by_class, train_expert
from abound.learn.experts import Team
from abound.store import ModelFileError, Section
from abound.validation import as_rows
from generate import make_rows, sparse_rows

X, Y = make_rows(5, n=400, noise=0.7)


def pairs_of(counts: Any) -> dict[tuple[int, int], int]:
    coo = counts.tocoo()
    return dict(zip(zip(coo.row.tolist(), coo.col.tolist(), strict=True), coo.data.tolist(), strict=True))


def test_confusions_and_groups() -> None:
    labels = encode(["a", "a", "a", "b", "b", "c", "d"])
    counts = confusions(np.array([0, 1, 1, 0, 2, 2, -1], dtype=np.int32), labels)
    assert pairs_of(counts) == {(0, 1): 2, (1, 0): 1, (1, 2): 1}
    assert [group.tolist() for group in confused_groups(counts, 2, 20)] == [[0, 1], [1, 0]]
    assert [group.tolist() for group in confused_groups(counts, 1, 20)] == [[0, 1], [1, 0, 2], [2, 1]]
    assert [group.tolist() for group in confused_groups(counts, 1, 2)] == [[0, 1], [1, 0], [2, 1]]
    assert confused_groups(counts, 4, 20) == []


def test_confusions_of_several_labels() -> None:
    labels = encode([["a", "b"], ["a", "c"], []])
    counts = confusions(np.array([1, 1, 0], dtype=np.int32), labels)
    assert pairs_of(counts) == {(0, 1): 1, (2, 1): 1}, "a first choice that is true is no mistake"


@given(data=st.data())
def test_ranking_equals_its_twin(data: st.DataObject) -> None:
    """A generalist and experts with given weights, every flag of the kernel."""
    rows = sp.csr_array(data.draw(sparse_rows(max_rows=6, max_features=5)).toarray().round(2))
    n_features, n_classes = rows.shape[1], data.draw(st.integers(2, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    every = data.draw(st.booleans())
    weights = np.round(rng.normal(size=(n_features, n_classes)), 1) * (rng.random((n_features, n_classes)) < 0.7)
    if not every:
        weights, rows = np.abs(weights), abs(rows)
    twins, experts = {}, []
    for c in range(n_classes):
        others = [other for other in rng.permutation(n_classes).tolist() if other != c][: int(rng.integers(0, 4))]
        if others:
            group = np.array([c, *others], dtype=np.int32)
            own = np.round(rng.normal(size=(n_features, len(group))), 1) * (rng.random((n_features, len(group))) < 0.6)
            twins[c] = (group.tolist(), own)
            experts.append(Expert(group, np.arange(n_features, dtype=np.int32), ClassIndex.from_matrix(own)))
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes)))
    if data.draw(st.booleans()) or not allowed.any():
        allowed = np.ones(n_classes, dtype=np.bool_)
    weight, top = data.draw(st.sampled_from([0.1, 0.5, 1.0])), data.draw(st.integers(1, 4))
    generalist = (PAClassifier if every else FeatureFocusClassifier)().fit(rows, np.arange(rows.shape[0]) % n_classes)
    generalist.class_counts_ = np.arange(n_classes)[::-1] + 1
    generalist = generalist._with_index(ClassIndex.from_matrix(weights))
    model = ExpertsClassifier(top=top)
    model._template = PAClassifier()
    team = Team(generalist, join_experts(experts))
    given_mask = None if allowed.all() else allowed
    ids, scores = model._rank_by(team, weight, as_rows(rows), n_classes, given_mask)
    if not experts:
        np.testing.assert_array_equal(ids, generalist._rank(as_rows(rows), n_classes, given_mask).ids)
        return
    for i, x in enumerate(rows.toarray().astype(np.float64)):
        raw = x @ weights
        ranks = allowed & (every | (raw > 1e-6))
        first = np.where(ranks, raw, 0.0)
        # Near-ties of the generalist may fall either way and ask another expert: leave such rows to chance.
        ordered = np.sort(first[ranks])
        if len(ordered) > 1 and np.diff(ordered).min() < 1e-5:
            continue
        if not ranks.any():
            assert ids[i, 0] == int(np.where(allowed, generalist.class_counts_, -1).argmax())
            continue
        used = {c: twin for c, twin in twins.items() if ranks[c]}
        expected, spread = naive.edge(first, used, x, top, weight, allowed)
        # So may opinions that are equal but for rounding, and scores that are all the same.
        if 0 < spread < 1e-5 or 0 < np.ptp(first[allowed]) < 1e-5:
            continue
        found = ids[i][ids[i] >= 0]
        np.testing.assert_allclose(scores[i][: len(found)], expected[found], atol=2e-4)
        assert (np.diff(expected[found]) <= 2e-4).all()
        asked = {c for own in naive.best_first(first, ranks, top) if own in used for c in used[own][0]}
        wanted = set(np.flatnonzero(ranks).tolist()) | {c for c in asked if allowed[c]}
        assert set(found.tolist()) == wanted


def test_a_class_whose_score_is_minus_infinity_is_listed_once() -> None:
    """It was listed at every vote, past the end of the list: one row of many features ended the program."""
    n = 100_000
    weights = np.tile(np.array([-np.inf, 1.0, 0.5], np.float32), (n, 1))
    y = np.arange(6) % 3
    generalist = FeatureFocusClassifier().fit(np.eye(6, n, dtype=np.float32), y)
    generalist = generalist._with_index(ClassIndex.from_matrix(weights))
    group = np.array([1, 2], np.int32)
    own = ClassIndex.from_matrix(np.tile(np.array([0.5, 1.0], np.float32), (n, 1)))
    team = Team(generalist, join_experts([Expert(group, np.arange(n, dtype=np.int32), own)]))
    model = ExpertsClassifier()
    model._template = FeatureFocusClassifier()
    rows = as_rows(np.ones((3, n), np.float32))
    for row in model._rank_by(team, 0.5, rows, 3, None).ids.tolist():
        ranked = [c for c in row if c >= 0]
        assert len(set(ranked)) == len(ranked)


def test_no_expert_without_a_mistake() -> None:
    """Classes with words of their own: the generalist makes no mistake, so it stays alone."""
    y = np.arange(120) % 4
    rows = sp.csr_array(np.eye(4, dtype=np.float32)[y])
    model = ExpertsClassifier(weight=1.0).fit(rows, y)
    assert model.groups_ == {}
    assert model.n_edges_ == model.generalist_.n_edges_
    assert model.predict(rows).tolist() == y.tolist()


def test_experts_only_where_the_generalist_errs() -> None:
    """Two of five classes cannot be told apart; only they get experts."""
    y = np.arange(300) % 5
    words = np.where(y == 4, 3, y)
    model = ExpertsClassifier(weight=0.5).fit(sp.csr_array(np.eye(4, dtype=np.float32)[words]), y)
    assert set(model.groups_) == {3, 4}
    assert model.groups_[3] == [3, 4] and model.groups_[4] == [4, 3]


@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_the_generalist_on_the_rows_it_was_chosen_on(seed: int) -> None:
    rows, y = make_rows(seed, n=500, noise=0.9)
    model = ExpertsClassifier(random_state=seed, min_confusion=1).fit(rows, y)
    assert [entry["weight"] for entry in model.history_] == [tenth / 10 for tenth in range(11)]
    recalls = {entry["weight"]: entry["R1"] for entry in model.history_}
    assert recalls[model.weight_] == max(recalls.values()) >= recalls[0.0]
    assert model.weight_ == min(weight for weight, recall in recalls.items() if recall == max(recalls.values()))
    if model.weight_ == 0:
        assert model.groups_ == {}


def test_weight_zero_is_the_generalist() -> None:
    model = ExpertsClassifier(weight=0).fit(X, Y)
    alone = PAClassifier().fit(X, Y)
    for left, right in zip(model.predict_topk(X, 5), alone.predict_topk(X, 5), strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))


def test_an_expert_is_trained_on_its_group_alone() -> None:
    labels = encode([[int(c), 99] if i % 5 == 0 else [int(c)] for i, c in enumerate(Y)])
    data = Data(as_rows(X), labels, np.ones(400, dtype=np.float32))
    group = np.array([2, 0, 5], dtype=np.int32)
    expert = train_expert(group, data, rows_by_class(labels), PAClassifier())
    kept = np.isin(Y, group)
    local = [[0, 1, 2][[2, 0, 5].index(c)] for c in Y[kept]]
    alone = PAClassifier().fit(X[kept], local)
    matrix = np.zeros((X.shape[1] + 1, 3))
    matrix[expert.features] = expert.lists.to_matrix().toarray()
    np.testing.assert_allclose(matrix, alone.index_.with_bias_as_feature().to_matrix().toarray(), atol=1e-6)


def test_an_expert_has_its_bias_after_all_features() -> None:
    learner = LinearClassifier(bias=2.0, min_weight=0, tol=1e-5)
    labels = encode(Y)
    data = Data(as_rows(X), labels, np.ones(400, dtype=np.float32))
    group = np.array([1, 4], dtype=np.int32)
    expert = train_expert(group, data, rows_by_class(labels), learner)
    kept = np.isin(Y, labels.classes[group])
    alone = learner.fit(X[kept], (Y[kept] == labels.classes[4]).astype(int))
    matrix = np.zeros((X.shape[1] + 1, 2))
    matrix[expert.features] = expert.lists.to_matrix().toarray()
    np.testing.assert_allclose(matrix, alone.index_.with_bias_as_feature().to_matrix().toarray(), atol=1e-2)
    assert expert.features[-1] == X.shape[1] and abs(matrix[-1]).max() > 0.01


@pytest.mark.parametrize(
    ("generalist", "expert"),
    [
        (None, None),
        (None, LinearClassifier(bias=1.0)),
        (FeatureFocusClassifier(negative="split"), MMPClassifier()),
        (FeatureFocusClassifier(), IndependentClassifier(negative="split", threshold=0.1)),
    ],
    ids=repr,
)
def test_learners_of_every_kind(generalist: Any, expert: Any, tmp_path: Any) -> None:
    model = ExpertsClassifier(generalist, expert, weight=0.5, max_group=4, min_confusion=1).fit(X, Y)
    assert model.groups_ and max(map(len, model.groups_.values())) <= 4
    ranking = model.predict_topk(X, 12)
    two = ExpertsClassifier(generalist, expert, weight=0.5, max_group=4, min_confusion=1, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(two.predict_topk(X, 12).scores, ranking.scores)
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_topk(X, 12).labels, ranking.labels)
    np.testing.assert_array_equal(loaded.predict_topk(X, 12).scores, ranking.scores)
    assert loaded.groups_ == model.groups_
    assert loaded.explain(X[[0]], Y[0]) == model.generalist_.explain(X[[0]], Y[0])
    # What the file holds, drops and excludes classes alike.
    excluded = model.predict_topk(X, 11, exclude=[3])
    dropped = loaded.drop_classes([3]).predict_topk(X, 11)
    np.testing.assert_allclose(dropped.scores, excluded.scores, atol=1e-4)
    assert (dropped.labels == excluded.labels).mean() > 0.99
    merged = loaded.merge_classes([0, 1], into=0)
    assert set(merged.groups_) <= set(merged.classes_.tolist())
    assert merged.predict(X).shape == (400,)
    pruned = model._pruned(max_degree=2)
    assert pruned.generalist_.index_.degrees.max() <= 2 and pruned.groups_ == model.groups_


def test_experts_in_one_place_and_back() -> None:
    model = ExpertsClassifier(weight=0.5, min_confusion=1).fit(X, Y)
    lists = model._experts
    again = join_experts([lists.expert(e) for e in range(lists.n_experts)])
    for name, array in lists._asdict().items():
        np.testing.assert_array_equal(getattr(again, name), array)
    owners = [lists.group(e)[0] for e in range(lists.n_experts)]
    by_class = lists.by_class(12)
    assert [int(by_class[c]) for c in owners] == list(range(lists.n_experts))
    assert (np.delete(by_class, owners) == -1).all()
    everything = lists.remap_classes(np.arange(12, dtype=np.int32))
    for name, array in lists._asdict().items():
        np.testing.assert_array_equal(getattr(everything, name), array)


def faulty(name: str, change: Any) -> dict[str, Any]:
    lists = ExpertsClassifier(weight=0.5, min_confusion=1).fit(X, Y)._experts
    arrays = {key: array.copy() for key, array in lists._asdict().items()}
    arrays[name] = change(arrays[name])
    return dict(sorted(arrays.items()))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("group_classes", lambda a: a + 12),
        ("group_classes", lambda a: a[:-1]),
        ("group_indptr", lambda a: np.sort(np.append(a, a[1]))),
        ("features", lambda a: -a - 1),
        ("features", lambda a: a + 60),
        ("feature_indptr", lambda a: a[::-1].copy()),
        ("feature_indptr", lambda a: np.append(a, a[-1])),
        ("list_indptr", lambda a: a[:-1]),
        ("list_classes", lambda a: a + 1),
        ("list_classes", lambda a: a.astype(np.int64)),
        ("list_weights", lambda a: a[1:]),
        ("list_weights", lambda a: a.astype(np.float64)),
    ],
)
def test_experts_that_a_kernel_must_not_see_are_refused(name: str, change: Any, tmp_path: Any) -> None:
    with pytest.raises(ModelFileError):
        experts_from(Section(tmp_path / "model", "experts/", faulty(name, change)), 60, 12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"generalist": CommitteeClassifier()}, "generalist"),
        ({"generalist": "pa"}, "generalist"),
        ({"expert": ExpertsClassifier()}, "expert"),
        ({"expert": PAClassifier(passes=0)}, "passes"),
        ({"n_folds": 1}, "n_folds"),
        ({"top": 0}, "top"),
        ({"max_group": 1}, "max_group"),
        ({"min_confusion": 0}, "min_confusion"),
        ({"weight": -1}, "weight"),
        ({"weight": "some"}, "weight"),
        ({"validation_fraction": 0}, "validation_fraction"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExpertsClassifier(**parameters).fit(X, Y)


@pytest.mark.parametrize("model", [ExpertsClassifier(), CommitteeClassifier(n_seeds=2)], ids=repr)
def test_an_interrupt_leaves_no_half_model(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learn, calls = PAClassifier._learn, []

    def interrupted(self: Any, examples: Any, first_pass: bool) -> Any:
        calls.append(first_pass)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return learn(self, examples, first_pass)

    monkeypatch.setattr(PAClassifier, "_learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_rows_without_weight_do_not_count() -> None:
    weights = np.ones(400)
    weights[::2] = 0
    model = ExpertsClassifier(weight=0.5).fit(X, Y, sample_weight=weights)
    half = ExpertsClassifier(weight=0.5).fit(X[1::2], Y[1::2])
    assert model.groups_ == half.groups_


def test_an_ensemble_is_not_one_index() -> None:
    model = ExpertsClassifier(weight=0.5).fit(X, Y)
    with pytest.raises(ValueError, match="generalist and experts"):
        model._with_index(model.index_)
