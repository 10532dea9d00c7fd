"""Rows of any finite values are answered as a slow score answers them, or refused with an error that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from abound import EMAClassifier, FeatureFocusClassifier, MMPClassifier, PAClassifier, PerceptronClassifier
from estimators import ESTIMATORS
from fuzz_rows import ask, row_case
from fuzzing import attempt, long_run
from generate import make_rows

X, NUMBERS = make_rows(0, n=40, n_features=8, n_classes=4)
Y = [f"c{c}" for c in NUMBERS]
LARGE = "cannot be ranked.*Scale"


def test_hostile_rows_are_answered_or_refused() -> None:
    learners = [FeatureFocusClassifier(), EMAClassifier(), PAClassifier(), MMPClassifier(), PerceptronClassifier()]
    case = row_case(learners)
    told = [attempt(case, seed) for seed in range(40)]
    assert [each for each in told if each["kind"] == "finding"] == []
    assert {each["kind"] for each in told} == {"refused", "used"}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_rows_beyond_the_limit_are_refused_and_rows_at_it_answered(estimator: Any) -> None:
    beyond, at = (X * np.float32(value / X.data.max()) for value in (3e38, 0.99e15))
    with pytest.raises(ValueError, match=rf"X\[\d+, \d+\] is .* beyond ±1e\+15 {LARGE}"):
        clone(estimator).fit(beyond, Y)
    model = clone(estimator).fit(X, Y)
    for method in (model.predict, model.predict_topk, model.decision_function):
        with pytest.raises(ValueError, match=LARGE):
            method(beyond)
    ask(model, at, Y)
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match=LARGE):
            model.partial_fit(beyond, Y)
        ask(model, X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_learning_rows_at_the_limit_gives_answers_or_says_that_it_cannot(estimator: Any) -> None:
    at = X * np.float32(0.99e15 / X.data.max())
    try:
        model = clone(estimator).fit(at, Y)
    except ValueError as error:
        assert "cannot be ranked" in str(error)
        return
    ask(model, at, Y)
    ask(model, X, Y)


@pytest.mark.parametrize("learner", [PAClassifier(), PerceptronClassifier(), MMPClassifier()], ids=repr)
def test_sample_weights_that_blow_up_what_is_learned_are_refused(learner: Any) -> None:
    weights = np.where(np.arange(len(Y)) % 2, 1e15, 1)
    with pytest.raises(ValueError, match=r"learning these rows gave weights beyond .* Scale the rows"):
        learner.fit(X * 1e15, Y, sample_weight=weights)


@pytest.mark.long
def test_many_hostile_rows_are_answered_or_refused() -> None:
    told = long_run()["rows"]
    assert told["findings"] == {}
    assert told["cases"] == sum(told["outcomes"].values()) >= 2000
