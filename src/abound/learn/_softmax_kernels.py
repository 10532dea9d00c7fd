"""Kernels of variational multinomial logistic regression: Bouchard's bound of the softmax, row by row.

For scores with mean s_k and variance v_k, and any β and ξ_k::

    E log Σ_k exp(f_k) ≤ β + Σ_k [(s_k − β − ξ_k)/2 + λ(ξ_k) (v_k + (s_k − β)² − ξ_k²) + log(1 + exp ξ_k)]

with ``λ(ξ) = (σ(ξ) − ½) / (2ξ) = tanh(ξ/2) / (4ξ)``. The best ξ is ``ξ_k² = v_k + (s_k − β)²``; there the bound is
``β + Σ_k [(s_k − β)/2 + log(2 cosh(ξ_k/2))]``, convex in β and in s, with slopes ``π_k = ½ + 2λ(ξ_k)(s_k − β)`` in s.
The best β is where the π_k, which stand for the probabilities of the classes, add up to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel

STEPS = 100
"""Most steps of the search for β."""


@kernel
def twice_lambda(xi: float) -> Any:
    """Return ``2λ(ξ)``."""
    if xi < 1e-4:
        return 0.25
    return np.tanh(0.5 * xi) / (2.0 * xi)


@kernel
def sum_slopes(beta: float, scores: Any, variances: Any) -> Any:
    """Return ``Σ π_k`` and its slope in β, which is never positive."""
    total, slope = 0.0, 0.0
    for k in range(len(scores)):
        t = scores[k] - beta
        square = variances[k] + t * t
        xi = np.sqrt(square)
        weight = twice_lambda(xi)
        total += 0.5 + weight * t
        slope -= weight
        if xi >= 1e-4:
            tanh = 2.0 * xi * weight
            slope -= (0.25 * (1.0 - tanh * tanh) - weight) * t * t / square
    return total, slope


@kernel
def find_beta(start: float, scores: Any, variances: Any) -> Any:
    """Return β where ``Σ π_k = 1``: Newton's method inside a bracket. With one class there is none; any will do."""
    if len(scores) < 2:
        return scores[0]
    low, high = scores.min(), scores.max() + 1.0
    reach = 1.0
    while sum_slopes(high, scores, variances)[0] > 1.0 and reach < 1e300:
        reach *= 2.0
        high = scores.max() + reach
    beta = start if low < start < high else 0.5 * (low + high)
    for _ in range(STEPS):
        total, slope = sum_slopes(beta, scores, variances)
        if total > 1.0:
            low = beta
        else:
            high = beta
        step = (1.0 - total) / slope if slope < 0.0 else np.inf
        moved = beta + step
        if not low < moved < high:
            moved = 0.5 * (low + high)
        if abs(moved - beta) <= 1e-10 * (1.0 + abs(beta)):
            return moved
        beta = moved
    return beta


@kernel
def bound_rows(
    begin: int, end: int, scores: Any, variances: Any, own: Any, counts: Any, betas: Any, slopes: Any
) -> float:
    """Return the bound of the negative log-likelihood of some rows; write their β, and its slopes in the scores.

    ``betas`` holds where to start the search.
    """
    total = 0.0
    for i in range(begin, end):
        beta = find_beta(betas[i], scores[i], variances[i])
        betas[i] = beta
        value = beta - scores[i, own[i]]
        for k in range(scores.shape[1]):
            t = scores[i, k] - beta
            xi = np.sqrt(variances[i, k] + t * t)
            value += 0.5 * (t + xi) + np.log1p(np.exp(-xi))
            slopes[i, k] = counts[i] * (0.5 + twice_lambda(xi) * t)
        slopes[i, own[i]] -= counts[i]
        total += counts[i] * value
    return total


@kernel
def bend_rows(begin: int, end: int, scores: Any, variances: Any, counts: Any, betas: Any, bends: Any) -> None:
    """Write ``2λ(ξ)`` of every class, times what the row counts: the curvature of the bound while ξ stays."""
    for i in range(begin, end):
        for k in range(scores.shape[1]):
            t = scores[i, k] - betas[i]
            bends[i, k] = counts[i] * twice_lambda(np.sqrt(variances[i, k] + t * t))
