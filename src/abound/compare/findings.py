"""A comparison and what it means, in one place for tables, pages and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abound.compare.choose import Traits
from abound.compare.doubts import Doubts, find_doubts
from abound.compare.protocol import Comparison
from abound.compare.recommend import Recommendation, recommend
from abound.compare.results import Difference, Standing, differences, standings
from abound.compare.unfinished import unfinished, what_would_do


@dataclass(frozen=True)
class Findings:
    """What a comparison has found.

    Parameters
    ----------
    comparison : Comparison
        All rows.
    traits : Traits
        Of the data.
    lines : list of Standing
        A line for each learner, the highest R1 first.
    differences : list of Difference
        Every pair of learners.
    advice : Recommendation
        Which learner to take.
    doubts : Doubts
        What speaks against the figures.
    """

    comparison: Comparison
    traits: Traits
    lines: list[Standing]
    differences: list[Difference]
    advice: Recommendation
    doubts: Doubts

    @property
    def taken(self) -> Standing | None:
        """The line of the learner to take."""
        return next((line for line in self.lines if line.learner == self.advice.take), None)

    def failed(self) -> dict[str, str]:
        """Return why, of each learner that has no result."""
        return {contender.learner: contender.error for contender in self.comparison.contenders if contender.error}

    def left_out(self) -> list[str]:
        """Return what is not among the results, for people."""
        untried = [f"{line.learner}: no time for {line.untried} more settings" for line in self.lines if line.untried]
        wanted, done = self.comparison.plan.n_splits, self.comparison.n_splits
        splits = [f"there was time for {done} of {wanted} splits"] if done < wanted else []
        return [f"{name}: {why}" for name, why in self.failed().items()] + untried + splits

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the rows, by name."""
        pairs = [
            {"first": pair.first, "second": pair.second, "p": pair.p_value, "real": pair.real}
            for pair in self.differences
        ]
        return {
            "data": self.comparison.dataset.name,
            "traits": self.traits.to_dict(),
            "splits": self.comparison.n_splits,
            "learners": [line.to_dict() for line in self.lines],
            "left_out": self.left_out(),
            "differences": pairs,
            "take": self.advice.take,
            "recommendation": self.advice.sentences,
            **self.doubts.to_dict(),
        }


def find(comparison: Comparison, traits: Traits) -> Findings:
    """Draw conclusions.

    Parameters
    ----------
    comparison : Comparison
        All rows.
    traits : Traits
        Of the data.

    Returns
    -------
    Findings
        What they mean.
    """
    lines = standings(comparison)
    pairs = differences(lines, comparison.truth())
    cut = unfinished(comparison)
    more = " ".join(what_would_do(cut, comparison))
    advice = recommend(comparison.dataset.name, lines, pairs, [one.learner for one in cut], more)
    return Findings(comparison, traits, lines, pairs, advice, find_doubts(comparison, lines))
