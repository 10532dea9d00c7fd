"""Rank very many classes from sparse features, fast, on one ordinary machine.

The names below are loaded when they are first used, so that ``import abound`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "FeatureFocusClassifier": "abound.learn.feature_focus",
    "IndependentClassifier": "abound.learn.independent",
    "EMAClassifier": "abound.learn.ema",
    "OOZClassifier": "abound.learn.ooz",
    "UnweightedIndexClassifier": "abound.learn.unweighted",
    "FrequencyClassifier": "abound.learn.frequency",
    "PAClassifier": "abound.learn.pa",
    "MMPClassifier": "abound.learn.mmp",
    "PerceptronClassifier": "abound.learn.perceptron",
    "CommitteeClassifier": "abound.learn.committee",
    "ExpertsClassifier": "abound.learn.experts",
    "LinearClassifier": "abound.learn.linear",
    "RecursiveClassifier": "abound.learn.recursive",
    "TopDownClassifier": "abound.learn.top_down",
    "LabelTreeClassifier": "abound.learn.label_tree",
    "PathSVMClassifier": "abound.learn.path_svm",
    "OrthogonalTransferClassifier": "abound.learn.orthogonal_transfer",
    "HierarchicalBayesClassifier": "abound.learn.hierarchical_bayes",
    "OutputCodeClassifier": "abound.learn.output_code",
    "SequentialClassifier": "abound.learn.sequential",
    "ClassIndex": "abound.index.class_index",
    "Model": "abound.learn.model",
    "load": "abound.learn.model",
    "Taxonomy": "abound.read.taxonomy",
    "TextVectorizer": "abound.vectorise.text",
}

if TYPE_CHECKING:
    from abound.index.class_index import ClassIndex
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
    from abound.learn.model import Model, load
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
    from abound.read.taxonomy import Taxonomy
    from abound.vectorise.text import TextVectorizer

__all__ = [
    "FeatureFocusClassifier",
    "IndependentClassifier",
    "EMAClassifier",
    "OOZClassifier",
    "UnweightedIndexClassifier",
    "FrequencyClassifier",
    "PAClassifier",
    "MMPClassifier",
    "PerceptronClassifier",
    "CommitteeClassifier",
    "ExpertsClassifier",
    "LinearClassifier",
    "RecursiveClassifier",
    "TopDownClassifier",
    "LabelTreeClassifier",
    "PathSVMClassifier",
    "OrthogonalTransferClassifier",
    "HierarchicalBayesClassifier",
    "OutputCodeClassifier",
    "SequentialClassifier",
    "ClassIndex",
    "Model",
    "load",
    "Taxonomy",
    "TextVectorizer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'abound' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
