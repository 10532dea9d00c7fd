"""Platt's sigmoid: from a score to a probability.

``p = 1 / (1 + exp(A s + B))`` with the cross-entropy to ``t₊ = (N₊ + 1) / (N₊ + 2)`` for true and
``t₋ = 1 / (N₋ + 2)`` for false scores minimised over ``A`` and ``B`` (Platt 1999), by Newton's method with
backtracking from ``A = 0, B = ln((N₋ + 1) / (N₊ + 1))`` (Lin, Lin and Weng 2007, who also write the loss so that
nothing overflows). Two unknowns, so a step costs a few passes over the scores.

Where scores crowd near 0 and have a long tail, no sigmoid of them fits; one of their square root may. `fit_power`
raises them to a power first, ``sign(s) |s|^q``, which it chooses by the same loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from abound.validation import Float64Array

MOST_STEPS = 100
SMALLEST_STEP = 1e-10
RIDGE = 1e-12
"""Added to the Hessian's diagonal, for scores that are all alike."""

POWERS = (1.0, 0.75, 0.5, 0.35, 0.25)
"""Powers that `fit_power` tries."""

FLAT = 1e-9
"""The mean gradient at which the minimum is reached."""


class Sigmoid(NamedTuple):
    """A probability for each score: ``1 / (1 + exp(A s + B))``, rising with the score if ``A`` is negative."""

    A: float
    B: float

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
        # Scores near the largest number may overflow in between; the sigmoid of infinity is still right.
        with np.errstate(over="ignore"):
            probabilities: Float64Array = expit(-(self.A * np.asarray(scores, dtype=np.float64) + self.B))
        return probabilities


class PowerSigmoid(NamedTuple):
    """A probability for each score: the sigmoid of ``sign(s) |s|^power``."""

    A: float
    B: float
    power: float

    def __call__(self, scores: npt.ArrayLike) -> Float64Array:
        """Return the probabilities of scores, as `Sigmoid` does."""
        return Sigmoid(self.A, self.B)(_raised(np.asarray(scores, dtype=np.float64), self.power))


UNFITTED = Sigmoid(-2.0, 0.0)
"""Where there is nothing to fit: 1/2 at score 0, 0.88 at score 1."""


def fit_platt(scores: npt.ArrayLike, positive: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Sigmoid:
    """Fit the sigmoid to scores that were right or wrong.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Finite scores, best from rows that the scorer was not trained on.
    positive : array-like of bool of shape (n,)
        Whether each score's class is true.
    weights : array-like of shape (n,), optional
        How much each score counts, at least 0; a weight of 2 is the same as giving a score twice.

    Returns
    -------
    Sigmoid
        ``UNFITTED``, A = -2 and B = 0, if no score is positive.

    Examples
    --------
    >>> sigmoid = fit_platt([2.0, 1.0, 0.5, 0.0, -1.0], [True, True, False, True, False])
    >>> sigmoid([-1.0, 0.0, 2.0]).round(2).tolist()
    [0.32, 0.5, 0.81]
    """
    A, B, _ = fit_power(scores, positive, weights, (1.0,))
    return Sigmoid(A, B)


def fit_power(
    scores: npt.ArrayLike,
    positive: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    powers: Sequence[float] = POWERS,
) -> PowerSigmoid:
    """Fit the sigmoid to powers of scores that were right or wrong, and keep the power of the least loss.

    Parameters
    ----------
    scores, positive, weights
        As in `fit_platt`.
    powers : sequence of float
        The powers to try, above 0.

    Returns
    -------
    PowerSigmoid
        A = -2 and B = 0 if no score is positive.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=2000)
    >>> right = rng.random(2000) < expit(2 * scores)
    >>> fit_power(np.sign(scores) * scores**2, right).power
    0.5
    """
    s, right, w = check_scores(scores, positive, weights)
    n_right, n_wrong = float(w[right].sum()), float(w[~right].sum())
    if n_right == 0:
        return PowerSigmoid(*UNFITTED, 1.0)
    # Newton's steps do not depend on the unit of the scores, but the ridge and overflow do.
    unit = float(np.abs(s).max()) or 1.0
    s = s / unit
    target = np.where(right, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    start = float(np.log((n_wrong + 1) / (n_right + 1)))
    fitted = [(*_descend(_raised(s, power), target, w, start), power) for power in powers]
    _, A, B, power = min(fitted, key=lambda found: found[0])
    return PowerSigmoid(A / unit**power, B, power)


def _raised(s: Float64Array, power: float) -> Float64Array:
    return s if power == 1 else np.sign(s) * np.abs(s) ** power


def _descend(s: Float64Array, target: Float64Array, w: Float64Array, start: float) -> tuple[float, float, float]:
    """Minimise the loss by Newton's method; returns it, A and B."""
    A, B = 0.0, start
    loss, enough = _loss(s, target, w, A, B), FLAT * float(w.sum())
    for _ in range(MOST_STEPS):
        p = expit(-(A * s + B))
        excess, curvature = w * (target - p), w * p * (1 - p)
        gradient = np.array([(s * excess).sum(), excess.sum()])
        if np.abs(gradient).max() <= enough:
            break
        cross = (s * curvature).sum()
        hessian = np.array([[(s * s * curvature).sum() + RIDGE, cross], [cross, curvature.sum() + RIDGE]])
        direction = -np.linalg.solve(hessian, gradient)
        slope, size = float(gradient @ direction), 1.0
        while size >= SMALLEST_STEP:
            new_A, new_B = A + size * direction[0], B + size * direction[1]
            new_loss = _loss(s, target, w, new_A, new_B)
            if new_loss < loss + 1e-4 * size * slope:
                break
            size /= 2
        else:
            break
        A, B, loss = float(new_A), float(new_B), new_loss
    return loss, A, B


def _loss(s: Float64Array, target: Float64Array, w: Float64Array, A: float, B: float) -> float:
    """The cross-entropy ``t f + ln(1 + exp(-f))`` with ``f = A s + B``."""
    f = A * s + B
    return float((w * (target * f + np.logaddexp(0, -f))).sum())


def check_scores(
    scores: npt.ArrayLike, positive: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Float64Array, npt.NDArray[np.bool_], Float64Array]:
    """Raise a clear error unless scores can be calibrated.

    Parameters
    ----------
    scores, positive, weights : array-like
        See `fit_platt`.

    Returns
    -------
    scores, positive, weights : arrays of shape (n,)
        As float64, bool and float64; weights of 1 if there were none.
    """
    s, right = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    w = np.ones(s.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if s.ndim != 1 or right.shape != s.shape or w.shape != s.shape:
        raise ValueError(
            f"scores, positive and weights must be equally long, got shapes {s.shape}, {right.shape}, {w.shape}"
        )
    if not np.isfinite(s).all():
        place = int(np.flatnonzero(~np.isfinite(s))[0])
        raise ValueError(f"scores[{place}] is {s[place]}; leave out what has no finite score")
    if not (np.isfinite(w) & (w >= 0)).all():
        raise ValueError("weights must be finite and at least 0")
    return s, right, w
