"""What online learners work on: rows in an order, and the state of what was learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.disk_order import forget_rows
from abound.store import Section
from abound.validation import Float32Array, IntArray, Rows


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
