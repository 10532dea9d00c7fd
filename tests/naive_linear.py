"""Slow obvious twins of the linear solvers: objectives, dual steps, closed forms and rounds in plain float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize


def losses(margins: Any, kind: str) -> Any:
    if kind == "hinge":
        return np.maximum(0, 1 - margins)
    if kind == "squared_hinge":
        return np.maximum(0, 1 - margins) ** 2
    return np.logaddexp(0, -margins)


def primal(X: Any, signs: Any, w: Any, costs: Any, kind: str, origin: Any = 0.0) -> float:
    """½‖w − w₀‖² + Σ C_i loss(y_i w·x_i), over the rows whose sign is not 0."""
    used = signs != 0
    margins = signs[used] * (X[used] @ w)
    return float(0.5 * np.sum((w - origin) ** 2) + np.sum(costs[used] * losses(margins, kind)))


def solve(X: Any, signs: Any, costs: Any, kind: str, origin: Any = 0.0) -> Any:
    """The best weights: smooth losses by a general minimiser, hinge loss one dual variable at a time."""
    start = np.zeros(X.shape[1]) + origin
    if kind != "hinge":

        def objective(w: Any) -> tuple[float, Any]:
            slopes = costs * signs * slope(signs * (X @ w), kind)
            return primal(X, signs, w, costs, kind, origin), w - origin + X.T @ slopes

        return minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).x
    w, duals = start, np.zeros(len(signs))
    rng = np.random.default_rng(0)
    rows = [i for i in range(len(signs)) if signs[i] != 0 and costs[i] > 0 and np.any(X[i])]
    for _ in range(1000):
        largest = 0.0
        for i in rng.permutation(rows).tolist() if rows else []:
            norm, margin = float(X[i] @ X[i]), float(signs[i] * (X[i] @ w))
            new = step(margin, duals[i], costs[i], norm, kind)
            w += (new - duals[i]) * signs[i] * X[i]
            largest = max(largest, abs(new - duals[i]))
            duals[i] = new
        if largest < 1e-7:
            break
    return w


def slope(margins: Any, kind: str) -> Any:
    """The derivative of a smooth loss."""
    return -2 * np.maximum(0, 1 - margins) if kind == "squared_hinge" else -1 / (1 + np.exp(margins))


def solve_tree(X: Any, signs: Any, leaves: list[int], parents: list[int]) -> float:
    """The least objective of recursive regularization with squared hinge loss and C = 1, all nodes at once."""
    n_nodes, n_features = len(parents), X.shape[1]

    def objective(flat: Any) -> tuple[float, Any]:
        weights = flat.reshape(n_nodes, n_features)
        gradient, total = np.zeros_like(weights), tree_objective(parents, weights)
        for n, p in enumerate(parents):
            difference = weights[n] - (weights[p] if p >= 0 else 0)
            gradient[n] += difference
            if p >= 0:
                gradient[p] -= difference
        for c, leaf in enumerate(leaves):
            margins = signs[:, c] * (X @ weights[leaf])
            total += losses(margins, "squared_hinge").sum()
            gradient[leaf] += X.T @ (signs[:, c] * slope(margins, "squared_hinge"))
        return total, gradient.ravel()

    start = np.zeros(n_nodes * n_features)
    options = {"ftol": 1e-14, "gtol": 1e-8, "maxiter": 5000, "maxfun": 10000}
    return float(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun)


def step(margin: float, dual: float, cost: float, norm: float, kind: str) -> float:
    """The best value of one dual variable, the others fixed."""
    if kind == "hinge":
        return min(max(dual + (1 - margin) / norm, 0.0), cost)
    if kind == "squared_hinge":
        slack = 0.5 / cost
        return max(dual + (1 - margin - dual * slack) / (norm + slack), 0.0)
    low, high = 0.0, cost
    for _ in range(200):
        middle = (low + high) / 2
        z = margin + norm * (middle - dual)
        if cost / (1 + np.exp(z)) > middle:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def tree_objective(parents: list[int], weights: Any) -> float:
    """Σ_n ½‖w_n − w_π‖², the root's parent being 0."""
    return float(sum(0.5 * np.sum((weights[n] - (weights[p] if p >= 0 else 0)) ** 2) for n, p in enumerate(parents)))


def inner_nodes(parents: list[int], weights: Any, inner: list[int]) -> Any:
    """Eq. (4), node after node, until nothing changes: each inner node is the mean of its parent and its children."""
    weights = weights.copy()
    for _ in range(400):
        for n in inner:
            near = [weights[c] for c, p in enumerate(parents) if p == n]
            near.append(weights[parents[n]] if parents[n] >= 0 else np.zeros(weights.shape[1]))
            weights[n] = np.mean(near, axis=0)
    return weights


def lightest_without_harm(weights, bias, rows, heaviest):
    """The largest of some thresholds at which hardly a row changes its first class, if changes count three times."""
    scores = rows @ weights + bias
    for part in (1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12):
        lighter = np.where(np.abs(weights) >= part * heaviest, weights, 0)
        changed = scores + 3 * (rows @ lighter + bias - scores)
        if (changed.argmax(axis=1) != scores.argmax(axis=1)).sum() <= len(rows) / 1000:
            return part * heaviest
    return 0.1 * heaviest
