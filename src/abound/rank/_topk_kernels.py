"""Kernels that score the classes of a row and keep the best k.

A dense score array and a list of the classes touched make a row cost what its edges cost, not the number of classes. A
row that touches most classes anyway is scored without the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.compiled import kernel

LONG = 2
"""A row with more edges than one for so many classes is scored densely."""

SCANNED = 64
"""Classes that are compared at once with the worst of the best."""


MARKS = 255
"""Rows of one call have marks of their own, until a byte has no more: then all begin anew."""


class Votes(NamedTuple):
    """What the classes of a row have so far. Learners leave ``score`` and ``seen`` all 0 after each row."""

    score: npt.NDArray[Any]
    seen: npt.NDArray[np.uint8]
    """A mark, not 0, for a class that is listed; its score tells nothing of that, whatever it is."""
    touched: npt.NDArray[np.int32]
    """The classes that are listed, and one place more."""


def no_votes(n_classes: int, dtype: npt.DTypeLike = np.float32) -> Votes:
    """Make room for the votes of a row."""
    return Votes(np.zeros(n_classes, dtype), np.zeros(n_classes, np.uint8), np.empty(n_classes + 1, np.int32))


@kernel
def add_vote(votes: Any, c: Any, amount: Any, n: int) -> Any:
    """Add to the score of a class; return how many classes are listed by now: each once.

    Without a branch: the rows of a learner meet the same classes again and again, and nobody can tell when.
    """
    place = np.uint64(c)
    votes.score[place] += amount
    votes.touched[np.uint64(n)] = c
    n += 1 - int(votes.seen[place])
    votes.seen[place] = 1
    return n


@kernel
def forget_votes(votes: Any, n: int) -> None:
    """Make ready for the next row."""
    for t in range(n):
        place = np.uint64(votes.touched[t])
        votes.score[place] = 0
        votes.seen[place] = 0


@kernel
def comes_before(score: Any, c: Any, other_score: Any, other: Any) -> Any:
    """Tell whether a class ranks above another: by score, ties by the lower id."""
    return score > other_score or (score == other_score and c < other)


@kernel
def offer(score: Any, c: Any, size: Any, ids: Any, scores: Any) -> Any:
    """Offer a class to a heap of the best (its worst on top); return the heap's new size."""
    k = len(ids)
    if size < k:
        i = size
        while i > 0:
            up = (i - 1) >> 1
            if not comes_before(scores[up], ids[up], score, c):
                break
            ids[i], scores[i] = ids[up], scores[up]
            i = up
        ids[i], scores[i] = c, score
        return size + 1
    if not comes_before(score, c, scores[0], ids[0]):
        return size
    sift_down(score, c, k, ids, scores)
    return size


@kernel
def sift_down(score: Any, c: Any, size: Any, ids: Any, scores: Any) -> None:
    """Replace the heap's top, its worst class, by another one."""
    i = 0
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        right = down + 1
        if right < size and comes_before(scores[down], ids[down], scores[right], ids[right]):
            down = right
        if not comes_before(score, c, scores[down], ids[down]):
            break
        ids[i], scores[i] = ids[down], scores[down]
        i = down
    ids[i], scores[i] = c, score


@kernel
def sort_heap(size: Any, ids: Any, scores: Any) -> None:
    """Turn the heap into a list, best first."""
    for end in range(size - 1, 0, -1):
        c, score = ids[end], scores[end]
        ids[end], scores[end] = ids[0], scores[0]
        sift_down(score, c, end, ids, scores)


@kernel
def score_row(
    indices: Any,
    data: Any,
    low: int,
    high: int,
    list_indptr: Any,
    list_classes: Any,
    list_weights: Any,
    mark: Any,
    votes: Any,
) -> Any:
    """Add up the votes of a row's features; return how many classes were touched: those with the mark.

    What a class had before its first vote does not count, so that nobody needs to make ready for the next row.
    """
    n = 0
    for p in range(low, high):
        x = data[p]
        f = indices[p]
        for e in range(list_indptr[f], list_indptr[f + 1]):
            c = np.uint64(list_classes[e])
            if votes.seen[c] == mark:
                votes.score[c] += x * list_weights[e]
            else:
                votes.seen[c] = mark
                votes.score[c] = x * list_weights[e]
                votes.touched[n] = list_classes[e]
                n += 1
    return n


@kernel
def count_edges(indices: Any, low: int, high: int, list_indptr: Any) -> Any:
    """Count the edges that a row touches."""
    n = 0
    for p in range(low, high):
        n += list_indptr[indices[p] + 1] - list_indptr[indices[p]]
    return n


@kernel
def rank_long_row(
    indices: Any,
    data: Any,
    low: int,
    high: int,
    list_indptr: Any,
    list_classes: Any,
    list_weights: Any,
    full_place: Any,
    full_weights: Any,
    bias: Any,
    allowed: Any,
    every_class: bool,
    score: Any,
    ids: Any,
    scores: Any,
) -> Any:
    """Offer the classes of a row with many edges: all are looked at, so that no edge asks whether it is the first.

    Features with a full row of weights are added as a whole. The sums are those of `score_row`, to the bit. Returns the
    size of the heap.
    """
    score[:] = 0
    for p in range(low, high):
        x = data[p]
        f = indices[p]
        if len(full_place) and full_place[f] >= 0:
            full = full_weights[full_place[f]]
            for c in range(len(score)):
                score[c] += x * full[c]
            continue
        for e in range(list_indptr[f], list_indptr[f + 1]):
            # An unsigned number needs no look at whether it counts from the end.
            score[np.uint64(list_classes[e])] += x * list_weights[e]
    for c in range(len(bias)):
        score[c] += bias[c]
    size = 0
    bound = np.float32(-np.inf) if every_class else np.float32(0)
    for begin in range(0, len(score), SCANNED):
        end = min(begin + SCANNED, len(score))
        above = 0
        for c in range(begin, end):
            above += score[c] > bound
        if above == 0:
            continue
        for c in range(begin, end):
            # Classes come in ascending order, so an equal score ranks behind those that are there.
            if score[c] > bound and (len(allowed) == 0 or allowed[c]):
                size = offer(score[c], np.int32(c), size, ids, scores)
                if size == len(ids):
                    bound = scores[0]
    return size


@kernel
def rank_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    list_indptr: Any,
    list_classes: Any,
    list_weights: Any,
    offset: Any,
    full_place: Any,
    full_weights: Any,
    bias: Any,
    by_bias: Any,
    allowed: Any,
    every_class: bool,
    begin: int,
    end: int,
    votes: Any,
    out_ids: Any,
    out_scores: Any,
) -> None:
    """Write the best k classes of rows ``begin`` to ``end``, best first; places left over stay as they are.

    ``every_class`` ranks classes of any score; otherwise only positive scores count. ``allowed`` is empty, or tells for
    each class whether it may be ranked. ``offset`` is empty or one number a feature, whose sum over the row is added to
    every score. ``full_place`` is empty, or names a feature's row in ``full_weights``, which holds its list in full.
    ``bias`` is empty or one number a class: all that a class has that the row does not touch. ``by_bias`` has the
    classes by it, the highest first, so that few of these are looked at.
    """
    k = out_ids.shape[1]
    score = votes.score
    n_classes = len(score)
    votes.seen[:] = 0
    mark = 0
    for i in range(begin, end):
        low, high = indptr[i], indptr[i + 1]
        ids, scores = out_ids[i], out_scores[i]
        size = 0
        if LONG * count_edges(indices, low, high, list_indptr) > n_classes:
            size = rank_long_row(
                indices,
                data,
                low,
                high,
                list_indptr,
                list_classes,
                list_weights,
                full_place,
                full_weights,
                bias,
                allowed,
                every_class,
                score,
                ids,
                scores,
            )
        else:
            if mark == MARKS:
                votes.seen[:] = 0
                mark = 0
            mark += 1
            n_touched = score_row(indices, data, low, high, list_indptr, list_classes, list_weights, mark, votes)
            for t in range(n_touched):
                c = votes.touched[t]
                s = score[c] + bias[c] if len(bias) else score[c]
                if (every_class or s > 0) and (len(allowed) == 0 or allowed[c]):
                    size = offer(s, c, size, ids, scores)
            if every_class or len(bias):
                for t in range(n_classes):
                    c = by_bias[t] if len(bias) else np.int32(t)
                    s = bias[c] if len(bias) else np.float32(0)
                    if (size == k and not comes_before(s, c, scores[0], ids[0])) or not (every_class or s > 0):
                        break
                    if votes.seen[c] != mark and (len(allowed) == 0 or allowed[c]):
                        size = offer(s, c, size, ids, scores)
        sort_heap(size, ids, scores)
        if len(offset):
            common = np.float32(0)
            for p in range(low, high):
                common += data[p] * offset[indices[p]]
            for j in range(size):
                scores[j] += common


@kernel
def score_dense(
    indptr: Any,
    indices: Any,
    data: Any,
    list_indptr: Any,
    list_classes: Any,
    list_weights: Any,
    offset: Any,
    bias: Any,
    begin: int,
    end: int,
    out: Any,
) -> None:
    """Write the scores of every class for rows ``begin`` to ``end``."""
    for i in range(begin, end):
        common = np.float32(0)
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            f = indices[p]
            if len(offset):
                common += x * offset[f]
            for e in range(list_indptr[f], list_indptr[f + 1]):
                out[i, list_classes[e]] += x * list_weights[e]
        for c in range(len(bias)):
            out[i, c] += bias[c]
        if len(offset):
            for c in range(out.shape[1]):
                out[i, c] += common
