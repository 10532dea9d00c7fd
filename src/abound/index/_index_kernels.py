"""Kernels over the lists of an index: order, transpose, count."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel

SHORT = 48
"""Lists up to this length are sorted by insertion."""


@kernel
def sort_lists(indptr: Any, classes: Any, weights: Any, begin: int, end: int) -> None:
    """Put each list of features ``begin`` to ``end`` in place: heaviest |weight| first, ties by class."""
    for f in range(begin, end):
        low, high = indptr[f], indptr[f + 1]
        if high - low > SHORT:
            by_class = np.argsort(classes[low:high], kind="mergesort")
            ordered = classes[low:high][by_class].copy()
            heavy = weights[low:high][by_class].copy()
            by_weight = np.argsort(-np.abs(heavy), kind="mergesort")
            classes[low:high] = ordered[by_weight]
            weights[low:high] = heavy[by_weight]
            continue
        for p in range(low + 1, high):
            c, w = classes[p], weights[p]
            size = abs(w)
            q = p
            while q > low and (abs(weights[q - 1]) < size or (abs(weights[q - 1]) == size and classes[q - 1] > c)):
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
