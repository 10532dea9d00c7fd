"""Slow obvious twins of recursive regularization: inner nodes with all their weights, moved by solving equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def move_inner(tree: Any, inner: Any, differences: Any, stretch: float) -> Any:
    """Eq. (4) for all inner nodes at once, by elimination with all of them; leaves stand ``differences`` off."""
    n = tree.n_inner
    matrix, right = np.zeros((n, n)), np.zeros_like(inner)
    for node in range(n):
        stiffness = min(tree.stiffness[node], 1e12)
        matrix[node, node] += stiffness
        if node:
            parent = tree.parent[node]
            matrix[parent, parent] += stiffness
            matrix[parent, node] -= stiffness
            matrix[node, parent] -= stiffness
    for parent, stiffness, difference in zip(tree.leaf_parent, tree.leaf_stiffness, differences, strict=True):
        matrix[parent, parent] += stiffness
        right[parent] += stiffness * (inner[parent] + difference)
    return inner + stretch * (np.linalg.solve(matrix, right) - inner)


def squared_lengths(tree: Any, inner: Any) -> Any:
    """``‖w_n − w_π‖²``, the root's parent being 0."""
    above = [inner[parent] if node else 0 * inner[0] for node, parent in enumerate(tree.parent)]
    return np.sum((inner - np.array(above)) ** 2, axis=1)


def support_vectors(duals: list[float]) -> list[int]:
    """The rows that count."""
    return [row for row, dual in enumerate(duals) if dual != 0]


def logistic_loss(
    scores: list[float], targets: list[int], row_weights: list[float], positive: float, negative: float
) -> float:
    """What the rows of a binary problem cost; those without a target cost nothing."""
    total = 0.0
    for score, target, weight in zip(scores, targets, row_weights, strict=True):
        if target != 0:
            margin = target * score
            loss = -margin if margin < -30 else math.log(1 + math.exp(-margin))
            total += (positive if target > 0 else negative) * weight * loss
    return total
