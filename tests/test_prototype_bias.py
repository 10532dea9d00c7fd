"""The bias of PA, MMP and perceptrons: a feature with the same value in every row, kept apart from the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import abound
from abound import CommitteeClassifier, MMPClassifier, PAClassifier, PerceptronClassifier
from abound.learn import prototype
from abound.store import ModelFileError, open_arrays, save_arrays
from generate import make_rows

LEARNERS = [PAClassifier, MMPClassifier, PerceptronClassifier]


def with_column(X: Any, value: float) -> Any:
    """The rows with one more feature, the last, of the same value in each."""
    return sp.csr_array(sp.hstack([X, np.full((X.shape[0], 1), value, np.float32)]))


def many_labels(y: Any) -> list[list[int]]:
    return [[int(c)] if i % 3 else [int(c), (int(c) + 1) % 12] for i, c in enumerate(y)]


def scores(model: Any, X: Any) -> Any:
    return model.decision_function(X)


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("value", [0.5, 2.0, -1.0])
def test_a_bias_is_a_column_of_its_value(make: Any, average: bool, several: bool, value: float) -> None:
    X, y = make_rows(3, n=250)
    labels = many_labels(y) if several else y
    model = make(average=average, passes=3, bias=value).fit(X, labels)
    twin = make(average=average, passes=3, bias=0.0).fit(with_column(X, value), labels)
    np.testing.assert_allclose(scores(model, X), scores(twin, with_column(X, value)), atol=2e-5)
    assert model.history_[-1]["updates"] == twin.history_[-1]["updates"]
    assert twin.index_.bias is None
    constant = twin.index_.to_matrix().toarray()[-1]
    assert model.n_edges_ == twin.n_edges_ - np.count_nonzero(twin._weights()[[-1]].toarray())
    offset = 0 if twin.index_.offset is None else twin.index_.offset[-1]
    np.testing.assert_allclose(model.index_.bias, value * (constant + offset), atol=2e-5)


@pytest.mark.parametrize("make", LEARNERS)
def test_a_row_without_features_is_learned_too(make: Any) -> None:
    """Two thirds of the rows are empty, and of one class: it gets the highest bias."""
    X, y = make_rows(4, n=300)
    empty = sp.csr_array((600, X.shape[1]), dtype=np.float32)
    labels = np.concatenate((y, np.full(600, 5)))
    model = make().fit(sp.csr_array(sp.vstack([X, empty])), labels)
    assert model.index_.bias.argmax() == 5
    assert model.predict(empty[:2]).tolist() == [5, 5]
    assert model.index_.n_features == X.shape[1]


@pytest.mark.parametrize("make", LEARNERS)
def test_a_row_that_no_feature_votes_for_is_of_the_most_frequent_class(make: Any) -> None:
    """The bias is high for rare classes, as frequent ones have weights for what all rows have: it would say these."""
    X, y = make_rows(4, n=300)
    model = make(bias=1.0).fit(sp.csr_array(sp.hstack([X, sp.csr_array((300, 2), dtype=np.float32)])), y)
    rows = sp.csr_array(np.eye(2, 62, 60, dtype=np.float32))
    frequent = int(np.bincount(y).argmax())
    assert model.index_.bias.argmax() != frequent
    for k in (1, 3, 12):
        labels, found = model.predict_topk(rows, k)
        assert labels[:, 0].tolist() == [frequent] * 2
        assert len(set(labels[0])) == k
        np.testing.assert_array_equal(found, 0)
    assert sum(value for _, value in model.explain(rows[[0]], frequent)) == 0
    assert scores(model, rows).argmax(axis=1).tolist() == [frequent] * 2
    rest = model.predict_topk(rows, 2, exclude=[frequent]).labels
    assert rest[0, 0] == np.bincount(y)[np.arange(12) != frequent].argmax() + (rest[0, 0] > frequent)


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("average", [True, False])
def test_more_features_and_classes_leave_the_bias_where_it_is(make: Any, average: bool) -> None:
    X, y = make_rows(5, n=300, n_classes=9)
    last = y >= 7
    order = np.concatenate((np.flatnonzero(~last), np.flatnonzero(last)))
    X, y = X[order], y[order]
    narrow = sp.csr_array(X[:150, :40])
    known = list(range(7))
    wide = sp.csr_array(sp.hstack([narrow, sp.csr_array((150, 20), dtype=np.float32)]))
    models = []
    for first in (narrow, wide):
        model = make(average=average, bias=0.7).partial_fit(first, y[:150], classes=known)
        models.append(model.partial_fit(X[150:], y[150:]))
    np.testing.assert_array_equal(scores(models[0], X), scores(models[1], X))
    twin = make(average=average, bias=0.0).partial_fit(with_column(wide, 0.7), y[:150], classes=known)
    twin.partial_fit(with_column(X[150:], 0.7), y[150:])
    np.testing.assert_allclose(scores(models[0], X), scores(twin, with_column(X, 0.7)), atol=2e-5)


def merged(model: Any) -> Any:
    return model.merge_classes([2, 9], into=2).drop_classes([4])


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_classes_that_become_one_add_up_their_bias(make: Any, average: bool, late: bool) -> None:
    X, y = make_rows(6, n=400)
    parts = [slice(0, 150), slice(150, 400)]
    models = []
    for bias in (0.7, 0.0):
        rows = with_column(X, 0.7) if bias == 0 else X
        model = make(average=average, bias=bias)
        known = np.unique(y[:150]) if late else range(12)
        model.partial_fit(rows[parts[0]], y[parts[0]], classes=known)
        model = merged(model.partial_fit(rows[parts[1]], y[parts[1]]))
        before = scores(model, rows)
        models.append((before, scores(model.partial_fit(rows[:90], np.where(y == 9, 2, y)[:90]), rows)))
    for ours, twins in zip(*models, strict=True):
        np.testing.assert_allclose(ours, twins, atol=5e-5)


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("bias", ["auto", 2.0, 0.0])
def test_a_saved_model_ranks_and_learns_on_alike(make: Any, average: bool, bias: Any, tmp_path: Any) -> None:
    X, y = make_rows(7, n=300)
    model = make(average=average, bias=bias).fit(3 * X[:200], y[:200])
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert loaded.bias == bias
    np.testing.assert_array_equal(scores(loaded, X), scores(model, X))
    loaded.partial_fit(X[200:], y[200:])
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(scores(loaded, X), scores(model, X), atol=1e-5)
    assert loaded._state.bias.constant == model._state.bias.constant
    assert [name for name in loaded._saved() if "bias" in name or "constant" in name] == (
        ["constant", "bias", "bias_totals"] if bias else []
    )


def test_the_value_of_the_first_rows_stays() -> None:
    X, y = make_rows(8)
    fitted = PAClassifier().fit(3 * X, y)
    value = fitted._state.bias.constant
    share = PAClassifier.auto_bias
    assert value == pytest.approx(3 * share)
    assert fitted.partial_fit(X, y)._state.bias.constant == value
    met = PAClassifier().partial_fit(X, y)
    assert met.partial_fit(3 * X, y)._state.bias.constant == pytest.approx(share)
    assert fitted.set_params(bias=5.0).partial_fit(X, y)._state.bias.constant == value
    assert fitted.fit(X, y)._state.bias.constant == 5


@pytest.mark.parametrize("keep_when", ["end", "pass"])
def test_what_is_kept_of_the_weights_leaves_the_bias_alone(keep_when: str) -> None:
    X, y = make_rows(9, n=400)
    full = PAClassifier(bias=1.0).fit(X, y)
    few = PAClassifier(bias=1.0, keep=20, keep_when=keep_when).fit(X, y)
    assert few.index_.n_edges <= 20
    assert np.count_nonzero(few.index_.bias) == np.count_nonzero(full.index_.bias) == 12
    if keep_when == "end":
        np.testing.assert_array_equal(few.index_.bias, full.index_.bias)


def test_the_bias_is_averaged_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows(5, n=300, n_classes=80)
    one = PAClassifier(passes=2, bias=1.0).fit(X, y)
    monkeypatch.setattr(prototype, "BOOK_CHANGES", 50)
    other = PAClassifier(passes=2, bias=1.0).fit(X, y)
    np.testing.assert_allclose(one.index_.bias, other.index_.bias, atol=1e-6)


@pytest.mark.parametrize("make", LEARNERS)
def test_the_parts_of_a_score_have_the_bias_among_them(make: Any) -> None:
    X, y = make_rows(2)
    model = make(bias=1.0).fit(X, y)
    for c in range(12):
        parts = model.explain(X[[0]], c)
        assert sum(value for _, value in parts) == pytest.approx(scores(model, X[[0]])[0, c], abs=1e-5)
        assert [value for name, value in parts if name == "bias"] == [model.index_.bias[c]]


def test_committees_average_the_bias() -> None:
    X, y = make_rows(1)
    model = CommitteeClassifier(PAClassifier(bias=1.0, average=False), n_seeds=2, keep_passes=(1, 3), vote="mean")
    model.fit(X, y)
    biases = [index.bias for index in model.indexes_]
    assert len(biases) == 4
    np.testing.assert_allclose(model.index_.bias, np.mean(biases, axis=0), atol=1e-6)
    np.testing.assert_allclose(scores(model, X), np.mean([scores(m, X) for m in model._members], axis=0), atol=1e-5)
    perceptrons = PerceptronClassifier(n_members=3, bias=1.0, random_state=1).fit(X, y)
    perceptrons.partial_fit(X, y)
    assert np.count_nonzero(perceptrons.index_.bias) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays["state/constant"].fill(np.nan), "constant.*nan"),
        (lambda arrays: arrays["state/constant"].fill(2e15), "constant.*2e\\+15"),
        (lambda arrays: arrays.update({"state/constant": np.ones(2)}), "constant"),
        (lambda arrays: arrays["state/bias"].fill(np.inf), "state/bias.*inf"),
        (lambda arrays: arrays.update({"state/bias": arrays["state/bias"][1:]}), "state/bias"),
        (lambda arrays: arrays["state/bias_totals"].fill(np.nan), "bias_totals"),
        (lambda arrays: arrays.pop("state/bias_totals"), "bias_totals"),
    ],
)
def test_a_bias_that_cannot_be_is_refused_when_more_is_learned(change: Any, message: str, tmp_path: Any) -> None:
    X, y = make_rows(1)
    PAClassifier(bias=1.0).fit(X, y).save(tmp_path / "model")
    stored = open_arrays(tmp_path / "model")
    arrays = {name: array.copy() for name, array in stored.items()}
    change(arrays)
    save_arrays(tmp_path / "changed", arrays, stored.meta)
    model = abound.load(tmp_path / "changed")
    with pytest.raises(ModelFileError, match=message):
        model.partial_fit(X, y)


@pytest.mark.parametrize("bias", [np.nan, 2e15, "Auto", None, True, [1.0]])
def test_only_numbers_are_a_bias(bias: Any) -> None:
    X, y = make_rows(1)
    with pytest.raises(ValueError, match="bias"):
        PAClassifier(bias=bias).fit(X, y)


def test_a_bias_too_large_to_rank_with_is_refused() -> None:
    X, y = make_rows(1)
    with pytest.raises(ValueError, match="cannot be ranked"):
        PerceptronClassifier(bias=1e9).fit(X, y)
