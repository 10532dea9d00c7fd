"""Slow, obvious twins of the kernels of output codes and of SaDyC."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np


def nearest_words(codes: Any) -> float:
    """The smallest distance Σ (1 − u v)/2 of two words."""
    return min(
        sum((1 - int(u) * int(v)) / 2 for u, v in zip(one, other, strict=True)) for one, other in combinations(codes, 2)
    )


def targets(rows: list[list[int]], codes: Any) -> Any:
    """The side of each row in each classifier: 0 if its labels stand on none or on both."""
    sides = np.zeros((len(rows), codes.shape[1]), dtype=np.int8)
    for i, labels in enumerate(rows):
        for v in range(codes.shape[1]):
            found = {int(codes[c, v]) for c in labels} - {0}
            sides[i, v] = found.pop() if len(found) == 1 else 0
    return sides


def decode(outputs: Any, codes: Any, by_loss: bool) -> Any:
    """Minus the mean distance of each word from the outputs of a row."""
    scores = np.zeros((len(outputs), len(codes)))
    for i, f in enumerate(outputs):
        for c, word in enumerate(codes):
            if by_loss:
                scores[i, c] = -np.mean([max(0.0, 1 - m * z) ** 2 for m, z in zip(word, f, strict=True)])
            else:
                scores[i, c] = -np.mean([(1 - np.sign(m * z)) / 2 for m, z in zip(word, f, strict=True)])
    return scores


class Sadyc:
    """Algorithms 2 and 3 for one row, as ALGORITHMS.md has them: nothing kept that can be computed anew."""

    def __init__(self, codes: Any, q: Any, b_min: float) -> None:
        self.codes, self.q, self.b_min = codes, q, b_min
        n_classes, n_classifiers = codes.shape
        self.T = np.zeros(n_classes, dtype=int)
        self.sum_votes = np.zeros(n_classes)
        self.sum_q = np.zeros(n_classes)
        self.left = list(range(n_classes))
        self.unused = list(range(n_classifiers))

    def b(self, i: int) -> float:
        if self.T[i] == 0:
            return 1.0
        mean, expected = self.sum_votes[i] / self.T[i], self.sum_q[i] / self.T[i]
        return math.exp(-2 * self.T[i] * max(0.0, expected - mean) ** 2)

    def cast(self, v: int, vote: float) -> None:
        """Ask a classifier: ``vote`` from 0 to 1 for its positive side."""
        self.unused.remove(v)
        for i in self.left:
            if self.codes[i, v]:
                self.T[i] += 1
                self.sum_votes[i] += vote if self.codes[i, v] == 1 else 1 - vote
                self.sum_q[i] += self.q[i, v]
        self.left = [i for i in self.left if self.b(i) > self.b_min]

    def objective(self, v: int) -> float:
        """Σ p b⁺ + (1 − p) b⁻ over the classes left; infinite if the classifier knows none of them."""
        codes = self.codes[:, v]
        known = sum(self.b(i) for i in self.left if codes[i])
        if not known:
            return math.inf
        p = sum(self.b(i) for i in self.left if codes[i] == 1) / known
        return sum(
            p * self._after(i, v, codes[i] == 1) + (1 - p) * self._after(i, v, codes[i] == -1) for i in self.left
        )

    def _after(self, i: int, v: int, vote: bool) -> float:
        encoded = abs(int(self.codes[i, v]))
        T = self.T[i] + encoded
        if T == 0:
            return 1.0
        late = self.sum_q[i] - self.sum_votes[i] + encoded * (self.q[i, v] - vote)
        return math.exp(-2 * T * max(0.0, late / T) ** 2)

    def ranking(self, counts: Any) -> list[int]:
        """Classes left by μ, b, frequency, number; then those that were discarded, by μ, frequency, number."""
        means = self.sum_votes / np.maximum(1, self.T)

        def key(i: int) -> Any:
            alive = i in self.left
            return (not alive, -means[i], -self.b(i) if alive else 0.0, -counts[i], i)

        return sorted(range(len(self.T)), key=key)
