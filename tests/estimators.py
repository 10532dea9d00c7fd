"""The one list: an estimator gets scikit-learn's checks and our contract tests by standing in it."""

from __future__ import annotations

from typing import Any

from abound import (
    CommitteeClassifier,
    EMAClassifier,
    ExpertsClassifier,
    FeatureFocusClassifier,
    FrequencyClassifier,
    HierarchicalBayesClassifier,
    IndependentClassifier,
    LabelTreeClassifier,
    LinearClassifier,
    MMPClassifier,
    OOZClassifier,
    OrthogonalTransferClassifier,
    OutputCodeClassifier,
    PAClassifier,
    PathSVMClassifier,
    PerceptronClassifier,
    RecursiveClassifier,
    SequentialClassifier,
    TopDownClassifier,
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
    PAClassifier(calibrate="platt"),
    FeatureFocusClassifier(calibrate="isotonic", cut="scut"),
    LinearClassifier(min_weight=0),
    LinearClassifier(loss="hinge", class_weight="balanced", bias=1.0),
    LinearClassifier(loss="logistic", C=1.0, tol=1e-5, min_weight=0),
    RecursiveClassifier(),
    RecursiveClassifier(loss="logistic", bias=1.0, min_weight=0),
    TopDownClassifier(),
    TopDownClassifier(node_learner=PerceptronClassifier()),
    LabelTreeClassifier(min_weight=0),
    LabelTreeClassifier(n_trees=2, max_leaf=2, loss="logistic", bias=1.0, min_weight=0),
    PathSVMClassifier(),
    PathSVMClassifier(rescaling="margin", bias=1.0),
    OrthogonalTransferClassifier(),
    HierarchicalBayesClassifier(),
    HierarchicalBayesClassifier(covariance="diagonal"),
    OutputCodeClassifier(),
    OutputCodeClassifier(n_bits=40, decode="hamming"),
    SequentialClassifier(n_classifiers=100),
    SequentialClassifier(n_classifiers=100, vote="hard", pool="uniform", smoothing=0, n_candidates=20),
]

ORDER_MATTERS = "an online learner depends on the order of its rows, so a weight is not the same as repeating a row"
TO_A_TOLERANCE = "the solver stops at a duality gap, where the order of the rows still shows"
THROUGH_ZERO = "without a bias no weight makes a linear model answer one class everywhere"
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
        LinearClassifier: TO_A_TOLERANCE,
        RecursiveClassifier: TO_A_TOLERANCE,
        LabelTreeClassifier: TO_A_TOLERANCE,
        TopDownClassifier: TO_A_TOLERANCE,
        OutputCodeClassifier: TO_A_TOLERANCE,
        SequentialClassifier: TO_A_TOLERANCE,
    }
    by_perceptrons = getattr(estimator, "rank_by", "") == "perceptrons"
    reason = ORDER_MATTERS if by_perceptrons else reasons.get(type(estimator))
    if reason is None:
        return {}
    through_zero = (
        {"check_class_weight_classifiers": THROUGH_ZERO}
        if isinstance(estimator, LinearClassifier | RecursiveClassifier)
        else {}
    )
    return ({} if getattr(estimator, "bias", 0) else through_zero) | {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
