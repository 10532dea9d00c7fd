"""Kernels of the unweighted index's second stage: a committee of perceptrons a class, which ranks what was retrieved.

``stage.lists`` has, for each feature, its classes, each as often as there are members, with the weight that each member
has for the pair of feature and class. A pair that was never updated weighs nothing. ``stage.slot`` is -1 between rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._edge_lists import reserve, room_needed
from abound.rank._topk_kernels import add_vote, forget_votes, offer, sort_heap

START = 0.3
"""The first weights lie between -START and START, chosen on validation data; the papers' committees start in ±1."""


@kernel
def first_weight(f: Any, c: Any, j: Any) -> Any:
    """Return where member ``j`` starts for a pair: in [-START, START], as if at random but always the same."""
    z = np.uint64(f) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(c) * np.uint64(0xD1B54A32D192ED03) + np.uint64(j + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return START * (np.float64(z >> np.uint64(11)) / 2.0**52 - 1.0)


@kernel
def score_members(
    indices: Any,
    data: Any,
    low: int,
    high: int,
    label_ids: Any,
    first: int,
    last: int,
    votes: Any,
    n: int,
    stage: Any,
) -> Any:
    """Number the retrieved wrong classes, then the true ones, and let each member score them.

    Return how many they are, and whether a true one that was retrieved leads all wrong ones by the members' mean.
    """
    slot, slot_classes, scores = stage.slot, stage.slot_classes, stage.member_scores
    n_members = scores.shape[1]
    for q in range(first, last):
        slot[label_ids[q]] = 0
    n_slots = 0
    for t in range(n):
        if slot[votes.touched[t]] < 0:
            slot_classes[n_slots] = votes.touched[t]
            n_slots += 1
    n_wrong = n_slots
    for q in range(first, last):
        slot_classes[n_slots] = label_ids[q]
        n_slots += 1
    for s in range(n_slots):
        slot[slot_classes[s]] = s
        for j in range(n_members):
            scores[s, j] = 0
    for p in range(low, high):
        if data[p] <= 0:
            continue
        head = stage.lists.heads[indices[p]]
        for e in range(head.start, head.start + head.degree, n_members):
            s = slot[stage.lists.classes[e]]
            if s >= 0:
                for j in range(n_members):
                    scores[s, j] += data[p] * stage.lists.weights[e + j]
    best_true, best_wrong = -np.inf, -np.inf
    for s in range(n_slots):
        total = 0.0
        for j in range(n_members):
            total += scores[s, j]
        if s < n_wrong:
            best_wrong = max(best_wrong, total)
        elif votes.seen[slot_classes[s]]:
            best_true = max(best_true, total)
    return n_slots, best_true > best_wrong


@kernel
def update_members(indices: Any, data: Any, low: int, high: int, n_slots: int, n_true: int, stage: Any) -> Any:
    """Add the row to members that score a true class, which stands last, too low; take it from those wrong above 0.

    Return the room that the arena misses: if any, nothing was changed. Slots are free again afterwards.
    """
    lists, slot, slot_classes = stage.lists, stage.slot, stage.slot_classes
    signs, changed = stage.member_scores, stage.changed
    n_members, n_changed = signs.shape[1], 0
    for s in range(n_slots):
        sign = -1.0 if s < n_slots - n_true else 1.0
        changed[s] = False
        for j in range(n_members):
            wrong = signs[s, j] <= 0 if sign > 0 else signs[s, j] > 0
            signs[s, j] = sign if wrong else 0.0
            changed[s] |= wrong
        n_changed += changed[s]
    needed = room_needed(lists, indices, low, high, n_changed * n_members)
    missing = needed if lists.used[0] + needed > len(lists.classes) else 0
    for p in range(low, high):
        x, f = data[p], indices[p]
        if x <= 0 or n_changed == 0 or missing > 0:
            continue
        head = lists.heads[f]
        n_found = 0
        for e in range(head.start, head.start + head.degree, n_members):
            c = lists.classes[e]
            s = slot[c]
            if s >= 0 and changed[s]:
                n_found += 1
                slot[c] = -2
                for j in range(n_members):
                    lists.weights[e + j] += x * signs[s, j]
        reserve(lists, head, (n_changed - n_found) * n_members)
        for s in range(n_slots):
            c = slot_classes[s]
            if slot[c] >= 0 and changed[s]:
                new = head.start + head.degree
                for j in range(n_members):
                    lists.classes[new + j] = c
                    lists.weights[new + j] = first_weight(f, c, j) + x * signs[s, j]
                head.degree += n_members
            slot[c] = s
    for s in range(n_slots):
        slot[slot_classes[s]] = -1
    return missing


@kernel
def rank_retrieved(
    indptr: Any,
    indices: Any,
    data: Any,
    edge_indptr: Any,
    edge_classes: Any,
    list_indptr: Any,
    list_classes: Any,
    list_weights: Any,
    allowed: Any,
    begin: int,
    end: int,
    votes: Any,
    out_ids: Any,
    out_scores: Any,
) -> None:
    """Write the best k of the classes that active features have an edge to, ranked by other lists, best first.

    ``allowed`` is empty, or tells for each class whether it may be ranked. Places left over stay as they are.
    """
    for i in range(begin, end):
        n = 0
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] <= 0:
                continue
            for e in range(edge_indptr[indices[p]], edge_indptr[indices[p] + 1]):
                n = add_vote(votes, edge_classes[e], np.float32(0), n)
        for p in range(indptr[i], indptr[i + 1]):
            if data[p] <= 0:
                continue
            for e in range(list_indptr[indices[p]], list_indptr[indices[p] + 1]):
                c = list_classes[e]
                if votes.seen[c]:
                    votes.score[c] += data[p] * list_weights[e]
        size = 0
        for t in range(n):
            c = votes.touched[t]
            if len(allowed) == 0 or allowed[c]:
                size = offer(votes.score[c], c, size, out_ids[i], out_scores[i])
        forget_votes(votes, n)
        sort_heap(size, out_ids[i], out_scores[i])
