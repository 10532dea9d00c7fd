"""What speaks against the figures of a comparison: held-out rows that are too easy, near copies across a split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from abound.compare.near_copies import NearCopies, near_copies
from abound.compare.protocol import Comparison
from abound.compare.results import Standing
from abound.compare.splits import choosing_split, final_split

SIGMAS, LEAST_GAP = 3.0, 0.03
"""Held-out rows are far better where so many standard errors leave so much of the difference."""

MANY_COPIES = 0.2
"""Near copies of so many rows are told of first."""

WHAT_TO_DO = "If rows belong together, such as those of one patient or record, name their column: --group COLUMN."


@dataclass(frozen=True)
class Gap:
    """R1 of one learner on the rows that its setting was chosen by, and on test rows.

    Parameters
    ----------
    learner : str
        Its short name.
    held_out, test : float
        R1.
    held_out_rows, test_rows : int
        Of how many rows.
    """

    learner: str
    held_out: float
    held_out_rows: int
    test: float
    test_rows: int

    @property
    def is_far(self) -> bool:
        """Whether held-out rows are far better than test rows, beyond what the draw of the rows explains."""
        of_each = ((self.held_out, self.held_out_rows), (self.test, self.test_rows))
        error = math.sqrt(sum(share * (1 - share) / max(1, rows) for share, rows in of_each))
        return self.held_out - self.test - SIGMAS * error >= LEAST_GAP


@dataclass(frozen=True)
class Doubts:
    """What speaks against the figures.

    Parameters
    ----------
    gap : Gap or None
        Of the best learner that had something to choose; None if none had.
    copies : list of NearCopies
        Of the test rows and of the rows that settings were chosen by; empty for dense rows.
    """

    gap: Gap | None
    copies: list[NearCopies]

    def sentences(self) -> list[str]:
        """Return what to be told of first; nothing if all is well."""
        told = []
        if self.gap is not None and self.gap.is_far:
            told.append(
                f"Held-out rows are far better than test rows: R1 {self.gap.held_out:.3f} on "
                f"{self.gap.held_out_rows:,}, {self.gap.test:.3f} on {self.gap.test_rows:,} ({self.gap.learner}). "
                "Settings were chosen by the former; the latter is what to expect of rows that are new."
            )
        many = [copies for copies in self.copies if copies.share >= MANY_COPIES]
        told += [
            f"{copies.share:.0%} of the {copies.of} rows have a near copy among the rows learned from: {shown(copies)}."
            for copies in many
        ]
        if any(copies.of == "test" for copies in many):
            told.append("The figures are too good for rows without one.")
        return [*told, WHAT_TO_DO] if told else []

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return {
            "warnings": self.sentences(),
            "held_out_against_test": None if self.gap is None else {**asdict(self.gap), "far": self.gap.is_far},
            "near_copies": [copies.to_dict() for copies in self.copies],
        }


def find_doubts(comparison: Comparison, lines: Sequence[Standing]) -> Doubts:
    """Look for what speaks against the figures.

    Parameters
    ----------
    comparison : Comparison
        All rows.
    lines : sequence of Standing
        Highest R1 first.

    Returns
    -------
    Doubts
        What was found.
    """
    dataset, plan = comparison.dataset, comparison.plan
    halves = {"test": final_split(dataset, 0, plan.n_splits, plan.seed)}
    chosen = [line for line in lines if any(row["error"] is None for row in line.tried)]
    if chosen:
        halves["held-out"] = choosing_split(dataset, plan.n_splits, plan.seed)
    found = [near_copies(of, rows, plan.text) for of, rows in halves.items()]
    return Doubts(_gap(chosen[0]) if chosen else None, [copies for copies in found if copies is not None])


def best_tried(row: dict[str, Any]) -> float:
    """Return the R1 of a setting that was tried, with the best number of passes.

    Parameters
    ----------
    row : dict
        Its row.

    Returns
    -------
    float
        R1.
    """
    return float(max([row["measures"]["R1"], *(entry["R1"] for entry in row["history"] if "R1" in entry)]))


def shown(copies: NearCopies) -> str:
    """Write the examples of near copies for people.

    Parameters
    ----------
    copies : NearCopies
        With examples.

    Returns
    -------
    str
        On one line.
    """
    return "; ".join(
        f"“{one['row']}” ({', '.join(one['labels'])}) and “{one['copy']}” ({', '.join(one['copy_labels'])})"
        for one in copies.examples
    )


def _gap(line: Standing) -> Gap:
    tried = max((row for row in line.tried if row["error"] is None), key=best_tried)
    rows = line.rows[0]["sizes"]["held_rows"]
    return Gap(line.learner, best_tried(tried), tried["sizes"]["held_rows"], line.recall, rows)
