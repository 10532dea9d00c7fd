"""scikit-learn's own checks, for every estimator, strictly."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators import ESTIMATORS, expected_failures

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    # scikit-learn means its warning here, too: some checks have data that no solver likes.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
