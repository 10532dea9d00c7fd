"""The learners by their short names, as on the command line and in model files."""

from __future__ import annotations

from typing import Any

from abound.learn.base import RankingClassifier
from abound.learn.committee import CommitteeClassifier
from abound.learn.ema import EMAClassifier
from abound.learn.experts import ExpertsClassifier
from abound.learn.feature_focus import FeatureFocusClassifier
from abound.learn.frequency import FrequencyClassifier
from abound.learn.hierarchical_bayes import HierarchicalBayesClassifier
from abound.learn.independent import IndependentClassifier
from abound.learn.label_tree import LabelTreeClassifier
from abound.learn.linear import LinearClassifier
from abound.learn.mmp import MMPClassifier
from abound.learn.ooz import OOZClassifier
from abound.learn.orthogonal_transfer import OrthogonalTransferClassifier
from abound.learn.output_code import OutputCodeClassifier
from abound.learn.pa import PAClassifier
from abound.learn.path_svm import PathSVMClassifier
from abound.learn.perceptron import PerceptronClassifier
from abound.learn.recursive import RecursiveClassifier
from abound.learn.sequential import SequentialClassifier
from abound.learn.top_down import TopDownClassifier
from abound.learn.unweighted import UnweightedIndexClassifier

LEARNERS: dict[str, type[RankingClassifier]] = {
    learner.learner: learner
    for learner in (
        FeatureFocusClassifier,
        IndependentClassifier,
        EMAClassifier,
        OOZClassifier,
        UnweightedIndexClassifier,
        FrequencyClassifier,
        PAClassifier,
        MMPClassifier,
        PerceptronClassifier,
        CommitteeClassifier,
        ExpertsClassifier,
        LinearClassifier,
        RecursiveClassifier,
        TopDownClassifier,
        LabelTreeClassifier,
        PathSVMClassifier,
        OrthogonalTransferClassifier,
        HierarchicalBayesClassifier,
        OutputCodeClassifier,
        SequentialClassifier,
    )
}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lr": ("svm", {"loss": "logistic"}),
    "hr-lr": ("hr-svm", {"loss": "logistic"}),
}
"""Further short names: a learner with some of its parameters set. The logistic loss needs a large C on texts."""

LEARNERS.update({name: LEARNERS[base] for name, (base, _) in VARIANTS.items()})


def make_learner(name: str, **parameters: Any) -> RankingClassifier:
    """Make a learner from its short name.

    Parameters
    ----------
    name : str
        One of `LEARNERS`.
    **parameters : object
        Its parameters; those not given have their defaults.

    Returns
    -------
    RankingClassifier
        Not fitted yet.

    Examples
    --------
    >>> make_learner("ff", margin=0.1)
    FeatureFocusClassifier(margin=0.1)
    """
    if name not in LEARNERS:
        raise ValueError(f"no learner is called {name!r}; there are {', '.join(LEARNERS)}")
    learner = LEARNERS[name](**VARIANTS.get(name, ("", {}))[1])
    known = learner.get_params(deep=False)
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{name} has no parameter {parameter!r}; it has {', '.join(known)}")
    learner.set_params(**parameters)
    return learner
