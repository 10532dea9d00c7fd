"""Slow obvious twins of the learners of a tree: HSVM, OT and HBLR, written from the formulas, loop by loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln


def path(parent: Any, node: int) -> list[int]:
    """The nodes from below the root to a node."""
    walk: list[int] = []
    while node > 0:
        walk.insert(0, node)
        node = int(parent[node])
    return walk


def distance(parent: Any, a: int, b: int) -> int:
    """The number of edges between two nodes."""
    return len(set(path(parent, a)) ^ set(path(parent, b)))


def path_losses(W: Any, x: Any, own: int, tree: Any, rescaling: str, others: Any = ()) -> list[float]:
    """HSVM: what each wrong class costs a row; ``others`` are its other labels."""
    scores = [sum(W[z] @ x for z in path(tree.parent, leaf)) for leaf in tree.leaf_of_class]
    losses = []
    for c in range(tree.n_classes):
        if c != own and c not in others:
            delta = distance(tree.parent, tree.leaf_of_class[own], tree.leaf_of_class[c])
            margin = scores[own] - scores[c]
            losses.append(delta * (1 - margin) if rescaling == "slack" else delta - margin)
    return losses


def path_objective(W: Any, X: Any, y: Any, tree: Any, C: float, rescaling: str) -> float:
    """HSVM's objective; W is nodes × features."""
    losses = [max([0.0, *path_losses(W, x, own, tree, rescaling)]) for x, own in zip(X, y, strict=True)]
    return 0.5 * float((W**2).sum()) + C * float(np.mean(losses))


def solve_path_svm(X: Any, y: Any, tree: Any, C: float, rescaling: str) -> tuple[Any, float]:
    """HSVM by a general solver of quadratic programmes: weights and slacks are free, every loss is a constraint."""
    shape = (tree.n_nodes, X.shape[1])
    size = shape[0] * shape[1]
    linear = []
    for i, (x, own) in enumerate(zip(X, y, strict=True)):
        costs = np.array(path_losses(np.zeros(shape), x, own, tree, rescaling))
        slopes = np.empty((len(costs), size))
        for k in range(size):
            unit = np.zeros(size)
            unit[k] = 1
            slopes[:, k] = np.array(path_losses(unit.reshape(shape), x, own, tree, rescaling)) - costs
        linear += [(i, cost, slope) for cost, slope in zip(costs, slopes, strict=True)]
    rows = np.array([i for i, _, _ in linear])
    costs, slopes = np.array([cost for _, cost, _ in linear]), np.array([slope for _, _, slope in linear])

    def objective(v: Any) -> tuple[float, Any]:
        gradient = v.copy()
        gradient[size:] = C / len(X)
        return 0.5 * float(v[:size] @ v[:size]) + C / len(X) * float(v[size:].sum()), gradient

    picks = np.zeros((len(rows), len(X)))
    picks[np.arange(len(rows)), rows] = 1
    constraint = {
        "type": "ineq",
        "fun": lambda v: v[size:][rows] - costs - slopes @ v[:size],
        "jac": lambda v: np.hstack((-slopes, picks)),
    }
    bounds = [(None, None)] * size + [(0, None)] * len(X)
    start = np.concatenate((np.zeros(size), np.full(len(X), 10.0)))
    options = {"maxiter": 500, "ftol": 1e-12}
    found = minimize(
        objective, start, jac=True, method="SLSQP", bounds=bounds, constraints=[constraint], options=options
    )
    W = found.x[:size].reshape(shape)
    return W, path_objective(W, X, y, tree, C, rescaling)


def ancestors(parent: Any, node: int) -> list[int]:
    """The nodes between a node and the root, neither of them."""
    return path(parent, node)[:-1]


def orthogonal_matrix(tree: Any) -> Any:
    """OT's K, without the root: subtree sizes, and α for ancestors."""
    n = tree.n_nodes
    K, A = np.zeros((n, n)), np.zeros((n, n))
    for i in range(1, n):
        for z in path(tree.parent, i):
            K[z, z] += 1
        for j in ancestors(tree.parent, i):
            A[i, j] = A[j, i] = 1
    K, A = K[1:, 1:], A[1:, 1:]
    if A.any():
        scale = np.diag(np.diag(K) ** -0.5)
        K += 0.99 / np.linalg.eigvalsh(scale @ A @ scale).max() * A
    return K


def orthogonal_objective(W: Any, X: Any, y: Any, tree: Any, C: float, K: Any = None) -> tuple[float, Any]:
    """OT's objective and a subgradient; W is nodes × features, its first row, the root's, of no meaning."""
    K = orthogonal_matrix(tree) if K is None else K
    products = W[1:] @ W[1:].T
    value = 0.5 * float((K * np.abs(products)).sum())
    gradient = np.zeros_like(W)
    gradient[1:] = (K * np.sign(products)) @ W[1:]
    for x, own in zip(X, y, strict=True):
        worst, pair = 0.0, None
        for i in path(tree.parent, tree.leaf_of_class[own]):
            for j in range(1, tree.n_nodes):
                if tree.parent[j] == tree.parent[i] and j != i and 1 - (W[i] - W[j]) @ x > worst:
                    worst, pair = 1 - (W[i] - W[j]) @ x, (i, j)
        value += C / len(X) * worst
        if pair:
            gradient[pair[0]] -= C / len(X) * x
            gradient[pair[1]] += C / len(X) * x
    return value, gradient


def dual_averaging(X: Any, y: Any, tree: Any, C: float, n_steps: int) -> float:
    """OT's least objective that regularised dual averaging finds, steps of 1/(λ_min t), iterates and their mean."""
    K = orthogonal_matrix(tree)
    comparison = 2 * np.diag(np.diag(K)) - K
    smallest = float(np.linalg.eigvalsh(comparison).min())
    W = np.zeros((tree.n_nodes, X.shape[1]))
    total, mean, best = np.zeros_like(W), np.zeros_like(W), np.inf
    for t in range(1, n_steps + 1):
        value, gradient = orthogonal_objective(W, X, y, tree, C, K)
        best = min(best, value)
        total += gradient - smallest * W
        W = -total / (smallest * t)
        mean += 2 / (t + 1) * (W - mean)
    return min(best, orthogonal_objective(mean, X, y, tree, C)[0])


def greedy_leaf(scores: Any, tree: Any) -> int:
    """Where the walk from the root to the best child ends."""
    node = 0
    while True:
        children = [z for z in range(1, tree.n_nodes) if tree.parent[z] == node]
        if not children:
            return node
        node = max(children, key=lambda z: scores[z])


def lambda_of(xi: float) -> float:
    """λ(ξ) of the bound of the logistic function."""
    return 0.125 if abs(xi) < 1e-8 else (1 / (1 + np.exp(-xi)) - 0.5) / (2 * xi)


class NaiveBayes:
    """HBLR by its closed forms in turn, with full covariances."""

    def __init__(self, tree: Any, X: Any, y: Any, prior: float) -> None:
        self.tree, self.X, self.y, self.prior = tree, X, y, prior
        n, p = tree.n_nodes, X.shape[1]
        self.children = [[c for c in range(1, n) if tree.parent[c] == z] for z in range(n)]
        self.mu, self.r = np.zeros((n, p)), np.ones((n, p))
        self.psi = np.array([np.eye(p)] * n)
        self.tau = np.array([prior + len(self.children[z]) / 2 for z in range(n)])
        self.upsilon = np.repeat(self.tau[:, None], p, axis=1)
        self.beta = np.zeros(len(X))
        self.xi = np.ones((len(X), tree.n_classes))

    def above(self, z: int) -> tuple[Any, Any]:
        """Precision around the parent, and the parent's mean."""
        p = self.X.shape[1]
        return (np.ones(p), np.zeros(p)) if z == 0 else (self.r[self.tree.parent[z]], self.mu[self.tree.parent[z]])

    def update_leaf(self, c: int) -> None:
        z = self.tree.leaf_of_class[c]
        r, mu = self.above(z)
        inverse, right = np.diag(r), r * mu
        for i, x in enumerate(self.X):
            weight = lambda_of(self.xi[i, c])
            inverse = inverse + 2 * weight * np.outer(x, x)
            right = right + ((self.y[i] == c) - 0.5 + 2 * weight * self.beta[i]) * x
        self.psi[z] = np.linalg.inv(inverse)
        self.mu[z] = self.psi[z] @ right

    def update_inner(self, z: int) -> None:
        r, mu = self.above(z)
        psi = 1 / (r + len(self.children[z]) * self.r[z])
        self.psi[z] = np.diag(psi)
        self.mu[z] = psi * (r * mu + self.r[z] * sum(self.mu[c] for c in self.children[z]))

    def update_precision(self, z: int) -> None:
        self.upsilon[z] = self.prior
        for c in self.children[z]:
            spread = np.diag(self.psi[z]) + np.diag(self.psi[c]) + (self.mu[z] - self.mu[c]) ** 2
            self.upsilon[z] = self.upsilon[z] + 0.5 * spread
        self.r[z] = self.tau[z] / self.upsilon[z]

    def update_points(self) -> None:
        leaves = self.tree.leaf_of_class
        for i, x in enumerate(self.X):
            weights = np.array([lambda_of(xi) for xi in self.xi[i]])
            scores = self.mu[leaves] @ x
            self.beta[i] = (0.5 * (len(leaves) / 2 - 1) + weights @ scores) / weights.sum()
            variances = np.array([x @ self.psi[z] @ x for z in leaves])
            self.xi[i] = np.sqrt(variances + (self.beta[i] - scores) ** 2)

    def sweep(self) -> None:
        inner = [z for z in range(self.tree.n_nodes) if self.children[z]]
        for c in range(self.tree.n_classes):
            self.update_leaf(c)
        for z in inner:
            self.update_inner(z)
        for z in inner:
            self.update_precision(z)
        self.update_points()

    def bound(self) -> float:
        """The bound of the log-likelihood, all constants kept."""
        total, p = 0.0, self.X.shape[1]
        leaves = self.tree.leaf_of_class
        for i, x in enumerate(self.X):
            scores, b = self.mu[leaves] @ x, self.beta[i]
            total += scores[self.y[i]] - b
            for k, z in enumerate(leaves):
                xi, weight = self.xi[i, k], lambda_of(self.xi[i, k])
                square = x @ self.psi[z] @ x + (scores[k] - b) ** 2
                total -= (scores[k] - b - xi) / 2 + weight * (square - xi**2) + np.log1p(np.exp(xi))
        for z in range(self.tree.n_nodes):
            r, mu = self.above(z)
            own = np.diag(self.psi[z])
            up = np.zeros(p) if z == 0 else np.diag(self.psi[self.tree.parent[z]])
            logs = np.zeros(p)
            if z > 0:
                logs = digamma(self.tau[self.tree.parent[z]]) - np.log(self.upsilon[self.tree.parent[z]])
            total += 0.5 * (logs - np.log(2 * np.pi) - r * (own + up + (self.mu[z] - mu) ** 2)).sum()
            total += 0.5 * np.linalg.slogdet(self.psi[z])[1] + 0.5 * p * (1 + np.log(2 * np.pi))
            if self.children[z]:
                a, t, u = self.prior, self.tau[z], self.upsilon[z]
                logs = digamma(t) - np.log(u)
                total += (a * np.log(a) - gammaln(a) + (a - 1) * logs - a * t / u).sum()
                total += (t - np.log(u) + gammaln(t) + (1 - t) * digamma(t)).sum()
        return float(total)
