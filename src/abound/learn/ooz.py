"""OOZ: weight moves from the offending classes to the true one, and a feature has only so much of it to give.

Madani and Huang, figure 1 of Large-Scale Many-Class Prediction via Flat Techniques, with its slips repaired. For a row
of class ``y``, the classes with ``s_c ≥ s_y - margin`` offend. At most ``rate`` is deducted from the best of them,
level by level; each active feature moves at most ``rate · x_f`` to its edge to ``y``, from its edges to the offenders
and then from its free source, which starts at 1. Weights stay non-negative, a feature's weights and free source sum to
at most 1, and the true score rises by at most ``rate`` (for rows of length 1).

With ``variant="bounded"`` and two classes it is the weight-bounded perceptron of the long paper's appendix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from abound.index.class_index import ClassIndex
from abound.learn import _ooz_kernels as kernels
from abound.learn._edge_lists import EdgeLists
from abound.learn.index_learner import IndexLearner, ListState, Scratch
from abound.learn.online import Examples
from abound.validation import IdArray, check_choice, check_number

ROWS_A_CALL = 100_000
"""Rows that one call of the two-class kernel takes."""


class OOZClassifier(IndexLearner):
    """Index learning that shifts bounded weights (online optimization of the slack variables).

    Parameters
    ----------
    rate : float, default=0.001
        β: how much the true score may rise in an update; lowered to ``margin / 2`` if it is above. 0.001 and a margin
        of 0.005 suit 10,000 classes; with few classes 0.1 and 0.5 learn faster.
    margin : float, default=0.005
        δ: learn a row when the true class leads by no more than this.
    max_negatives : int, default=15
        k: from how many offending classes weight is taken at most.
    max_degree : int or None, default=2000
        How many edges a feature keeps; accuracy grows with it. None for all.
    min_weight : float, default=1e-6
        Edges lighter than this are dropped; far below ``rate``, or every new edge would be.
    variant : {"ooz", "bounded"}, default="ooz"
        "bounded" is the two-class weight-bounded perceptron: every feature starts at 0.5 for both, ties update.
    passes : int, default=10
        Passes over the rows in ``fit``. The steps are small, so several are needed.
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
    checkpoint : path or None, default=None
        A folder for what was learned after each pass: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are larger than half of it are shuffled in windows.

    Notes
    -----
    Where the papers are silent: the weight of an edge that is dropped goes back to its feature's free source, and of
    equally bad offenders the one met first gives first.

    Examples
    --------
    >>> from abound import OOZClassifier
    >>> model = OOZClassifier(rate=0.1, margin=0.5).fit([[1, 0], [0, 1], [1, 0]], ["a", "b", "a"])
    >>> model.predict([[0, 1]]).tolist()
    ['b']
    """

    learner: ClassVar[str] = "ooz"
    vote_weight = 0.0

    def __init__(
        self,
        rate: float = 0.001,
        margin: float = 0.005,
        max_negatives: int = 15,
        max_degree: int | None = 2000,
        min_weight: float = 1e-6,
        variant: str = "ooz",
        passes: int = 10,
        negative: str = "ignore",
        shuffle: bool = True,
        validation_fraction: float = 0.0,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        memory: str | int | None = None,
    ) -> None:
        self.rate = rate
        self.margin = margin
        self.max_negatives = max_negatives
        self.max_degree = max_degree
        self.min_weight = min_weight
        self.variant = variant
        self.passes = passes
        self.negative = negative
        self.shuffle = shuffle
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.memory = memory

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("rate", self.rate, 0, 1, above=True)
        check_number("margin", self.margin, 0, above=True)
        check_number("max_negatives", self.max_negatives, 1, whole=True)
        check_number("min_weight", self.min_weight, 0, 1)
        check_choice("variant", self.variant, ("ooz", "bounded"))

    def _start(self, n_features: int, n_classes: int) -> ListState:
        state = super()._start(n_features, n_classes)
        self._check_two(n_classes)
        state.lists.heads["total"] = self._first_total
        return state

    def _grow(self, n_features: int, n_classes: int) -> None:
        self._check_two(n_classes)
        known = self._state.n_features
        super()._grow(n_features, n_classes)
        self._state.lists.heads["total"][known:] = self._first_total

    @property
    def _first_total(self) -> float:
        """Of the free source, or of the weight for the first of two classes."""
        return 1.0 if self.variant == "ooz" else 0.5

    def _check_two(self, n_classes: int) -> None:
        if self.variant == "bounded" and n_classes > 2:
            raise ValueError(f"variant='bounded' ranks two classes, the data has {n_classes}: use variant='ooz'")

    def _step(self, examples: Examples, first_pass: bool, scratch: Scratch) -> Callable[[EdgeLists, int], int]:
        if self.variant == "bounded":
            return self._bounded_step(examples, scratch)
        rows, labels = examples.rows, examples.labels
        k = self.max_negatives
        slots = np.full(self._state.n_classes, kernels.ABSENT, dtype=np.int32)
        offenders, scores = np.empty(k, dtype=np.int32), np.empty(k)
        deductions, remainders, places = np.empty(k), np.empty(k), np.empty(k, dtype=np.int64)

        def step(lists: EdgeLists, place: int) -> int:
            reached: int = kernels.ooz(
                *(rows.indptr, rows.indices, rows.data),
                *(labels.indptr, labels.ids, examples.weights, examples.order, place),
                *(lists, float(self.margin), float(self.rate), self._degree_limit, float(self.min_weight)),
                *(slots, offenders, scores, deductions, remainders, places, *scratch),
            )
            return reached

        return step

    def _bounded_step(self, examples: Examples, scratch: Scratch) -> Callable[[EdgeLists, int], int]:
        rows, labels = examples.rows, examples.labels
        if not (np.diff(labels.indptr) == 1).all():
            raise ValueError("variant='bounded' learns rows with one label each: use variant='ooz'")

        def step(lists: EdgeLists, place: int) -> int:
            reached = min(len(examples.order), place + ROWS_A_CALL)
            kernels.bounded_perceptron(
                *(rows.indptr, rows.indices, rows.data, labels.ids, examples.weights, examples.order),
                *(place, reached, lists.heads, float(self.rate), scratch.tally),
            )
            return reached

        return step

    def _remap_state(self, new_ids: IdArray, n_classes: int) -> None:
        if self.variant == "bounded":
            raise ValueError("variant='bounded' knows two classes: none of them can be dropped or merged")
        super()._remap_state(new_ids, n_classes)

    def _edges(self) -> int:
        if self.variant == "ooz":
            return super()._edges()
        return 2 * int(np.count_nonzero(self._state.lists.heads["seen"]))

    def _edges_a_feature(self, n_classes: int) -> int:
        return n_classes if self.max_degree is None else self.max_degree + 1

    def _export(self) -> ClassIndex:
        if self.variant == "ooz":
            return super()._export()
        heads = self._state.lists.heads
        features = np.flatnonzero(heads["seen"])
        first = heads["total"][features]
        pair = np.repeat([0, 1], len(features))
        shape = {"n_features": self._state.n_features, "n_classes": self._state.n_classes}
        kept = pair < self._state.n_classes
        weights = np.concatenate((first, 1 - first))
        return ClassIndex.from_edges(np.tile(features, 2)[kept], pair[kept], weights[kept], **shape)
