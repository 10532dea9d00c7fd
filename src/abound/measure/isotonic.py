"""Isotonic regression: the rising curve nearest to what was right and wrong, from a score to a probability."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound.measure.platt import check_scores
from abound.validation import Float64Array


class Isotonic(NamedTuple):
    """A probability for each score: straight lines between knots, level beyond the first and the last."""

    knots: Float64Array
    """Scores, rising."""
    levels: Float64Array
    """Their probabilities, never falling."""

    def __call__(self, scores: npt.ArrayLike) -> Float64Array:
        """Return the probabilities of scores.

        Parameters
        ----------
        scores : array-like
            Finite numbers.

        Returns
        -------
        float64 array of the same shape
            From 0 to 1.
        """
        probabilities: Float64Array = np.interp(np.asarray(scores, dtype=np.float64), self.knots, self.levels)
        return probabilities


def fit_isotonic(scores: npt.ArrayLike, positive: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Isotonic:
    """Fit the curve to scores that were right or wrong.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite scores, at least one, best from rows that the scorer was not trained on.
    positive : array-like of bool of shape (n,)
        Whether each score's class is true.
    weights : array-like of shape (n,), optional
        How much each score counts.

    Returns
    -------
    Isotonic
        The curve with the least squared error of all that never fall. As with Platt's sigmoid, so few scores make
        nothing certain: it stays between ``1 / (N₋ + 2)`` and ``(N₊ + 1) / (N₊ + 2)``.

    Examples
    --------
    >>> curve = fit_isotonic([1.0, 2.0, 3.0, 4.0], [False, True, False, True])
    >>> curve([0.0, 2.5, 4.5]).tolist()
    [0.25, 0.5, 0.75]
    """
    from sklearn.isotonic import IsotonicRegression  # it draws in scipy.stats, which is slow to import

    s, right, w = check_scores(scores, positive, weights)
    n_right, n_wrong = float(w[right].sum()), float(w[~right].sum())
    bounds = {"y_min": 1 / (n_wrong + 2), "y_max": (n_right + 1) / (n_right + 2)}
    curve = IsotonicRegression(**bounds).fit(s, right.astype(np.float64), w)
    return Isotonic(curve.X_thresholds_, curve.y_thresholds_)
