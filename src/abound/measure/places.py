"""Where the true classes stand in a ranking: the one search behind every measure.

Rankings, predicted sets and true sets are all rows of ids, so one kernel finds the ids of one among the ids of the
other. Memory follows the number of labels, never rows × classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.compiled import kernel
from abound.distribute import spans
from abound.labels import Labels, encode
from abound.validation import frozen

IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]

_COMPARISONS_A_CALL = 50_000_000


@kernel
def find_places(
    indptr: IntArray, ids: IdArray, in_indptr: IntArray, in_ids: IdArray, begin: int, end: int, places: IdArray
) -> None:
    """Find each id of a row in the same row of another list: its place from 1, or 0 if absent or negative."""
    for i in range(begin, end):
        for p in range(indptr[i], indptr[i + 1]):
            places[p] = 0
            if ids[p] < 0:
                continue
            for q in range(in_indptr[i], in_indptr[i + 1]):
                if in_ids[q] == ids[p]:
                    places[p] = q - in_indptr[i] + 1
                    break


def places_of(indptr: IntArray, ids: IdArray, in_indptr: IntArray, in_ids: IdArray) -> IdArray:
    """Find each id of a row in the same row of another list.

    Parameters
    ----------
    indptr, ids : arrays
        Rows of ids to look for; see `abound.labels.Labels`.
    in_indptr, in_ids : arrays
        As many rows of ids to look in.

    Returns
    -------
    int32 array like ``ids``
        The place of each id, from 1; 0 if it is absent. A negative id is never found.
    """
    rows = frozen(indptr, np.int64), frozen(ids, np.int32)
    others = frozen(in_indptr, np.int64), frozen(in_ids, np.int32)
    places = np.zeros(len(ids), np.int32)
    cost = np.zeros(len(indptr), np.int64)
    np.cumsum(np.diff(rows[0]) * np.diff(others[0]) + 1, out=cost[1:])
    for begin, end in spans(cost, 1 + int(cost[-1]) // _COMPARISONS_A_CALL):
        find_places(*rows, *others, begin, end, places)
    return places


def check_truth(truth: Any) -> Labels:
    """Return true classes as ids that mean the same as those of a ranking.

    Parameters
    ----------
    truth : Labels or sparse indicator
        Numbered by the model's classes.

    Returns
    -------
    Labels
        The same; a row or more.
    """
    labels = truth if isinstance(truth, Labels) else encode(truth)
    if labels is not truth and labels.kind != "indicator":
        raise TypeError(
            "truth must be numbered by the model's classes: "
            "pass abound.labels.encode(y, known=model.classes_) or a sparse indicator matrix"
        )
    if len(labels) == 0:
        raise ValueError("there are no rows to measure")
    return labels


def check_ranked(ranked_ids: npt.ArrayLike, n_rows: int) -> IdArray:
    """Return a ranking in the kernels' type.

    Parameters
    ----------
    ranked_ids : integer array of shape (n, k)
        Class ids, best first; -1 is nothing.
    n_rows : int
        Rows of the truth.

    Returns
    -------
    int32 array of shape (n, k)
        Frozen.
    """
    ranked = np.asarray(ranked_ids)
    if ranked.ndim != 2 or ranked.shape[1] == 0 or ranked.dtype.kind not in "iu":
        raise ValueError(
            f"ranked_ids must be a two-dimensional array of class ids, best first (-1 for nothing); "
            f"got {ranked.dtype} of shape {ranked.shape}"
        )
    if len(ranked) != n_rows:
        raise ValueError(f"ranked_ids has {len(ranked)} rows, the truth {n_rows}")
    result: IdArray = frozen(ranked, np.int32)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class TrueRanks:
    """The rank of every true label of n rows.

    Parameters
    ----------
    indptr : int64 array of shape (n + 1,)
        Row ``i`` owns the true labels ``indptr[i]`` to ``indptr[i + 1]``.
    ids : int32 array
        The true classes; -1 is a class unknown to the model.
    ranks : int32 array like ``ids``
        Where the ranking has that class, from 1; 0 if it does not.
    width : int
        How many classes of each row were ranked.
    """

    indptr: IntArray
    ids: IdArray
    ranks: IdArray
    width: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    def row_sums(self, values: npt.NDArray[Any]) -> FloatArray:
        """Add up, row by row, one value for each true label.

        Parameters
        ----------
        values : array like ``ids``
            What to add.

        Returns
        -------
        float64 array of shape (n,)
            0 for a row without labels.
        """
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.indptr))
        return np.bincount(rows, weights=values, minlength=self.n_rows).astype(np.float64)

    def best(self) -> IdArray:
        """Return the rank of each row's highest ranked true class, 0 where none was ranked."""
        labelled = np.flatnonzero(np.diff(self.indptr))
        best = np.zeros(self.n_rows, np.int32)
        if len(labelled):
            absent = np.iinfo(np.int32).max
            ranks = np.where(self.ranks > 0, self.ranks, absent)
            best[labelled] = np.minimum.reduceat(ranks, self.indptr[labelled])
            best[best == absent] = 0
        return best


def true_ranks(ranked_ids: npt.ArrayLike, truth: Any) -> TrueRanks:
    """Find the true classes in a ranking.

    Parameters
    ----------
    ranked_ids : integer array of shape (n, k)
        Class ids, best first, each once in a row; -1 is nothing.
    truth : Labels or sparse indicator
        The true classes, numbered alike.

    Returns
    -------
    TrueRanks
        The rank of every true label.

    Examples
    --------
    >>> from abound.labels import encode
    >>> truth = encode(["a", "b"], known=np.array(["a", "b", "c"]))
    >>> true_ranks([[0, 1], [2, 1]], truth).ranks.tolist()
    [1, 2]
    """
    labels = check_truth(truth)
    ranked = check_ranked(ranked_ids, len(labels))
    in_indptr = np.arange(len(ranked) + 1, dtype=np.int64) * ranked.shape[1]
    ranks = places_of(labels.indptr, labels.ids, in_indptr, ranked.reshape(-1))
    return TrueRanks(labels.indptr, labels.ids, ranks, ranked.shape[1])
