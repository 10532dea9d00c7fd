"""Kernels over the lists of an index: order, transpose, count."""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel

SHORT = 48
"""Lists up to this length are sorted by insertion, longer ones by heap."""


@kernel
def heavier(weight: Any, c: Any, other_weight: Any, other: Any) -> Any:
    """Tell whether an edge comes before another: by |weight|, ties by the lower class."""
    return abs(weight) > abs(other_weight) or (abs(weight) == abs(other_weight) and c < other)


@kernel
def sink(classes: Any, weights: Any, low: int, i: int, size: int) -> None:
    """Let edge ``i`` of a heap, whose lightest edge is on top, sink to its place."""
    c, w = classes[low + i], weights[low + i]
    while 2 * i + 1 < size:
        down = 2 * i + 1
        right = down + 1
        if right < size and heavier(
            weights[low + down], classes[low + down], weights[low + right], classes[low + right]
        ):
            down = right
        if not heavier(w, c, weights[low + down], classes[low + down]):
            break
        classes[low + i], weights[low + i] = classes[low + down], weights[low + down]
        i = down
    classes[low + i], weights[low + i] = c, w


@kernel
def sort_lists(indptr: Any, classes: Any, weights: Any, begin: int, end: int) -> None:
    """Put each list of features ``begin`` to ``end`` in order: heaviest |weight| first, ties by class."""
    for f in range(begin, end):
        low, high = indptr[f], indptr[f + 1]
        size = high - low
        if size > SHORT:
            for i in range(size // 2 - 1, -1, -1):
                sink(classes, weights, low, i, size)
            for last in range(size - 1, 0, -1):
                classes[low], classes[low + last] = classes[low + last], classes[low]
                weights[low], weights[low + last] = weights[low + last], weights[low]
                sink(classes, weights, low, 0, last)
            continue
        for p in range(low + 1, high):
            c, w = classes[p], weights[p]
            q = p
            while q > low and heavier(w, c, weights[q - 1], classes[q - 1]):
                classes[q], weights[q] = classes[q - 1], weights[q - 1]
                q -= 1
            classes[q], weights[q] = c, w


@kernel
def transpose(indptr: Any, classes: Any, weights: Any, class_indptr: Any, out_features: Any, out_weights: Any) -> None:
    """Write the lists by class; ``class_indptr`` holds their begins and is left holding their ends."""
    for f in range(len(indptr) - 1):
        for p in range(indptr[f], indptr[f + 1]):
            c = classes[p]
            q = class_indptr[c]
            out_features[q] = f
            out_weights[q] = weights[p]
            class_indptr[c] = q + 1
