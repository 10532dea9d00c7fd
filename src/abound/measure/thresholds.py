"""Thresholds for rows with several labels: rules are learned from rankings of held-out rows and their true labels.

- *RCut*: the r best of every row.
- *instance* (Gopal and Yang 2010): a threshold for each row, a linear function of its 50 highest scores, fitted by
  ridge regression to the thresholds that would have made fewest mistakes, false alarms and misses together.
- *SCut*: a threshold for each class, that of its best F1. With *fbr* (Yang 2001), a class whose best F1 is below 0.1
  takes the highest score it had as threshold.
- *PCut*: class c takes its ``⌈λ P(c) n⌉`` best rows of the n rows at hand, so an answer depends on the other rows.
- *zero*: scores above 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.measure.cuts import (
    BoolArray,
    ClassCut,
    InstanceCut,
    RankCut,
    Rule,
    ShareCut,
    ZeroCut,
    highest_scores,
    pairs_by_class,
    take,
)
from abound.measure.places import places_of
from abound.validation import Float64Array, check_choice

CUTS = ("rcut", "instance", "scut", "scut-fbr", "pcut", "zero")
"""All rules by name."""

ROW_CUTS = ("rcut", "instance", "zero", "scut-fbr", "scut")
"""Rules whose answer to a row depends on that row alone; of equally good ones the first is taken."""

N_HIGHEST = 50
"""Scores of a row that the instance-based threshold looks at."""

WEAK_F1 = 0.1
"""Below this F1 a class's own threshold is not trusted by fbr."""

RIDGES = tuple(10.0**i for i in range(-4, 5))
"""Penalties of the ridge regression, times the variance of the scores; the best by leaving one row out is taken."""

FACTORS = tuple(2.0 ** (i / 4) for i in range(-12, 13))
"""Candidates for PCut's λ."""

N_FOLDS = 3
"""Parts of the held-out rows by which rules are compared: each is judged on rows it was not learned from."""


def learn_cut(
    name: str, ids: npt.NDArray[Any], scores: npt.NDArray[Any], truth: Labels, priors: npt.ArrayLike | None = None
) -> Rule:
    """Learn a rule from held-out rows.

    Parameters
    ----------
    name : {"rcut", "instance", "scut", "scut-fbr", "pcut", "zero"}
        Which rule.
    ids, scores : arrays of shape (n, k)
        The rows' ranked classes, best first, -1 where nothing ranks.
    truth : Labels
        Their true classes, numbered alike.
    priors : array-like of shape (n_classes,), optional
        P(c), the part of all rows that have class c, for PCut; by default that of the held-out rows.

    Returns
    -------
    Rule
        Call it with ids and scores to learn which of them to take.

    Examples
    --------
    >>> from abound.labels import encode
    >>> ids = np.array([[0, 1, 2], [1, 2, 0]])
    >>> scores = np.array([[3.0, 2.0, 0.1], [2.5, 0.3, 0.2]])
    >>> rule = learn_cut("instance", ids, scores, encode([[0, 1], [1]], known=np.arange(3)))
    >>> rule(ids, scores).tolist()
    [[True, True, False], [True, False, False]]
    """
    check_choice("name", name, CUTS)
    if name == "zero":
        return ZeroCut()
    right = right_places(ids, truth)
    if name == "rcut":
        return _learn_rank_cut(ids, right, len(truth.ids))
    if name == "instance":
        return _learn_instance_cut(ids, np.asarray(scores, dtype=np.float64), right)
    if name == "pcut":
        shares = truth.counts / max(1, len(truth)) if priors is None else np.asarray(priors, dtype=np.float64)
        return _learn_share_cut(ids, scores, right, len(truth.ids), shares)
    return _learn_class_cut(ids, scores, right, truth.counts, name == "scut-fbr")


def compare_cuts(
    names: tuple[str, ...],
    ids: npt.NDArray[Any],
    scores: npt.NDArray[Any],
    truth: Labels,
    at_least_one: bool = False,
) -> dict[str, float]:
    """Measure rules on held-out rows, each row by a rule learned without it.

    Parameters
    ----------
    names : tuple of str
        Rules of `CUTS`.
    ids, scores, truth
        See `learn_cut`.
    at_least_one : bool
        See `take`.

    Returns
    -------
    dict
        micro-F1 of each rule.
    """
    right = right_places(ids, truth)
    fold = np.arange(len(ids)) % N_FOLDS
    results = {}
    for name in names:
        taken = np.zeros(ids.shape, dtype=np.bool_)
        for number in range(N_FOLDS):
            home, away = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            rule = learn_cut(name, ids[away], scores[away], truth.take(away))
            taken[home] = take(rule, ids[home], scores[home], at_least_one)
        results[name] = float(2 * (taken & right).sum() / max(1, int(taken.sum()) + len(truth.ids)))
    return results


def right_places(ids: npt.NDArray[Any], truth: Labels) -> BoolArray:
    """Tell which of the ranked classes are true.

    Parameters
    ----------
    ids : integer array of shape (n, k)
        Ranked classes, -1 where nothing ranks.
    truth : Labels
        The rows' true classes, numbered alike.

    Returns
    -------
    bool array of shape (n, k)
        True where the class is a label of the row.
    """
    n, k = ids.shape
    found = places_of(np.arange(n + 1, dtype=np.int64) * k, ids.reshape(-1), truth.indptr, truth.ids)
    right: BoolArray = (found > 0).reshape(n, k)
    return right


def _learn_rank_cut(ids: npt.NDArray[Any], right: BoolArray, n_true: int) -> RankCut:
    taken = np.cumsum((ids >= 0).sum(axis=0))
    f1 = 2 * np.cumsum(right.sum(axis=0)) / np.maximum(1, taken + n_true)
    return RankCut(int(f1.argmax()) + 1)


def _learn_instance_cut(ids: npt.NDArray[Any], scores: Float64Array, right: BoolArray) -> InstanceCut:
    ranked = ids[:, 0] >= 0
    features, targets = highest_scores(ids, scores, N_HIGHEST)[ranked], best_thresholds(ids, scores, right)[ranked]
    if not len(targets):
        return InstanceCut(np.zeros(features.shape[1]), 0.0)
    means, centre = features.mean(axis=0), float(targets.mean())
    # One unit for all scores keeps their differences, on which the threshold depends, comparable.
    unit = float(np.sqrt(np.square(features - means).mean())) or 1.0
    slopes = _ridge((features - means) / unit, (targets - centre) / unit)
    return InstanceCut(slopes, centre - float((means * slopes).sum()))


def best_thresholds(ids: npt.NDArray[Any], scores: npt.NDArray[Any], right: BoolArray) -> Float64Array:
    """Find the threshold for each row that makes fewest mistakes, when at least one class is taken.

    Parameters
    ----------
    ids, scores, right : arrays of shape (n, k)
        Ranked classes, best first, -1 where nothing ranks; their scores; whether they are true.

    Returns
    -------
    float64 array of shape (n,)
        The middle between the last score that is taken and the next, the last score itself if all are taken; the mean
        where several are equally good; 0 where nothing ranks.
    """
    ranked = ids >= 0
    levels = highest_scores(ids, scores, ids.shape[1])
    following = np.concatenate((levels[:, 1:], levels[:, -1:]), axis=1)
    last = np.arange(ids.shape[1]) == ranked.sum(axis=1, keepdims=True) - 1
    possible = ranked & ((following < levels) | last)
    mistakes = np.where(possible, np.cumsum(1 - 2 * right.astype(np.int64), axis=1), np.iinfo(np.int64).max)
    best = possible & (mistakes == mistakes.min(axis=1, keepdims=True))
    middles = np.where(best, (levels + following) / 2, 0)
    thresholds: Float64Array = middles.sum(axis=1) / np.maximum(1, best.sum(axis=1))
    return thresholds


def _ridge(features: Float64Array, targets: Float64Array) -> Float64Array:
    """Ridge regression of centred data; the penalty with the least error when each row is left out in turn."""
    values, vectors = np.linalg.eigh(features.T @ features)
    turned = features @ vectors
    products = turned.T @ targets
    best, least = np.zeros(len(values)), np.inf
    for penalty in RIDGES:
        slopes = products / (np.maximum(values, 0) + penalty)
        leverage = (np.square(turned) / (np.maximum(values, 0) + penalty)).sum(axis=1) + 1 / len(targets)
        error = float(np.square((targets - turned @ slopes) / np.maximum(1e-12, 1 - leverage)).sum())
        if error < least:
            best, least = slopes, error
    solution: Float64Array = vectors @ best
    return solution


def _learn_share_cut(
    ids: npt.NDArray[Any], scores: npt.NDArray[Any], right: BoolArray, n_true: int, priors: Float64Array
) -> ShareCut:
    best, highest = ShareCut(priors), -1.0
    for factor in FACTORS:
        rule = ShareCut(factor * priors)
        taken = rule(ids, scores)
        f1 = 2 * (taken & right).sum() / max(1, int(taken.sum()) + n_true)
        if f1 > highest:
            best, highest = rule, f1
    return best


def _learn_class_cut(
    ids: npt.NDArray[Any], scores: npt.NDArray[Any], right: BoolArray, n_true: npt.NDArray[Any], fbr: bool
) -> ClassCut:
    where, classes, levels, places = pairs_by_class(ids, scores)
    if not len(where):
        return ClassCut(np.zeros(0), 0.0)
    hits = right.reshape(-1)[where]
    otherwise = _pooled_threshold(levels, hits, int(n_true.sum()))
    starts = np.flatnonzero(places == 0)
    lengths = np.diff(starts, append=len(where))
    # Equal scores cannot be told apart: a cut is possible only where the next score of the class is lower.
    last = np.append(places[1:] == 0, True)
    following = np.where(last, levels, np.append(levels[1:], 0))
    total = np.cumsum(hits, dtype=np.int64)
    found = total - np.repeat((total - hits)[starts], lengths)
    f1 = np.where((following < levels) | last, 2 * found / (places + 1 + n_true[classes]), -1)
    highest = np.maximum.reduceat(f1, starts)
    best = np.flatnonzero(f1 == np.repeat(highest, lengths))
    best = best[np.diff(classes[best], prepend=-1) != 0]
    middles, tops = (levels[best] + following[best]) / 2, levels[starts]
    # A class that was never right where it was ranked takes nothing of what was seen.
    middles = np.where(highest > 0, middles, np.nextafter(tops, np.inf))
    thresholds = np.full(len(n_true), otherwise)
    thresholds[classes[starts]] = np.where(highest < WEAK_F1, tops, middles) if fbr else middles
    return ClassCut(thresholds, otherwise)


def _pooled_threshold(levels: Float64Array, hits: BoolArray, n_true: int) -> float:
    """One threshold for all classes, that of the best micro-F1."""
    falling = np.argsort(-levels, kind="stable")
    levels, hits = levels[falling], hits[falling]
    following = np.append(levels[1:], levels[-1])
    f1 = 2 * np.cumsum(hits) / (np.arange(1, len(levels) + 1) + n_true)
    f1[:-1][following[:-1] == levels[:-1]] = -1
    best = int(f1.argmax())
    return float((levels[best] + following[best]) / 2)
