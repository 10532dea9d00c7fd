"""Is one system better than another, or was it luck: the papers' paired tests.

Each test compares a first system with a second on the same things (splits, decisions, classes), drops those where they
are equal, and is two-sided.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.measure.decisions import count_classes, row_is_right
from abound.measure.encoding import encode_predicted, encode_truth
from abound.measure.places import FloatArray, IntArray

System = Literal["first", "second"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a paired test says about two systems.

    Parameters
    ----------
    test : str
        Which test.
    wins, losses, ties : int
        How often the first system was better, worse, the same.
    p_value : float
        How likely so uneven a result would be if both were equally good; two-sided.
    better : {"first", "second"} or None
        Which is ahead, however slightly.
    """

    test: str
    wins: int
    losses: int
    ties: int
    p_value: float
    better: System | None

    def significant(self, level: float = 0.05) -> bool:
        """Tell whether one system is ahead by more than luck.

        Parameters
        ----------
        level : float
            The largest p-value that counts.

        Returns
        -------
        bool
            True if ``p_value`` is at most ``level``.
        """
        return self.better is not None and self.p_value <= level

    def __str__(self) -> str:
        ahead = "neither is better" if self.better is None else f"{self.better} is better"
        return (
            f"{ahead}: {self.wins} wins, {self.losses} losses, {self.ties} ties, p = {self.p_value:.2g} ({self.test})"
        )


def sign_test(first: npt.ArrayLike, second: npt.ArrayLike, *, higher_is_better: bool = True) -> Comparison:
    """Compare two systems by a measure taken on the same splits (binomial sign test).

    Parameters
    ----------
    first, second : arrays of shape (n_splits,)
        The measure of each system on each split.
    higher_is_better : bool
        False for HR, tree loss, seconds.

    Returns
    -------
    Comparison
        Over splits.

    Examples
    --------
    >>> result = sign_test([0.81, 0.83, 0.80, 0.82, 0.84, 0.79], [0.78, 0.80, 0.79, 0.80, 0.81, 0.77])
    >>> print(result)
    first is better: 6 wins, 0 losses, 0 ties, p = 0.031 (sign test)
    """
    gains = _gains(first, second)
    if not higher_is_better:
        gains = -gains
    return _sign_test("sign test", int((gains > 0).sum()), int((gains < 0).sum()), int((gains == 0).sum()))


def decision_sign_test(y_true: Any, first: Any, second: Any) -> Comparison:
    """Compare two systems decision by decision (micro sign test).

    With one label a row a decision is a row, and the rows count where exactly one system is right. With several, each
    row and class is a decision, yes or no, and those count where the systems differ.

    Parameters
    ----------
    y_true : labels
        The true labels; anything `abound.labels.encode` takes.
    first, second : labels
        What each system predicts.

    Returns
    -------
    Comparison
        Over decisions.

    Examples
    --------
    >>> decision_sign_test(["a", "b", "c"], ["a", "b", "b"], ["a", "c", "a"]).wins
    1
    """
    truth, one, other = _encode_pair(y_true, first, second)
    if truth.kind == "single":
        right_one, right_other = row_is_right(truth, one), row_is_right(truth, other)
        wins, losses = int((right_one & ~right_other).sum()), int((right_other & ~right_one).sum())
        return _sign_test("micro sign test", wins, losses, len(truth) - wins - losses)
    n_classes = other.n_classes
    true_pairs = _pairs(truth, n_classes)
    only_one, only_other = _differences(_pairs(one, n_classes), _pairs(other, n_classes))
    one_right = int(np.isin(only_one, true_pairs).sum())
    other_right = int(np.isin(only_other, true_pairs).sum())
    wins = one_right + len(only_other) - other_right
    losses = other_right + len(only_one) - one_right
    return _sign_test("micro sign test", wins, losses, len(truth) * n_classes - wins - losses)


def wilcoxon_test(first: npt.ArrayLike, second: npt.ArrayLike) -> Comparison:
    """Compare two systems by paired values, larger differences counting more (Wilcoxon signed-rank test).

    Exact for few differences without ties among them, else by the normal approximation, as SciPy chooses.

    Parameters
    ----------
    first, second : arrays of shape (n,)
        A value of each system for each thing, such as F1 for each class.

    Returns
    -------
    Comparison
        Over the pairs.

    Examples
    --------
    >>> wilcoxon_test([0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.9]).better
    'first'
    """
    from scipy.stats import rankdata, wilcoxon

    gains = _gains(first, second)
    wins, losses, ties = int((gains > 0).sum()), int((gains < 0).sum()), int((gains == 0).sum())
    if wins + losses == 0:
        return Comparison("Wilcoxon signed-rank test", wins, losses, ties, 1.0, None)
    gains = gains[gains != 0]
    weights = rankdata(np.abs(gains))
    with warnings.catch_warnings():
        # Older SciPy warns that its approximation is rough for few tied values; the docstring says so.
        warnings.simplefilter("ignore", UserWarning)
        p_value = min(1.0, float(wilcoxon(gains).pvalue))
    better = _ahead(weights[gains > 0].sum(), weights[gains < 0].sum())
    return Comparison("Wilcoxon signed-rank test", wins, losses, ties, p_value, better)


def class_f1_test(y_true: Any, first: Any, second: Any) -> Comparison:
    """Compare two systems by the F1 of each class (Wilcoxon signed-rank test, for macro-F1).

    Parameters
    ----------
    y_true : labels
        The true labels; anything `abound.labels.encode` takes.
    first, second : labels
        What each system predicts.

    Returns
    -------
    Comparison
        Over the classes that are true or predicted by either system.

    Examples
    --------
    >>> class_f1_test(["a", "b", "c"], ["a", "b", "b"], ["c", "c", "a"]).wins
    2
    """
    truth, one, other = _encode_pair(y_true, first, second)
    counts = [count_classes(truth, predicted, other.n_classes) for predicted in (one, other)]
    occurs = counts[0].occurs | counts[1].occurs
    return wilcoxon_test(counts[0].f1()[occurs], counts[1].f1()[occurs])


def _encode_pair(y_true: Any, first: Any, second: Any) -> tuple[Labels, Labels, Labels]:
    truth = encode_truth(y_true)
    one = encode_predicted(first, truth.classes)
    return truth, one, encode_predicted(second, one.classes)


def _gains(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"first and second must be paired lists of values; got shapes {one.shape} and {other.shape}")
    if np.isnan(one).any() or np.isnan(other).any():
        raise ValueError(f"pair {int(np.flatnonzero(np.isnan(one) | np.isnan(other))[0])} holds NaN")
    # Two infinities (HR of systems that rank no true class) are a tie, where subtraction would say NaN.
    return np.where(one == other, 0.0, one - np.where(one == other, 0.0, other))


def _sign_test(test: str, wins: int, losses: int, ties: int) -> Comparison:
    from scipy.stats import binomtest

    p_value = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return Comparison(test, wins, losses, ties, min(1.0, p_value), _ahead(wins, losses))


def _ahead(first: float, second: float) -> System | None:
    if first == second:
        return None
    return "first" if first > second else "second"


def _pairs(labels: Labels, n_classes: int) -> IntArray:
    """One number for each row and class of it; a label that no system can know is left out."""
    rows = np.repeat(np.arange(len(labels), dtype=np.int64), np.diff(labels.indptr))
    return (rows * n_classes + labels.ids)[labels.ids >= 0]


def _differences(one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    return np.setdiff1d(one, other, assume_unique=True), np.setdiff1d(other, one, assume_unique=True)
