"""The one list: an estimator gets scikit-learn's checks and our contract tests by standing in it."""

from __future__ import annotations

from typing import Any

from abound import (
    EMAClassifier,
    FeatureFocusClassifier,
    FrequencyClassifier,
    IndependentClassifier,
    MMPClassifier,
    OOZClassifier,
    PAClassifier,
    PerceptronClassifier,
    UnweightedIndexClassifier,
)

ESTIMATORS = [
    FeatureFocusClassifier(),
    FeatureFocusClassifier(negative="split"),
    EMAClassifier(),
    OOZClassifier(rate=0.1, margin=0.5),
    IndependentClassifier(),
    UnweightedIndexClassifier(),
    FrequencyClassifier(),
    PAClassifier(),
    PAClassifier(variant="PA-I", average=False),
    MMPClassifier(),
    PerceptronClassifier(),
    PerceptronClassifier(n_members=3),
]

ORDER_MATTERS = "an online learner depends on the order of its rows, so a weight is not the same as repeating a row"
HELD_OUT = "the threshold is chosen on held-out rows, which a repeated row changes"


def expected_failures(estimator: Any) -> dict[str, str]:
    """Checks that an estimator cannot pass, with the reason."""
    reasons = {
        FeatureFocusClassifier: ORDER_MATTERS,
        EMAClassifier: ORDER_MATTERS,
        OOZClassifier: ORDER_MATTERS,
        PAClassifier: ORDER_MATTERS,
        MMPClassifier: ORDER_MATTERS,
        PerceptronClassifier: ORDER_MATTERS,
        IndependentClassifier: HELD_OUT,
    }
    reason = reasons.get(type(estimator))
    if reason is None:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
