"""Parts of a committee: one training run, what changes between members, scores on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.online import OnlineClassifier
from abound.validation import Float32Array, Rows, frozen


def draws(learner: RankingClassifier) -> bool:
    """Tell whether a learner depends on a seed.

    Parameters
    ----------
    learner : RankingClassifier
        The learner.

    Returns
    -------
    bool
        Whether it has a ``random_state``.
    """
    return "random_state" in learner.get_params(deep=False)


class Given(NamedTuple):
    """What all runs have in common: it is sent to a worker once."""

    keep_passes: tuple[int, ...]
    """The passes of an online learner that give a member; if it never reaches one, its end does."""
    X: Any
    labels: Labels
    weights: Float32Array
    sample: Rows
    """Rows to count changes on."""


def train_run(
    run: tuple[RankingClassifier, int | None], given: Given
) -> tuple[list[RankingClassifier], list[float], list[dict[str, float]]]:
    """Train a learner once and keep what it is after certain passes.

    Parameters
    ----------
    run : (RankingClassifier, int or None)
        The learner, which stays as it is, and its seed, None if it draws nothing.
    given : Given
        The rows.

    Returns
    -------
    members : list of RankingClassifier
        They rank and cannot learn on.
    changes : list of float
        What `changes_between` says of the sample.
    history : list of dict
        The learner's.
    """
    original, seed = run
    learner, keep_passes = original._as_part(), given.keep_passes
    kept: list[RankingClassifier] = []
    if seed is not None:
        learner.set_params(random_state=seed)
    if isinstance(learner, OnlineClassifier):
        learner.set_params(passes=max(keep_passes))
        learner._watch = frozenset(keep_passes), lambda: kept.append(learner._frozen_copy())
    learner.fit(given.X, given.labels, given.weights)
    members = kept or [learner._frozen_copy()]
    return members, changes_between(members, given.sample), getattr(learner, "history_", [])


def changes_between(members: Sequence[RankingClassifier], rows: Rows) -> list[float]:
    """Tell how many rows have another best class from one member to the next.

    Parameters
    ----------
    members : sequence of RankingClassifier
        In the order of their passes.
    rows : Rows
        The rows.

    Returns
    -------
    list of float
        Shares of the rows, one less than members.
    """
    best = [member._rank(member._view(rows), 1, None).ids for member in members]
    return [float(np.mean(before != after)) for before, after in pairwise(best)]


def standardised(scores: Float32Array, allowed: npt.NDArray[np.bool_] | None) -> Float32Array:
    """Bring each row to mean 0 and deviation 1.

    Parameters
    ----------
    scores : float32 array of shape (n, n_classes)
        Dense scores.
    allowed : bool array of shape (n_classes,), optional
        The classes to take mean and deviation over; at least one.

    Returns
    -------
    float32 array of the same shape
        0 in a row whose scores are all alike.
    """
    counted = scores if allowed is None else scores[:, allowed]
    mean = counted.mean(axis=1, keepdims=True, dtype=np.float64)
    deviation = counted.std(axis=1, keepdims=True, dtype=np.float64)
    standard = np.divide(scores - mean, deviation, out=np.zeros(scores.shape), where=deviation > 0)
    result: Float32Array = standard.astype(np.float32)
    return result


def is_linear(member: RankingClassifier) -> bool:
    """Tell whether a member's scores are its index times the row, taken as it is.

    Parameters
    ----------
    member : RankingClassifier
        The member.

    Returns
    -------
    bool
        Then the mean of such members' scores is the score of their mean index.
    """
    values = frozen([2, -1], np.float32)
    probe = Rows(frozen([0, 2], np.int64), frozen([0, 1], np.int32), values, 2)
    view = member._view(probe)
    return member._ranks_by_index() and view.n_features == 2 and np.array_equal(view.data, values)
