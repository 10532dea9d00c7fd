"""What online learners work on: rows in an order, and the state of what was learned."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.disk_order import forget_rows
from abound.store import Section
from abound.validation import Float32Array, IntArray, Rows

LONG_RUN = 100
"""Rows of one class in a row from which `warn_if_sorted` asks whether the data is sorted by class."""


@dataclass(slots=True, eq=False)
class Examples:
    """What a learner learns from: rows, their labels as ids, their weights, and the order to take them in."""

    rows: Rows
    labels: Labels
    weights: Float32Array
    order: IntArray
    windows: list[IntArray] | None = None
    """The order cut into parts, each of which is let go of once it is learned; None for rows that stay in memory."""

    def parts(self) -> Iterator[Examples]:
        """Yield the windows one after another, all examples if there are none."""
        if self.windows is None:
            yield self
            return
        for order in self.windows:
            yield replace(self, order=order, windows=None)
            forget_rows(self.rows)


@dataclass(slots=True, eq=False)
class OnlineState:
    """What a learner has learned so far. ``index`` is what it last exported, None once it has learned more."""

    n_features: int
    n_classes: int
    index: ClassIndex | None


@dataclass(slots=True, eq=False)
class FrozenState(OnlineState):
    """A state as a model file holds it: enough to rank, thawed when more is to be learned."""

    n_edges: int
    arrays: Section


def warn_if_sorted(labels: Labels, counts: IntArray, run: tuple[int | None, int]) -> tuple[int | None, int]:
    """Warn when one class follows itself far longer than its share of the rows explains.

    Parameters
    ----------
    labels : Labels
        Of the rows in the order in which they are learned.
    counts : int64 array of shape (n_classes,)
        Rows of each class so far, with these.
    run : (int or None, int)
        The class with which the rows before ended, and how many of them were of that class in a row.

    Returns
    -------
    (int or None, int)
        The same after these rows.
    """
    first = labels.first_ids()
    if not len(first):
        return run
    changes = np.flatnonzero(np.diff(first)) + 1
    bounds = np.concatenate(([0], changes, [len(first)]))
    lengths = np.diff(bounds)
    if run[0] == first[0]:
        lengths[0] += run[1]
    longest = int(lengths.argmax())
    c = first[bounds[longest]]
    share = counts[c] / max(1, counts.sum())
    if lengths[longest] >= LONG_RUN and share < 1:
        expected = np.log(counts.sum()) / -np.log(share)
        if lengths[longest] > 10 * expected:
            warnings.warn(
                f"{lengths[longest]} rows of class {labels.classes.tolist()[c]!r} follow one another: the rows seem to "
                "be sorted by class, and online learners fail on that. Shuffle them first, or use fit, which does.",
                UserWarning,
                stacklevel=3,
            )
    return int(first[-1]), int(lengths[-1])
