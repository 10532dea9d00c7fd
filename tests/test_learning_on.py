"""Rows that come after the training: a class that is new ranks at once, or a warning names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import normalize

from abound import (
    EMAClassifier,
    FeatureFocusClassifier,
    MMPClassifier,
    PAClassifier,
    PerceptronClassifier,
)

LEARNERS = [PAClassifier(), MMPClassifier(), PerceptronClassifier(), EMAClassifier(), FeatureFocusClassifier()]


@pytest.mark.parametrize("learner", LEARNERS)
def test_two_rows_of_a_class_that_is_new_to_a_trained_learner_are_enough(learner: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=1500)
    X = np.zeros((1500, 130), np.float32)
    for row, c in zip(X, y, strict=True):
        row[6 * c + rng.permutation(6)[:3]] = 1
        row[120 + rng.integers(8)] = 1
    new = np.zeros((3, 130), np.float32)
    new[:, 128] = 1
    new[[0, 1, 2], [3, 9, 15]] = 1
    model = clone(learner).fit(normalize(X), y)
    model.partial_fit(normalize(new[:2]), [99, 99])
    assert model.predict(normalize(new[:2])).tolist() == [99] * 2
    # Feature Focus does not yet trust a feature that two rows have had.
    assert 99 in model.predict_topk(normalize(new[2:]), k=2).labels[0]
    assert np.mean(model.predict(normalize(X)) == y) > 0.95


def test_a_new_class_that_does_not_rank_is_named() -> None:
    X = np.ones((1000, 1), np.float32)
    model = FeatureFocusClassifier().fit(X, np.arange(1000) % 10)
    with pytest.warns(UserWarning, match="1 new classes do not rank for rows like their own yet \\(99\\): ff"):
        model.partial_fit(X[:1], [99])
