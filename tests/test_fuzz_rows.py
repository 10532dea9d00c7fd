"""Rows of any finite values are answered as a slow score answers them, or refused with an error that says why."""

from __future__ import annotations

import pytest

from abound import EMAClassifier, FeatureFocusClassifier, MMPClassifier, PAClassifier, PerceptronClassifier
from fuzz_rows import row_case
from fuzzing import attempt, long_run


def test_hostile_rows_are_answered_or_refused() -> None:
    learners = [FeatureFocusClassifier(), EMAClassifier(), PAClassifier(), MMPClassifier(), PerceptronClassifier()]
    case = row_case(learners)
    told = [attempt(case, seed) for seed in range(40)]
    assert [each for each in told if each["kind"] == "finding"] == []
    assert {each["kind"] for each in told} == {"refused", "used"}


@pytest.mark.long
def test_many_hostile_rows_are_answered_or_refused() -> None:
    told = long_run()["rows"]
    assert told["findings"] == {}
    assert told["cases"] == sum(told["outcomes"].values()) >= 2000
