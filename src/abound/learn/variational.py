"""The variational posterior of hierarchical Bayesian logistic regression (model M2 of Gopal et al., NIPS 2012).

Model: ``w_root ~ N(0, I)``, ``w_n ~ N(w_π, diag(α_π)⁻¹)`` for a node n under π, ``α_n^(i) ~ Γ(a, b)`` for inner nodes,
and the class of a row is drawn by the softmax of ``w_y·x`` over the leaves y. Posterior: ``q(w_n) = N(μ_n, Ψ_n)`` and
``q(α_n^(i)) = Γ(τ_n, υ_n^(i))``, with the mean ``r = τ/υ``. The softmax is bounded as in `_softmax_kernels`. A sweep
updates one part after the other, each of which never lowers the bound of the log-likelihood:

1. leaves, ``Ψ⁻¹ = 2 Σ_x λ(ξ_xn) x xᵀ + diag(r_π)``, or its diagonal alone;
2. inner nodes, ``Ψ⁻¹ = diag(r_π + |C_n| r_n)``;
3. all means, with ξ and β, by conjugate gradients preconditioned by the Ψ: for given Ψ and r the bound is concave in
   them. Their closed forms, in turn, have the same fixed point, but take hundreds of sweeps to get there;
4. ``τ_n = a + |C_n|/2``, ``υ_n = b + ½ Σ_c [Ψ_n^ii + Ψ_c^ii + (μ_n − μ_c)²]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from abound.distribute import Workers
from abound.learn import _softmax_kernels as kernels
from abound.learn.class_tree import ClassTree
from abound.validation import Float64Array, IdArray

SCORES_A_CALL = 2**20
"""Scores that one kernel call looks at: a fraction of a second, so that Ctrl-C is heard."""

MEAN_STEPS = 15
"""Steps of conjugate gradients in a sweep."""

TRIES = 10
"""Most lengths of a step that are tried."""


class Posterior:
    """What is believed of the weights, and its updates.

    Parameters
    ----------
    tree : ClassTree
        Classes at the leaves; every leaf has one.
    X : float64 array or csr_array of shape (n_examples, n_features)
        The examples; dense if covariances are full.
    own : int32 array of shape (n_examples,)
        Their classes.
    counts : float64 array of shape (n_examples,)
        What each of them counts.
    prior : float
        a = b of the precisions' prior.
    full : bool
        Whether leaves have full covariances, or only variances.

    Attributes
    ----------
    means, variances : float64 arrays of shape (n_nodes, n_features)
        μ, and the diagonals of Ψ.
    precisions, rates : float64 arrays of shape (n_nodes, n_features)
        r and υ of inner nodes; 1 at leaves, where they stand for nothing.
    shapes : float64 array of shape (n_nodes,)
        τ of inner nodes.
    """

    def __init__(self, tree: ClassTree, X: Any, own: IdArray, counts: Float64Array, prior: float, full: bool) -> None:
        n_features, n_classes = X.shape[1], tree.n_classes
        self.tree, self.X, self.own, self.counts, self.prior = tree, X, own, counts, prior
        self.leaves = tree.leaf_of_class
        self.n_children = np.diff(tree.children.indptr)
        self.inner = np.flatnonzero(self.n_children)
        self.means = np.zeros((tree.n_nodes, n_features))
        self.variances = np.ones_like(self.means)
        self.precisions = np.ones_like(self.means)
        self.shapes = prior + 0.5 * self.n_children
        self.rates = np.broadcast_to(self.shapes[:, None], self.means.shape).copy()
        self.covariances = np.tile(np.eye(n_features), (n_classes, 1, 1)) if full else None
        self._squares: Any = None if full else X.multiply(X).tocsr()
        self._entropies = np.zeros(n_classes)
        self.scores = np.zeros((X.shape[0], n_classes))
        self.spreads = self._all_spreads()
        self.betas = np.zeros(X.shape[0])
        self._slopes = np.empty_like(self.scores)
        self._loss = self._bound_rows(self.scores)

    def update_leaves(self, pool: Workers) -> None:
        """Set the covariances of the leaves, and with them the variances of all scores.

        Parameters
        ----------
        pool : Workers
            Takes the leaves in parallel.
        """
        bends = np.empty_like(self.scores)
        for begin, end in self._chunks():
            kernels.bend_rows(begin, end, self.scores, self.spreads, self.counts, self.betas, bends)
        above = self._above()[self.leaves]
        if self.covariances is None:
            variances = 1 / ((self._squares.T @ bends).T + above)
            self.variances[self.leaves] = variances
            self._entropies = 0.5 * np.log(variances).sum(axis=1)
            self.spreads = self._all_spreads()
            return
        covariances = self.covariances

        def update(k: int) -> None:
            inverse = self.X.T @ (self.X * bends[:, [k]])
            inverse[np.diag_indices_from(inverse)] += above[k]
            try:
                covariances[k] = np.linalg.inv(inverse)
            except np.linalg.LinAlgError:
                raise ValueError(
                    "the covariance of a class has no inverse: these rows cannot be ranked. Scale them, for example "
                    "to unit length"
                ) from None
            self._entropies[k] = -0.5 * np.linalg.slogdet(inverse)[1]
            self.spreads[:, k] = _quadratic(self.X, covariances[k])

        for _ in pool.map(update, range(len(self.leaves))):
            pass
        self.variances[self.leaves] = np.diagonal(covariances, axis1=1, axis2=2)

    def update_inner(self) -> None:
        """Set the variances of the inner nodes."""
        own = self.n_children[self.inner, None] * self.precisions[self.inner]
        self.variances[self.inner] = 1 / (self._above()[self.inner] + own)

    def update_means(self) -> None:
        """Improve the means of all nodes, with β and ξ, by conjugate gradients."""
        above = self._above()
        self._loss = self._bound_rows(self.scores)
        direction = np.zeros_like(self.means)
        last_gradient, last_product = direction, 0.0
        for _ in range(MEAN_STEPS):
            pull = above * self._from_parent(self.means)
            gradient = pull.copy()
            np.subtract.at(gradient, self.tree.parent[1:], pull[1:])
            gradient[self.leaves] += (self.X.T @ self._slopes).T
            scaled = self._scale(gradient)
            product = float(np.vdot(gradient, scaled))
            turn = (product - float(np.vdot(last_gradient, scaled))) / last_product if last_product else 0.0
            direction = max(0.0, turn) * direction - scaled
            if np.vdot(direction, gradient) >= 0:
                direction = -scaled
            if not self._step(direction, above):
                return
            last_gradient, last_product = gradient, product

    def update_precisions(self) -> None:
        """Set the posterior of the precisions."""
        spread = self.variances + self._parents(self.variances) + self._from_parent(self.means) ** 2
        rates = np.full_like(self.rates, self.prior)
        np.add.at(rates, self.tree.parent[1:], 0.5 * spread[1:])
        self.rates[self.inner] = rates[self.inner]
        self.precisions[self.inner] = self.shapes[self.inner, None] / self.rates[self.inner]

    def bound(self) -> float:
        """Return the lower bound of the log-likelihood that all updates raise."""
        a, tau, upsilon = self.prior, self.shapes[self.inner, None], self.rates[self.inner]
        logs = np.zeros_like(self.means)
        logs[self.inner] = digamma(tau) - np.log(upsilon)
        spread = self.variances + self._parents(self.variances) + self._from_parent(self.means) ** 2
        spread[0] = self.variances[0] + self.means[0] ** 2
        # The constants ½ log 2π of priors and entropies cancel.
        weights = 0.5 * (self._parents(logs) - self._above() * spread).sum()
        weights += self._entropies.sum() + 0.5 * np.log(self.variances[self.inner]).sum() + 0.5 * self.means.size
        precisions = a * np.log(a) - gammaln(a) + (a - 1) * logs[self.inner] - a * self.precisions[self.inner]
        precisions += tau - np.log(upsilon) + gammaln(tau) + (1 - tau) * digamma(tau)
        return float(weights + precisions.sum() - self._loss)

    def _step(self, direction: Float64Array, above: Float64Array) -> bool:
        """Move the means along a direction to about the best point; tell whether there was a better one."""
        change = self.X @ direction[self.leaves].T
        pull, slant = self._from_parent(self.means), self._from_parent(direction)
        first, second = float(np.vdot(above * pull, slant)), float(np.vdot(above * slant, slant))
        start = float(np.vdot(self._slopes, change)) + first
        bends = np.empty_like(change)
        for begin, end in self._chunks():
            kernels.bend_rows(begin, end, self.scores, self.spreads, self.counts, self.betas, bends)
        curvature = float(np.vdot(bends, change**2)) + second
        if start >= 0 or curvature <= 0:
            return False
        length = -start / curvature
        low, slope_low = 0.0, start
        for tried in range(TRIES):
            scores = self.scores + length * change
            loss = self._bound_rows(scores)
            better = loss + length * first + 0.5 * length**2 * second < self._loss
            slope = float(np.vdot(self._slopes, change)) + first + length * second
            if better and (abs(slope) <= 0.1 * abs(start) or tried >= 3):
                self.means += length * direction
                self.scores, self._loss = scores, loss
                return True
            # The slope rises along the way: go where a straight line through the last two would be 0.
            reached, slope_reached = length, slope
            length -= slope * (length - low) / (slope - slope_low) if slope > slope_low else -length
            length = min(length, 4 * reached)
            if slope_reached < 0:
                low, slope_low = reached, slope_reached
        self._loss = self._bound_rows(self.scores)
        return False

    def _bound_rows(self, scores: Float64Array) -> float:
        parts = [
            kernels.bound_rows(begin, end, scores, self.spreads, self.own, self.counts, self.betas, self._slopes)
            for begin, end in self._chunks()
        ]
        return float(sum(parts))

    def _scale(self, gradient: Float64Array) -> Float64Array:
        """The covariances times a gradient."""
        scaled = self.variances * gradient
        if self.covariances is not None:
            scaled[self.leaves] = np.einsum("kij,kj->ki", self.covariances, gradient[self.leaves])
        return scaled

    def _all_spreads(self) -> Float64Array:
        spreads: Float64Array
        if self._squares is None:
            spreads = np.repeat((self.X**2).sum(axis=1)[:, None], len(self.leaves), axis=1)
        else:
            spreads = self._squares @ self.variances[self.leaves].T
        return spreads

    def _above(self) -> Float64Array:
        """The precision of each node around its parent: r of the parent, 1 at the root."""
        return self._parents(self.precisions, 1.0)

    def _parents(self, values: Float64Array, at_root: float = 0.0) -> Float64Array:
        above = values[np.maximum(self.tree.parent, 0)]
        above[0] = at_root
        return above

    def _from_parent(self, values: Float64Array) -> Float64Array:
        difference: Float64Array = values - self._parents(values)
        return difference

    def _chunks(self) -> Iterator[tuple[int, int]]:
        size = 1 + SCORES_A_CALL // max(1, self.scores.shape[1])
        for begin in range(0, len(self.scores), size):
            yield begin, min(len(self.scores), begin + size)


def _quadratic(X: Float64Array, covariance: Float64Array) -> Float64Array:
    """Return xᵀΨx for each row."""
    squares: Float64Array = np.einsum("ij,ij->i", X @ covariance, X)
    return squares
