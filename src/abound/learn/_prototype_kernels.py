"""The updates of the prototype learners: PA, perceptrons, MMP, each on a batch of rows that has been scored.

What a row changes is written down as (class, change): the row, times the change, is to be added to the class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._batch_kernels import correct_scores

UPDATES, HITS = 0, 1
"""Places in the tally: updates made, rows whose best class was true before the update."""


@kernel
def best_class(bits: Any) -> Any:
    """Return the class of the highest score, the lower of equals; ``bits`` are the scores' own bits as int32.

    Floats order like their bits once those of negative ones are turned around, and a maximum of integers vectorises.
    """
    best, start = np.int32(-(2**31)), 0
    for low in range(0, len(bits), 256):
        block = bits[low : low + 256]
        top = np.int32(-(2**31))
        for c in range(len(block)):
            top = max(top, block[c] ^ ((block[c] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
        if top > best:
            best, start = top, low
    block = bits[start : start + 256]
    for c in range(len(block)):
        if block[c] ^ ((block[c] >> np.int32(31)) & np.int32(0x7FFFFFFF)) == best:
            return start + c
    return 0


@kernel
def squared_length(data: Any, low: int, high: int) -> Any:
    """Return ‖x‖² of a row."""
    total = 0.0
    for p in range(low, high):
        total += data[p] * data[p]
    return total


@kernel
def passive_aggressive(
    indptr: Any,
    data: Any,
    label_indptr: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    end: int,
    margin: float,
    rate: float,
    aggressiveness: float,
    slack: bool,
    capped: bool,
    doubled: bool,
    constant: float,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    products: Any,
    scores: Any,
    bits: Any,
    tally: Any,
    log: Any,
) -> None:
    """PA on a batch: lowest true class against highest wrong one; ``log`` takes (row, true, rival, τ) if it is long.

    ``constant`` is the square of a value that all rows have beside their features.
    """
    change_indptr[0] = 0
    n_changes = 0
    for place in range(begin, end):
        i = order[place]
        j = place - begin
        score = scores[j]
        correct_scores(j, change_indptr, change_classes, changes, products, score)
        change_indptr[j + 1] = n_changes
        low, high = label_indptr[i], label_indptr[i + 1]
        if low == high or high - low == len(score) or sample_weight[i] == 0:
            continue
        worst, lowest, highest = label_ids[low], score[label_ids[low]], score[label_ids[low]]
        for q in range(low, high):
            c = label_ids[q]
            if score[c] < lowest:
                worst, lowest = c, score[c]
            highest = max(highest, score[c])
        for q in range(low, high):
            score[label_ids[q]] = -np.inf
        rival = best_class(bits[j])
        tally[HITS] += highest > score[rival]
        loss = margin - np.float64(lowest) + np.float64(score[rival])
        length = constant + squared_length(data, indptr[i], indptr[i + 1])
        if loss <= 0 or length == 0:
            continue
        tau = loss / ((2 if doubled else 1) * length + (1 / (2 * aggressiveness) if slack else 0.0))
        if capped:
            tau = min(tau, aggressiveness)
        if len(log):
            entry = log[np.int64(tally[UPDATES])]
            entry[0], entry[1], entry[2], entry[3] = i, worst, rival, tau
        tally[UPDATES] += 1
        change_classes[n_changes], changes[n_changes] = worst, rate * tau * sample_weight[i]
        change_classes[n_changes + 1], changes[n_changes + 1] = rival, -rate * tau * sample_weight[i]
        n_changes += 2
        change_indptr[j + 1] = n_changes


@kernel
def perceptrons(
    label_indptr: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    end: int,
    rate: float,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    products: Any,
    scores: Any,
    tally: Any,
) -> None:
    """One perceptron a class on a batch: a true class that scores 0 or less gains x, a wrong one above 0 loses it."""
    change_indptr[0] = 0
    n_changes = 0
    for place in range(begin, end):
        i = order[place]
        j = place - begin
        score = scores[j]
        correct_scores(j, change_indptr, change_classes, changes, products, score)
        change_indptr[j + 1] = n_changes
        low, high = label_indptr[i], label_indptr[i + 1]
        if low == high or sample_weight[i] == 0:
            continue
        change = rate * sample_weight[i]
        highest = score[label_ids[low]]
        for q in range(low, high):
            c = label_ids[q]
            highest = max(highest, score[c])
            if score[c] <= 0:
                change_classes[n_changes], changes[n_changes] = c, change
                n_changes += 1
            score[c] = -np.inf
        rival = np.float32(-np.inf)
        for c in range(len(score)):
            rival = max(rival, score[c])
            if score[c] > 0:
                change_classes[n_changes], changes[n_changes] = c, -change
                n_changes += 1
        tally[HITS] += highest > rival
        tally[UPDATES] += n_changes > change_indptr[j + 1]
        change_indptr[j + 1] = n_changes


@kernel
def multilabel_perceptron(
    label_indptr: Any,
    label_ids: Any,
    sample_weight: Any,
    order: Any,
    begin: int,
    end: int,
    rate: float,
    worst_pair: bool,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    products: Any,
    scores: Any,
    tally: Any,
) -> None:
    """MMP on a batch, over E = {(r, c): r true, c wrong, s_r ≤ s_c}.

    Column 0 is what all classes have in common, class c is column c + 1 and holds what it has beyond that. Early on
    most classes stand level with the common part and lose alike: that is one change of column 0, and only classes that
    lose more or less than it are changed themselves.
    """
    change_indptr[0] = 0
    n_changes = 0
    for place in range(begin, end):
        i = order[place]
        j = place - begin
        correct_scores(j, change_indptr, change_classes, changes, products, scores[j])
        score = scores[j, 1:]
        change_indptr[j + 1] = n_changes
        low, high = label_indptr[i], label_indptr[i + 1]
        if low == high or high - low == len(score) or sample_weight[i] == 0:
            continue
        true_ids = label_ids[low:high]
        true_scores = score[true_ids]
        score[true_ids] = -np.inf
        rival = np.argmax(score)
        tally[HITS] += true_scores.max() > score[rival]
        if true_scores.min() > score[rival]:
            continue
        tally[UPDATES] += 1
        if worst_pair:
            worst = true_ids[np.argmin(true_scores)]
            change_classes[n_changes], changes[n_changes] = worst + 1, rate * sample_weight[i]
            change_classes[n_changes + 1], changes[n_changes + 1] = rival + 1, -rate * sample_weight[i]
            n_changes += 2
            change_indptr[j + 1] = n_changes
            continue
        beaten = np.zeros(len(true_ids), dtype=np.int64)
        for c in range(len(score)):
            for r in range(len(true_ids)):
                beaten[r] += score[c] >= true_scores[r]
        n_beaten = beaten.sum()
        if n_beaten == 0:
            # Scores that are no numbers any more beat nothing.
            continue
        change = rate * sample_weight[i] / n_beaten
        level = (true_scores <= 0).sum()
        if level > 0:
            change_classes[n_changes], changes[n_changes] = 0, -change * level
            n_changes += 1
        for r in range(len(true_ids)):
            change_classes[n_changes], changes[n_changes] = true_ids[r] + 1, change * (beaten[r] + level)
            n_changes += 1
        for c in range(len(score)):
            if score[c] == 0 or score[c] == -np.inf:
                continue
            ahead = (true_scores <= score[c]).sum()
            if ahead != level:
                change_classes[n_changes], changes[n_changes] = c + 1, -change * (ahead - level)
                n_changes += 1
        change_indptr[j + 1] = n_changes
