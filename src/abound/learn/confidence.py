"""Held-out rows teach a fitted learner how sure its scores are, and where to cut the ranking of a row.

The rows are its own validation part if it has one, else a random fifth, ranked by a copy trained on the other rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.learn.decisions import Calibration, Curve, Decisions, levels_of
from abound.learn.held_out import hold_out
from abound.learn.row_views import take_rows
from abound.measure.cuts import RankCut
from abound.measure.isotonic import fit_isotonic
from abound.measure.platt import UNFITTED, Sigmoid, fit_platt, fit_power
from abound.measure.thresholds import ROW_CUTS, compare_cuts, learn_cut, right_places
from abound.rank.topk import Ranking
from abound.validation import Float32Array, Float64Array, IntArray, Rows, VerifiedRows, make_generator

if TYPE_CHECKING:
    from abound.learn.base import RankingClassifier

HELD_FRACTION = 0.2
"""Part of the rows that is held out."""

FEWEST_ROWS = 10
"""Held-out rows without which nothing is learned."""

MOST_ROWS = 20_000
"""Held-out rows that are ranked at most."""

DEPTH = 50
"""Classes of a held-out row that are ranked, if there are so many; four times its labels if that is more."""


def learn_decisions(
    learner: RankingClassifier, rows: Rows, labels: Labels, weights: Float32Array, held: IntArray | None
) -> Decisions:
    """Rank held-out rows and learn from them.

    Parameters
    ----------
    learner : RankingClassifier
        Fitted; its ``calibrate`` and ``cut`` say what to learn.
    rows : Rows
        All training rows, as the user gave them.
    labels : Labels
        Their labels.
    weights : float32 array
        Their weights.
    held : int64 array or None
        The rows among them that the learner has not learned from. If there are none, a copy of the learner is trained
        on the others of a random fifth.

    Returns
    -------
    Decisions
        What was learned; a fixed sigmoid and no rule if there are too few rows to hold some out.
    """
    several = labels.kind != "single"
    depth = min(labels.n_classes, max(DEPTH, int(np.ceil(4 * len(labels.ids) / max(1, len(labels))))))
    by = "score" if several else "margin"
    found = _rank_held_out(learner, rows, labels, weights, held, depth)
    if found is None:
        return Decisions(None if learner.calibrate is None else Calibration(UNFITTED, by, UNFITTED))
    ranking, chosen = found
    truth = labels.take(chosen)
    calibration = None
    if learner.calibrate is not None:
        calibration = fit_calibration(learner.calibrate, by, ranking, right_places(ranking.ids, truth), weights[chosen])
    if not several or learner.cut is None:
        return Decisions(calibration)
    at_least_one = bool(np.diff(labels.indptr).all())
    tried = compare_cuts(ROW_CUTS, *ranking, truth, at_least_one) if learner.cut == "auto" else {}
    cut = max(tried, key=tried.__getitem__) if tried else learner.cut
    rule = learn_cut(cut, *ranking, truth, labels.counts / max(1, len(labels)))
    depth = rule.r if isinstance(rule, RankCut) else depth
    return Decisions(calibration, cut, rule, at_least_one, depth, tried)


def _rank_held_out(
    learner: RankingClassifier, rows: Rows, labels: Labels, weights: Float32Array, held: IntArray | None, depth: int
) -> tuple[Ranking, IntArray] | None:
    """Rankings of rows that whoever ranks them has not seen, and which rows; None if there are too few."""
    if held is not None and len(held):
        chosen = held[weights[held] > 0]
        chosen = chosen[:: max(1, -(-len(chosen) // MOST_ROWS))]
        if len(chosen) < FEWEST_ROWS:
            return None
        return learner._rank(learner._view(take_rows(rows, chosen)), depth, None), chosen
    # A row of weight 0 is not there.
    present = np.flatnonzero(weights)
    n_held = round(HELD_FRACTION * len(present))
    if n_held < FEWEST_ROWS:
        return None
    drawn = hold_out(present, n_held, make_generator(getattr(learner, "random_state", 0)), learner._groups)
    training, chosen = np.sort(drawn[0]), np.sort(drawn[1][:MOST_ROWS])
    known = labels.take(training)
    if not len(known.ids):
        return None
    part = take_rows(rows, training)
    twin = learner._copy_to_train()
    twin._is_part = True
    if twin.checkpoint is not None:
        twin.set_params(checkpoint=Path(twin.checkpoint, "held-out"))
    twin.fit(VerifiedRows(part), known, weights[training])
    return twin._rank(twin._view(take_rows(rows, chosen)), depth, None), chosen


def fit_calibration(
    kind: str, by: str, ranking: Ranking, right: npt.NDArray[np.bool_], weights: Float32Array
) -> Calibration:
    """Learn from a ranking which of its classes are how likely to be right.

    Parameters
    ----------
    kind : {"platt", "isotonic"}
        What curves.
    by : {"score", "margin"}
        Over what; by margin a row has one label.
    ranking : Ranking
        Best first.
    right : bool array of the same shape
        Which classes are true.
    weights : float32 array
        How much each row counts.

    Returns
    -------
    Calibration
        With a curve for the best class of a row and another for the rest.
    """
    levels, asked = levels_of(ranking, by), ranking.ids >= 0
    if by == "margin":  # a class is asked for if no better one is right
        asked[:, 1:] &= ~np.logical_or.accumulate(right, axis=1)[:, :-1]
    counts = np.broadcast_to(weights[:, None], asked.shape)
    first, rest = (
        _fit_curve(kind, levels[:, part][of], right[:, part][of], counts[:, part][of])
        for part in (slice(0, 1), slice(1, None))
        for of in (asked[:, part],)
    )
    return Calibration(first, by, rest)


def _fit_curve(kind: str, levels: Float64Array, right: npt.NDArray[np.bool_], weights: Float32Array) -> Curve:
    n_rows = float(weights.sum())
    if not n_rows:
        return UNFITTED
    if kind == "isotonic":
        return fit_isotonic(levels, right, weights)
    if not right.any():
        return Sigmoid(0.0, float(np.log(n_rows + 1)))
    sigmoid = fit_power(levels, right, weights)
    if sigmoid.A <= 0:
        return sigmoid
    # Scores that are worse than none: one probability for all, rather than one that falls with the score.
    return fit_platt(np.zeros(len(levels)), right, weights)
