"""Kernels that work on a batch of rows for the prototype learners: score it, correct its scores, apply its changes.

A batch is scored against the weights as they stand, in parallel. Then a learner walks it in order: each row's scores
first get what the batch's earlier updates would have given them, change × (x_earlier · x_row), so that every row is
judged by the weights that the one-by-one algorithm would have had. Last, the changes are added to the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._prototype_lists import SPARSE, add_two, make_dense, reserve, room_needed

SEGMENT = 2048
"""Classes whose dense weights are read for all rows of a batch before the next: they stay in the cache."""


@kernel
def add_dense(dense: Any, rows: Any, values: Any, n: int, low: int, high: int, score: Any) -> None:
    """Add dense weights × values to a segment of a row's scores, four features at a time.

    Slices that are counted from 0 let the compiler use vector instructions.
    """
    out = score[low:high]
    k = 0
    while k + 4 <= n:
        a, b = dense[rows[k], low:high], dense[rows[k + 1], low:high]
        c, d = dense[rows[k + 2], low:high], dense[rows[k + 3], low:high]
        u, v, w, x = values[k], values[k + 1], values[k + 2], values[k + 3]
        for y in range(len(out)):
            out[y] += (u * a[y] + v * b[y]) + (w * c[y] + x * d[y])
        k += 4
    while k < n:
        a = dense[rows[k], low:high]
        u = values[k]
        for y in range(len(out)):
            out[y] += u * a[y]
        k += 1


@kernel
def add_sparse(classes: Any, weights: Any, x: Any, score: Any) -> None:
    """Add sparse weights × a value to a row's scores."""
    for e in range(len(classes)):
        score[np.uint32(classes[e])] += x * weights[e]


@kernel
def score_rows(
    indptr: Any, indices: Any, data: Any, order: Any, begin: int, end: int, first: int, lists: Any, out: Any
) -> None:
    """Score rows ``order[begin:end]`` against the weights; row ``order[p]`` goes to ``out[p - first]``."""
    n_classes = out.shape[1]
    most = 0
    for place in range(begin, end):
        most = max(most, indptr[order[place] + 1] - indptr[order[place]])
    dense_rows = np.empty((end - begin, most), dtype=np.int32)
    dense_values = np.empty((end - begin, most), dtype=np.float32)
    n_dense = np.zeros(end - begin, dtype=np.int64)
    for place in range(begin, end):
        i = order[place]
        score = out[place - first]
        score[:] = 0
        n = 0
        for p in range(indptr[i], indptr[i + 1]):
            head = lists.heads[indices[p]]
            x = data[p]
            if head.row != SPARSE:
                dense_rows[place - begin, n] = head.row
                dense_values[place - begin, n] = x
                n += 1
                continue
            end_of_list = head.start + head.degree
            add_sparse(lists.classes[head.start : end_of_list], lists.weights[head.start : end_of_list], x, score)
        n_dense[place - begin] = n
    for low in range(0, n_classes, SEGMENT):
        high = min(low + SEGMENT, n_classes)
        for j in range(end - begin):
            add_dense(lists.dense, dense_rows[j], dense_values[j], n_dense[j], low, high, out[begin - first + j])


@kernel
def correct_scores(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
    first: int,
    place: int,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    values: Any,
    score: Any,
) -> None:
    """Add to a row's scores what the earlier updates of its batch give it; ``values`` is the row spread out, or all 0.

    The changes of the batch's row ``u`` are ``changes[change_indptr[u]:change_indptr[u + 1]]``.
    """
    i = order[place]
    spread = False
    for u in range(place - first):
        low, high = change_indptr[u], change_indptr[u + 1]
        if low == high:
            continue
        if not spread:
            for p in range(indptr[i], indptr[i + 1]):
                values[indices[p]] = data[p]
            spread = True
        earlier = order[first + u]
        product = np.float32(0)
        for p in range(indptr[earlier], indptr[earlier + 1]):
            product += data[p] * values[indices[p]]
        if product != 0:
            for q in range(low, high):
                score[change_classes[q]] += changes[q] * product
    if spread:
        for p in range(indptr[i], indptr[i + 1]):
            values[indices[p]] = 0


@kernel
def reserve_room(
    indptr: Any, indices: Any, order: Any, first: int, end: int, change_indptr: Any, dense_at: int, lists: Any
) -> Any:
    """Give every list that rows ``order[first:end]`` change room for it; return the place where the arena ran out.

    Lists with many classes become dense first. ``change_indptr`` begins with the row at ``first``.
    """
    for place in range(first, end):
        extra = change_indptr[place - first + 1] - change_indptr[place - first]
        if extra == 0:
            continue
        i = order[place]
        places, rows = room_needed(lists, indices, indptr[i], indptr[i + 1], extra, dense_at)
        if lists.used[0] + places > len(lists.classes) or lists.used[1] + rows > len(lists.dense):
            return place
        for p in range(indptr[i], indptr[i + 1]):
            head = lists.heads[indices[p]]
            if head.row == SPARSE:
                head.coming += extra
                if head.degree + head.coming >= dense_at:
                    make_dense(lists, head)
                else:
                    reserve(lists, head, head.coming)
    return end


@kernel
def apply_changes(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
    begin: int,
    end: int,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    share: int,
    n_shares: int,
    lists: Any,
) -> None:
    """Add the changes of rows ``order[begin:end]`` to the features of one share: those whose number leaves ``share``.

    Each weight belongs to one share and takes its changes in the rows' order, so shares may run side by side.
    """
    for place in range(begin, end):
        u = place - begin
        low, high = change_indptr[u], change_indptr[u + 1]
        if low == high:
            continue
        i = order[place]
        for p in range(indptr[i], indptr[i + 1]):
            f = indices[p]
            if f % n_shares != share:
                continue
            head = lists.heads[f]
            head.coming = 0
            for q in range(low, high - 1, 2):
                c, d = change_classes[q], change_classes[q + 1]
                add_two(lists, head, c, changes[q] * data[p], d, changes[q + 1] * data[p])
            if (high - low) % 2:
                c = change_classes[high - 1]
                add_two(lists, head, c, changes[high - 1] * data[p], c, np.float32(0))
