"""The unweighted index: the first index learner, which retrieves a few candidate classes rather than ranking them.

Madani et al. 2007, as section 6.4.1 of Learning When Concepts Abound (JMLR 2009) describes it; the constants are ours.
Class ``c`` keeps weights ``v_c``, the largest 1; ``f → c`` is an edge iff ``v_c[f] ≥ 0.1``, and every class with an
edge from an active feature is retrieved. A true class that is missed: ``v_c[f] ← 1.2 v_c[f]`` for the row's features,
new ones starting at 1 / df. More than ``tolerance`` wrong classes: each of them ``v_c[f] ← 0.8 v_c[f]``. Then ``v_c``
is normalised. Retrieved classes are ranked by ``Σ x_f v_c[f]`` over their edges, or in a second stage by committees of
perceptrons (figure 18), which learn in tandem with the index: for each row, only those of retrieved and true classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn import _unweighted_kernels as kernels
from abound.learn._edge_lists import EdgeLists, empty_lists, lists_from, make_room, more_lists, packed, room_needed
from abound.learn.index_learner import BYTES_AN_EDGE
from abound.learn.index_parts import contributions, index_arrays, index_from, prefixed
from abound.learn.online import Examples, FrozenState, OnlineClassifier, OnlineState
from abound.learn.perceptron_pairs import PerceptronPairs, no_pairs, pairs_from, rank_retrieved
from abound.learn.row_views import feature_counts
from abound.rank._topk_kernels import no_votes
from abound.rank.topk import Ranking, spread
from abound.store import Section
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, check_choice, check_number

UP, DOWN = 1.2, 0.8
"""Factors of a promotion and a demotion."""


@dataclass(slots=True, eq=False)
class UnweightedState(OnlineState):
    """Weights by class, and where to find them by feature."""

    by_class: EdgeLists
    by_feature: EdgeLists
    perceptrons: PerceptronPairs


class UnweightedIndexClassifier(OnlineClassifier):
    """Unweighted index: retrieves the classes that have an edge from an active feature.

    Parameters
    ----------
    tolerance : int, default=5
        t_tol: how many wrong classes may be retrieved before they are pushed back. The paper tried 2, 5 and 20.
    rank_by : {"weights", "perceptrons"}, default="weights"
        What ranks the retrieved classes: the weights that make the edges, or a committee of perceptrons a class, which
        is more accurate, but takes several times the time and memory. A tolerance of 20 or more suits it.
    n_perceptrons : int, default=10
        Members of a committee of perceptrons.
    passes : int, default=10
        Passes over the rows in ``fit``; accuracy grows for up to 20.
    negative : {"ignore", "split"}, default="ignore"
        Non-positive values are ignored, or a feature becomes two, one for each sign.
    shuffle : bool, default=True
        A new random order each pass, the first one too.
    validation_fraction : float, default=0
        Part of the rows held out to measure R1 and R5 after each pass.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the orders and the held-out part.
    n_jobs : int or None, default=None
        Threads when ranking; -1 for all cores.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are larger than half of it are shuffled in windows.

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
    _ranking: list[ClassIndex]
    """What ranks the retrieved classes, once it has been asked for; in a list, for predicting sets no attribute."""

    def __init__(
        self,
        tolerance: int = 5,
        rank_by: str = "weights",
        n_perceptrons: int = 10,
        passes: int = 10,
        negative: str = "ignore",
        shuffle: bool = True,
        validation_fraction: float = 0.0,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory: str | int | None = None,
    ) -> None:
        self.tolerance = tolerance
        self.rank_by = rank_by
        self.n_perceptrons = n_perceptrons
        self.passes = passes
        self.negative = negative
        self.shuffle = shuffle
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tolerance", self.tolerance, 0, whole=True)
        check_choice("rank_by", self.rank_by, ("weights", "perceptrons"))
        check_number("n_perceptrons", self.n_perceptrons, 1, whole=True)

    def _start(self, n_features: int, n_classes: int) -> UnweightedState:
        perceptrons = no_pairs(n_features, self.n_perceptrons if self.rank_by == "perceptrons" else 0)
        lists = empty_lists(n_classes), empty_lists(n_features)
        return UnweightedState(n_features, n_classes, None, *lists, perceptrons)

    def _grow(self, n_features: int, n_classes: int) -> None:
        self._state.by_class = more_lists(self._state.by_class, n_classes)
        self._state.by_feature = more_lists(self._state.by_feature, n_features)
        self._state.perceptrons.grow(n_features)

    def _learn(self, examples: Examples, first_pass: bool) -> Float64Array:
        state, rows, labels, order = self._state, examples.rows, examples.labels, examples.order
        votes, tally = no_votes(state.n_classes), np.zeros(3)
        stage = state.perceptrons.stage(state.n_classes)
        place = 0
        while place < len(order):
            place = kernels.unweighted(
                *(rows.indptr, rows.indices, rows.data),
                *(labels.indptr, labels.ids, examples.weights, order, place),
                *(state.by_class, state.by_feature, self.tolerance, UP, DOWN),
                *(stage, votes, tally),
            )
            if place < len(order):
                self._make_room(examples, int(order[place]))
                stage = None if stage is None else state.perceptrons.make_room(stage)
        return tally

    def _meet(self, rows: Rows) -> None:
        self._state.by_feature.heads["seen"] += feature_counts(rows, positive=True)

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
        return int(np.count_nonzero(packed(self._state.by_class)[2] >= kernels.EDGE)) + self._state.perceptrons.n_pairs

    def _degrees(self) -> IntArray:
        return self._state.by_feature.heads["degree"].astype(np.int64)

    def _model_needs(self, rows: Rows, labels: Labels, memory: int) -> dict[str, int]:
        n_views = self._width_of_view(rows.n_features) // max(1, rows.n_features)
        edges = n_views * int(np.minimum(feature_counts(rows) * labels.n_classes, labels.n_classes).sum())
        pairs = self.n_perceptrons if self.rank_by == "perceptrons" else 0
        return {"the lists of features and classes": (BYTES_AN_EDGE * 3 + 32 * pairs) * edges}

    def _export(self) -> ClassIndex:
        return self._export_part(0, self._state.n_features)

    def _export_part(self, begin: int, end: int) -> ClassIndex:
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
        self._state.perceptrons = self._state.perceptrons.remapped(new_ids)

    def _pass(self, number: int, examples: Examples, first_pass: bool) -> None:
        self._ranking = []
        super()._pass(number, examples, first_pass)

    def _ranking_index(self) -> ClassIndex | None:
        """What ranks the retrieved classes: the mean of the perceptrons, None if there are none."""
        if not self._ranking and not isinstance(self._state, FrozenState) and self._state.perceptrons.n_members:
            self._ranking.append(self._state.perceptrons.mean(self._state.n_classes))
        return self._ranking[0] if self._ranking else None

    def _ranks_by_index(self) -> bool:
        return self.rank_by == "weights"

    def _ranks_any_score(self) -> bool:
        return self._ranking_index() is not None

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        ranking = self._ranking_index()
        if ranking is None:
            return super()._rank(rows, k, allowed)
        ids, scores = rank_retrieved(self.index_, ranking, rows, k, allowed, self.n_jobs)
        silent = (ids < 0).all(axis=1)
        ids[silent, 0] = self._most_frequent(allowed)
        scores[silent & (ids[:, 0] >= 0), 0] = 0
        return Ranking(ids, scores)

    def _score_all(self, rows: Rows) -> Float32Array:
        if self._ranking_index() is None:
            return super()._score_all(rows)
        return spread(self._rank(rows, len(self.class_counts_), None), len(self.class_counts_))

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        return contributions(self._ranking_index() or self.index_, rows, c, self._feature_behind)

    def _with_index(self, index: ClassIndex) -> Self:
        ranking = self._ranking_index()
        twin = super()._with_index(index)
        twin._ranking = [] if ranking is None else [ranking]
        return twin

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        super()._remap(new_ids, n_classes)
        kept: list[ClassIndex] = self._ranking if isinstance(self._state, FrozenState) else []
        self._ranking = [ranking.remap_classes(new_ids, n_classes) for ranking in kept]

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        ranking = self._ranking_index()
        second = {} if ranking is None else prefixed("perceptrons/", index_arrays(ranking))
        return super()._model_arrays() | second

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        super()._restore_model(stored, n_edges, fitted)
        section = stored.section("perceptrons/")
        shape = self._state.n_features, self._state.n_classes
        self._ranking = [index_from(section, *shape)] if len(section) else []

    def _saved(self) -> dict[str, npt.NDArray[Any]]:
        indptr, features, weights = packed(self._state.by_class)
        seen = self._state.by_feature.heads["seen"].copy()
        own: dict[str, npt.NDArray[Any]] = {"indptr": indptr, "features": features, "weights": weights, "seen": seen}
        return own | prefixed("perceptrons/", self._state.perceptrons.to_arrays())

    def _restored(self, arrays: Section, n_classes: int) -> UnweightedState:
        n_features = len(arrays.require("seen", np.int64))
        arrays.check_csr("indptr", "features", n_features)
        indptr, features = arrays.require("indptr", np.int64, (n_classes + 1,)), arrays["features"]
        weights = arrays.require_numbers("weights", np.float64, (len(features),))
        lists = _both_sides(indptr, features, weights, arrays["seen"])
        perceptrons = pairs_from(arrays.section("perceptrons/"), n_features, n_classes)
        return UnweightedState(n_features, n_classes, None, *lists, perceptrons)


def _both_sides(indptr: Any, features: Any, weights: Any, seen: Any) -> tuple[EdgeLists, EdgeLists]:
    """Lists by class, and lists by feature that tell where in them a weight stands."""
    classes = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    places = np.arange(len(features)) - np.repeat(indptr[:-1], np.diff(indptr))
    order = np.argsort(features, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(features, minlength=len(seen))))).astype(np.int64)
    by_feature = lists_from(bounds, classes[order], places[order])
    by_feature.heads["seen"] = seen
    return lists_from(indptr, features, weights), by_feature
