"""Rank very many classes from sparse features, fast, on one ordinary machine."""

from abound.index.class_index import ClassIndex
from abound.learn.ema import EMAClassifier
from abound.learn.feature_focus import FeatureFocusClassifier
from abound.learn.frequency import FrequencyClassifier
from abound.learn.independent import IndependentClassifier
from abound.learn.ooz import OOZClassifier
from abound.learn.unweighted import UnweightedIndexClassifier

__version__ = "0.1.0"
