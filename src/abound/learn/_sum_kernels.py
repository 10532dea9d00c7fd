"""Kernel of averages: what rows have changed, added up for some of the features."""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel


@kernel
def add_changes(
    indptr: Any,
    indices: Any,
    data: Any,
    begin: int,
    end: int,
    change_indptr: Any,
    change_classes: Any,
    changes: Any,
    first: int,
    last: int,
    sums: Any,
) -> None:
    """Add to ``sums``, features ``first`` to ``last`` × columns, the rows ``begin`` to ``end`` times their changes."""
    for row in range(begin, end):
        low, high = change_indptr[row], change_indptr[row + 1]
        if low < high:
            for p in range(indptr[row], indptr[row + 1]):
                f = indices[p]
                if first <= f < last:
                    for q in range(low, high):
                        sums[f - first, change_classes[q]] += data[p] * changes[q]
