"""Learners that a limit has cut off, and the limit that would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from abound.compare.budget import FIRST_SHARE, SLACK
from abound.compare.protocol import Comparison, Plan

BASELINES = ("frequency",)
"""Learners that only guess: there to be beaten."""

UNKNOWN_FACTOR = 4.0
"""Where nothing is known of how far a learner was, so many times the limit is a guess."""


@dataclass(frozen=True)
class Unfinished:
    """A learner without a result.

    Parameters
    ----------
    learner : str
        Its short name.
    kind : str
        "time", "memory", "crash" or "failed"; "time" also where its turn never came.
    had : float
        Seconds that it had.
    needs : float or None
        Seconds that it would need, from how far it was; None if that is not known.
    """

    learner: str
    kind: str
    had: float
    needs: float | None


def unfinished(comparison: Comparison) -> list[Unfinished]:
    """List the learners without a result, baselines aside.

    Parameters
    ----------
    comparison : Comparison
        All rows.

    Returns
    -------
    list of Unfinished
        In the order of the plan.
    """
    found = []
    for contender in comparison.contenders:
        if contender.error is None or contender.learner in BASELINES:
            continue
        row = next((row for row in (*contender.tests, *contender.tried) if row["error"]), None)
        error: dict[str, Any] = {"kind": "time"} if row is None else row["error"]
        had = 0.0 if row is None else float(row["limits"]["seconds"])
        found.append(Unfinished(contender.learner, error["kind"], had, error.get("needs")))
    return found


def what_would_do(cut: Sequence[Unfinished], comparison: Comparison) -> list[str]:
    """Say which limits would let the learners finish that were cut off.

    Parameters
    ----------
    cut : sequence of Unfinished
        From `unfinished`.
    comparison : Comparison
        All rows.

    Returns
    -------
    list of str
        Sentences.
    """
    sentences = []
    by_time = [one for one in cut if one.kind == "time"]
    if by_time:
        limits = {one.learner: _limit(one, comparison.plan) for one in by_time}
        first = min(by_time, key=lambda one: limits[one.learner])
        known = "judged by how far it was" if first.needs else "a guess: how far it was is not known"
        least, most = shown_limit(limits[first.learner]), shown_limit(max(limits.values()))
        rest = f", {most} for all" if most != least else ""
        sentences.append(f"Give more time: --time-limit {least} would do for {first.learner} ({known}){rest}.")
    by_memory = [one.learner for one in cut if one.kind == "memory"]
    if by_memory:
        sentences.append(
            f"Give more memory (--memory-limit), or leave out what needs too much of it: {', '.join(by_memory)}."
        )
    broken = [one.learner for one in cut if one.kind not in ("time", "memory")]
    if broken:
        sentences.append(f"More time or memory would not help {', '.join(broken)}: see why it was left out.")
    return sentences


def _limit(one: Unfinished, plan: Plan) -> float:
    """The time limit whose first share is long enough for a learner."""
    n_shares = sum(name not in BASELINES for name in plan.learners)
    seconds = one.had if one.needs is None else one.needs
    least = UNKNOWN_FACTOR if one.needs is None else 1.5
    return max(least * plan.time_limit, n_shares * SLACK * seconds / FIRST_SHARE)


def shown_limit(seconds: float) -> str:
    """Write a time as ``--time-limit`` takes it, in whole minutes or hours, rounded up.

    Parameters
    ----------
    seconds : float
        Seconds.

    Returns
    -------
    str
        At least one minute; hours from two on.

    Examples
    --------
    >>> shown_limit(61), shown_limit(7000), shown_limit(7300)
    ('2m', '117m', '3h')
    """
    if seconds > 2 * 3600:
        return f"{math.ceil(seconds / 3600)}h"
    return f"{max(1, math.ceil(seconds / 60))}m"
