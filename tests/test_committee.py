"""Committees: votes as their twin counts them, snapshots of one run, every kind of member."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import abound
import naive_ensembles as naive
from abound import (
    CommitteeClassifier,
    ExpertsClassifier,
    FeatureFocusClassifier,
    FrequencyClassifier,
    IndependentClassifier,
    MMPClassifier,
    PAClassifier,
    PerceptronClassifier,
    UnweightedIndexClassifier,
)
from abound.learn import _vote_kernels as kernels
from abound.learn import committee as committee_module
from abound.rank._topk_kernels import no_votes
from generate import make_rows

X, Y = make_rows(5, n=300, noise=0.6)
MIXED = [
    FeatureFocusClassifier(negative="split"),
    PAClassifier(),
    IndependentClassifier(threshold=0.1),
    FrequencyClassifier(),
    MMPClassifier(),
    PerceptronClassifier(n_members=2),
    UnweightedIndexClassifier(rank_by="perceptrons", n_perceptrons=2),
    ExpertsClassifier(weight=0.5),
]


def small(members: Any = None, **parameters: Any) -> CommitteeClassifier:
    return CommitteeClassifier(members, **{"n_seeds": 2, "keep_passes": (1, 2), **parameters})


@st.composite
def rankings(draw: Any) -> tuple[list[list[list[int]]], int]:
    """What some members rank for some rows: no class twice, some rankings short or empty."""
    n_members, n_rows, n_classes = draw(st.integers(1, 5)), draw(st.integers(1, 6)), draw(st.integers(1, 7))
    row = st.permutations(range(n_classes)).flatmap(lambda order: st.integers(0, n_classes).map(lambda n: order[:n]))
    return [[draw(row) for _ in range(n_rows)] for _ in range(n_members)], n_classes


@given(data=st.data())
def test_votes_equal_their_twin(data: st.DataObject) -> None:
    ranked, n_classes = data.draw(rankings())
    rare, depth = data.draw(st.booleans()), data.draw(st.integers(1, n_classes))
    k = data.draw(st.integers(1, n_classes))
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n_classes, max_size=n_classes)))
    scores = naive.votes(ranked, n_classes, depth)
    if rare:
        scores = naive.rarest_first(scores, ranked, counts)
    scores = scores.astype(np.float32)
    filled = np.array([[[*row, *[-1] * (n_classes - len(row))] for row in ranking] for ranking in ranked], np.int32)
    ids = np.full((len(scores), k), -1, dtype=np.int32)
    found = np.full((len(scores), k), -np.inf, dtype=np.float32)
    votes = no_votes(n_classes, np.float64)
    kernels.count_votes(filled, counts, depth, rare, votes, ids, found)
    assert not votes.score.any() and not votes.seen.any()
    for i in range(len(scores)):
        known = {c for ranking in ranked for c in ranking[i]}
        wanted = naive.best_first(scores[i], [c in known for c in range(n_classes)], k)
        assert [c for c in ids[i].tolist() if c >= 0] == wanted
        np.testing.assert_allclose(found[i, : len(wanted)], scores[i, wanted], rtol=1e-6)


@given(data=st.data())
def test_best_of_dense_scores(data: st.DataObject) -> None:
    n, n_classes = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    value = st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0])
    row = st.lists(value, min_size=n_classes, max_size=n_classes)
    scores = np.array(data.draw(st.lists(row, min_size=n, max_size=n)), dtype=np.float32)
    every = data.draw(st.booleans())
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=n_classes, max_size=n_classes)))
    k = data.draw(st.integers(1, n_classes))
    ids, found = np.full((n, k), -1, dtype=np.int32), np.full((n, k), -np.inf, dtype=np.float32)
    kernels.take_best(scores, allowed, every, ids, found)
    for i in range(n):
        wanted = naive.best_first(scores[i], allowed & (every | (scores[i] > 0)), k)
        assert [c for c in ids[i].tolist() if c >= 0] == wanted


def test_members_are_the_passes_of_one_run_each() -> None:
    """A member is what its learner, with the run's seed, is after so many passes: no retraining, no mix-up."""
    member = PAClassifier(average=False)
    model = CommitteeClassifier(member, n_seeds=3, keep_passes=(2, 4), random_state=7).fit(X, Y)
    assert len(model.indexes_) == 6
    seeds = [voice.random_state for voice in model._members]
    assert len(set(seeds)) == 3
    for voice, passes in zip(model._members, [2, 4] * 3, strict=True):
        alone = clone(member).set_params(random_state=voice.random_state, passes=passes).fit(X, Y)
        np.testing.assert_array_equal(alone.index_.weights, voice.index_.weights)
        np.testing.assert_array_equal(alone.index_.classes, voice.index_.classes)
    assert member.get_params() == PAClassifier(average=False).get_params(), "the user's learner stays as it is"
    assert [entry["pass"] for entry in model.history_] == [1, 2, 3, 4] * 3


def test_an_averaged_member_is_the_mean_up_to_its_pass() -> None:
    model = CommitteeClassifier(PAClassifier(), n_seeds=1, keep_passes=(1, 3)).fit(X, Y)
    first = model._members[0]
    alone = PAClassifier(passes=1, random_state=first.random_state).fit(X, Y)
    np.testing.assert_allclose(alone.index_.to_matrix().toarray(), first.index_.to_matrix().toarray(), atol=1e-6)


def test_changes_from_pass_to_pass() -> None:
    model = CommitteeClassifier(n_seeds=2, keep_passes=(1, 2, 3)).fit(X, Y)
    voices = model._members
    for run, changes in enumerate(model.changes_):
        best = [voice.predict(X) for voice in voices[3 * run : 3 * run + 3]]
        assert changes == pytest.approx([np.mean(a != b) for a, b in pairwise(best)])
    other, _ = make_rows(6, n=50)
    counted = model.count_changes(other)
    best = [voice.predict(other) for voice in voices]
    assert counted[1] == pytest.approx([np.mean(best[3] != best[4]), np.mean(best[4] != best[5])])
    np.testing.assert_allclose(model.count_changes(X), model.changes_)
    assert small(IndependentClassifier()).fit(X, Y).changes_ == [[], []]


def test_majority_and_rare_choose_among_first_places() -> None:
    model = CommitteeClassifier(n_seeds=3, keep_passes=(1, 2)).fit(X, Y)
    firsts = np.array([voice._rank(model._rows(X), 1, None).ids[:, 0] for voice in model._members]).T
    majority = model._rank(model._rows(X), 1, None).ids[:, 0]
    rare = clone(model).set_params(vote="rare").fit(X, Y)._rank(model._rows(X), 1, None).ids[:, 0]
    assert len(np.unique(firsts, axis=1)) and (firsts != firsts[:, :1]).any(), "members must disagree somewhere"
    for i, row in enumerate(firsts):
        counts = np.bincount(row)
        assert counts[majority[i]] == counts.max()
        assert model.class_counts_[rare[i]] == model.class_counts_[row].min()
        assert rare[i] in row


@pytest.mark.parametrize("member", [PAClassifier(), FeatureFocusClassifier(), MMPClassifier()], ids=repr)
def test_the_mean_of_one_kind_is_the_mean_score(member: Any) -> None:
    model = small(member, vote="mean").fit(X, Y)
    rows = model._rows(X)
    mean = np.mean([voice._score_all(rows) for voice in model._members], axis=0)
    np.testing.assert_allclose(model._score_all(rows), mean, atol=1e-5)
    best, scores = model.predict_topk(X, 3)
    np.testing.assert_allclose(scores[:, 0], mean.max(axis=1), atol=1e-5)
    by_index = X @ model.index_.to_matrix().toarray() + (
        0 if model.index_.offset is None else (X @ model.index_.offset)[:, None]
    )
    bias = 0 if model.index_.bias is None else model.index_.bias
    np.testing.assert_allclose(by_index + bias, mean, atol=1e-5)
    weights = sum(value for _, value in model.explain(X[[0]], best[0, 0]))
    assert weights == pytest.approx(float(scores[0, 0]), abs=1e-5)


@pytest.mark.parametrize(
    "members", [[FeatureFocusClassifier(), FeatureFocusClassifier(negative="split")], MIXED[:2]], ids=repr
)
def test_the_mean_of_dense_blocks(members: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no one index will do: raw scores of one kind of learner, standardised ones of several."""
    model = small(members, vote="mean").fit(X, Y)
    rows = model._rows(X)
    scores = [voice._score_all(voice._view(rows)).astype(np.float64) for voice in model._members]
    if type(members[0]) is not type(members[1]):
        scores = [np.array([naive.standardise(row) for row in each]) for each in scores]
    mean = np.mean(scores, axis=0)
    np.testing.assert_allclose(model._score_all(rows), mean, atol=1e-4)
    whole = model.predict_topk(X, 4)
    np.testing.assert_allclose(whole.scores[:, 0], mean.max(axis=1), atol=1e-4)
    monkeypatch.setattr(committee_module, "BLOCK_BYTES", 1000)
    parts = model.set_params(n_jobs=2).predict_topk(X, 4)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_array_equal(parts.scores, whole.scores)


@pytest.mark.parametrize("vote", ["majority", "rare", "mean"])
def test_members_of_every_kind(vote: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(MIXED, vote=vote).fit(X, Y)
    assert [type(voice) for voice in model._members[:5]] == [FeatureFocusClassifier] * 4 + [PAClassifier]
    assert sum(isinstance(voice, FrequencyClassifier) for voice in model._members) == 1, "it draws nothing: one run"
    assert model.n_edges_ == sum(voice.n_edges_ for voice in model._members)
    assert model.score(X, Y) > 0.6
    ranking = model.predict_topk(X, 5)
    np.testing.assert_array_equal(ranking.labels[:, 0], model.classes_[model.decision_function(X).argmax(axis=1)])
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    monkeypatch.setattr(committee_module, "BLOCK_BYTES", 5000)
    again = loaded.predict_topk(X, 5)
    np.testing.assert_array_equal(again.labels, ranking.labels)
    np.testing.assert_array_equal(again.scores, ranking.scores)
    assert loaded.changes_ == model.changes_ and loaded.history_ == model.history_
    assert loaded.explain(X[[0]], Y[0]) == model.explain(X[[0]], Y[0])
    assert model.index_.n_features == X.shape[1]


def test_threads_train_the_same_bits() -> None:
    one, two = small(MIXED[:3]).fit(X, Y), small(MIXED[:3], n_jobs=2).fit(X, Y)
    for left, right in zip(one.indexes_, two.indexes_, strict=True):
        np.testing.assert_array_equal(left.weights.view(np.int32), right.weights.view(np.int32))
        np.testing.assert_array_equal(left.classes, right.classes)
    assert one.changes_ == two.changes_


def test_more_classes_than_the_depth_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first places do not depend on how many are asked for, and all classes can be had."""
    monkeypatch.setattr(committee_module, "DEPTH", 4)
    model = CommitteeClassifier(n_seeds=2, keep_passes=(1, 2)).fit(X, Y)
    all_of_them = model.predict_topk(X, 12)
    few = model.predict_topk(X, 2)
    np.testing.assert_array_equal(all_of_them.labels[:, :2], few.labels)
    assert all(len(set(row)) == 12 for row in all_of_them.labels.tolist())


def test_pruned_members_rank() -> None:
    model = small(MIXED).fit(X, Y)
    pruned = model._pruned(max_degree=3)
    assert all(voice.index_.degrees.max(initial=0) <= 3 for voice in pruned._members)
    assert pruned.n_edges_ < model.n_edges_
    assert pruned.predict(X).shape == (300,)
    assert model.index_.n_edges > pruned.index_.n_edges


def test_a_member_that_stops_early_gives_what_it_reached() -> None:
    patient = PAClassifier(validation_fraction=0.3, patience=1)
    model = CommitteeClassifier(patient, n_seeds=2, keep_passes=(1, 30)).fit(X, Y)
    assert 2 <= len(model.indexes_) <= 4
    late = CommitteeClassifier(patient, n_seeds=2, keep_passes=(40,)).fit(X, Y)
    assert len(late.indexes_) == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"members": []}, "members"),
        ({"members": ["pa"]}, "members"),
        ({"members": PAClassifier(passes=0)}, "passes"),
        ({"n_seeds": 0}, "n_seeds"),
        ({"keep_passes": ()}, "keep_passes"),
        ({"keep_passes": 5}, "keep_passes"),
        ({"keep_passes": (0, 1)}, "keep_passes"),
        ({"vote": "all"}, "vote"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CommitteeClassifier(**parameters).fit(X, Y)


def test_a_committee_is_not_one_index() -> None:
    model = small().fit(X, Y)
    with pytest.raises(ValueError, match="by its members"):
        model._with_index(model.index_)
