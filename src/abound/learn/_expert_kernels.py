"""The kernel of EDGE: the generalist scores all classes of a row, the experts of its best ones correct it.

A row costs the edges it touches in the generalist's index, as ever, and for each expert asked a search of the row's
features among the expert's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.rank._topk_kernels import add_vote, comes_before, forget_votes, offer, score_row, sort_heap

FLAT = 1e-10


@kernel
def keep_ranked(votes: Any, n_touched: int, allowed: Any, every_class: bool) -> Any:
    """Take the classes that may not rank out of the touched ones; return how many are left."""
    n = 0
    for t in range(n_touched):
        c = votes.touched[t]
        if (every_class or votes.score[c] > 0) and (len(allowed) == 0 or allowed[c]):
            votes.touched[n] = c
            n += 1
        else:
            votes.score[c] = 0
            votes.seen[c] = 0
    return n


@kernel
def take_best(votes: Any, n: int, rest: Any, allowed: Any, every_class: bool, ids: Any, scores: Any) -> Any:
    """Write the best classes; with ``every_class`` those not touched rank too, with the score ``rest``."""
    size = 0
    for t in range(n):
        size = offer(votes.score[votes.touched[t]], votes.touched[t], size, ids, scores)
    if every_class:
        for c in range(len(votes.score)):
            if size == len(ids) and not comes_before(rest, c, scores[0], ids[0]):
                break
            if not votes.seen[c] and (len(allowed) == 0 or allowed[c]):
                size = offer(rest, np.int32(c), size, ids, scores)
    sort_heap(size, ids, scores)
    return size


@kernel
def score_group(indices: Any, data: Any, low: int, high: int, experts: Any, e: int, local: Any) -> None:
    """Score the classes of an expert's group; both the row's and the expert's features are sorted."""
    local[:] = 0
    first, last = experts.feature_indptr[e], experts.feature_indptr[e + 1]
    for p in range(low, high):
        f = indices[p]
        begin, end = first, last
        while begin < end:
            middle = (begin + end) >> 1
            if experts.features[middle] < f:
                begin = middle + 1
            else:
                end = middle
        first = begin
        if begin < last and experts.features[begin] == f:
            for q in range(experts.list_indptr[begin], experts.list_indptr[begin + 1]):
                local[experts.list_classes[q]] += data[p] * experts.list_weights[q]


@kernel
def rank_with_experts(
    indptr: Any,
    indices: Any,
    data: Any,
    list_indptr: Any,
    list_classes: Any,
    list_weights: Any,
    expert_indptr: Any,
    expert_indices: Any,
    expert_data: Any,
    experts: Any,
    expert_of: Any,
    weight: float,
    allowed: Any,
    n_allowed: int,
    every_class: bool,
    begin: int,
    end: int,
    votes: Any,
    total: Any,
    times: Any,
    grouped: Any,
    local: Any,
    top_ids: Any,
    top_scores: Any,
    out_ids: Any,
    out_scores: Any,
) -> None:
    """Write the best k classes of rows ``begin`` to ``end``, best first; places left over stay as they are.

    Rows come as the generalist sees them and as the experts do. Scores are the generalist's, standardised over the
    classes that may rank; to those in a group, ``weight`` × the mean of the experts' scores is added, standardised over
    the groups. ``total`` and ``times`` are zero at the start and at the end.
    """
    score, touched = votes.score, votes.touched
    for i in range(begin, end):
        n = score_row(indices, data, indptr[i], indptr[i + 1], list_indptr, list_classes, list_weights, 1, votes)
        n = keep_ranked(votes, n, allowed, every_class)
        mean = 0.0
        for t in range(n):
            mean += np.float64(score[touched[t]]) / n_allowed
        square = mean * mean * (n_allowed - n) / n_allowed
        for t in range(n):
            square += (score[touched[t]] - mean) ** 2 / n_allowed
        deviation = np.sqrt(square)
        n_top = take_best(votes, n, np.float32(0), allowed, every_class, top_ids, top_scores)
        n_grouped = 0
        for t in range(n_top):
            e = expert_of[top_ids[t]]
            if e < 0:
                continue
            first, last = experts.group_indptr[e], experts.group_indptr[e + 1]
            scores = local[: last - first]
            score_group(expert_indices, expert_data, expert_indptr[i], expert_indptr[i + 1], experts, e, scores)
            for g in range(first, last):
                c = experts.group_classes[g]
                if len(allowed) and not allowed[c]:
                    continue
                if times[c] == 0:
                    grouped[n_grouped] = c
                    n_grouped += 1
                total[c] += scores[g - first]
                times[c] += 1
        group_mean, group_square = 0.0, 0.0
        for t in range(n_grouped):
            c = grouped[t]
            total[c] /= times[c]
            group_mean += total[c] / n_grouped
        for t in range(n_grouped):
            group_square += (total[grouped[t]] - group_mean) ** 2 / n_grouped
        # Opinions that differ by rounding only say nothing: standardised, noise would count as much as a real opinion.
        differ = group_square > FLAT * (group_mean * group_mean + group_square)
        factor = weight * deviation / np.sqrt(group_square) if differ else 0.0
        for t in range(n_grouped):
            c = grouped[t]
            n = add_vote(votes, c, np.float32(factor * (total[c] - group_mean)), n)
            total[c], times[c] = 0, 0
        scale = 1 / deviation if deviation > 0 else 0.0
        for t in range(n):
            score[touched[t]] = np.float32((score[touched[t]] - mean) * scale)
        rest = np.float32(-mean * scale)
        take_best(votes, n, rest, allowed, every_class, out_ids[i], out_scores[i])
        forget_votes(votes, n)
