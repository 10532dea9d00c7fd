"""The second stage of the unweighted index: perceptrons that learn in tandem and rank what was retrieved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abound
import naive
import naive_ensembles
from abound import ClassIndex, UnweightedIndexClassifier
from abound.learn.perceptron_pairs import pairs_from, rank_retrieved
from abound.store import ModelFileError, Section
from abound.validation import as_rows
from generate import labels_for, make_rows, sparse_rows

X, Y = make_rows(2, n=300)


def by_perceptrons(**parameters: Any) -> UnweightedIndexClassifier:
    return UnweightedIndexClassifier(**{"rank_by": "perceptrons", "n_perceptrons": 3, "passes": 3, **parameters})


@given(data=st.data())
def test_perceptrons_equal_their_twin(data: st.DataObject) -> None:
    rows = data.draw(sparse_rows())
    labels = data.draw(labels_for(rows.shape[0], multi=data.draw(st.booleans())))
    tolerance, n_members = data.draw(st.sampled_from([0, 1, 5])), data.draw(st.integers(1, 3))
    model = by_perceptrons(tolerance=tolerance, n_perceptrons=n_members, passes=2, shuffle=False).fit(rows, labels)
    place = {label: c for c, label in enumerate(model.classes_.tolist())}
    labels = [[place[label] for label in row] for row in labels]
    index = naive.Unweighted(dict(enumerate((rows > 0).sum(axis=0).tolist())), tolerance)
    twin = naive_ensembles.Perceptrons(n_members)
    for _ in range(2):
        for row, classes in zip(naive.rows_of(rows), labels, strict=True):
            if classes:
                active = {f: float(x) for f, x in row if x > 0}
                twin.learn(active, index.retrieved(row), classes)
                index.learn(row, classes)
    indptr, classes, weights = model._state.perceptrons._packed()
    features = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).tolist()
    learned = dict(zip(zip(classes.tolist(), features, strict=True), weights.tolist(), strict=True))
    assert learned.keys() == twin.weights.keys()
    for pair, members in learned.items():
        np.testing.assert_allclose(members, twin.weights[pair], atol=1e-9)
    ids, scores = model._rank(model._rows(rows), 3, None)
    for i, row in enumerate(naive.rows_of(rows)):
        active = {f: float(x) for f, x in row if x > 0}
        retrieved = index.retrieved(row)
        means = {c: float(twin.scores(c, active).mean()) for c in retrieved}
        found = ids[i][ids[i] >= 0].tolist()
        if not retrieved:
            assert found == [int(model.class_counts_.argmax())]
            continue
        assert len(found) == min(3, len(retrieved)) and set(found) <= retrieved
        np.testing.assert_allclose(scores[i][: len(found)], [means[c] for c in found], atol=1e-4)
        assert scores[i, 0] >= max(means.values()) - 1e-4


@given(data=st.data())
def test_ranking_what_was_retrieved(data: st.DataObject) -> None:
    rows = data.draw(sparse_rows(max_rows=6, max_features=5))
    n_features, n_classes = rows.shape[1], data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    edges = rng.random((n_features, n_classes)) < 0.3
    weights = np.round(rng.normal(size=(n_features, n_classes)), 1)
    allowed = rng.random(n_classes) < 0.8
    k = data.draw(st.integers(1, n_classes))
    indexes = ClassIndex.from_matrix(edges.astype(np.float32)), ClassIndex.from_matrix(weights)
    ids, scores = rank_retrieved(*indexes, as_rows(rows), k, allowed, 2)
    for i, x in enumerate(np.maximum(rows.toarray().astype(np.float64), 0)):
        wanted = ((x > 0) @ edges > 0) & allowed
        expected = (x @ weights)[wanted]
        found = ids[i][ids[i] >= 0]
        assert len(found) == min(k, wanted.sum()) and wanted[found].all()
        np.testing.assert_allclose(scores[i][: len(found)], (x @ weights)[found], atol=1e-5)
        np.testing.assert_allclose(scores[i][: len(found)], np.sort(expected)[::-1][: len(found)], atol=1e-5)


def test_perceptrons_rank_better_than_weights() -> None:
    """Figure 18: with classifiers accuracy is higher, and retrieval is the same."""
    alone = UnweightedIndexClassifier().fit(X[:200], Y[:200])
    both = UnweightedIndexClassifier(rank_by="perceptrons").fit(X[:200], Y[:200])
    np.testing.assert_array_equal(alone.index_.weights, both.index_.weights)
    assert both.score(X[200:], Y[200:]) > alone.score(X[200:], Y[200:]) + 0.1
    assert both.n_edges_ > alone.n_edges_


def test_saved_without_state_it_still_ranks(tmp_path: Any) -> None:
    model = by_perceptrons().fit(X, Y)
    abound.Model(model).save(tmp_path / "model", keep_state=False)
    loaded = abound.Model.load(tmp_path / "model").estimator
    for left, right in zip(loaded.predict_topk(X, 5), model.predict_topk(X, 5), strict=True):
        np.testing.assert_array_equal(left, right)
    before = model.predict_topk(X, 5, exclude=[3])
    for left, right in zip(loaded.drop_classes([3]).predict_topk(X, 5), before, strict=True):
        np.testing.assert_array_equal(left, right)


def test_classes_that_become_one_add_up() -> None:
    model = by_perceptrons().fit(X, Y)
    matrix = model._ranking_index().to_matrix().toarray()
    model.merge_classes([2, 4], into=2)
    merged = model._ranking_index().to_matrix().toarray()
    np.testing.assert_allclose(merged[:, 2], matrix[:, 2] + matrix[:, 4], atol=1e-5)
    np.testing.assert_allclose(merged[:, 4:], matrix[:, 5:], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("indptr", lambda a: a[:-1]),
        ("classes", lambda a: a + 12),
        ("weights", lambda a: a[1:]),
        ("weights", lambda a: a[:, :0]),
        ("weights", lambda a: a.ravel()),
    ],
)
def test_pairs_that_a_kernel_must_not_see_are_refused(name: str, change: Any, tmp_path: Any) -> None:
    arrays = by_perceptrons().fit(X, Y)._state.perceptrons.to_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(ModelFileError):
        pairs_from(Section(tmp_path / "model", "state/perceptrons/", dict(sorted(arrays.items()))), 60, 12)
