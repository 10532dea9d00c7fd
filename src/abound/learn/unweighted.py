"""The unweighted index: the first index learner, which retrieves a few candidate classes rather than ranking them.

Madani et al. 2007, as section 6.4.1 of Learning When Concepts Abound (JMLR 2009) describes it; the constants are ours.
Class ``c`` keeps weights ``v_c``, the largest 1; ``f → c`` is an edge iff ``v_c[f] ≥ 0.1``, and every class with an
edge from an active feature is retrieved. A true class that is missed: ``v_c[f] ← 1.2 v_c[f]`` for the row's features,
new ones starting at 1 / df. More than ``tolerance`` wrong classes: each of them ``v_c[f] ← 0.8 v_c[f]``. Then ``v_c``
is normalised. Retrieved classes are ranked by ``Σ x_f v_c[f]`` over their edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.learn import _unweighted_kernels as kernels
from abound.learn._edge_lists import EdgeLists, empty_lists, lists_from, make_room, more_lists, packed, room_needed
from abound.learn._online_kernels import UNTOUCHED
from abound.learn.online import Examples, OnlineClassifier, OnlineState
from abound.store import Section
from abound.validation import Float64Array, IdArray, check_number

UP, DOWN = 1.2, 0.8
"""Factors of a promotion and a demotion."""


@dataclass(slots=True, eq=False)
class UnweightedState(OnlineState):
    """Weights by class, and where to find them by feature."""

    by_class: EdgeLists
    by_feature: EdgeLists


class UnweightedIndexClassifier(OnlineClassifier):
    """Unweighted index: retrieves the classes that have an edge from an active feature.

    Parameters
    ----------
    tolerance : int, default=5
        t_tol: how many wrong classes may be retrieved before they are pushed back. The paper tried 2, 5 and 20.
    passes : int, default=10
        Passes over the rows in ``fit``; accuracy grows for up to 20.
    negative : {"ignore", "split"}, default="ignore"
        Non-positive values are ignored, or a feature becomes two, one for each sign.
    shuffle : bool, default=True
        A new random order each pass, the first one too.
    validation_fraction : float, default=0
        Part of the rows held out to measure R1 and R5 after each pass.
    random_state : int, RandomState or None, default=0
        Seed of the orders and the held-out part.
    n_jobs : int or None, default=None
        Threads when ranking; -1 for all cores.

    Notes
    -----
    A row counts or, with ``sample_weight`` 0, does not; other weights make no difference to promotions and demotions.

    Examples
    --------
    >>> from abound import UnweightedIndexClassifier
    >>> model = UnweightedIndexClassifier().fit([[1, 0], [0, 1], [1, 0]], ["a", "b", "a"])
    >>> model.predict([[0, 1]]).tolist()
    ['b']
    """

    learner: ClassVar[str] = "unweighted"
    _state: UnweightedState

    def __init__(
        self,
        tolerance: int = 5,
        passes: int = 10,
        negative: str = "ignore",
        shuffle: bool = True,
        validation_fraction: float = 0.0,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.tolerance = tolerance
        self.passes = passes
        self.negative = negative
        self.shuffle = shuffle
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tolerance", self.tolerance, 0, whole=True)

    def _start(self, n_features: int, n_classes: int) -> UnweightedState:
        return UnweightedState(n_features, n_classes, None, empty_lists(n_classes), empty_lists(n_features))

    def _grow(self, n_features: int, n_classes: int) -> None:
        self._state.by_class = more_lists(self._state.by_class, n_classes)
        self._state.by_feature = more_lists(self._state.by_feature, n_features)

    def _learn(self, examples: Examples, first_pass: bool) -> Float64Array:
        state, rows, labels, order = self._state, examples.rows, examples.labels, examples.order
        if first_pass:
            state.by_feature.heads["seen"] += np.bincount(rows.indices[rows.data > 0], minlength=rows.n_features)
        score = np.full(state.n_classes, UNTOUCHED, dtype=np.float32)
        touched, tally = np.empty(state.n_classes, dtype=np.int32), np.zeros(3)
        place = 0
        while place < len(order):
            place = kernels.unweighted(
                *(rows.indptr, rows.indices, rows.data),
                *(labels.indptr, labels.ids, examples.weights, order, place),
                *(state.by_class, state.by_feature, self.tolerance, UP, DOWN, score, touched, tally),
            )
            if place < len(order):
                self._make_room(examples, int(order[place]))
        return tally

    def _make_room(self, examples: Examples, row: int) -> None:
        """See that both arenas can take a row's features for each of its labels."""
        state, rows, labels = self._state, examples.rows, examples.labels
        low, high = rows.indptr[row], rows.indptr[row + 1]
        first, last = labels.indptr[row], labels.indptr[row + 1]
        class_room = kernels.class_room(state.by_class, labels.ids, first, last, high - low)
        if state.by_class.used[0] + class_room > len(state.by_class.classes):
            state.by_class = make_room(state.by_class, class_room)
        feature_room = (last - first) * room_needed(state.by_feature, rows.indices, low, high, last - first)
        if state.by_feature.used[0] + feature_room > len(state.by_feature.classes):
            state.by_feature = make_room(state.by_feature, feature_room)

    def _edges(self) -> int:
        return int(np.count_nonzero(packed(self._state.by_class)[2] >= kernels.EDGE))

    def _export(self) -> ClassIndex:
        indptr, features, weights = packed(self._state.by_class)
        classes = np.repeat(np.arange(self._state.n_classes), np.diff(indptr))
        edge = weights >= kernels.EDGE
        shape = {"n_features": self._state.n_features, "n_classes": self._state.n_classes}
        return ClassIndex.from_edges(features[edge], classes[edge], weights[edge], **shape)

    def _remap_state(self, new_ids: IdArray, n_classes: int) -> None:
        """Of two weights that become one the larger counts; each class's largest is 1 already."""
        indptr, features, weights = packed(self._state.by_class)
        classes = new_ids[np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))]
        kept = classes >= 0
        pairs, where = np.unique(np.stack((classes[kept], features[kept])), axis=1, return_inverse=True)
        largest = np.zeros(pairs.shape[1])
        np.maximum.at(largest, where.ravel(), weights[kept])
        bounds = np.concatenate(([0], np.cumsum(np.bincount(pairs[0], minlength=n_classes)))).astype(np.int64)
        seen = self._state.by_feature.heads["seen"]
        self._state.by_class, self._state.by_feature = _both_sides(bounds, pairs[1].astype(np.int32), largest, seen)

    def _saved(self) -> dict[str, npt.NDArray[Any]]:
        indptr, features, weights = packed(self._state.by_class)
        seen = self._state.by_feature.heads["seen"].copy()
        return {"indptr": indptr, "features": features, "weights": weights, "seen": seen}

    def _restored(self, arrays: Section, n_classes: int) -> UnweightedState:
        n_features = len(arrays.require("seen", np.int64))
        arrays.check_csr("indptr", "features", n_features)
        indptr, features = arrays.require("indptr", np.int64, (n_classes + 1,)), arrays["features"]
        weights = arrays.require("weights", np.float64, (len(features),))
        return UnweightedState(n_features, n_classes, None, *_both_sides(indptr, features, weights, arrays["seen"]))


def _both_sides(indptr: Any, features: Any, weights: Any, seen: Any) -> tuple[EdgeLists, EdgeLists]:
    """Lists by class, and lists by feature that tell where in them a weight stands."""
    classes = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    places = np.arange(len(features)) - np.repeat(indptr[:-1], np.diff(indptr))
    order = np.argsort(features, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(features, minlength=len(seen))))).astype(np.int64)
    by_feature = lists_from(bounds, classes[order], places[order])
    by_feature.heads["seen"] = seen
    return lists_from(indptr, features, weights), by_feature
