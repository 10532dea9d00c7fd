"""What a comparison means, in words: for this file, take this learner, for these reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from abound.compare.results import LEVEL, Difference, Standing, pareto
from abound.compare.unfinished import BASELINES
from abound.learn.registry import LEARNERS

NEARLY = 0.005
"""R1 that is given up without regret for a model that trains or ranks much faster."""

MUCH_FASTER = 3.0


@dataclass(frozen=True)
class Recommendation:
    """Which learner to take.

    Parameters
    ----------
    take : str or None
        Its short name; None if there is nothing to recommend.
    sentences : list of str
        Why, and when to take another.
    """

    take: str | None
    sentences: list[str]


def recommend(
    name: str, lines: Sequence[Standing], found: Sequence[Difference], cut_off: Sequence[str] = (), more: str = ""
) -> Recommendation:
    """Say which learner to take.

    Parameters
    ----------
    name : str
        Of the data.
    lines : sequence of Standing
        Highest R1 first.
    found : sequence of Difference
        Every pair.
    cut_off : sequence of str
        Learners that did not finish. Then no baseline is recommended: it has won against nobody.
    more : str
        What would let them finish.

    Returns
    -------
    Recommendation
        The most accurate learner, or the quickest of those that cannot be told from it.
    """
    if not lines or (cut_off and lines[0].learner in BASELINES):
        return Recommendation(None, [f"For {name}: {_nothing(lines, cut_off)}", *([more] if more else [])])
    best = lines[0]
    equals = [line for line in lines[1:] if not _differ(best, line, found)]
    if cut_off:
        equals = [line for line in equals if line.learner not in BASELINES]
    take = min([best, *equals], key=lambda line: line.train_seconds)
    sentences = [f"For {name}: take {take.learner}{f' ({take.shown})' if take.shown else ''}, R1 {take.recall:.3f}."]
    if take is not best:
        sentences.append(
            f"{best.learner} has {best.recall:.3f}, no difference that these test rows could prove, and takes "
            f"{_times(best.train_seconds, take.train_seconds)} as long to train."
        )
    others = [line for line in lines if line is not take and line is not best]
    if take is best and others:
        second = others[0]
        sure = _differ(best, second, found)
        sentences.append(
            f"The next best is {second.learner} with {second.recall:.3f}; the difference is "
            + (f"more than luck (p ≤ {LEVEL})." if sure else f"not certain (p > {LEVEL}).")
        )
    faster = [line for line in lines if take.train_seconds > MUCH_FASTER * line.train_seconds]
    if faster:
        quick = max(faster, key=lambda line: line.recall)
        if quick.recall > 0.5 * take.recall:
            sentences.append(
                f"{quick.learner} trains {_times(take.train_seconds, quick.train_seconds)} as fast and loses "
                f"{max(0.0, take.recall - quick.recall):.3f} of R1."
            )
    small = [line for line in lines if take.recall - line.recall <= NEARLY * 4 and line.edges * 2 < take.edges]
    if small:
        least = min(small, key=lambda line: line.edges)
        sentences.append(
            f"{least.learner} keeps {least.edges:,} weights where {take.learner} keeps {take.edges:,}, and loses "
            f"{max(0.0, take.recall - least.recall):.3f} of R1."
        )
    if not hasattr(LEARNERS[take.learner], "partial_fit"):
        online = [line for line in lines if hasattr(LEARNERS[line.learner], "partial_fit")]
        if online:
            sentences.append(
                f"If the model must go on learning in use, {online[0].learner} is the best that can "
                f"({online[0].recall:.3f})."
            )
    front = pareto([line.train_seconds for line in lines], [line.recall for line in lines])
    beaten = [line.learner for i, line in enumerate(lines) if i not in front]
    if beaten:
        sentences.append(f"Beaten in both accuracy and training time by another: {', '.join(beaten)}.")
    return Recommendation(take.learner, sentences)


def _nothing(lines: Sequence[Standing], cut_off: Sequence[str]) -> str:
    """Why nothing is recommended."""
    if not lines:
        return "no learner has a result, so there is nothing to recommend."
    names, cut = [line.learner for line in lines], ", ".join(cut_off)
    if all(name in BASELINES for name in names):
        return (
            f"nothing finished but {', '.join(names)}, which only guesses (R1 {lines[0].recall:.3f}), so there is "
            f"nothing to recommend. Cut off: {cut}."
        )
    return (
        f"none of {', '.join(name for name in names if name not in BASELINES)} is better than {names[0]}, which only "
        f"guesses (R1 {lines[0].recall:.3f}), and others were cut off: {cut}. There is nothing to recommend."
    )


def _differ(one: Standing, other: Standing, found: Sequence[Difference]) -> bool:
    pair = {one.learner, other.learner}
    return any(difference.real for difference in found if {difference.first, difference.second} == pair)


def _times(more: float, less: float) -> str:
    ratio = more / max(less, 1e-9)
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
