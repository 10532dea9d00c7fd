"""What the index learners (FF, EMA, OOZ) share: lists by feature, walked by a kernel and exported as an index."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn._edge_lists import (
    EdgeLists,
    empty_lists,
    lists_from,
    make_room,
    more_lists,
    packed,
    remapped,
    room_needed,
)
from abound.learn.online import Examples, OnlineClassifier, OnlineState
from abound.learn.row_views import change_values, feature_counts
from abound.rank._topk_kernels import Votes, no_votes
from abound.store import Section
from abound.store.check import LARGEST_SUM
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, check_number

BYTES_AN_EDGE, BYTES_A_LIST = 48, 112
"""What an edge takes while the lists move to a roomier arena, in the old and the new one; what a list has beside."""


@dataclass(slots=True, eq=False)
class ListState(OnlineState):
    """Edges in lists by feature, heaviest first."""

    lists: EdgeLists


class Scratch(NamedTuple):
    """Arrays that a kernel works in: the votes of a row, its true scores, the pass's tally."""

    votes: Votes
    true_scores: Float32Array
    tally: Float64Array


class IndexLearner(OnlineClassifier):
    """Base of the learners whose features update their own lists.

    A learner fills in ``_step``, the call of its kernel, and ``_factors`` if its lists do not hold weights as they are.
    """

    margin: float
    max_degree: int | None
    vote_weight: float
    _state: ListState

    @abstractmethod
    def _step(self, examples: Examples, first_pass: bool, scratch: Scratch) -> Callable[[EdgeLists, int], int]:
        """A call of the kernel: from a place in the order to the place it reached."""

    def _factors(self) -> Float64Array | None:
        """What to multiply each list by when it is exported, None for 1."""
        return None

    def _rates(self) -> Float64Array | None:
        """What to multiply each feature's votes by beyond its weights, None for 1."""
        return None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("margin", self.margin)
        check_number("max_degree", self.max_degree, 1, whole=True, or_none=True)
        check_number("vote_weight", self.vote_weight, 0)

    @property
    def _degree_limit(self) -> int:
        return np.iinfo(np.int32).max if self.max_degree is None else self.max_degree

    def _start(self, n_features: int, n_classes: int) -> ListState:
        return ListState(n_features, n_classes, None, empty_lists(n_features))

    def _grow(self, n_features: int, n_classes: int) -> None:
        self._state.lists = more_lists(self._state.lists, n_features)

    def _learn(self, examples: Examples, first_pass: bool) -> Float64Array:
        scratch = Scratch(
            no_votes(self._state.n_classes),
            np.empty(int(np.diff(examples.labels.indptr).max(initial=1)), dtype=np.float32),
            np.zeros(3, dtype=np.float64),
        )
        step = self._step(examples, first_pass, scratch)
        rows, order, place = examples.rows, examples.order, 0
        while place < len(order):
            lists = self._state.lists
            place = step(lists, place)
            if place == len(order):
                break
            low, high = examples.labels.indptr[order[place]], examples.labels.indptr[order[place] + 1]
            span = rows.indptr[order[place]], rows.indptr[order[place] + 1]
            needed = room_needed(lists, rows.indices, *span, high - low)
            if lists.used[0] + needed > len(lists.classes):
                self._state.lists = make_room(lists, needed)
        return scratch.tally

    def _edges(self) -> int:
        return self._state.lists.n_edges

    def _degrees(self) -> IntArray:
        return self._state.lists.heads["degree"].astype(np.int64)

    def _export_part(self, begin: int, end: int) -> ClassIndex:
        lists, span = self._state.lists, slice(begin, end)
        indptr, classes, weights = packed(lists._replace(heads=lists.heads[span]))
        degrees = np.diff(indptr)
        factors = self._factors()
        if factors is not None:
            weights *= np.repeat(factors[span], degrees)
        votes = np.arange(len(classes)) - np.repeat(indptr[:-1], degrees) < self._degree_limit
        votes &= weights >= self.vote_weight
        rates = self._rates()
        if rates is not None:
            weights *= np.repeat(rates[span], degrees)
        kept = np.concatenate(([0], np.cumsum(votes, dtype=np.int64)))[indptr]
        return ClassIndex.from_lists(kept, classes[votes], weights[votes], n_classes=self._state.n_classes)

    def _edges_a_feature(self, n_classes: int) -> int:
        """How many edges the list of a feature has at most."""
        return n_classes

    def _model_needs(self, rows: Rows, labels: Labels, memory: int) -> dict[str, int]:
        # A list has no more classes than its feature's rows have labels; a split feature has two lists.
        n_views = self._width_of_view(rows.n_features) // max(1, rows.n_features)
        most_labels = int(np.diff(labels.indptr).max(initial=1))
        limit = min(labels.n_classes, self._edges_a_feature(labels.n_classes))
        edges = n_views * int(np.minimum(feature_counts(rows) * most_labels, limit).sum())
        lists = BYTES_AN_EDGE * edges + BYTES_A_LIST * n_views * rows.n_features
        # Exporting takes as much again as the rows under way, which have gone by then.
        return {"the lists of the features": lists + 16 * labels.n_classes}

    def _remap_state(self, new_ids: IdArray, n_classes: int) -> None:
        """Edges that become one add up; what a dropped class held has leaked."""
        self._state.lists = remapped(self._state.lists, new_ids)

    def _saved(self) -> dict[str, npt.NDArray[Any]]:
        lists = self._state.lists
        indptr, classes, weights = packed(lists)
        heads = {"totals": lists.heads["total"].copy(), "seen": lists.heads["seen"].copy()}
        return {"indptr": indptr, "classes": classes, "weights": weights, **heads}

    def _restored(self, arrays: Section, n_classes: int) -> ListState:
        arrays.check_csr("indptr", "classes", n_classes)
        indptr, classes = arrays["indptr"], arrays["classes"]
        weights = arrays.require_numbers("weights", np.float64, (len(classes),))
        lists = lists_from(indptr, classes, weights)
        lists.heads["total"] = arrays.require_numbers("totals", np.float64, (len(indptr) - 1,), LARGEST_SUM)
        lists.heads["seen"] = arrays.require("seen", np.int64, (len(indptr) - 1,))
        return ListState(len(indptr) - 1, n_classes, None, lists)


def boolean_rows(rows: Rows) -> Rows:
    """Return the rows with every positive value 1 and every other 0.

    Parameters
    ----------
    rows : Rows
        Any values.

    Returns
    -------
    Rows
        Boolean ones.
    """
    return change_values(rows, lambda data: data > 0)
