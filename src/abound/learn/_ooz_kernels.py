"""Kernels of OOZ: weight moves from the classes that offend to the true class, feature by feature.

The lists are not kept sorted: a feature stores no more edges than may vote. A list's head holds the free source
w[f, 0] as its total.
"""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel
from abound.learn._edge_lists import reserve, room_needed
from abound.learn._online_kernels import EDGES_A_CALL, HITS, TOUCHED, UPDATES, take_true, vote
from abound.rank._topk_kernels import forget_votes

ABSENT = -1
"""Place of an edge that is not there."""


@kernel
def find_offenders(votes: Any, n: int, lowest: Any, offenders: Any, scores: Any) -> Any:
    """Keep the best of the touched classes that score at least ``lowest``, best first; return how many there are."""
    size, found = len(offenders), 0
    for t in range(n):
        c = votes.touched[t]
        s = votes.score[c]
        if s < lowest:
            continue
        j = min(found, size)
        found += 1
        if j == size:
            if s <= scores[size - 1]:
                continue
            j -= 1
        while j > 0 and scores[j - 1] < s:
            offenders[j], scores[j] = offenders[j - 1], scores[j - 1]
            j -= 1
        offenders[j], scores[j] = c, s
    return found


@kernel
def compute_deductions(scores: Any, found: int, lowest: Any, rate: float, deductions: Any) -> None:
    """Share out ``rate`` among the offenders: the highest come down first, level by level, none below ``lowest``."""
    size = min(len(scores), found)
    deductions[:] = 0
    taken = 0.0
    for i in range(size):
        step = rate - taken
        if i + 1 < size:
            step = min(step, scores[i] - scores[i + 1])
        elif found <= len(scores):
            step = min(step, scores[i] - lowest)
        for j in range(i + 1):
            deductions[j] += step / (i + 1)
        taken += step
        if taken >= rate:
            break


@kernel
def shift_weights(
    lists: Any,
    head: Any,
    x: Any,
    y: Any,
    size: int,
    rate: float,
    max_degree: int,
    tiny: float,
    slots: Any,
    deductions: Any,
    remainders: Any,
    places: Any,
) -> None:
    """Move at most ``rate`` · x to the edge of ``y``: from connected offenders, worst first, then the free source."""
    places[:size] = ABSENT
    true_place = ABSENT
    for e in range(head.start, head.start + head.degree):
        c = lists.classes[e]
        if c == y:
            true_place = e
        elif slots[c] != ABSENT:
            places[slots[c]] = e
    allowance = x * rate
    boost = 0.0
    for j in range(size):
        if allowance <= 0:
            break
        if places[j] == ABSENT or remainders[j] <= 0:
            continue
        e = places[j]
        moved = min(remainders[j] / x, lists.weights[e], x * deductions[j], allowance)
        boost += moved
        lists.weights[e] -= moved
        remainders[j] -= moved * x
        allowance -= moved
    free = max(0.0, min(head.total, allowance))
    head.total -= free
    boost += free
    if true_place != ABSENT:
        lists.weights[true_place] += boost
    elif boost > 0:
        lists.classes[head.start + head.degree] = y
        lists.weights[head.start + head.degree] = boost
        head.degree += 1
    tidy(lists, head, max_degree, tiny)


@kernel
def tidy(lists: Any, head: Any, max_degree: int, tiny: float) -> None:
    """Drop edges lighter than ``tiny``, and the lightest beyond ``max_degree``; the free source takes them back."""
    e = head.start
    while e < head.start + head.degree:
        if lists.weights[e] < tiny:
            remove(lists, head, e)
        else:
            e += 1
    while head.degree > max_degree:
        lightest = head.start
        for e in range(head.start + 1, head.start + head.degree):
            if lists.weights[e] < lists.weights[lightest]:
                lightest = e
        remove(lists, head, lightest)


@kernel
def remove(lists: Any, head: Any, e: int) -> None:
    """Take an edge out; the last one of the list takes its place."""
    last = head.start + head.degree - 1
    head.total += lists.weights[e]
    lists.classes[e], lists.weights[e] = lists.classes[last], lists.weights[last]
    head.degree -= 1


@kernel
def ooz(
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
    rate: float,
    max_degree: int,
    tiny: float,
    slots: Any,
    offenders: Any,
    offender_scores: Any,
    deductions: Any,
    remainders: Any,
    places: Any,
    votes: Any,
    true_scores: Any,
    tally: Any,
) -> Any:
    """OOZ_Update (figure 1 of the flat-techniques papers) for each row whose true class leads by at most ``margin``."""
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
            if data[p] > 0:
                head = lists.heads[indices[p]]
                n = vote(lists, head, data[p], max_degree, 0.0, votes, n)
                edges += head.degree
        best_true = take_true(label_ids, first, last, votes, true_scores)
        step = min(rate * sample_weight[i], margin / 2)
        rival = 0.0
        for t in range(n):
            rival = max(rival, votes.score[votes.touched[t]])
        tally[HITS] += best_true > rival
        for q in range(first, last):
            lowest = true_scores[q - first] - margin
            if rival < lowest:
                continue
            tally[UPDATES] += 1
            found = find_offenders(votes, n, lowest, offenders, offender_scores)
            compute_deductions(offender_scores, found, lowest, step, deductions)
            size = min(found, len(offenders))
            for j in range(size):
                slots[offenders[j]] = j
                remainders[j] = deductions[j]
            for p in range(low, high):
                if data[p] > 0:
                    head = lists.heads[indices[p]]
                    reserve(lists, head, last - q)
                    shift_weights(
                        lists,
                        head,
                        data[p],
                        label_ids[q],
                        size,
                        step,
                        max_degree,
                        tiny,
                        slots,
                        deductions,
                        remainders,
                        places,
                    )
            for j in range(size):
                slots[offenders[j]] = ABSENT
        forget_votes(votes, n)
    tally[TOUCHED] += edges
    return len(order)


@kernel
def bounded_perceptron(
    indptr: Any,
    indices: Any,
    data: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    end: int,
    heads: Any,
    rate: float,
    tally: Any,
) -> None:
    """OOZ for two classes: feature f gives ``w = heads[f].total`` to class 0 and 1 - w to class 1; ties update."""
    for place in range(begin, end):
        i = order[place]
        if sample_weight[i] == 0:
            continue
        lead = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] > 0:
                lead += data[p] * (2 * heads[indices[p]].total - 1)
        y = label_ids[i]
        if y == 1:
            lead = -lead
        tally[HITS] += lead > 0
        if lead > 0:
            continue
        tally[UPDATES] += 1
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] > 0:
                head = heads[indices[p]]
                head.seen += 1
                step = rate * data[p] * sample_weight[i]
                head.total = min(1.0, head.total + step) if y == 0 else max(0.0, head.total - step)
