"""From rows to figures: a line for each learner, and which differences between them mean anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.compare.experiment import Row
from abound.compare.measuring import unpack_ids
from abound.compare.protocol import Comparison, Contender, shown_setting
from abound.labels import Labels
from abound.measure import Comparison as PairedTest
from abound.measure import Summary, class_f1_test, sign_test, summarise

LEVEL = 0.05
"""A difference counts when luck alone would show one as large less often than this."""


@dataclass(frozen=True)
class Standing:
    """The figures of one learner, over all splits that every learner was tested on.

    Parameters
    ----------
    learner : str
        Its short name.
    setting : dict
        What was chosen for it.
    measures : dict of str to Summary
        By name, mean and standard deviation.
    train_seconds, rank_ms : float
        Seconds of training; milliseconds to rank a row. The median over the splits.
    memory : int or None
        Peak memory of its process, the largest over the splits.
    edges, edges_touched, model_bytes : numbers
        |W|, d and the size of the model file, of the first split.
    rows : list of dict
        The rows behind it.
    tried : list of dict
        The rows of the settings that were tried.
    untried : int
        Settings that there was no time for.
    """

    learner: str
    setting: dict[str, Any]
    measures: dict[str, Summary]
    train_seconds: float
    rank_ms: float
    memory: int | None
    edges: int
    edges_touched: float | None
    model_bytes: int
    rows: list[Row]
    tried: list[Row]
    untried: int

    @property
    def recall(self) -> float:
        """Mean R1."""
        return self.measures["R1"].mean

    @property
    def shown(self) -> str:
        """The setting for people."""
        return shown_setting(self.setting)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "learner": self.learner,
            "parameters": self.setting,
            **{name: summary.mean for name, summary in self.measures.items()},
            "sd": {name: summary.sd for name, summary in self.measures.items()},
            "train_seconds": self.train_seconds,
            "rank_ms": self.rank_ms,
            "peak_memory": self.memory,
            "W": self.edges,
            "d": self.edges_touched,
            "model_bytes": self.model_bytes,
            "reliability": self.rows[0].get("reliability"),
            "settings_tried": len(self.tried),
            "settings_untried": self.untried,
        }


@dataclass(frozen=True)
class Difference:
    """Two learners on the same test rows.

    Parameters
    ----------
    first, second : str
        The learners, the one with the higher R1 first.
    rows : measure.Comparison
        Sign test over the rows that only one of them gets right.
    p_value : float
        Of that test, made larger for the number of pairs (Holm).
    classes : measure.Comparison or None
        Wilcoxon test over the F1 of classes; None where rows have several labels.
    splits : measure.Comparison or None
        Sign test over splits; None if there is one only.
    """

    first: str
    second: str
    rows: PairedTest
    p_value: float
    classes: PairedTest | None
    splits: PairedTest | None

    @property
    def real(self) -> bool:
        """Whether the difference over rows is more than luck."""
        return self.rows.better is not None and self.p_value <= LEVEL


def standings(comparison: Comparison) -> list[Standing]:
    """Return a line for each learner that has a result, the highest R1 first.

    Parameters
    ----------
    comparison : Comparison
        All rows.

    Returns
    -------
    list of Standing
        Equal ones in the order of the plan.
    """
    lines = [_standing(contender, comparison.n_splits) for contender in comparison.contenders if not contender.error]
    return sorted(lines, key=lambda line: -line.recall)


def differences(lines: Sequence[Standing], truth: Labels) -> list[Difference]:
    """Test each pair of learners on the test rows of the first split, and over the splits.

    Parameters
    ----------
    lines : sequence of Standing
        Highest R1 first.
    truth : Labels
        Labels of the first split's test rows.

    Returns
    -------
    list of Difference
        Every pair.
    """
    firsts = {line.learner: unpack_ids(line.rows[0]["first"]) for line in lines}
    right = {name: right_rows(ids, truth).astype(np.float64) for name, ids in firsts.items()}
    chosen = {name: _as_labels(ids, truth) for name, ids in firsts.items()} if truth.kind == "single" else {}
    pairs = list(combinations(lines, 2))
    tests = [sign_test(right[one.learner], right[other.learner]) for one, other in pairs]
    adjusted = holm([test.p_value for test in tests])
    found = []
    for (one, other), test, p_value in zip(pairs, tests, adjusted, strict=True):
        classes = class_f1_test(truth, chosen[one.learner], chosen[other.learner]) if chosen else None
        splits = None
        if len(one.rows) > 1:
            splits = sign_test(*([row["measures"]["R1"] for row in line.rows] for line in (one, other)))
        found.append(Difference(one.learner, other.learner, test, p_value, classes, splits))
    return found


def right_rows(first: npt.NDArray[np.int32], truth: Labels) -> npt.NDArray[np.bool_]:
    """Tell of each row whether the class put first is one of its own.

    Parameters
    ----------
    first : int32 array of shape (n,)
        Class ids, -1 for none.
    truth : Labels
        The labels of the rows.

    Returns
    -------
    bool array of shape (n,)
        Whether it is right.
    """
    rows = np.repeat(np.arange(len(truth)), np.diff(truth.indptr))
    right = np.zeros(len(truth), dtype=np.bool_)
    right[rows[(truth.ids == first[rows]) & (truth.ids >= 0)]] = True
    return right


def holm(p_values: Sequence[float]) -> list[float]:
    """Make p-values larger for the number of tests, so that all of them together err rarely (Holm 1979).

    Parameters
    ----------
    p_values : sequence of float
        One a test.

    Returns
    -------
    list of float
        In the same order.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def pareto(costs: Sequence[float], gains: Sequence[float]) -> list[int]:
    """Return which points no other one beats in both.

    Parameters
    ----------
    costs, gains : sequences of float
        Low costs and high gains are good.

    Returns
    -------
    list of int
        Their places, the cheapest first.

    Examples
    --------
    >>> pareto([1.0, 2.0, 3.0], [0.3, 0.2, 0.5])
    [0, 2]
    """
    front: list[int] = []
    for i in sorted(range(len(costs)), key=lambda i: (costs[i], -gains[i])):
        if not front or gains[i] > gains[front[-1]]:
            front.append(i)
    return front


def _standing(contender: Contender, n_splits: int) -> Standing:
    rows = contender.tests[:n_splits]
    peaks = [row["memory"]["peak"] for row in rows if row["memory"]["peak"] is not None]
    measures = [{name: float("inf") if v is None else v for name, v in row["measures"].items()} for row in rows]
    per_row = [1000 * row["timings"]["rank"] / max(1, row["sizes"]["held_rows"]) for row in rows]
    return Standing(
        contender.learner,
        contender.chosen or {},
        summarise(measures),
        float(np.median([row["timings"]["train"] for row in rows])),
        float(np.median(per_row)),
        max(peaks, default=None),
        rows[0]["W"],
        rows[0]["d"],
        rows[0]["model_bytes"],
        rows,
        contender.tried,
        len(contender.untried),
    )


def _as_labels(first: npt.NDArray[np.int32], truth: Labels) -> Labels:
    indptr = np.concatenate(([0], np.cumsum(first >= 0))).astype(np.int64)
    return Labels(indptr, first[first >= 0], truth.classes, "lists")
