"""Kernels of the unweighted index: classes keep normalised weights by feature, and only strong ones make an edge.

``by_class`` lists (feature, weight) for each class; ``by_feature`` lists (class, place in that class's list) for each
feature, so that a weight is found from either side. Both only ever grow at their ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._edge_lists import SMALLEST, reserve, room_needed
from abound.learn._online_kernels import EDGES_A_CALL, HITS, TOUCHED, UPDATES
from abound.learn._retrieved_kernels import score_members, update_members
from abound.rank._topk_kernels import add_vote, forget_votes

EDGE = 0.1
"""A feature makes an edge to a class if its weight is at least this part of the class's largest."""


@kernel
def weight_place(by_class: Any, by_feature: Any, f: Any, c: Any) -> Any:
    """Return where the weight of feature ``f`` for class ``c`` stands, -1 if there is none."""
    head = by_feature.heads[f]
    for e in range(head.start, head.start + head.degree):
        if by_feature.classes[e] == c:
            return by_class.heads[c].start + np.int64(by_feature.weights[e])
    return -1


@kernel
def normalise(by_class: Any, c: Any) -> None:
    """Divide a class's weights by the largest."""
    head = by_class.heads[c]
    largest = 0.0
    for e in range(head.start, head.start + head.degree):
        largest = max(largest, by_class.weights[e])
    if largest > 0:
        for e in range(head.start, head.start + head.degree):
            by_class.weights[e] /= largest


@kernel
def promote(by_class: Any, by_feature: Any, indices: Any, data: Any, low: int, high: int, c: Any, up: float) -> None:
    """Raise a class's weights for the features of a row; a feature new to the class starts at 1 / df."""
    for p in range(low, high):
        if data[p] <= 0:
            continue
        f = indices[p]
        place = weight_place(by_class, by_feature, f, c)
        if place >= 0:
            by_class.weights[place] *= up
            continue
        class_head, feature_head = by_class.heads[c], by_feature.heads[f]
        reserve(by_class, class_head, 1)
        reserve(by_feature, feature_head, 1)
        new = class_head.start + class_head.degree
        by_class.classes[new] = f
        by_class.weights[new] = 1.0 / max(1, feature_head.seen)
        edge = feature_head.start + feature_head.degree
        by_feature.classes[edge] = c
        by_feature.weights[edge] = class_head.degree
        class_head.degree += 1
        feature_head.degree += 1
    normalise(by_class, c)


@kernel
def demote(by_class: Any, by_feature: Any, indices: Any, data: Any, low: int, high: int, c: Any, down: float) -> None:
    """Lower a class's weights for the features of a row."""
    for p in range(low, high):
        if data[p] > 0:
            place = weight_place(by_class, by_feature, indices[p], c)
            if place >= 0:
                by_class.weights[place] *= down
    normalise(by_class, c)


@kernel
def class_room(by_class: Any, label_ids: Any, first: int, last: int, n_values: int) -> Any:
    """Return the arena places that a row's features may take in the lists of its classes."""
    needed = 0
    for q in range(first, last):
        head = by_class.heads[label_ids[q]]
        capacity = max(head.capacity, SMALLEST)
        while capacity < head.degree + n_values:
            capacity *= 2
            needed += capacity
        needed += SMALLEST
    return needed


@kernel
def unweighted(
    indptr: Any,
    indices: Any,
    data: Any,
    label_indptr: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    by_class: Any,
    by_feature: Any,
    tolerance: int,
    up: float,
    down: float,
    stage: Any,
    votes: Any,
    tally: Any,
) -> Any:
    """Retrieve; raise the true classes that were missed; lower all wrong ones if more than ``tolerance`` came.

    In tandem learns the second stage, the perceptrons of retrieved and true classes; None if there is none, and then
    the compiler leaves it out. ``stage.wanted`` is the room it misses.
    """
    edges = 0
    for place in range(begin, len(order)):
        i = order[place]
        low, high = indptr[i], indptr[i + 1]
        first, last = label_indptr[i], label_indptr[i + 1]
        if first == last or sample_weight[i] == 0:
            continue
        class_full = by_class.used[0] + class_room(by_class, label_ids, first, last, high - low) > len(by_class.classes)
        feature_room = (last - first) * room_needed(by_feature, indices, low, high, last - first)
        if edges > EDGES_A_CALL or class_full or by_feature.used[0] + feature_room > len(by_feature.classes):
            tally[TOUCHED] += edges
            return place
        n = 0
        for p in range(low, high):
            x = data[p]
            if x <= 0:
                continue
            head = by_feature.heads[indices[p]]
            edges += head.degree
            for e in range(head.start, head.start + head.degree):
                c = by_feature.classes[e]
                weight = by_class.weights[by_class.heads[c].start + np.int64(by_feature.weights[e])]
                if weight < EDGE:
                    continue
                n = add_vote(votes, c, x * weight, n)
        best_true, n_true, missed = np.float32(0), 0, 0
        for q in range(first, last):
            best_true = max(best_true, votes.score[label_ids[q]])
            n_true += votes.seen[label_ids[q]]
        rival = np.float32(0)
        if stage is not None:
            n_slots, hit = score_members(indices, data, low, high, label_ids, first, last, votes, n, stage)
            missing = update_members(indices, data, low, high, n_slots, last - first, stage)
            edges += n_slots * (high - low)
            if missing:
                forget_votes(votes, n)
                stage.wanted[0] = missing
                tally[TOUCHED] += edges
                return place
        for q in range(first, last):
            c = label_ids[q]
            if not votes.seen[c]:
                promote(by_class, by_feature, indices, data, low, high, c, up)
                missed += 1
            votes.seen[c] = 0
        too_many = n - n_true > tolerance
        for t in range(n):
            c = votes.touched[t]
            if not votes.seen[c]:
                continue
            rival = max(rival, votes.score[c])
            if too_many:
                demote(by_class, by_feature, indices, data, low, high, c, down)
        forget_votes(votes, n)
        if stage is None:
            hit = best_true > rival
        tally[HITS] += hit
        tally[UPDATES] += missed > 0 or too_many
    tally[TOUCHED] += edges
    return len(order)
