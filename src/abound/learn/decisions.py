"""How a fitted learner decides: from scores to probabilities, and where to cut the ranking of a row.

Probabilities are a function of one number, the same for all classes: with several labels a row the score, with one
label, where classes compete, the margin, which is the score less the best other score of the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.index_parts import prefixed
from abound.measure.cuts import ClassCut, InstanceCut, RankCut, Rule, ShareCut, ZeroCut, take
from abound.measure.isotonic import Isotonic
from abound.measure.platt import Sigmoid
from abound.measure.thresholds import CUTS
from abound.rank.topk import Ranking
from abound.store import Section
from abound.validation import Float64Array, IdArray

CALIBRATIONS = (None, "platt", "isotonic")
"""What ``calibrate`` may be."""

ROWS_AT_ONCE = 2**15
"""Rows to which a rule is applied at once: it works in several arrays of their size."""

LARGEST = 1e38
"""Scores are cut here, so that differences stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A probability for each ranked class: a rising curve over its score or its margin."""

    curve: Sigmoid | Isotonic
    by: str

    def __call__(self, ranking: Ranking) -> Float64Array:
        """Return the probabilities of a ranking.

        Parameters
        ----------
        ranking : Ranking
            By margin, with two columns or more if there are so many classes.

        Returns
        -------
        float64 array of the same shape
            From 0 to 1, never rising within a row; 0 where nothing ranks.
        """
        return np.where(ranking.ids >= 0, self.curve(levels_of(ranking, self.by)), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """How a fitted learner decides; all None if nothing was held out.

    Parameters
    ----------
    calibration : Calibration or None
        From scores to probabilities.
    cut : str or None
        The name of the rule for several labels a row.
    rule : Rule or None
        The rule.
    at_least_one : bool
        Whether a row for which the rule takes nothing gets its best class.
    depth : int
        Classes of a row that the rule looks at.
    tried : dict
        micro-F1 on held-out rows of the rules that were compared.
    """

    calibration: Calibration | None = None
    cut: str | None = None
    rule: Rule | None = None
    at_least_one: bool = True
    depth: int = 0
    tried: dict[str, float] = field(default_factory=dict)

    def take(self, ranking: Ranking) -> npt.NDArray[np.bool_]:
        """Tell which of the ranked classes to answer with.

        Parameters
        ----------
        ranking : Ranking
            ``depth`` classes a row.

        Returns
        -------
        bool array of the same shape
            True where a class is taken.
        """
        if self.rule is None:
            return ranking.ids >= 0
        if isinstance(self.rule, ShareCut):
            return take(self.rule, *ranking, self.at_least_one)
        taken = np.empty(ranking.ids.shape, dtype=np.bool_)
        for begin in range(0, len(taken), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            taken[part] = take(self.rule, ranking.ids[part], ranking.scores[part], self.at_least_one)
        return taken

    def remap_classes(self, new_ids: IdArray, n_classes: int) -> Decisions:
        """Return the decisions for other class ids.

        Parameters
        ----------
        new_ids : int32 array
            The new id of each class, -1 to drop it.
        n_classes : int
            How many classes there are then.

        Returns
        -------
        Decisions
            The same, with the thresholds of classes moved along.
        """
        if isinstance(self.rule, ClassCut | ShareCut):
            return replace(self, rule=self.rule.remap_classes(new_ids, n_classes))
        return self


def levels_of(ranking: Ranking, by: str) -> Float64Array:
    """Return the number that a class's probability depends on.

    Parameters
    ----------
    ranking : Ranking
        Best first; by margin, with at least two columns if there are so many classes.
    by : {"score", "margin"}
        The score, or how far it is above the best other score of the row.

    Returns
    -------
    float64 array of the same shape
        Finite, never rising within a row. Margins are at least 0 for the best class and at most 0 for the others; a
        class that does not rank counts as score 0.
    """
    clipped = np.clip(ranking.scores.astype(np.float64), -LARGEST, LARGEST)
    levels = np.where(ranking.ids >= 0, clipped, 0)
    if by == "score":
        return levels
    differences = levels - levels[:, :1]
    differences[:, 0] = levels[:, 0] - (levels[:, 1] if levels.shape[1] > 1 else 0)
    return differences


def decision_arrays(decisions: Decisions) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Take decisions apart, for a model file.

    Parameters
    ----------
    decisions : Decisions
        What was learned.

    Returns
    -------
    arrays : dict
        Named arrays; none if nothing was learned.
    meta : dict
        Settings that JSON can hold; empty if nothing was learned.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    meta: dict[str, Any] = {}
    calibration, rule = decisions.calibration, decisions.rule
    if calibration is not None:
        curve = calibration.curve
        meta |= {"calibration": "platt" if isinstance(curve, Sigmoid) else "isotonic", "by": calibration.by}
        arrays |= prefixed("curve/", {name: _numbers(value) for name, value in curve._asdict().items()})
    if rule is not None:
        meta |= {"cut": decisions.cut, "at_least_one": decisions.at_least_one, "depth": decisions.depth}
        meta |= {"tried": decisions.tried}
        values = {each.name: getattr(rule, each.name) for each in fields(rule)}  # type: ignore[arg-type]
        arrays |= prefixed("rule/", {name: _numbers(value) for name, value in values.items()})
    return arrays, meta


def decisions_from(stored: Section, meta: Any) -> Decisions:
    """Put decisions together from what `decision_arrays` gave, checked.

    Parameters
    ----------
    stored : Section
        The arrays.
    meta : dict or None
        The settings.

    Returns
    -------
    Decisions
        What was learned.
    """
    if not meta:
        return Decisions()
    if not isinstance(meta, dict):
        raise stored.fault("meta", "the setting 'decisions' is of a wrong type")
    for name, array in stored.items():
        if not np.isfinite(array).all():
            raise stored.fault(name, "it holds a number that is not finite")
    decisions = Decisions()
    if "calibration" in meta:
        if meta["calibration"] not in CALIBRATIONS[1:] or meta.get("by") not in ("score", "margin"):
            raise stored.fault("meta", f"the calibration {meta['calibration']!r} by {meta.get('by')!r} is unknown")
        curve = _curve_from(stored.section("curve/"), meta["calibration"])
        decisions = replace(decisions, calibration=Calibration(curve, meta["by"]))
    if "cut" not in meta:
        return decisions
    cut, depth, tried = meta["cut"], meta.get("depth"), meta.get("tried")
    if cut not in CUTS or not isinstance(depth, int) or depth < 1:
        raise stored.fault("meta", f"the cut {cut!r} of {depth!r} ranked classes is unknown")
    return replace(
        decisions,
        cut=cut,
        rule=_rule_from(stored.section("rule/"), cut),
        at_least_one=bool(meta.get("at_least_one")),
        depth=depth,
        tried=tried if isinstance(tried, dict) else {},
    )


def _numbers(value: Any) -> Float64Array:
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def _curve_from(arrays: Section, kind: str) -> Sigmoid | Isotonic:
    if kind == "platt":
        sigmoid = Sigmoid(_one(arrays, "A"), _one(arrays, "B"))
        if sigmoid.A > 0:
            raise arrays.fault("A", "a curve that falls")
        return sigmoid
    knots = arrays.require("knots", np.float64)
    levels = arrays.require("levels", np.float64, (len(knots),))
    if not len(knots) or (np.diff(knots) < 0).any() or (np.diff(levels) < 0).any():
        raise arrays.fault("levels", "a curve that is empty or falls")
    if levels[0] < 0 or levels[-1] > 1:
        raise arrays.fault("levels", "probabilities below 0 or above 1")
    return Isotonic(knots, levels)


def _rule_from(arrays: Section, cut: str) -> Rule:
    if cut == "rcut":
        return RankCut(int(_one(arrays, "r")))
    if cut == "instance":
        return InstanceCut(arrays.require("slopes", np.float64), _one(arrays, "intercept"))
    if cut == "pcut":
        return ShareCut(arrays.require("shares", np.float64))
    if cut == "zero":
        return ZeroCut()
    return ClassCut(arrays.require("thresholds", np.float64), _one(arrays, "otherwise"))


def _one(arrays: Section, name: str) -> float:
    return float(arrays.require(name, np.float64, (1,))[0])
