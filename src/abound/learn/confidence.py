"""Held-out rows teach a fitted learner how sure its scores are, and where to cut the ranking of a row.

The rows are its own validation part if it has one, else a random fifth, ranked by a copy trained on the other rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abound.labels import Labels
from abound.learn.decisions import Calibration, Decisions, levels_of
from abound.learn.held_out import hold_out
from abound.learn.row_views import take_rows
from abound.measure.cuts import RankCut
from abound.measure.isotonic import Isotonic, fit_isotonic
from abound.measure.platt import UNFITTED, Sigmoid, fit_platt
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
        return Decisions(None if learner.calibrate is None else Calibration(UNFITTED, by))
    ranking, chosen = found
    truth = labels.take(chosen)
    calibration = None
    if learner.calibrate is not None:
        levels = levels_of(ranking, by)
        pairs = np.nonzero(ranking.ids >= 0)
        right, counts = right_places(ranking.ids, truth)[pairs], weights[chosen][pairs[0]]
        calibration = Calibration(_fit_curve(learner.calibrate, levels[pairs], right, counts), by)
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


def _fit_curve(kind: str, levels: Float64Array, right: Any, weights: Any) -> Sigmoid | Isotonic:
    if not right.any():
        return UNFITTED
    if kind == "isotonic":
        return fit_isotonic(levels, right, weights)
    sigmoid = fit_platt(levels, right, weights)
    if sigmoid.A <= 0:
        return sigmoid
    # Scores that are worse than none: one probability for all, rather than one that falls with the score.
    return fit_platt(np.zeros(len(levels)), right, weights)
