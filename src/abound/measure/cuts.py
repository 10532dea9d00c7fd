"""Cuts: which of a row's ranked classes to answer with, when a row may have several labels.

A rule takes rankings, ``ids`` and ``scores`` of shape (n, k), best first, -1 where nothing ranks, and tells which of
the classes to take. Classes that were not ranked are never taken. `abound.measure.thresholds` learns rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abound.distribute import spans
from abound.measure._cut_kernels import group_by_class, sort_within
from abound.validation import Float64Array, IntArray, frozen

BoolArray = npt.NDArray[np.bool_]

PAIRS_A_CALL = 2_000_000
"""Pairs that one kernel call sorts."""


class Rule(Protocol):
    """What every rule offers."""

    name: ClassVar[str]

    def __call__(self, ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> BoolArray:
        """Tell which of the ranked classes to take, in the shape of ``ids``."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RankCut:
    """The ``r`` best of every row."""

    r: int
    name: ClassVar[str] = "rcut"

    def __call__(self, ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> BoolArray:
        """Tell which of the ranked classes to take."""
        taken: BoolArray = (ids >= 0) & (np.arange(ids.shape[1]) < self.r)
        return taken


@dataclass(frozen=True, slots=True, eq=False)
class InstanceCut:
    """Scores of at least ``intercept + Σ slopes · highest scores``, and always the best class."""

    slopes: Float64Array
    intercept: float
    name: ClassVar[str] = "instance"

    def __call__(self, ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> BoolArray:
        """Tell which of the ranked classes to take."""
        # No matrix product: its last bits would depend on how many rows there are.
        thresholds = (highest_scores(ids, scores, len(self.slopes)) * self.slopes).sum(axis=1) + self.intercept
        taken: BoolArray = (ids >= 0) & (scores >= thresholds[:, None])
        taken[:, 0] = ids[:, 0] >= 0
        return taken


@dataclass(frozen=True, slots=True, eq=False)
class ClassCut:
    """Scores of at least the class's threshold; classes that came later have the threshold ``otherwise``."""

    thresholds: Float64Array
    otherwise: float
    name: ClassVar[str] = "scut"

    def __call__(self, ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> BoolArray:
        """Tell which of the ranked classes to take."""
        known = (ids >= 0) & (ids < len(self.thresholds))
        thresholds = np.append(self.thresholds, self.otherwise)[np.where(known, ids, -1)]
        taken: BoolArray = (ids >= 0) & (scores >= thresholds)
        return taken

    def remap_classes(self, new_ids: npt.NDArray[Any], n_classes: int) -> ClassCut:
        """Return the rule for other class ids: -1 drops one, of those that share an id the highest threshold counts.

        Parameters
        ----------
        new_ids : integer array
            The new id of each class.
        n_classes : int
            How many classes there are then.

        Returns
        -------
        ClassCut
            The rule.
        """
        kept = np.flatnonzero(new_ids[: len(self.thresholds)] >= 0)
        highest = np.full(n_classes, -np.inf)
        np.maximum.at(highest, new_ids[kept], self.thresholds[kept])
        return ClassCut(np.where(np.isinf(highest), self.otherwise, highest), self.otherwise)


@dataclass(frozen=True, slots=True, eq=False)
class ShareCut:
    """For each class its ``⌈shares · n⌉`` best of n rows; none for classes that came later."""

    shares: Float64Array
    name: ClassVar[str] = "pcut"

    def __call__(self, ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> BoolArray:
        """Tell which of the ranked classes to take; depends on all rows."""
        pairs = pairs_by_class(ids, scores)
        rows_each = np.append(np.ceil(self.shares * len(ids)), 0)
        known = np.where(pairs.classes < len(self.shares), pairs.classes, -1)
        taken = np.zeros(ids.size, dtype=np.bool_)
        taken[pairs.where] = pairs.places < rows_each[known]
        return taken.reshape(ids.shape)

    def remap_classes(self, new_ids: npt.NDArray[Any], n_classes: int) -> ShareCut:
        """Return the rule for other class ids: -1 drops one, those that share an id add up.

        Parameters
        ----------
        new_ids : integer array
            The new id of each class.
        n_classes : int
            How many classes there are then.

        Returns
        -------
        ShareCut
            The rule.
        """
        kept = np.flatnonzero(new_ids[: len(self.shares)] >= 0)
        shares = np.zeros(n_classes)
        np.add.at(shares, new_ids[kept], self.shares[kept])
        return ShareCut(shares)


@dataclass(frozen=True, slots=True, eq=False)
class ZeroCut:
    """Scores above 0."""

    name: ClassVar[str] = "zero"

    def __call__(self, ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> BoolArray:
        """Tell which of the ranked classes to take."""
        return (ids >= 0) & (scores > 0)


def take(rule: Rule, ids: npt.NDArray[Any], scores: npt.NDArray[Any], at_least_one: bool) -> BoolArray:
    """Apply a rule.

    Parameters
    ----------
    rule : Rule
        See `abound.measure.thresholds.learn_cut`.
    ids, scores : arrays of shape (n, k)
        Ranked classes, best first, -1 where nothing ranks.
    at_least_one : bool
        Whether a row for which the rule takes nothing gets its best class.

    Returns
    -------
    bool array of shape (n, k)
        True where a class is taken.
    """
    taken = rule(ids, scores)
    if at_least_one:
        taken[:, 0] |= ~taken.any(axis=1) & (ids[:, 0] >= 0)
    return taken


def highest_scores(ids: npt.NDArray[Any], scores: npt.NDArray[Any], width: int) -> Float64Array:
    """Return the first scores of each row.

    Parameters
    ----------
    ids, scores : arrays of shape (n, k)
        Ranked classes, best first, -1 where nothing ranks.
    width : int
        How many scores.

    Returns
    -------
    float64 array of shape (n, width)
        What is missing is replaced by the row's lowest score, 0 where nothing ranks.
    """
    levels = np.where(ids >= 0, scores, np.inf).astype(np.float64)
    lowest = levels.min(axis=1, initial=np.inf)
    lowest[np.isinf(lowest)] = 0
    levels = np.where(ids >= 0, levels, lowest[:, None])
    if width <= ids.shape[1]:
        return levels[:, :width]
    return np.concatenate((levels, np.repeat(lowest[:, None], width - ids.shape[1], axis=1)), axis=1)


class Pairs(NamedTuple):
    """Ranked pairs of row and class, class by class, the highest score of a class first; ties in the order of rows."""

    where: IntArray
    """Where they stand in the flattened ranking."""
    classes: npt.NDArray[Any]
    scores: Float64Array
    places: IntArray
    """Places within the class, from 0."""


def pairs_by_class(ids: npt.NDArray[Any], scores: npt.NDArray[Any]) -> Pairs:
    """Sort all that is ranked by class.

    Parameters
    ----------
    ids, scores : arrays of shape (n, k)
        Ranked classes, -1 where nothing ranks.

    Returns
    -------
    Pairs
        One for each class that is ranked in a row.
    """
    flat_ids, flat_scores = frozen(ids.reshape(-1), np.int32), frozen(scores.reshape(-1), np.float64)
    counts = np.bincount(flat_ids[flat_ids >= 0])
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    where = np.empty(indptr[-1], dtype=np.int64)
    group_by_class(flat_ids, indptr[:-1].copy(), where)
    for begin, end in spans(indptr, 1 + len(where) // PAIRS_A_CALL):
        sort_within(indptr, flat_scores, begin, end, where)
    places = np.arange(len(where)) - np.repeat(indptr[:-1], counts)
    return Pairs(where, flat_ids[where], flat_scores[where], places)
