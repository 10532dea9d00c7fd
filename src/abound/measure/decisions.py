"""Measures of decisions: accuracy, micro-F1 and macro-F1 of one predicted class or a predicted set for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.measure.places import FloatArray, IdArray, IntArray, places_of
from abound.validation import check_sample_weight


@dataclass(frozen=True, slots=True, eq=False)
class ClassCounts:
    """How often each class was right, predicted and true.

    The arrays have one slot a class id and a last one for -1, a label that the model does not know.

    Parameters
    ----------
    right : int64 array
        Rows where the class was predicted and true.
    predicted : int64 array
        Rows where it was predicted.
    true : int64 array
        Rows where it was true.
    """

    right: IntArray
    predicted: IntArray
    true: IntArray

    @property
    def occurs(self) -> npt.NDArray[np.bool_]:
        """Which classes are true or predicted somewhere."""
        return (self.predicted + self.true) > 0

    def f1(self) -> FloatArray:
        """Return F1 of each class, 2 TP / (2 TP + FP + FN); 0 for a class that does not occur."""
        scores: FloatArray = 2.0 * self.right / np.maximum(self.predicted + self.true, 1)
        return scores

    def micro_f1(self) -> float:
        """Return F1 of all decisions taken together."""
        return float(2.0 * self.right.sum() / max(self.predicted.sum() + self.true.sum(), 1))

    def macro_f1(self) -> float:
        """Return the mean F1 over the classes that are true or predicted somewhere."""
        return float(self.f1().sum() / max(self.occurs.sum(), 1))

    def macro_f1_all(self, n_classes: int) -> float:
        """Return the mean F1 over all classes, those of the model and those that only the truth has.

        Parameters
        ----------
        n_classes : int
            Number of the model's classes.

        Returns
        -------
        float
            At most `macro_f1`.
        """
        strangers = int(self.occurs[n_classes:].sum())
        return float(self.f1().sum() / max(n_classes + strangers, 1))


def count_classes(truth: Labels, predicted: Labels, n_classes: int) -> ClassCounts:
    """Count right, predicted and true rows of each class.

    Parameters
    ----------
    truth, predicted : Labels
        Numbered alike; a predicted -1 is no prediction.
    n_classes : int
        Number of the model's classes; ids from there on are labels that only the truth has.

    Returns
    -------
    ClassCounts
        One slot a class.
    """
    _check_lengths(truth, predicted)
    highest = max(n_classes - 1, int(truth.ids.max(initial=-1)), int(predicted.ids.max(initial=-1)))
    found = places_of(predicted.indptr, predicted.ids, truth.indptr, truth.ids) > 0

    def count(ids: IdArray) -> IntArray:
        return np.bincount(np.where(ids < 0, highest + 1, ids), minlength=highest + 2).astype(np.int64)

    return ClassCounts(count(predicted.ids[found]), count(predicted.ids[predicted.ids >= 0]), count(truth.ids))


def weighted_f1(truth: Labels, predicted: Labels, sample_weight: Any = None) -> float:
    """Return micro-F1 with a weight for each row."""
    _check_lengths(truth, predicted)
    weights = check_sample_weight(sample_weight, len(truth)).astype(np.float64)
    found = places_of(predicted.indptr, predicted.ids, truth.indptr, truth.ids) > 0
    of_predicted = np.repeat(weights, np.diff(predicted.indptr))
    total = of_predicted.sum() + np.repeat(weights, np.diff(truth.indptr)).sum()
    return float(2 * of_predicted[found].sum() / total) if total > 0 else 0.0


def row_is_right(truth: Labels, predicted: Labels) -> npt.NDArray[np.bool_]:
    """Tell for each row whether the predicted classes are exactly the true ones.

    Parameters
    ----------
    truth, predicted : Labels
        Numbered alike; a predicted -1 is no prediction, a true -1 is a label that cannot be predicted.

    Returns
    -------
    bool array of shape (n,)
        True where the two sets are the same.
    """
    _check_lengths(truth, predicted)
    found = places_of(predicted.indptr, predicted.ids, truth.indptr, truth.ids) > 0
    rows = np.repeat(np.arange(len(predicted)), np.diff(predicted.indptr))
    n_right = np.bincount(rows[found], minlength=len(predicted))
    n_predicted = np.bincount(rows[predicted.ids >= 0], minlength=len(predicted))
    right: npt.NDArray[np.bool_] = (n_right == n_predicted) & (n_right == np.diff(truth.indptr))
    return right


def first_choices(ranked_ids: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Labels:
    """Take the best class of each row as its prediction.

    Parameters
    ----------
    ranked_ids : integer array of shape (n, k)
        Class ids, best first; -1 is nothing.
    classes : array
        The label of each id.

    Returns
    -------
    Labels
        One class a row, none where nothing was ranked.
    """
    first = ranked_ids[:, 0]
    indptr = np.concatenate(([0], np.cumsum(first >= 0))).astype(np.int64)
    return Labels(indptr, first[first >= 0].astype(np.int32), classes, "single")


def _check_lengths(truth: Labels, predicted: Labels) -> None:
    if len(truth) != len(predicted):
        raise ValueError(f"there are {len(predicted)} predictions for {len(truth)} true rows")
