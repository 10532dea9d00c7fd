"""Measures of a ranking: R_k, MRR and HR, and for rows with several labels precision, nDCG and PSP.

All follow from the rank of each true label (`abound.measure.places.TrueRanks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.measure.places import FloatArray, IdArray, TrueRanks, true_ranks
from abound.validation import check_number

EVALUATION_DEPTH = 50
"""How many classes to rank for an evaluation, so that MRR and HR are hardly cut short."""


def recall(ranks: TrueRanks, k: int) -> float:
    """R_k: the fraction of rows with a true class among the first k.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.
    k : int
        How many classes count.

    Returns
    -------
    float
        Between 0 and 1.
    """
    _check_k(ranks, k)
    best = ranks.best()
    return float(np.mean((best > 0) & (best <= k)))


def reciprocal_rank(ranks: TrueRanks) -> float:
    """MRR: the mean of 1 / rank of the best ranked true class, 0 where none was ranked.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.

    Returns
    -------
    float
        Between 0 and 1.
    """
    best = ranks.best()
    found = best[best > 0].astype(np.float64)
    return float(np.sum(1.0 / found) / ranks.n_rows)


def precision(ranks: TrueRanks, k: int) -> float:
    """P@k: the mean over rows of the true classes among the first k, divided by k.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.
    k : int
        How many classes count.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return float(np.sum(_within(ranks, k)) / (k * ranks.n_rows))


def ndcg(ranks: TrueRanks, k: int) -> float:
    """nDCG@k: each true class found at rank r gives 1 / log2(r + 1), divided by what the best ranking would get.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.
    k : int
        How many classes count.

    Returns
    -------
    float
        Between 0 and 1; a row without true classes gives 0.
    """
    gained = ranks.row_sums(_discounts(ranks.ranks, k, ranks))
    return float(np.mean(gained / _ideal_gains(ranks, k)))


def ps_precision(ranks: TrueRanks, inverse: FloatArray, k: int) -> float:
    """PSP@k: precision where finding a rare class counts more, relative to the best that any ranking could get.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.
    inverse : float64 array
        For each true label (like ``ranks.ids``), 1 / propensity.
    k : int
        How many classes count.

    Returns
    -------
    float
        Between 0 and 1.
    """
    best_places = _best_places(ranks, inverse)
    return _ratio(np.sum(inverse * _within(ranks, k)), np.sum(inverse * (best_places <= k)))


def ps_ndcg(ranks: TrueRanks, inverse: FloatArray, k: int) -> float:
    """PSnDCG@k: nDCG where finding a rare class counts more, relative to the best that any ranking could get.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.
    inverse : float64 array
        For each true label (like ``ranks.ids``), 1 / propensity.
    k : int
        How many classes count.

    Returns
    -------
    float
        Between 0 and 1.
    """
    ideal = _ideal_gains(ranks, k)
    best_places = _best_places(ranks, inverse)
    gained = ranks.row_sums(inverse * _discounts(ranks.ranks, k, ranks))
    possible = ranks.row_sums(inverse * _discounts(best_places, k, ranks))
    return _ratio(np.sum(gained / ideal), np.sum(possible / ideal))


def inverse_propensities(counts: npt.ArrayLike, n_train: int, a: float = 0.55, b: float = 1.5) -> FloatArray:
    """1 / propensity of each class: how much more a rare class counts (Jain, Prabhu and Varma 2016).

    ``1/p_c = 1 + C (N_c + b)^-a`` with ``C = (ln N - 1)(b + 1)^a``.

    Parameters
    ----------
    counts : integer array
        Training rows of each class, N_c.
    n_train : int
        Training rows in all, N.
    a, b : float
        The constants; the defaults are those used for all but the Wikipedia and Amazon sets of the paper.

    Returns
    -------
    float64 array like ``counts``
        At least 1.

    Examples
    --------
    >>> inverse_propensities([1, 10, 1000], n_train=10_000).round(1).tolist()
    [9.2, 4.5, 1.3]
    """
    check_number("n_train", n_train, 1, whole=True)
    scale = max(0.0, np.log(n_train) - 1.0) * (b + 1.0) ** a
    weights: FloatArray = 1.0 + scale * (np.asarray(counts, dtype=np.float64) + b) ** -a
    return weights


def ranking_measures(ranked_ids: npt.ArrayLike, truth: Any, ks: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """R_k for each k, MRR and HR of a ranking.

    Parameters
    ----------
    ranked_ids : integer array of shape (n, k)
        Class ids, best first; -1 is nothing. Rank `EVALUATION_DEPTH` classes: a true class beyond the last gives MRR
        nothing.
    truth : Labels or sparse indicator
        The true classes by the same ids. Labels that the model does not know are -1 or a higher id; they are errors.
    ks : sequence of int
        Which R_k.

    Returns
    -------
    dict
        ``R1``, ..., ``MRR``, ``HR`` (infinite if no true class was ranked at all).

    Examples
    --------
    >>> from abound.labels import encode
    >>> truth = encode(["a", "b"], known=np.array(["a", "b", "c"]))
    >>> ranking_measures([[0, 1], [2, 1]], truth, ks=(1, 2))
    {'R1': 0.5, 'R2': 1.0, 'MRR': 0.75, 'HR': 1.3333333333333333}
    """
    ranks = true_ranks(ranked_ids, truth)
    return measures_of(ranks, ks)


def measures_of(ranks: TrueRanks, ks: Sequence[int]) -> dict[str, float]:
    """R_k for each k, MRR and HR from the ranks of the true classes.

    Parameters
    ----------
    ranks : TrueRanks
        Ranks of the true classes.
    ks : sequence of int
        Which R_k.

    Returns
    -------
    dict
        See `ranking_measures`.
    """
    measures = {f"R{k}": recall(ranks, k) for k in ks}
    measures["MRR"] = reciprocal_rank(ranks)
    measures["HR"] = harmonic(measures["MRR"])
    return measures


def harmonic(mrr: float) -> float:
    """HR, the reciprocal of MRR.

    Parameters
    ----------
    mrr : float
        Mean reciprocal rank.

    Returns
    -------
    float
        At least 1; infinite at 0.
    """
    return 1.0 / mrr if mrr > 0 else float("inf")


def _check_k(ranks: TrueRanks, k: int) -> None:
    check_number("k", k, 1, whole=True)
    if k > ranks.width:
        raise ValueError(f"k={k}, but only {ranks.width} classes of each row were ranked: rank at least {k}")


def _within(ranks: TrueRanks, k: int) -> npt.NDArray[np.bool_]:
    _check_k(ranks, k)
    found: npt.NDArray[np.bool_] = (ranks.ranks > 0) & (ranks.ranks <= k)
    return found


def _discounts(places: IdArray, k: int, ranks: TrueRanks) -> FloatArray:
    """1 / log2(place + 1) within the first k places, 0 beyond and for place 0."""
    _check_k(ranks, k)
    table = np.zeros(k + 2)
    table[1 : k + 1] = 1.0 / np.log2(np.arange(2, k + 2))
    discounts: FloatArray = table[np.minimum(places, k + 1)]
    return discounts


def _ideal_gains(ranks: TrueRanks, k: int) -> FloatArray:
    """What a ranking that starts with all true classes gains in each row; 1 for a row that has none."""
    gains = np.concatenate(([1.0], np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))))
    ideal: FloatArray = gains[np.minimum(np.diff(ranks.indptr), k)]
    return ideal


def _best_places(ranks: TrueRanks, inverse: FloatArray) -> IdArray:
    """The place each true label has when a row's labels are ordered by falling weight."""
    rows = np.repeat(np.arange(ranks.n_rows), np.diff(ranks.indptr))
    order = np.lexsort((-inverse, rows))
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order)) - ranks.indptr[rows] + 1
    return places


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0
