"""Do probabilities keep what they say? Reliability by bins of equal mass, and the calibration error.

Bins of equal mass hold as many rows each, so that none is empty or rests on a few rows, wherever the probabilities lie
(Nguyen and O'Connor 2015). The cost is one sort.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.validation import Float64Array, check_number, make_generator

BINS, RESAMPLES = 15, 200
"""Bins unless the caller says otherwise; times that rows are drawn anew for a bound."""


class Reliability(NamedTuple):
    """What was said and what was right, bin by bin, the lowest probabilities first.

    Parameters
    ----------
    said : float64 array
        The mean probability of each bin.
    right : float64 array
        The share of its rows that are right.
    rows : int64 array
        How many rows it has.
    """

    said: Float64Array
    right: Float64Array
    rows: npt.NDArray[np.int64]

    @property
    def error(self) -> float:
        """The mean over the rows of how far what their bin says is from what is right."""
        return float(np.average(np.abs(self.said - self.right), weights=self.rows))


def reliability(probabilities: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = BINS) -> Reliability:
    """Put rows into bins by what was said of them, and see how many were right.

    Parameters
    ----------
    probabilities : array-like of shape (n,)
        How sure the answer to each row was said to be, from 0 to 1: for instance that of its first class.
    right : array-like of bool of shape (n,)
        Whether each answer was right.
    n_bins : int
        Bins, as equal in rows as can be; at most one a row.

    Returns
    -------
    Reliability
        Of each bin what it says, what is right, and its rows. Rows of which the same was said count with their mean,
        so that their order does not matter.

    Examples
    --------
    >>> found = reliability([0.9, 0.1, 0.8, 0.3], [True, False, True, True], n_bins=2)
    >>> found.said.round(2).tolist(), found.right.tolist(), found.rows.tolist()
    ([0.2, 0.85], [0.5, 1.0], [2, 2])
    """
    check_number("n_bins", n_bins, 1, whole=True)
    said = np.asarray(probabilities, dtype=np.float64)
    were = np.asarray(right)
    if said.ndim != 1 or said.shape != were.shape or not len(said):
        raise ValueError(
            f"probabilities and right must be one-dimensional, equally long and not empty, got shapes {said.shape} and "
            f"{were.shape}"
        )
    outside = np.flatnonzero(~((said >= 0) & (said <= 1)))
    if len(outside):
        raise ValueError(f"probabilities must be from 0 to 1, got {said[outside[0]]} in place {outside[0]}")
    if were.dtype != np.bool_ and not np.isin(were, (0, 1)).all():
        raise ValueError("right must say true or false, or 1 or 0, of each row")
    values, inverse, counts = np.unique(said, return_inverse=True, return_counts=True)
    share = np.bincount(inverse, weights=were.astype(np.float64)) / counts
    said, were = np.repeat(values, counts), np.repeat(share, counts)
    n_bins = min(n_bins, len(said))
    bounds = np.arange(n_bins + 1) * len(said) // n_bins
    rows = np.diff(bounds)
    return Reliability(
        np.add.reduceat(said, bounds[:-1]) / rows, np.add.reduceat(were, bounds[:-1]) / rows, rows.astype(np.int64)
    )


def calibration_error(probabilities: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = BINS) -> float:
    """Return how far probabilities are from what is right, on average over the rows (ECE, bins of equal mass).

    Parameters
    ----------
    probabilities, right, n_bins
        As in `reliability`.

    Returns
    -------
    float
        From 0 to 1. Luck alone makes it more than 0: with n rows and b bins by about ``sqrt(b / n) / 3``.

    Examples
    --------
    >>> round(calibration_error([0.9, 0.1, 0.8, 0.3], [True, False, True, True], n_bins=2), 3)
    0.225
    """
    return reliability(probabilities, right, n_bins).error


def calibration_bound(
    probabilities: npt.ArrayLike, right: npt.ArrayLike, n_bins: int = BINS, random_state: Any = 0
) -> float:
    """Return what the calibration error is at most, 95 times in a hundred.

    The error, and 1.645 standard deviations of it over rows that are drawn anew, as many, with putting back. The luck
    that is in the error itself is not taken away, so that the bound is rather too high for few rows.

    Parameters
    ----------
    probabilities, right, n_bins
        As in `reliability`.
    random_state : int, RandomState or None
        Of the draws.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> said = np.linspace(0.05, 0.95, 400)
    >>> right = np.random.default_rng(0).random(400) < said
    >>> round(calibration_error(said, right), 3), round(calibration_bound(said, right), 3)
    (0.066, 0.093)
    """
    said, were = np.asarray(probabilities, dtype=np.float64), np.asarray(right)
    error, generator = calibration_error(said, were, n_bins), make_generator(random_state)
    drawn = (generator.integers(0, len(said), len(said)) for _ in range(RESAMPLES))
    again = [calibration_error(said[rows], were[rows], n_bins) for rows in drawn]
    return min(1.0, error + 1.645 * float(np.std(again, ddof=1)))
