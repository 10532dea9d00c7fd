"""The penalty of orthogonal transfer: long weights cost, and so do weights that are not orthogonal to an ancestor's."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from abound.learn.class_tree import ClassTree
from abound.validation import Float64Array, IdArray

NEARLY_1 = 0.99
"""How near to losing its convexity the penalty is."""

STEPS = 10
"""Steps that the signs take each time."""


class Orthogonal:
    """``Ω(w) = ½ Σ_ij K_ij |w_i·w_j|``.

    ``K_ii`` is the size of the subtree at i; ``K_ij = α`` if one is an ancestor of the other, else 0. The root has no
    weights. As ``|w_i·w_j| = max s w_i·w_j`` over signs s from -1 to 1, the dual is a concave function of the signs,
    too: for given signs the penalty is quadratic, with the metric ``K(s)⁻¹``. The dual rises with ``s_ij`` by
    ``α w_i·w_j``, so at its maximum a sign between -1 and 1 belongs to weights that are orthogonal.

    Parameters
    ----------
    tree : ClassTree
        The tree.

    Attributes
    ----------
    alpha : float
        0.99 / λ_max(D^-½ A D^-½), D the diagonal of K and A the matrix that says who is an ancestor of whom: so K(s) is
        positive definite for all signs.
    pairs : int32 arrays of shape (2, n_pairs)
        Nodes and their ancestors.
    signs : float64 array of shape (n_pairs,)
        Those of the pairs.
    """

    def __init__(self, tree: ClassTree) -> None:
        self.pairs = ancestor_pairs(tree)
        self.sizes = tree.subtree_sizes.astype(np.float64)
        self.sizes[0] = 1
        self.alpha = self._largest_alpha()
        self.signs = np.zeros(self.pairs.shape[1])
        self.metric = self._inverse(self.signs)

    def matrix(self, signs: Float64Array) -> Float64Array:
        """Return ``K(s)``.

        Parameters
        ----------
        signs : float64 array of shape (n_pairs,)
            From -1 to 1.

        Returns
        -------
        float64 array of shape (n_nodes, n_nodes)
            Symmetric, positive definite.
        """
        matrix = np.diag(self.sizes)
        matrix[*self.pairs] = matrix[*self.pairs[::-1]] = self.alpha * signs
        return matrix

    def value(self, base: Float64Array, weights: Float64Array) -> float:
        """Return Ω of the weights.

        Parameters
        ----------
        base : float64 array
            Not used.
        weights : float64 array of shape (n_features, n_nodes)
            The weights.

        Returns
        -------
        float
            The penalty.
        """
        products = np.abs(weights.T @ weights)
        return float(0.5 * np.diag(products) @ self.sizes + self.alpha * products[*self.pairs].sum())

    def improve(self, base: Float64Array) -> None:
        """Move the signs so that the dual rises.

        Parameters
        ----------
        base : float64 array of shape (n_features, n_nodes)
            What the dual variables make; see `_margin_kernels`.
        """
        if not len(self.signs):
            return
        products = base.T @ base

        def penalty(signs: Float64Array) -> tuple[float, Float64Array]:
            metric = self._inverse(signs)
            between = metric @ products @ metric
            return 0.5 * float(np.vdot(products, metric)), -self.alpha * between[*self.pairs]

        bounds = [(-1.0, 1.0)] * len(self.signs)
        found = minimize(penalty, self.signs, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
        self.signs = np.clip(found.x, -1.0, 1.0)
        self.metric = self._inverse(self.signs)

    def _inverse(self, signs: Float64Array) -> Float64Array:
        inverse: Float64Array = np.linalg.inv(self.matrix(signs)).astype(np.float64)
        return inverse

    def _largest_alpha(self) -> float:
        if not self.pairs.shape[1]:
            return 0.0
        scaled = np.zeros((len(self.sizes),) * 2)
        scaled[*self.pairs] = scaled[*self.pairs[::-1]] = 1 / np.sqrt(self.sizes[self.pairs].prod(axis=0))
        return NEARLY_1 / float(np.linalg.eigvalsh(scaled)[-1])


def ancestor_pairs(tree: ClassTree) -> IdArray:
    """List each node with each of its ancestors, the root left out.

    Parameters
    ----------
    tree : ClassTree
        The tree.

    Returns
    -------
    int32 array of shape (2, n_pairs)
        Nodes and, below them, ancestors.
    """
    pairs = []
    for node in range(1, tree.n_nodes):
        above = int(tree.parent[node])
        while above > 0:
            pairs.append((node, above))
            above = int(tree.parent[above])
    return np.array(pairs, dtype=np.int32).reshape(-1, 2).T
