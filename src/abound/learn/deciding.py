"""What learners say beyond scores: probabilities, sets of labels, and answers that are sure enough."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from abound.labels import Kind, Labels
from abound.learn.confidence import DEPTH, learn_decisions
from abound.learn.decisions import CALIBRATIONS, Calibration, Decisions
from abound.learn.reclass import Reclassing
from abound.learn.sure_nodes import sure_labels
from abound.measure.thresholds import CUTS
from abound.rank.topk import Ranking
from abound.read.taxonomy import Taxonomy
from abound.validation import (
    Float32Array,
    Float64Array,
    IdArray,
    IntArray,
    Rows,
    check_choice,
    check_dense,
    check_number,
    check_rows,
    is_large,
)

NEARLY_0 = float(np.finfo(np.float64).eps)


def _calibrates(learner: Deciding) -> bool:
    return learner.calibrate is not None


class Deciding(Reclassing):
    """Mixin of the learners: ``calibrate`` and ``cut`` are parameters of theirs.

    A learner's ``fit`` ends with ``return self._learn_decisions(X, labels, weights)``. One that chooses settings by
    itself also fills in ``_copy_to_train``. A learner that is trained as a part of another has ``_is_part`` set, and
    learns no decisions of its own. One that has ``_groups``, an entry a row, holds out whole groups.
    """

    calibrate: str | None = None
    cut: str | None = "auto"
    _is_part: bool = False
    _groups: npt.NDArray[Any] | None = None
    _decisions: Decisions = Decisions()
    _kind: Kind
    _labels_a_row: float

    @abstractmethod
    def _at_rest(self) -> Self:
        """What answers, whatever other threads teach this learner meanwhile."""

    @abstractmethod
    def _rows(self, X: Any) -> Rows:
        """The rows of the input, checked."""

    @abstractmethod
    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        """The best classes of each row."""

    @abstractmethod
    def _score_and_fill(self, rows: Rows) -> Float32Array:
        """All scores, dense."""

    @abstractmethod
    def _check_learned(self) -> None:
        """Refuse weights that cannot be ranked."""

    @property
    def is_calibrated(self) -> bool:
        """Whether the model knows probabilities: it was fitted with ``calibrate``."""
        return self._decisions.calibration is not None

    @property
    def cut_(self) -> str:
        """The rule by which `predict` chooses several labels for a row, "mean" if none was learned."""
        return self._decisions.cut or "mean"

    @property
    def cut_scores_(self) -> dict[str, float]:
        """The micro-F1 on held-out rows of the rules that ``cut="auto"`` has compared."""
        return dict(self._decisions.tried)

    @available_if(_calibrates)
    def predict_proba(self, X: Any) -> Float64Array:
        """Return probabilities of all classes: dense, as scikit-learn asks, so only where that fits.

        There only if ``calibrate`` is set. With one label a row, the best class has the probability that
        `predict_topk` gives, the next 49 have theirs up to a factor, and the others share what is left. With several
        labels, each class has the probability of its score, never quite 0 or 1, and stands for itself.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.

        Returns
        -------
        array of shape (n, n_classes)
            With one label a row, it adds up to 1, and `predict` gives the largest.
        """
        learner = self._at_rest()
        rows = learner._rows(X)
        n_classes = len(learner.class_counts_)
        check_dense(rows.n_rows, n_classes, 8, "use predict_topk with probabilities=True")
        calibration = learner._calibration()
        if calibration.by == "margin":
            ranking = learner._rank(rows, DEPTH, None)
            return spread_to_one(ranking.ids, calibration(ranking), n_classes)
        return np.clip(calibration.of_all(learner._score_and_fill(rows)), NEARLY_0, 1 - NEARLY_0)

    def to_probabilities(self, scores: npt.ArrayLike) -> Float64Array:
        """Turn scores into probabilities.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            As `predict_topk` gives them, best first and -inf where nothing ranks. With one label a row a probability
            depends on how far a score is from the best other one, so k must be at least 2.

        Returns
        -------
        array of shape (n, k)
            0 where nothing ranks.
        """
        levels = np.asarray(scores, dtype=np.float32)
        if levels.ndim != 2 or (levels.shape[1] < 2 and len(self.class_counts_) > 1):
            raise ValueError(f"scores must have shape (n, k) with k at least 2, got {levels.shape}")
        return self._probabilities(Ranking(np.where(np.isneginf(levels), -1, 0).astype(np.int32), levels))

    def _probabilities(self, ranking: Ranking) -> Float64Array:
        return self._calibration()(ranking)

    def _calibration(self) -> Calibration:
        calibration = self._decisions.calibration
        if calibration is None:
            raise ValueError(
                "this model knows no probabilities: they are learned by fit, from held-out rows, when calibrate is "
                "'platt' or 'isotonic'"
            )
        return calibration

    def _decide(self, ranking: Ranking) -> tuple[IntArray, IdArray]:
        """The labels of each row, as in `Labels`; the ranking has as many columns as `_decision_depth` says."""
        taken = ranking.ids >= 0 if self._kind == "single" else self._decisions.take(ranking)
        return np.concatenate(([0], np.cumsum(taken.sum(axis=1)))), ranking.ids[taken]

    def _decision_depth(self) -> int:
        """How many classes of a row `predict` looks at."""
        if self._kind == "single":
            return 1
        return self._decisions.depth if self._decisions.rule is not None else max(1, round(self._labels_a_row))

    def _predict_sure(self, rows: Rows, min_confidence: float, taxonomy: Taxonomy | None) -> npt.NDArray[Any]:
        """The best class of each row or, where it is not sure enough, the deepest node of the taxonomy that is."""
        check_number("min_confidence", min_confidence, 0, 1)
        if taxonomy is None:
            raise ValueError("min_confidence answers with ancestors of classes, but this model has no taxonomy")
        if self._kind != "single":
            raise ValueError("min_confidence gives one answer a row, but this model was trained with several labels")
        ranking = self._rank(rows, DEPTH, None)
        return sure_labels(taxonomy, self.classes_, ranking.ids, self._probabilities(ranking), min_confidence)

    def _own_taxonomy(self) -> Taxonomy | None:
        """The taxonomy that the learner was fitted with, None if it has none; no model file sets a path."""
        tree = getattr(self, "tree_", None)
        given = getattr(self, "taxonomy", None) if tree is None else tree.taxonomy
        return given if given is None or isinstance(given, Taxonomy) else Taxonomy.from_file(given)

    def _check_decisions(self) -> None:
        check_choice("calibrate", self.calibrate, CALIBRATIONS)
        check_choice("cut", self.cut, (None, "auto", *CUTS))

    def _learn_decisions(self, X: Any, labels: Labels, weights: Float32Array, held: IntArray | None = None) -> Self:
        """Learn probabilities and cuts, where they are asked for, at the end of ``fit``.

        Parameters
        ----------
        X : array or sparse matrix
            What ``fit`` was given.
        labels : Labels
            All labels.
        weights : float32 array
            All weights.
        held : int64 array, optional
            Rows that were not learned.

        Returns
        -------
        self
            The learner.
        """
        if self._may_be_large(X, weights):
            self._check_learned()
        self._decisions = Decisions()
        cuts = self.cut is not None and labels.kind != "single"
        if not self._is_part and (cuts or self.calibrate is not None):
            rows = check_rows(self, X, reset=False)
            self._decisions = learn_decisions(self, rows, labels, weights, held)  # type: ignore[arg-type]
        return self

    def _may_be_large(self, X: Any, weights: Float32Array) -> bool:
        """Whether learning these rows might give weights that cannot be ranked, so that they must be looked at."""
        return is_large(X, weights)

    def _copy_to_train(self) -> Self:
        """A copy to train on part of the rows; what this learner has chosen already need not be chosen again."""
        twin: Self = clone(self)
        return twin

    def _renumber(self, new_ids: IdArray, classes: npt.NDArray[Any]) -> Self:
        self._decisions = self._decisions.remap_classes(new_ids, len(classes))
        return super()._renumber(new_ids, classes)


def spread_to_one(ids: IdArray, probabilities: Float64Array, n_classes: int) -> Float64Array:
    """Write the probabilities of ranked classes as dense rows that add up to 1.

    Parameters
    ----------
    ids : int32 array of shape (n, k)
        Ranked classes, best first, -1 where nothing ranks.
    probabilities : float64 array of shape (n, k)
        Theirs.
    n_classes : int
        Number of classes.

    Returns
    -------
    float64 array of shape (n, n_classes)
        Classes that are not ranked share what is left to 1, but none has more than the last that is ranked. The best
        class keeps its probability, all others are multiplied to add up to the rest, and none becomes larger than the
        best; only where that leaves something is the row divided by its sum. The best class has the largest number: of
        several that are equal, the next larger one.

    Examples
    --------
    >>> spread_to_one(np.array([[2, 0]]), np.array([[0.7, 0.2]]), 4).round(3).tolist()
    [[0.2, 0.05, 0.7, 0.05]]
    """
    ranked = ids >= 0
    n_others = n_classes - ranked.sum(axis=1)
    left = np.maximum(0, 1 - probabilities.sum(axis=1)) / np.maximum(1, n_others)
    lowest = np.where(ranked, probabilities, np.inf).min(axis=1, initial=np.inf)
    shared = np.repeat(np.minimum(left, lowest)[:, None], n_classes, axis=1)
    where = np.nonzero(ranked)
    shared[where[0], ids[where]] = probabilities[where]
    best, largest = ids[:, 0], np.where(ranked[:, :1], probabilities[:, :1], 0)
    with_best = np.flatnonzero(best >= 0)
    shared[with_best, best[with_best]] = 0
    rest = shared.sum(axis=1, keepdims=True)
    # Divided first: what the others have may be so little that a factor for it would be infinite.
    parts = np.divide(shared, rest, out=np.zeros_like(shared), where=rest > 0)
    shared = np.where(ranked[:, :1], np.minimum(parts * (1 - largest), largest), shared)
    shared[with_best, best[with_best]] = largest[with_best, 0]
    totals = shared.sum(axis=1, keepdims=True)
    dense: Float64Array = np.divide(shared, totals, out=np.full(shared.shape, 1 / n_classes), where=totals > 0)
    tied = np.flatnonzero((dense.argmax(axis=1) != best) & (best >= 0))
    dense[tied, best[tied]] = np.nextafter(dense[tied].max(axis=1), 2)
    return dense
