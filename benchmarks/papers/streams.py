"""Proportions that the space-bounded update of Feature Focus counts in a stream of classes, for figures 21 and 22."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound import FeatureFocusClassifier

LENGTH = 1000


def counted(probabilities: Any, generator: Any, min_weights: tuple[float, ...]) -> list[Any]:
    """Draw a stream, and return the proportion of each class as counted with each least weight."""
    stream = generator.choice(len(probabilities), size=LENGTH, p=probabilities)
    # One feature that is always on; a margin of 1 updates at every row.
    X = np.ones((LENGTH, 1), dtype=np.float32)
    found = []
    for min_weight in min_weights:
        options = {"min_weight": min_weight, "max_degree": LENGTH, "rate_features": None, "shuffle": False, "cut": None}
        model = FeatureFocusClassifier(margin=1.0, **options)
        model.fit(X, stream)
        proportions = np.zeros(len(probabilities))
        proportions[model.classes_[model.index_.classes]] = model.index_.weights
        found.append(proportions)
    return found
