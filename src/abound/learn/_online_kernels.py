"""Kernels that the index learners share, and the updates of Feature Focus and EMA.

Each learner walks the rows in a given order: the active features vote, the true class's margin is taken, and if it is
too small the active features change their lists. A kernel returns the place in the order that it reached: at the end,
when the arena is full, or after about a fifth of a second, so that Ctrl-C is heard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._edge_lists import reserve, room_needed
from abound.rank._topk_kernels import add_vote, forget_votes

TAKEN_OUT = np.float32(-np.inf)
"""Score of a true class, so that it is no rival of itself."""

EDGES_A_CALL = 20_000_000
"""Edges that one call touches before it returns."""

UPDATES, HITS, TOUCHED = 0, 1, 2
"""Places in the tally: updates made, rows whose best class was true before the update, edges touched."""


@kernel
def vote(lists: Any, head: Any, factor: Any, max_degree: Any, lightest: Any, votes: Any, n: Any) -> Any:
    """Add ``factor`` × weight to a feature's heaviest classes; return how many classes are touched by now."""
    for e in range(head.start, head.start + min(head.degree, max_degree)):
        w = lists.weights[e]
        if w < lightest:
            break
        n = add_vote(votes, lists.classes[e], factor * w, n)
    return n


@kernel
def take_true(label_ids: Any, low: int, high: int, votes: Any, true_scores: Any) -> Any:
    """Take the true classes' scores out of the array (0 where none voted for them); return the best."""
    best = np.float32(0)
    for q in range(low, high):
        c = label_ids[q]
        s = max(votes.score[c], np.float32(0))
        true_scores[q - low] = s
        best = max(best, s)
        if votes.seen[c]:
            votes.score[c] = TAKEN_OUT
    return best


@kernel
def best_wrong(votes: Any, n: int) -> Any:
    """Return the best score left, at least 0, and make ready for the next row."""
    best = np.float32(0)
    for t in range(n):
        best = max(best, votes.score[votes.touched[t]])
    forget_votes(votes, n)
    return best


@kernel
def strengthen(lists: Any, head: Any, c: Any, amount: Any) -> None:
    """Add to the weight of the edge to ``c``, a new one if need be, keeping the list sorted; a free place is there."""
    start, end = head.start, head.start + head.degree
    e = start
    while e < end and lists.classes[e] != c:
        e += 1
    weight = amount
    if e == end:
        head.degree += 1
    else:
        weight += lists.weights[e]
    while e > start and lists.weights[e - 1] < weight:
        lists.weights[e] = lists.weights[e - 1]
        lists.classes[e] = lists.classes[e - 1]
        e -= 1
    lists.weights[e] = weight
    lists.classes[e] = c


@kernel
def drop_light(lists: Any, head: Any, lightest: Any) -> None:
    """Drop the edges that are lighter than ``lightest``: they stand at the list's end."""
    while head.degree > 0 and lists.weights[head.start + head.degree - 1] < lightest:
        head.degree -= 1


@kernel
def drop_light_and_forget(lists: Any, head: Any, min_weight: Any) -> None:
    """Drop edges of less than ``min_weight`` of the total, the lightest first, and take their counts out of it."""
    while head.degree > 0 and lists.weights[head.start + head.degree - 1] < min_weight * head.total:
        head.degree -= 1
        head.total -= lists.weights[head.start + head.degree]


@kernel
def rating(seen: Any, rate_features: Any) -> Any:
    """Return r_f = min(1, #_f / rate_features), or 1 if features are not rated."""
    if rate_features == 0:
        return 1.0
    return min(1.0, seen / rate_features)


@kernel
def feature_focus(
    indptr: Any,
    indices: Any,
    data: Any,
    label_indptr: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    lists: Any,
    count_seen: bool,
    margin: float,
    min_weight: float,
    max_degree: int,
    vote_weight: float,
    rate_features: float,
    leak: bool,
    votes: Any,
    true_scores: Any,
    tally: Any,
) -> Any:
    """FF with the FSU update: the lists hold the counts n[f, c], their heads the totals n[f] and #_f, the rows seen."""
    edges = 0
    for place in range(begin, len(order)):
        i = order[place]
        low, high = indptr[i], indptr[i + 1]
        first, last = label_indptr[i], label_indptr[i + 1]
        if first == last or sample_weight[i] == 0:
            continue
        needed = room_needed(lists, indices, low, high, last - first)
        if edges > EDGES_A_CALL or lists.used[0] + needed > len(lists.classes):
            tally[TOUCHED] += edges
            return place
        n = 0
        for p in range(low, high):
            x = data[p]
            if x <= 0:
                continue
            head = lists.heads[indices[p]]
            if count_seen:
                head.seen += 1
            if head.total > 0:
                factor = rating(head.seen, rate_features) * x / head.total
                n = vote(lists, head, factor, max_degree, vote_weight * head.total, votes, n)
                edges += min(head.degree, max_degree)
        best_true = take_true(label_ids, first, last, votes, true_scores)
        rival = best_wrong(votes, n)
        tally[HITS] += best_true > rival
        for q in range(first, last):
            if true_scores[q - first] - rival > margin:
                continue
            y = label_ids[q]
            tally[UPDATES] += 1
            for p in range(low, high):
                x = data[p] * sample_weight[i]
                if x <= 0:
                    continue
                head = lists.heads[indices[p]]
                reserve(lists, head, last - q)
                strengthen(lists, head, y, x)
                head.total += x
                if leak:
                    drop_light(lists, head, min_weight * head.total)
                else:
                    drop_light_and_forget(lists, head, min_weight)
    tally[TOUCHED] += edges
    return len(order)


@kernel
def ema(
    indptr: Any,
    indices: Any,
    data: Any,
    label_indptr: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    lists: Any,
    margin: float,
    min_weight: float,
    max_degree: int,
    vote_weight: float,
    rate: float,
    votes: Any,
    true_scores: Any,
    tally: Any,
) -> Any:
    """EMA: every update fades a feature's weights by 1 - β x_f and gives β x_f to the true class."""
    edges = 0
    for place in range(begin, len(order)):
        i = order[place]
        low, high = indptr[i], indptr[i + 1]
        first, last = label_indptr[i], label_indptr[i + 1]
        if first == last or sample_weight[i] == 0:
            continue
        needed = room_needed(lists, indices, low, high, last - first)
        if edges > EDGES_A_CALL or lists.used[0] + needed > len(lists.classes):
            tally[TOUCHED] += edges
            return place
        n = 0
        for p in range(low, high):
            x = data[p]
            if x > 0:
                head = lists.heads[indices[p]]
                n = vote(lists, head, x, max_degree, vote_weight, votes, n)
                edges += min(head.degree, max_degree)
        best_true = take_true(label_ids, first, last, votes, true_scores)
        rival = best_wrong(votes, n)
        tally[HITS] += best_true > rival
        for q in range(first, last):
            if true_scores[q - first] - rival > margin:
                continue
            y = label_ids[q]
            tally[UPDATES] += 1
            for p in range(low, high):
                step = min(1.0, rate * data[p] * sample_weight[i])
                if step <= 0:
                    continue
                head = lists.heads[indices[p]]
                for e in range(head.start, head.start + head.degree):
                    lists.weights[e] *= 1 - step
                reserve(lists, head, last - q)
                strengthen(lists, head, y, step)
                drop_light(lists, head, min_weight)
    tally[TOUCHED] += edges
    return len(order)
