"""ECOC: words, targets and decoders against the slow twins, and what the estimator promises of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import abound
import naive_codes
from abound import OutputCodeClassifier
from abound.distribute import Serial
from abound.labels import encode
from abound.learn import _code_kernels as kernels
from abound.learn.dichotomizers import balanced_costs, dichotomizers_from, train_dichotomizers
from abound.learn.linear_rows import solver_rows
from abound.learn.one_vs_rest import Settings
from abound.learn.output_code import best_codes
from abound.store import ModelFileError, Section
from abound.validation import as_rows, frozen
from generate import labels_for, make_rows, sparse_rows

X, Y = make_rows(3, n=200)


def drawn_codes(seed: int, number: int, n_classes: int, n_bits: int) -> Any:
    """One of the random matrices, as numbers."""
    shape = n_classes, -(-n_bits // kernels.WORD)
    used, signs = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    kernels.draw_planes(seed, number, n_bits, used, signs)
    codes = np.zeros((n_classes, n_bits), dtype=int)
    for c in range(n_classes):
        for v in range(n_bits):
            if int(used[c, v // 64]) >> (v % 64) & 1:
                codes[c, v] = 1 if int(signs[c, v // 64]) >> (v % 64) & 1 else -1
    return codes


@given(st.integers(0, 1000), st.integers(2, 9), st.integers(1, 140))
def test_words_are_ternary_and_useful(seed: int, n_classes: int, n_bits: int) -> None:
    codes = best_codes(n_classes, n_bits, 3, seed, None)
    assert codes.shape == (n_classes, n_bits)
    assert set(np.unique(codes)) <= {-1, 0, 1}
    assert ((codes == 1).any(axis=0) & (codes == -1).any(axis=0)).all(), "both signs in each column"
    assert codes.any(axis=1).all(), "no empty word"


def test_entries_have_their_probabilities() -> None:
    codes = best_codes(300, 200, 1, 0, None)
    np.testing.assert_allclose([(codes == sign).mean() for sign in (-1, 0, 1)], [0.25, 0.5, 0.25], atol=0.01)


@given(st.integers(0, 1000), st.integers(2, 7), st.integers(3, 130), st.integers(1, 12))
def test_the_matrix_with_the_best_nearest_words_is_taken(seed: int, n_classes: int, n_bits: int, n_codes: int) -> None:
    every = [drawn_codes(seed, number, n_classes, n_bits) for number in range(n_codes)]
    distances = [naive_codes.nearest_words(codes) for codes in every]
    np.testing.assert_array_equal(best_codes(n_classes, n_bits, n_codes, seed, 2), every[int(np.argmax(distances))])


def test_the_search_is_the_same_with_threads() -> None:
    np.testing.assert_array_equal(best_codes(40, 70, 500, 5, 1), best_codes(40, 70, 500, 5, 2))


@given(st.data())
def test_targets_are_the_sides_of_the_labels(data: Any) -> None:
    rows = data.draw(labels_for(12, multi=True))
    labels = encode(rows)
    codes = data.draw(st.integers(1, 20).map(lambda n: np.random.default_rng(n).integers(-1, 2, (labels.n_classes, n))))
    codes = codes.astype(np.int8)
    ids = [labels.ids[labels.indptr[i] : labels.indptr[i + 1]].tolist() for i in range(12)]
    expected = naive_codes.targets(ids, codes)
    for first in range(0, codes.shape[1], 16):
        n_lanes = min(16, codes.shape[1] - first)
        found = np.full((12, 16), 7, dtype=np.int8)
        kernels.set_targets(labels.indptr, labels.ids, frozen(codes, np.int8), first, n_lanes, found)
        np.testing.assert_array_equal(found[:, :n_lanes], expected[:, first : first + n_lanes])
        assert not found[:, n_lanes:].any()


@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 9), st.integers(1, 20), st.integers(1, 10))
def test_decoders_equal_their_twin(seed: int, loss: bool, n_words: int, n_bits: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 2, (n_words, n_bits)).astype(np.int8)
    outputs = rng.normal(size=(4, n_bits)).astype(np.float32) * (rng.random((4, n_bits)) < 0.8)
    class_of = np.arange(n_words, dtype=np.int32) // 2
    n_classes = int(class_of.max()) + 1
    allowed = rng.random(n_classes) < 0.8 if seed % 2 else np.ones(n_classes, dtype=bool)
    ids, scores = np.full((4, min(k, n_classes)), -1, np.int32), np.full((4, min(k, n_classes)), -np.inf, np.float32)
    mask = allowed if seed % 2 else np.empty(0)
    kernels.decode_rows(
        *(frozen(outputs, np.float32), frozen(codes.T, np.int8), loss, frozen(class_of, np.int32)),
        *(frozen(mask, np.bool_), np.empty(n_classes, dtype=np.float32), ids, scores),
    )
    by_word = naive_codes.decode(outputs.astype(np.float64), codes, loss)
    by_class = np.array([by_word[:, class_of == c].max(axis=1) for c in range(n_classes)]).T
    by_class[:, ~allowed] = -np.inf
    for i in range(4):
        shown = ids[i][ids[i] >= 0]
        assert len(shown) == min(len(ids[i]), allowed.sum())
        np.testing.assert_allclose(scores[i, : len(shown)], -np.sort(-by_class[i])[: len(shown)], atol=1e-5)
        np.testing.assert_allclose(by_class[i, shown], scores[i, : len(shown)], atol=1e-5)


def test_both_sides_have_the_same_weight() -> None:
    targets = np.zeros((10, 16), dtype=np.int8)
    targets[:6, 0], targets[6:8, 0], targets[:3, 1] = 1, -1, 1
    weights = np.ones(10, dtype=np.float32)
    weights[0] = 3
    costs = balanced_costs(targets, weights, 2.0)
    assert costs.positive[0] * 8 == pytest.approx(costs.negative[0] * 2)
    assert costs.positive[0] * 8 + costs.negative[0] * 2 == pytest.approx(2.0 * 10)
    assert (costs.positive[1], costs.negative[2]) == (pytest.approx(1.0), 2.0)


@given(sparse_rows(max_rows=15, max_features=6, unit=True), st.integers(0, 100))
def test_a_classifier_solves_its_own_rows_alone(matrix: Any, seed: int) -> None:
    """Rows that a classifier does not know make no difference to it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, matrix.shape[0])
    y[0] = 0
    labels = encode([*y.tolist(), 0, 1, 2])
    whole = np.vstack([matrix.toarray(), np.eye(3, matrix.shape[1])])
    whole = np.hstack([whole, np.full((len(whole), 1), 0.3)])
    data = as_rows(whole)
    codes = np.array([[1, 1], [-1, -1], [0, 0]], dtype=np.int8)
    settings = Settings(0, 1e-6, 2000, 0.0, 0)
    prepared = solver_rows(data, np.ones(data.n_rows, dtype=np.float32), np.random.default_rng(0))
    found, _, unfinished = train_dichotomizers(prepared, labels, codes, 1.0, settings, data.n_features, Serial())
    assert not unfinished
    weights = found.index.to_matrix().toarray()
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    kept = np.flatnonzero(labels.ids != 2)
    dense = whole[kept]
    sides = np.where(labels.ids[kept] == 0, 1.0, -1.0)
    share = [len(kept) / (2 * (sides == sign).sum()) for sign in (1, -1)]

    def objective(w: Any) -> float:
        losses = np.maximum(0, 1 - sides * (dense @ w)) ** 2
        return float(w @ w / 2 + losses @ np.where(sides > 0, share[0], share[1]))

    best, w = objective(weights[:, 0]), weights[:, 0]
    for _ in range(20):
        assert objective(w + rng.normal(size=len(w)) * 0.01) >= best * (1 - 1e-5) - 1e-6


def test_more_bits_are_more_accurate() -> None:
    scores = [OutputCodeClassifier(n_bits=n).fit(X, Y).score(X, Y) for n in (3, 10, 60)]
    assert scores[0] < scores[1] < scores[2]


def test_default_length_grows_with_the_logarithm_of_the_classes() -> None:
    model = OutputCodeClassifier().fit(X, Y)
    n_classes = len(model.classes_)
    assert model.dichotomizers_.codes.shape == (n_classes, np.ceil(15 * np.log2(n_classes)))


def test_the_decoder_may_be_changed_after_training() -> None:
    model = OutputCodeClassifier(n_bits=25).fit(X, Y)
    by_loss = model.predict_topk(X, 3)
    by_side = model.set_params(decode="hamming").predict_topk(X, 3)
    assert (by_loss.labels != by_side.labels).any()
    np.testing.assert_allclose(by_side.scores * 50, np.rint(by_side.scores * 50), atol=1e-4)


def test_a_merged_class_has_the_better_of_its_words() -> None:
    model = OutputCodeClassifier(n_bits=40).fit(X, Y)
    before = model.decision_function(X)
    model.merge_classes([3, 5], into=3)
    both = model.decision_function(X)[:, model._class_id(3)]
    np.testing.assert_allclose(both, np.maximum(before[:, 3], before[:, 5]), atol=1e-6)


def test_pruning_keeps_the_heavy_weights(tmp_path: Path) -> None:
    model = OutputCodeClassifier(min_weight=0).fit(X, Y)
    pruned = model._pruned(min_weight=0.05)
    assert pruned.n_edges_ < model.n_edges_
    assert np.abs(pruned.dichotomizers_.index.weights).min() >= 0.05
    pruned.save(tmp_path / "model")
    assert abound.load(tmp_path / "model").n_edges_ == pruned.n_edges_


def test_an_unfinished_solution_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match="max_sweeps=1"):
        OutputCodeClassifier(n_bits=16, tol=1e-9, max_sweeps=1).fit(X, Y)


@pytest.mark.parametrize("name, value", [("n_bits", 0), ("n_codes", 0), ("decode", "guess"), ("tol", 0)])
def test_wrong_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        OutputCodeClassifier(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("name, value", [("codes", 2), ("class_of", -1), ("class_of", 99), ("class_of", 0)])
def test_damaged_words_are_refused(name: str, value: int) -> None:
    found = OutputCodeClassifier(n_bits=10).fit(X, Y).dichotomizers_
    arrays = {key: np.array(each) for key, each in found.to_arrays().items()}
    arrays[name].flat[3] = value
    with pytest.raises(ModelFileError, match=name):
        dichotomizers_from(Section(Path("model"), "dichotomizers/", arrays), 60, len(found.codes))
