"""Kernels that work on a batch of rows for the prototype learners: score it, correct its scores, apply its changes.

A batch is scored against the weights as they stand, in parallel. Then a learner walks it in order: each row's scores
first get what the batch's earlier updates would have given them, change × (x_earlier · x_row), so that every row is
judged by the weights that the one-by-one algorithm would have had. Last, the changes are added to the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._prototype_lists import LINE, SPARSE, add_two, fetch, fetch_dense, fetch_list

SEGMENT = 2048
"""Classes whose dense weights are read for all rows of a part before the next: they stay in the cache."""


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
def add_sparse(
    classes: Any, weights: Any, low: int, high: int, x: Any, next_low: int, next_high: int, score: Any
) -> None:
    """Add a list's weights × a value to a row's scores; the next list is brought near meanwhile."""
    own, own_weights = classes[low:high], weights[low:high]
    n_lines = len(own) // LINE
    for line in range(n_lines):
        begin = line * LINE
        if next_low + begin < next_high:
            fetch(classes, next_low + begin, next_low + begin + 1)
            fetch(weights, next_low + begin, next_low + begin + 1)
        for e in range(begin, begin + LINE):
            score[np.uint32(own[e])] += x * own_weights[e]
    for e in range(n_lines * LINE, len(own)):
        score[np.uint32(own[e])] += x * own_weights[e]
    fetch(classes, next_low + n_lines * LINE, next_high)
    fetch(weights, next_low + n_lines * LINE, next_high)


@kernel
def score_rows(
    indptr: Any, indices: Any, data: Any, order: Any, begin: int, end: int, first: int, lists: Any, bias: Any, out: Any
) -> None:
    """Score rows ``order[begin:end]`` against weights and bias; row ``order[p]`` goes to ``out[p - first]``."""
    n_classes = out.shape[1]
    most = 0
    for place in range(begin, end):
        most = max(most, indptr[order[place] + 1] - indptr[order[place]])
    dense_rows = np.empty((end - begin, most), dtype=np.int32)
    dense_values = np.empty((end - begin, most), dtype=np.float32)
    n_dense = np.zeros(end - begin, dtype=np.int64)
    starts, ends = np.zeros(most + 1, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    values = np.empty(most, dtype=np.float32)
    for place in range(begin, end):
        i = order[place]
        score = out[place - first]
        # An assignment of the whole array would not be compiled into vector instructions.
        for c in range(n_classes):
            score[c] = bias[c]
        n, n_lists = 0, 0
        for p in range(indptr[i], indptr[i + 1]):
            head = lists.heads[indices[p]]
            if head.row != SPARSE:
                dense_rows[place - begin, n] = head.row
                dense_values[place - begin, n] = data[p]
                n += 1
            else:
                starts[n_lists], ends[n_lists] = head.start, head.start + head.degree
                values[n_lists] = data[p]
                n_lists += 1
        n_dense[place - begin] = n
        starts[n_lists] = ends[n_lists] = 0
        for k in range(n_lists):
            after = starts[k + 1], ends[k + 1]
            add_sparse(lists.classes, lists.weights, starts[k], ends[k], values[k], after[0], after[1], score)
    for low in range(0, n_classes, SEGMENT):
        high = min(low + SEGMENT, n_classes)
        for j in range(end - begin):
            add_dense(lists.dense, dense_rows[j], dense_values[j], n_dense[j], low, high, out[begin - first + j])


@kernel
def multiply_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
    begin: int,
    end: int,
    constant: float,
    met: Any,
    products: Any,
) -> None:
    """Write the products x_j · x_u of each row of a batch with the earlier ones to ``products[j, u]``.

    ``constant`` is the square of a value that all rows have beside their features. Only pairs of rows that share a
    feature are looked at: ``met`` lists, for each feature, the rows that had it so far.
    """
    for place in range(begin, end):
        for p in range(indptr[order[place]], indptr[order[place] + 1]):
            met.lists[indices[p], 1] = 0
    for place in range(begin, end):
        for p in range(indptr[order[place]], indptr[order[place] + 1]):
            met.lists[indices[p], 1] += 1
    n_entries = 0
    for place in range(begin, end):
        i = order[place]
        product = products[place - begin]
        product[:] = constant
        for p in range(indptr[i], indptr[i + 1]):
            entry = met.lists[indices[p]]
            if entry[1] > 0:
                entry[0] = n_entries
                n_entries += entry[1]
                entry[1] = 0
            x, low, high = data[p], entry[0], entry[0] - entry[1]
            for n in range(low, high):
                product[met.rows[n]] += x * met.values[n]
            met.rows[high], met.values[high] = place - begin, x
            entry[1] -= 1


@kernel
def correct_scores(j: int, change_indptr: Any, change_classes: Any, changes: Any, products: Any, score: Any) -> None:
    """Add to the scores of the batch's row ``j`` what the updates of its earlier rows give it.

    The changes of row ``u`` are ``changes[change_indptr[u]:change_indptr[u + 1]]``.
    """
    for u in range(j):
        product = products[j, u]
        if product != 0:
            for q in range(change_indptr[u], change_indptr[u + 1]):
                score[change_classes[q]] += changes[q] * product


@kernel
def apply_changes(
    indptr: Any,
    indices: Any,
    data: Any,
    order: Any,
    end: int,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    dense_at: int,
    share: int,
    n_shares: int,
    lists: Any,
    stop: Any,
) -> Any:
    """Add the changes of a batch to the features of one share: those whose number leaves ``share``.

    Each weight belongs to one share and takes its changes in the rows' order, so shares may run side by side. It begins
    where ``stop`` says: the row's place in the order, its place in the batch, feature of the share, change. It returns
    0 when all is done; if the stock runs out, what it lacks, and ``stop`` tells where to go on.
    """
    stock = lists.stock[share]
    own = np.empty(LINE, dtype=np.int64)
    while stop[0] < end:
        i = order[stop[0]]
        low, high = change_indptr[stop[1]], change_indptr[stop[1] + 1]
        if low < high:
            if len(own) < indptr[i + 1] - indptr[i]:
                own = np.empty(2 * (indptr[i + 1] - indptr[i]), dtype=np.int64)
            n = 0
            for p in range(indptr[i], indptr[i + 1]):
                if indices[p] % n_shares == share:
                    fetch_dense(lists, indices[p], change_classes[low], change_classes[high - 1])
                    own[n] = p
                    n += 1
            for k in range(stop[2], n):
                if k + 1 < n:
                    fetch_list(lists, indices[own[k + 1]])
                head, x = lists.heads[indices[own[k]]], data[own[k]]
                for q in range(low + stop[3], high, 2):
                    r = min(q + 1, high - 1)
                    other = changes[r] * x if r > q else np.float32(0)
                    missing = add_two(
                        lists, head, change_classes[q], changes[q] * x, change_classes[r], other, dense_at, stock
                    )
                    if missing != 0:
                        stop[2], stop[3] = k, q - low
                        return missing
                stop[3] = 0
            stop[2] = 0
        stop[0] += 1
        stop[1] += 1
    return 0
