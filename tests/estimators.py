"""The one list: an estimator gets scikit-learn's checks and our contract tests by standing in it."""

from __future__ import annotations

from typing import Any

from abound import (
    CommitteeClassifier,
    EMAClassifier,
    ExpertsClassifier,
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
    UnweightedIndexClassifier(rank_by="perceptrons", n_perceptrons=2),
    FrequencyClassifier(),
    PAClassifier(),
    PAClassifier(variant="PA-I", average=False),
    MMPClassifier(),
    PerceptronClassifier(),
    PerceptronClassifier(n_members=3),
    CommitteeClassifier(n_seeds=2, keep_passes=(1, 2)),
    CommitteeClassifier([PAClassifier(), FeatureFocusClassifier()], n_seeds=1, keep_passes=(1, 2), vote="mean"),
    CommitteeClassifier(MMPClassifier(), n_seeds=2, keep_passes=(1, 2), vote="mean"),
    ExpertsClassifier(),
    ExpertsClassifier(FeatureFocusClassifier(), weight=0.5),
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
        CommitteeClassifier: ORDER_MATTERS,
        ExpertsClassifier: ORDER_MATTERS,
        IndependentClassifier: HELD_OUT,
    }
    by_perceptrons = getattr(estimator, "rank_by", "") == "perceptrons"
    reason = ORDER_MATTERS if by_perceptrons else reasons.get(type(estimator))
    if reason is None:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
