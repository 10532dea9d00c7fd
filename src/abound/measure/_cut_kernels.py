"""Kernels that sort ranked pairs of row and class by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel


@kernel
def group_by_class(ids: Any, filled: Any, where: Any) -> None:
    """Write where each class stands, class by class and for each in the order of the places.

    Parameters
    ----------
    ids : int32 array
        A class or -1 at each place.
    filled : int64 array
        Where the places of each class begin; where they end afterwards.
    where : int64 array
        Gets the places.
    """
    for place in range(len(ids)):
        c = ids[place]
        if c >= 0:
            where[filled[c]] = place
            filled[c] += 1


@kernel
def sort_within(indptr: Any, scores: Any, begin: int, end: int, where: Any) -> None:
    """Sort the places of classes ``begin`` to ``end`` by falling score; equal scores keep their order.

    Parameters
    ----------
    indptr : int64 array
        Where the places of each class begin and end.
    scores : float32 or float64 array
        Of every place that ``where`` holds.
    begin, end : int
        The classes.
    where : int64 array
        The places; sorted here.
    """
    for c in range(begin, end):
        low, high = indptr[c], indptr[c + 1]
        if high - low > 1:
            own = where[low:high].copy()
            order = np.argsort(-scores[own], kind="mergesort")
            for i in range(high - low):
                where[low + i] = own[order[i]]
