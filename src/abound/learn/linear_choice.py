"""Choose C by cross-validation, all candidates along one path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.row_views import mean_square, take_rows
from abound.measure.places import true_ranks
from abound.measure.ranking import recall
from abound.rank.topk import rank_topk
from abound.validation import Float32Array, Rows, check_number, make_generator

C_GRID = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""What "cv" chooses among unless told otherwise."""

SQUARES = 1e-30, 1e30
"""Rows whose mean square length is less or more are taken as if it were not: a float32 has to hold C."""


def check_cost(C: Any, *others: str) -> None:
    """Raise a clear error for a ``C`` that is neither a number above 0 nor "auto" nor another such word."""
    if not isinstance(C, str) or C not in ("auto", *others):
        check_number("C", C, 0, above=True)


def typical_square(rows: Rows, weights: Float32Array) -> float:
    """Return the mean square length of the rows that have an entry, in bounds; 1 if none has.

    Parameters
    ----------
    rows : Rows
        The rows that are learned.
    weights : float32 array of shape (n,)
        How much each counts.

    Returns
    -------
    float
        Above 0.
    """
    counted = np.where(np.diff(rows.indptr) > 0, weights, np.float32(0))
    return min(max(mean_square(rows, counted) or 1.0, SQUARES[0]), SQUARES[1])


def own_cost(C: float | str, usual: float, square: float) -> float:
    """Return the C used: "auto" is the usual one over the mean square length of the rows.

    Twice as long rows with a quarter of C are the same problem, with weights half as large. So what suits rows of unit
    length suits the same rows on any other scale.

    Parameters
    ----------
    C : float or "auto"
        What the user set.
    usual : float
        What suits rows of unit length.
    square : float
        See `typical_square`.

    Returns
    -------
    float
        Above 0.
    """
    return usual / square if C == "auto" else float(C)


def choose_cost(
    solve: Callable[[Rows, Labels, Float32Array, list[float]], list[ClassIndex]],
    rows: Rows,
    labels: Labels,
    weights: Float32Array,
    costs: Sequence[float],
    n_folds: int,
    random_state: Any,
    n_jobs: int | None,
) -> tuple[float, list[dict[str, float]]]:
    """Return the C with the best mean R1 on held-out folds, the smaller of equals, and all results.

    Parameters
    ----------
    solve : callable
        From rows, labels, weights and values of C to their models.
    rows, labels, weights : Rows, Labels, float32 array
        The training data.
    costs : sequence of float
        The candidates.
    n_folds : int
        Number of folds.
    random_state : object
        Seed of the folds.
    n_jobs : int or None
        Threads when ranking.

    Returns
    -------
    tuple of float and list of dict
        The choice; ``C`` and ``R1`` of each candidate.
    """
    ordered = sorted({float(cost) for cost in costs})
    n_folds = min(n_folds, rows.n_rows)
    if n_folds < 2 or len(ordered) < 2:
        return ordered[len(ordered) // 2], []
    shuffled = make_generator(random_state).permutation(rows.n_rows)
    found = np.zeros((n_folds, len(ordered)))
    for fold in range(n_folds):
        held = np.sort(shuffled[fold::n_folds])
        kept = np.sort(np.setdiff1d(shuffled, held))
        solved = solve(take_rows(rows, kept), labels.take(kept), weights[kept], ordered)
        truth, held_rows = labels.take(held), take_rows(rows, held)
        for c, model in enumerate(solved):
            ranking = rank_topk(model, held_rows, 1, every_class=True, n_jobs=n_jobs)
            found[fold, c] = recall(true_ranks(ranking.ids, truth), 1)
    means = found.mean(axis=0)
    history = [{"C": cost, "R1": float(mean)} for cost, mean in zip(ordered, means, strict=True)]
    return ordered[int(means.argmax())], history
