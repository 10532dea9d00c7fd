"""How a fitted learner decides: from scores to probabilities, and where to cut the ranking of a row.

Probabilities are a function of one number: with several labels a row the score, with one label, where classes compete,
the margin, which is the score less the best other score of the row. The best class of a row has a curve of its own. One
curve for all would be fitted to the others, which are many more, and say of the best what does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.index_parts import prefixed
from abound.measure.cuts import ClassCut, InstanceCut, RankCut, Rule, ShareCut, ZeroCut, take
from abound.measure.isotonic import Isotonic
from abound.measure.platt import PowerSigmoid, Sigmoid
from abound.measure.thresholds import CUTS
from abound.rank.topk import Ranking
from abound.store import Section
from abound.validation import Float32Array, Float64Array, IdArray

CALIBRATIONS = (None, "platt", "isotonic")
"""What ``calibrate`` may be."""

ROWS_AT_ONCE = 2**15
"""Rows to which a rule is applied at once: it works in several arrays of their size."""

Curve = Sigmoid | PowerSigmoid | Isotonic

PLACES = {"calibration": "curve/", "others": "others/"}
"""Where the arrays of the curves stand in a file, by what its settings call them."""

LARGEST = 1e38
"""Scores are cut here, so that differences stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A probability for each ranked class: rising curves over its score or its margin.

    Parameters
    ----------
    curve : Sigmoid or Isotonic
        Of the best class of a row.
    by : {"score", "margin"}
        What the curves are over.
    others : Sigmoid, Isotonic or None
        Of the other classes: by score, how likely they are; by margin, if no better class is right. If None, as in
        files of before, ``curve`` serves all.
    """

    curve: Curve
    by: str
    others: Curve | None = None

    def __call__(self, ranking: Ranking) -> Float64Array:
        """Return the probabilities of a ranking.

        Parameters
        ----------
        ranking : Ranking
            By margin, with two columns or more if there are so many classes.

        Returns
        -------
        float64 array of the same shape
            From 0 to 1, never rising within a row; 0 where nothing ranks. By margin a row adds up to at most 1, and
            what a class has depends on better ones alone.
        """
        levels, ranked = levels_of(ranking, self.by), ranking.ids >= 0
        if self.others is None:
            return np.where(ranked, self.curve(levels), 0)
        chances = np.where(ranked, np.hstack((self.curve(levels[:, :1]), self.others(levels[:, 1:]))), 0)
        if self.by == "margin":
            chances[:, 1:] *= np.cumprod(1 - chances[:, :-1], axis=1)
        falling: Float64Array = np.minimum.accumulate(chances, axis=1)
        return falling

    def of_all(self, scores: Float32Array) -> Float64Array:
        """Return the probabilities of all classes by their scores, one column each.

        Parameters
        ----------
        scores : float32 array of shape (n, n_classes)
            Not ranked.

        Returns
        -------
        float64 array of the same shape
            As a ranking of them would have them.
        """
        best = scores.argmax(axis=1)[:, None]
        largest = self.curve(_finite(np.take_along_axis(scores, best, axis=1)))
        others = self.curve if self.others is None else self.others
        probabilities: Float64Array = np.minimum(others(_finite(scores)), largest)
        np.put_along_axis(probabilities, best, largest, axis=1)
        return probabilities


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
    levels = np.where(ranking.ids >= 0, _finite(ranking.scores), 0)
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
        meta["by"] = calibration.by
        for kind, curve in {"calibration": calibration.curve, "others": calibration.others}.items():
            if curve is not None:
                meta[kind] = "isotonic" if isinstance(curve, Isotonic) else "platt"
                values = {name: _numbers(value) for name, value in curve._asdict().items()}
                arrays |= prefixed(PLACES[kind], values)
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
        if meta.get("by") not in ("score", "margin"):
            raise stored.fault("meta", f"the calibration by {meta.get('by')!r} is unknown")
        curve, others = (_curve_from(stored, meta, kind) for kind in PLACES)
        assert curve is not None
        decisions = replace(decisions, calibration=Calibration(curve, meta["by"], others))
    if "cut" not in meta:
        return decisions
    cut, depth, tried = meta["cut"], meta.get("depth"), meta.get("tried")
    if cut not in CUTS or type(depth) is not int or depth < 1:
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


def _finite(scores: Float32Array) -> Float64Array:
    return np.clip(scores.astype(np.float64), -LARGEST, LARGEST)


def _curve_from(stored: Section, meta: dict[str, Any], which: str) -> Curve | None:
    if which not in meta:
        return None
    if meta[which] not in CALIBRATIONS[1:]:
        raise stored.fault("meta", f"the calibration {meta[which]!r} is unknown")
    arrays = stored.section(PLACES[which])
    if meta[which] == "platt":
        sigmoid = Sigmoid(_one(arrays, "A"), _one(arrays, "B"))
        if sigmoid.A > 0:
            raise arrays.fault("A", "a curve that falls")
        if "power" not in arrays:
            return sigmoid
        power = _one(arrays, "power")
        if not 0 < power <= 1:
            raise arrays.fault("power", f"a power of {power}")
        return PowerSigmoid(*sigmoid, power)
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
