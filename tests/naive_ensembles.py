"""Slow and obvious twins of the committee's votes, of EDGE's ranking and of the unweighted index's second stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.learn._retrieved_kernels import START


def votes(rankings: list[list[list[int]]], n_classes: int, depth: int) -> Any:
    """Score of each class for each row: first places, and below the point the sum of reciprocal ranks."""
    n_members, n_rows = len(rankings), len(rankings[0])
    scores = np.zeros((n_rows, n_classes))
    for ranking in rankings:
        for i, row in enumerate(ranking):
            for place, c in enumerate(row, start=1):
                scores[i, c] += 1 / place / (n_members + 1) if place <= depth else 1e-9 / place
                scores[i, c] += place == 1
    return scores


def rarest_first(scores: Any, rankings: list[list[list[int]]], counts: Any) -> Any:
    """The same scores with the rarest class that some member ranks first lifted above all."""
    lifted = scores.copy()
    for i in range(len(scores)):
        firsts = {ranking[i][0] for ranking in rankings if ranking[i]}
        if firsts:
            best = min(firsts, key=lambda c: (counts[c], -scores[i, c], c))
            lifted[i, best] = len(rankings) + 1
    return lifted


def best_first(scores: Any, wanted: Any, k: int) -> list[int]:
    """Classes by score, ties by the lower id."""
    return sorted(np.flatnonzero(wanted).tolist(), key=lambda c: (-scores[c], c))[:k]


def standardise(values: Any) -> Any:
    deviation = values.std()
    return (values - values.mean()) / deviation if deviation > 1e-9 else np.zeros(len(values))


def edge(scores: Any, experts: dict[int, tuple[list[int], Any]], x: Any, top: int, weight: float, allowed: Any) -> Any:
    """Scores of a row after EDGE: experts by class, each with its group and its weights, features × group.

    Returns the scores of all classes, and how far the opinions of the experts lie apart.
    """
    classes = np.flatnonzero(allowed)
    final = np.full(len(scores), -np.inf)
    final[classes] = standardise(scores[classes])
    opinions: dict[int, list[float]] = {}
    for c in best_first(scores, allowed, top):
        if c in experts:
            group, weights = experts[c]
            for member, score in zip(group, x @ weights, strict=True):
                if allowed[member]:
                    opinions.setdefault(member, []).append(float(score))
    asked = sorted(opinions)
    means = np.array([np.mean(opinions[c]) for c in asked] or [0.0])
    if asked:
        final[asked] += weight * standardise(means)
    return final, np.ptp(means)


def first_weight(f: int, c: int, j: int) -> float:
    """A start that looks random: splitmix64 of the pair and the member."""
    mask = 2**64 - 1
    z = (f * 0x9E3779B97F4A7C15 + c * 0xD1B54A32D192ED03 + j + 1) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return START * ((z >> 11) / 2**52 - 1)


class Perceptrons:
    """Committees of perceptrons, one a class, as dictionaries: (class, feature) → the members' weights."""

    def __init__(self, n_members: int) -> None:
        self.n_members = n_members
        self.weights: dict[tuple[int, int], Any] = {}

    def scores(self, c: int, x: dict[int, float]) -> Any:
        total = np.zeros(self.n_members)
        for f, value in x.items():
            total += value * self.weights.get((c, f), np.zeros(self.n_members))
        return total

    def learn(self, x: dict[int, float], retrieved: set[int], true: list[int]) -> None:
        for c in sorted(retrieved | set(true)):
            scores = self.scores(c, x)
            signs = np.where(scores <= 0, 1.0, 0.0) if c in true else np.where(scores > 0, -1.0, 0.0)
            if not signs.any():
                continue
            for f, value in x.items():
                if (c, f) not in self.weights:
                    self.weights[c, f] = np.array([first_weight(f, c, j) for j in range(self.n_members)])
                self.weights[c, f] = self.weights[c, f] + value * signs
