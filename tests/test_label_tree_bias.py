"""The bias of label trees: a constant beside the features, which was one of them in older files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import abound
import naive_label_tree as naive
from abound import LabelTreeClassifier, LinearClassifier
from abound.learn import label_tree_confusion
from abound.store import ModelFileError, open_arrays, save_arrays
from label_tree_data import SMALL, TAXONOMY, TREES, X, Y, assert_same_trees


@TREES
@pytest.mark.parametrize("bias", ["auto", 0.5])
def test_a_bias_is_a_constant_that_is_no_feature(tree: Any, bias: Any) -> None:
    """The best weights are those of one more feature; clusters are made without it, and pruning leaves it alone."""
    options = SMALL | {"tree": tree, "C": 1.0, "tol": 1e-6, "max_sweeps": 2000}
    rows = X.multiply(sp.csr_array(np.linspace(0.5, 2, 400)[:, None])).tocsr()
    value = bias if bias != "auto" else np.sqrt((rows.data.astype(np.float64) ** 2).sum() / 400)
    model = LabelTreeClassifier(bias=bias, **options).fit(rows, Y)
    assert model.trees_[0].biases.any()
    edges = model.trees_[0].edges()
    assert model.n_edges_ == np.count_nonzero(edges.weights) + np.count_nonzero(edges.offsets), "biases do not count"
    if tree != "spectral":
        # The flat model of spectral clusters has the bias too.
        plain = LabelTreeClassifier(bias=0, **options).fit(rows, Y)
        np.testing.assert_array_equal(plain.trees_[0].slots, model.trees_[0].slots)
        assert not len(plain.trees_[0].biases)
    if tree is TAXONOMY or tree is None:
        extended = sp.hstack([rows, np.full((400, 1), value)]).tocsr()
        as_feature = LabelTreeClassifier(bias=0, **options).fit(extended, Y)
        ours, theirs = model.decision_function(rows), as_feature.decision_function(extended)
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
        light = LabelTreeClassifier(bias=bias, **options | {"min_weight": 1e6}).fit(rows, Y)
        np.testing.assert_array_equal(light.trees_[0].biases, model.trees_[0].biases)
        assert light.n_edges_ == 0


def test_spectral_clusters_see_the_bias_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Flat(LinearClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            seen.append(self.bias)
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(label_tree_confusion, "LinearClassifier", Flat)
    LabelTreeClassifier(tree="spectral", bias=0.5, **SMALL).fit(X, Y)
    LabelTreeClassifier(tree="spectral", **SMALL).fit(2 * X, Y)
    squares = (X.data.astype(np.float64) ** 2).sum()
    assert seen == [0.5, pytest.approx(2 * np.sqrt(squares / 400), rel=1e-6)]


@pytest.mark.parametrize("min_weight", [0.0, 0.1])
@pytest.mark.parametrize("tree", ["kmeans", None])
def test_files_whose_bias_was_a_feature_rank_as_then(tree: Any, min_weight: float, tmp_path: Path) -> None:
    """Files of before had the constant after all features, of the value ``bias``."""
    path, extended = tmp_path / "model", sp.hstack([X, np.full((400, 1), 0.5)]).tocsr()
    options = SMALL | {"tree": tree, "n_trees": 2, "min_weight": min_weight}
    then = LabelTreeClassifier(bias=0.0, **options).fit(extended, Y)
    then.save(path)
    stored = open_arrays(path)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    assert "trees/0/biases" not in arrays
    meta["estimator"]["parameters"]["bias"], meta["estimator"]["n_features_in"] = 0.5, 80
    save_arrays(path, arrays, meta)
    model = abound.load(path)
    constant = sum(np.count_nonzero(naive.dense_node(t, n, 81)[:, 80]) for t in then.trees_ for n in range(t.n_nodes))
    assert constant
    assert model.n_edges_ < then.n_edges_
    for tree, before in zip(model.trees_, then.trees_, strict=True):
        assert tree.n_nodes == before.n_nodes
        for node in range(tree.n_nodes):
            dense = naive.dense_node(before, node, 81)
            np.testing.assert_array_equal(naive.dense_node(tree, node, 80), dense[:, :80])
            own = slice(*tree.slot_indptr[node : node + 2].tolist())
            np.testing.assert_allclose(tree.biases[own], 0.5 * dense[:, 80], rtol=1e-6, atol=1e-7)
    found, expected = model.predict_topk(X, 5), then.predict_topk(extended, 5)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-4)
    assert (found.labels == expected.labels).mean() > 0.999
    model.save(path)
    again = abound.load(path)
    assert_same_trees(model, again)
    assert again.n_edges_ == model.n_edges_
    meta["estimator"]["parameters"]["bias"] = 0.0
    save_arrays(path, arrays, meta)
    with pytest.raises(ModelFileError, match="of 80"):
        abound.load(path)


def test_a_file_without_a_bias_is_as_it_was(tmp_path: Path) -> None:
    """A number as ``bias`` alone makes no bias: nothing was learned about it."""
    model = LabelTreeClassifier(bias=0.0, **SMALL).fit(X, Y)
    before = model.predict_topk(X, 5)
    model.set_params(bias=2.0).save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert_same_trees(model, loaded)
    np.testing.assert_array_equal(loaded.predict_topk(X, 5).scores, before.scores)
    assert loaded.n_edges_ == model.n_edges_
