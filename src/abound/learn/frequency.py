"""The frequency baseline: ranks classes by how often they occur, whatever the row."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.labels import encode
from abound.learn.base import RankingClassifier
from abound.learn.turns import alone
from abound.rank.topk import Ranking
from abound.store import Section
from abound.store.check import LARGEST_SUM
from abound.validation import Float32Array, Float64Array, IdArray, Rows, check_labels, check_rows, check_sample_weight


class FrequencyClassifier(RankingClassifier):
    """Ranks classes by their training frequency: what any learner must beat.

    Parameters
    ----------
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    n_jobs : int or None, default=None
        Accepted like everywhere; there is nothing to share out.

    Attributes
    ----------
    frequencies_ : float64 array of shape (n_classes,)
        Sum of the weights of each class's rows.

    Examples
    --------
    >>> from abound import FrequencyClassifier
    >>> FrequencyClassifier().fit([[1], [2], [3]], ["a", "b", "b"]).predict([[1]]).tolist()
    ['b']
    """

    learner: ClassVar[str] = "frequency"
    frequencies_: Float64Array

    def __init__(self, calibrate: str | None = None, cut: str | None = "auto", n_jobs: int | None = None) -> None:
        self.calibrate = calibrate
        self.cut = cut
        self.n_jobs = n_jobs

    @alone
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows; only their number matters.
        y : array, list of lists or indicator
            Their labels.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        self
            The fitted learner.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        self._remember(labels)
        self.frequencies_ = np.zeros(labels.n_classes)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        return self._count(labels.indptr, labels.ids, weights)._learn_decisions(X, labels, weights)

    @alone
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows; new labels are taken in.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows; at least as many features as before.
        y : array, list of lists or indicator
            Their labels.
        classes : array, optional
            Labels to know from the start.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        self
            The learner.
        """
        self._check_parameters()
        first = not hasattr(self, "_classes")
        rows = check_rows(self, X, reset=first, may_widen=True)
        known = encode(classes).classes if first and classes is not None else None if first else self.classes_
        labels = check_labels(y, rows.n_rows, known)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        before = np.zeros(0) if first else self.frequencies_
        self._remember(labels) if first else self._remember_more(labels)
        self.frequencies_ = np.concatenate((before, np.zeros(labels.n_classes - len(before))))
        return self._count(labels.indptr, labels.ids, weights)

    @property
    def index_(self) -> ClassIndex:
        """An index without edges: no feature votes."""
        return ClassIndex.from_edges([], [], [], n_features=self.n_features_in_, n_classes=len(self._classes))

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        kept = new_ids >= 0
        sums = np.zeros(n_classes)
        np.add.at(sums, new_ids[kept], self.frequencies_[kept])
        self.frequencies_ = sums

    def _state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"frequencies": self.frequencies_}

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        kept = "frequencies" in state
        given = "frequencies", np.float64, (index.n_classes,), LARGEST_SUM
        counts = state.require_numbers(*given) if kept else self.class_counts_
        if counts.min(initial=0) < 0:
            raise state.fault("frequencies", "a class has fewer than no rows")
        self.frequencies_ = counts.astype(np.float64)

    def _count(self, indptr: Any, ids: Any, weights: Float32Array) -> Self:
        more = np.bincount(ids, np.repeat(weights, np.diff(indptr)), minlength=len(self.frequencies_))
        self.frequencies_ = self.frequencies_ + more
        return self

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        scores = self._shares()
        ids = np.argsort(-scores, kind="stable")
        if allowed is not None:
            ids = ids[allowed[ids]]
        k = min(k, len(scores))
        best = np.full(k, -1, dtype=np.int32)
        best[: len(ids)] = ids[:k]
        found = np.where(best >= 0, scores[best], -np.inf).astype(np.float32)
        return Ranking(np.tile(best, (rows.n_rows, 1)), np.tile(found, (rows.n_rows, 1)))

    def _score_all(self, rows: Rows) -> Float32Array:
        return np.tile(self._shares(), (rows.n_rows, 1))

    def _shares(self) -> Float32Array:
        shares: Float32Array = (self.frequencies_ / max(1e-300, self.frequencies_.sum())).astype(np.float32)
        return shares

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
