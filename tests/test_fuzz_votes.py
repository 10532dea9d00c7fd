"""A class that gets votes is listed once, whatever its score is or becomes, and nothing is written behind the list."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abound.compiled import kernel
from abound.learn._edge_lists import HEAD, EdgeLists
from abound.learn._online_kernels import vote
from abound.rank._topk_kernels import Votes, add_vote, forget_votes, no_votes, score_row

N_CLASSES = 11
BEHIND = 200
"""Places behind the list, in memory of its own, so that a write there is seen and harms nothing."""

HOSTILE = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, 1e-45, -1.0, 1.0, 3e38, -3e38], np.float32).tolist()
ballots = st.lists(st.tuples(st.integers(0, N_CLASSES - 1), st.sampled_from(HOSTILE)), max_size=BEHIND)


def room() -> tuple[Votes, Any]:
    """Room for the votes of a row, and all the memory that its list is the beginning of."""
    memory = np.full(N_CLASSES + 1 + BEHIND, -7, np.int32)
    return no_votes(N_CLASSES)._replace(touched=memory[: N_CLASSES + 1]), memory


def check(votes: Votes, memory: Any, n: int, cast: list[tuple[int, float]]) -> None:
    """What is listed is what was voted for, in order; then the room is as it was."""
    listed = list(dict.fromkeys(c for c, _ in cast))
    assert memory[:n].tolist() == listed
    assert (memory[N_CLASSES + 1 :] == -7).all(), "it was written behind the list"
    sums = np.zeros(N_CLASSES, np.float32)
    with np.errstate(all="ignore"):
        for c, amount in cast:
            sums[c] += np.float32(amount)
    np.testing.assert_array_equal(votes.score, sums)
    forget_votes(votes, n)
    assert not votes.score.any() and not votes.seen.any()


@kernel
def add_all(classes: Any, amounts: Any, votes: Any) -> Any:
    n = 0
    for i in range(len(classes)):
        n = add_vote(votes, classes[i], amounts[i], n)
    return n


@kernel
def vote_all(lists: Any, votes: Any) -> Any:
    n = 0
    for f in range(len(lists.heads)):
        n = vote(lists, lists.heads[f], np.float32(1), 10, -np.inf, votes, n)
    return n


@given(ballots)
def test_a_vote_lists_a_class_once(cast: list[tuple[int, float]]) -> None:
    votes, memory = room()
    classes = np.array([c for c, _ in cast], np.int32)
    check(votes, memory, add_all(classes, np.array([amount for _, amount in cast], np.float32), votes), cast)


@given(ballots)
def test_the_features_of_a_row_list_a_class_once(cast: list[tuple[int, float]]) -> None:
    """As EDGE collects them, where a class of -inf was listed again at every vote."""
    votes, memory = room()
    n = len(cast)
    lists = np.arange(n + 1), np.array([c for c, _ in cast], np.int32), np.array([w for _, w in cast], np.float32)
    check(
        votes,
        memory,
        score_row(np.arange(n, dtype=np.int32), np.ones(n, np.float32), 0, n, *lists, 1, votes),
        cast,
    )


@given(ballots)
def test_the_lists_of_a_learner_list_a_class_once(cast: list[tuple[int, float]]) -> None:
    """As FF, EMA and OOZ collect them while they learn."""
    votes, memory = room()
    n = len(cast)
    heads = np.zeros(n, HEAD)
    heads["start"], heads["degree"] = np.arange(n), 1
    classes, weights = np.array([c for c, _ in cast], np.int32), np.array([w for _, w in cast], np.float64)
    check(votes, memory, vote_all(EdgeLists(heads, classes, weights, np.array([n])), votes), cast)
