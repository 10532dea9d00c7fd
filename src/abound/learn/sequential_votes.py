"""How a classifier votes, and how often it votes for a class of its own side: ``q`` of SaDyC.

``q`` must come from rows that the classifier has not learned. Holding rows out leaves few for each class, so all rows
are used, each with the margin that it would have had if it had been left out. Without row i the weights lack
``α_i y_i x_i``, which lowers its margin by ``α_i ‖x_i‖²``; the other rows make up for a part of that. The part ``h``
that is lost is measured on a few blocks of classifiers that are trained without a fifth of the rows. It falls with the
number and weight of a classifier's support vectors; a line over ``log Σ α_i ‖x_i‖²`` tells it for all classifiers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.labels import Labels
from abound.learn import _code_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn._sequential_kernels import LEVELS
from abound.learn.dichotomizers import Codes, balanced_costs
from abound.learn.linear_rows import SolverRows, lane_array
from abound.learn.linear_solver import Block
from abound.learn.one_vs_rest import Settings
from abound.validation import Float32Array, Float64Array

HELD = 5
"""One row in so many is held out in a trial."""

TRIALS = 4
"""Blocks of classifiers that are tried."""

SLOPE = 3.0
"""Soft votes are the sigmoid of this times the output of a classifier."""


class Loss(NamedTuple):
    """The part of ``α ‖x‖²`` that a row's margin loses if the row is left out: a line over the log of their sum."""

    level: float = 1.0
    slope: float = 0.0

    def at(self, mass: Float64Array) -> Float64Array:
        """Return the part for each classifier.

        Parameters
        ----------
        mass : float64 array
            ``Σ α ‖x‖²`` of the classifiers.

        Returns
        -------
        float64 array
            From 0 to 1.
        """
        part: Float64Array = np.clip(self.level + self.slope * np.log(np.maximum(mass, 1e-9)), 0, 1)
        return part


def slope_of(vote: str) -> float:
    """Return how steeply votes rise with the output of a classifier.

    Parameters
    ----------
    vote : {"soft", "hard"}
        A sigmoid, or a step.

    Returns
    -------
    float
        0 for a step.
    """
    return SLOPE if vote == "soft" else 0.0


def as_votes(outputs: npt.NDArray[np.floating], slope: float) -> Float64Array:
    """Turn outputs of classifiers into votes for their positive side.

    Parameters
    ----------
    outputs : array
        Above 0 on the positive side.
    slope : float
        Soft votes are the sigmoid of slope × output; hard votes, with slope 0, are 0 or 1, and ½ for an output of 0.

    Returns
    -------
    float64 array of the same shape
        From 0 to 1.

    Examples
    --------
    >>> as_votes(np.array([-2.0, 0.0, 2.0]), 0).tolist()
    [0.0, 0.5, 1.0]
    """
    votes: Float64Array
    if slope == 0:
        votes = (np.sign(outputs).astype(np.float64) + 1) / 2
        return votes
    votes = 1 / (1 + np.exp(-np.clip(slope * outputs.astype(np.float64), -500, 500)))
    return votes


def measure_loss(rows: SolverRows, labels: Labels, codes: Codes, cost: float, settings: Settings) -> Loss:
    """Find out how much of its own weight a row loses when it is left out.

    Parameters
    ----------
    rows : SolverRows
        The rows, in random order: the last fifth is held out.
    labels : Labels
        Of the user's rows.
    codes : int8 array of shape (n_classes, n_classifiers)
        The pool, in random order.
    cost : float
        C.
    settings : Settings
        As in training.

    Returns
    -------
    Loss
        All of it if there are too few rows to hold some out.
    """
    own, block = labels.take(rows.order), Block(rows)
    n_kept = rows.n_rows - rows.n_rows // HELD
    firsts = np.unique(np.linspace(0, max(0, codes.shape[1] - LANES), TRIALS).astype(np.int64))
    masses, parts = [np.empty(0)], [np.empty(0)]
    for first in firsts.tolist():
        block.clear()
        kernels.set_targets(own.indptr, own.ids, codes, first, min(LANES, codes.shape[1] - first), block.targets)
        sides = block.targets.copy()
        block.targets[n_kept:] = 0
        costs = balanced_costs(block.targets, rows.weights, cost)
        block.solve(costs, settings.loss, settings.tol, settings.max_sweeps, settings.seed + first)
        margins = sides * lane_scores(block)
        kept, held = (np.count_nonzero(sides[part], axis=0) for part in (slice(n_kept), slice(n_kept, None)))
        mass = rows.norms.astype(np.float64) @ block.duals
        usable = (kept > 0) & (held > 0) & (mass > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = margins[:n_kept].sum(axis=0) / kept - margins[n_kept:].sum(axis=0) / held
            parts.append((fall * kept / mass)[usable])
        masses.append(mass[usable])
    mass, part = np.log(np.concatenate(masses)), np.concatenate(parts)
    if not len(part):
        return Loss()
    spread = mass - mass.mean()
    slope = float(spread @ part / (spread @ spread)) if spread @ spread > 1e-6 else 0.0
    slope = min(0.0, slope)
    return Loss(float(part.mean() - slope * mass.mean()), slope)


def lane_scores(block: Block) -> Float32Array:
    """Return the outputs of a block's classifiers for its own rows.

    Parameters
    ----------
    block : Block
        Solved.

    Returns
    -------
    float32 array of shape (n, 16)
        Of all lanes.
    """
    scores: Float32Array = lane_array(block.rows.n_rows)
    kernels.score_lanes(block.rows.indptr, block.rows.indices, block.rows.data, block.weights, scores)
    return scores


class VoteCounter:
    """Is shown the blocks of a pool and counts the votes that rows give their own classes.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    labels : Labels
        Of the user's rows.
    codes : int8 array of shape (n_classes, n_classifiers)
        The pool.
    loss : Loss
        What margins lose when their row is left out.
    slope : float
        Of soft votes; 0 for hard ones.
    """

    def __init__(self, rows: SolverRows, labels: Labels, codes: Codes, loss: Loss, slope: float) -> None:
        own = labels.take(rows.order)
        weights = np.repeat(rows.weights.astype(np.float64), np.diff(own.indptr))
        shape = rows.n_rows, labels.n_classes
        self._members = sp.csr_array((weights, own.ids, own.indptr), shape=shape).T.tocsr()
        self._rows, self._codes, self._loss, self._slope = rows, codes, loss, slope

    def __call__(self, block: Block, first: int, n_lanes: int) -> tuple[Float64Array, Float64Array]:
        """Count the votes of a block.

        Parameters
        ----------
        block : Block
            Solved.
        first, n_lanes : int
            Its classifiers.

        Returns
        -------
        votes, rows : float64 arrays of shape (n_classes, n_lanes)
            The votes for each class of its own rows, and how many rows voted.
        """
        weights = self._rows.norms[:, None] * block.duals
        part = self._loss.at(weights.sum(axis=0, dtype=np.float64))
        margins = block.targets * lane_scores(block) - part * weights
        asked = (block.targets != 0)[:, :n_lanes]
        votes = np.where(asked, as_votes(margins[:, :n_lanes], self._slope), 0)
        known = self._codes[:, first : first + n_lanes] != 0
        return (self._members @ votes) * known, (self._members @ asked.astype(np.float64)) * known


def expected_levels(
    counted: list[tuple[Float64Array, Float64Array]], smoothing: float, n_classes: int
) -> npt.NDArray[np.uint8]:
    """Turn counted votes into ``q``, in 64ths.

    Parameters
    ----------
    counted : list of (votes, rows)
        From `VoteCounter`, block by block.
    smoothing : float
        A classifier's mean counts as so many rows of each class.
    n_classes : int
        Number of classes.

    Returns
    -------
    uint8 array of shape (n_classes, n_classifiers)
        A class without rows has the classifier's mean.
    """
    nothing = np.zeros((n_classes, 0))
    votes = np.hstack([nothing, *(each[0] for each in counted)])
    rows = np.hstack([nothing, *(each[1] for each in counted)])
    total = rows.sum(axis=0)
    mean = np.divide(votes.sum(axis=0), total, out=np.full(len(total), 0.5), where=total > 0)
    smoothing = np.maximum(smoothing, 1e-9)
    levels: npt.NDArray[np.uint8] = np.rint(LEVELS * (votes + smoothing * mean) / (rows + smoothing)).astype(np.uint8)
    return levels
