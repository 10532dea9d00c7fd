"""Slow and obvious twins of the prototype learners: dense weights in float64, one row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np


def tau(variant: str, step: str, C: float, loss: float, length: float) -> float:
    """The step size of PA, PA-I, PA-II, as the papers print it or as Crammer et al. have it."""
    double = 2 if step == "original" else 1
    if variant == "PA-II":
        return loss / (double * length + 1 / (2 * C))
    size = loss / (double * length)
    return min(C, size) if variant == "PA-I" else size


class Perceptrons:
    """One perceptron a class."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.weights = np.zeros((n_features, n_classes))
        self.total = np.zeros_like(self.weights)
        self.steps = 0

    def learn(self, x: Any, labels: list[int]) -> None:
        scores = x @ self.weights
        for c, score in enumerate(scores):
            if c in labels and score <= 0:
                self.weights[:, c] += x
            elif labels and c not in labels and score > 0:
                self.weights[:, c] -= x
        self.keep_time()

    def keep_time(self) -> None:
        self.total += self.weights
        self.steps += 1

    def mean(self) -> Any:
        return self.total / self.steps


class MMP(Perceptrons):
    """The multi-class multi-label perceptron."""

    def __init__(self, n_features: int, n_classes: int, pairs: str) -> None:
        super().__init__(n_features, n_classes)
        self.pairs = pairs

    def learn(self, x: Any, labels: list[int]) -> None:
        scores = x @ self.weights
        wrong = [c for c in range(len(scores)) if c not in labels]
        E = [(r, c) for r in labels for c in wrong if scores[r] <= scores[c]]
        if E and self.pairs == "max":
            r = min(labels, key=lambda label: (scores[label], labels.index(label)))
            c = max(wrong, key=lambda label: (scores[label], -label))
            E = [(r, c)]
        for r, c in E:
            self.weights[:, r] += x / len(E)
            self.weights[:, c] -= x / len(E)
        self.keep_time()
