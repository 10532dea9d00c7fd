"""What every learner offers once it is fitted: the best classes of a row, their scores, and the reasons.

A learner fills in ``classes_``, ``class_counts_`` and ``index_``; all else is here.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from abound.distribute import check_cluster, count_workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels, decode
from abound.learn.checkpoint import check_checkpoint
from abound.learn.deciding import Deciding
from abound.learn.decisions import Decisions
from abound.learn.index_parts import contributions, index_arrays, index_from, prefixed, without_bias
from abound.learn.row_views import take_rows
from abound.learn.turns import turn_of
from abound.measure.decisions import weighted_f1
from abound.measure.encoding import encode_predicted, encode_truth
from abound.rank.topk import Ranking, rank_topk, score_all, silent_rows
from abound.store import LazyLabels, Section
from abound.validation import (
    LARGEST,
    Float32Array,
    IdArray,
    IntArray,
    Rows,
    check_dense,
    check_number,
    check_rows,
    find_too_large,
)


class TopK(NamedTuple):
    """The best classes of each row: two arrays of shape (n, k), best first."""

    labels: npt.NDArray[Any]
    scores: Float32Array


class RankingClassifier(Deciding, ClassifierMixin, BaseEstimator):
    """Base of all learners whose model is a `ClassIndex`.

    Threads may ask a learner while one of them calls its ``partial_fit``: an answer is that of the learner before the
    call or after it, never of something between, and waits for the call to end if need be.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, in the order of their ids.
    class_counts_ : int64 array of shape (n_classes,)
        Training rows of each class.
    index_ : ClassIndex
        What ranks: feature → (class, weight), heaviest first.
    """

    learner: ClassVar[str]
    """Short name, as on the command line."""

    ranks_every_class: ClassVar[bool] = False
    """Whether classes of any score are ranked, or only those with a positive one."""

    ranks_by_bias: ClassVar[bool] = True
    """Whether the bias says how frequent classes are; if not, it counts for no row that no feature votes for."""

    n_jobs: int | None
    cluster: str | None = None
    """Where training runs; a parameter of those learners whose training falls into independent parts."""

    checkpoint: Any = None
    """Folder of finished parts; a parameter of those learners whose training takes long."""

    class_counts_: IntArray
    n_features_in_: int
    _classes: npt.NDArray[Any] | LazyLabels

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels in the order of their ids; a loaded model decodes them when they are first asked for."""
        check_is_fitted(self)
        classes = self._classes
        if isinstance(classes, LazyLabels):
            classes = self._classes = classes.to_array()
        return classes

    @property
    def index_(self) -> ClassIndex:
        """The index that ranks."""
        raise AttributeError(f"{type(self).__name__} has no index")

    @property
    def n_edges_(self) -> int:
        """|W|: the weights that the learner keeps."""
        return self.index_.n_edges

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        probabilities: bool = False,
    ) -> TopK:
        """Rank the classes of each row and return the best k.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        k : int
            Number of classes wanted.
        include : iterable of labels, optional
            Rank these classes only.
        exclude : iterable of labels, optional
            Leave these classes out.
        probabilities : bool
            Return probabilities in place of scores; the learner must have been fitted with ``calibrate``.

        Returns
        -------
        labels : array of shape (n, min(k, n_classes))
            Best first. Where fewer classes rank, the array is of type object and holds None.
        scores : float32 array of the same shape
            Their scores, -inf beside None. Probabilities are 0 beside None.
        """
        learner = self._at_rest()
        rows = learner._rows(X)
        check_number("k", k, 1, whole=True)
        ranking = learner._rank(rows, max(2, k) if probabilities else k, learner._allowed(include, exclude))
        scores = learner._probabilities(ranking).astype(np.float32) if probabilities else ranking.scores
        return TopK(learner._labels_of(ranking.ids[:, :k]), scores[:, :k])

    def predict(self, X: Any, min_confidence: float | None = None) -> Any:
        """Return the best class of each row, or for multi-label data its best classes.

        For multi-label data the rule ``cut_`` says which; it was learned from held-out rows. Without one these are
        the r best, r being the average number of labels of a training row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        min_confidence : float, optional
            From 0 to 1. A class whose probability, as a share of those of the row's 50 best classes, is lower is
            replaced by the deepest node of the taxonomy whose classes together reach it. The learner must have a
            taxonomy and have been fitted with ``calibrate``.

        Returns
        -------
        array, list of lists or matrix
            Of the kind that ``fit`` received; lists where that was a matrix and classes have got names that number no
            column. With ``min_confidence``, an array of labels and names of nodes; where nothing is sure enough, the
            root of a tree, or None.
        """
        learner = self._at_rest()
        rows = learner._rows(X)
        if min_confidence is not None:
            return learner._predict_sure(rows, min_confidence, learner._own_taxonomy())
        indptr, ids = learner._decide(learner._rank(rows, learner._decision_depth(), None))
        return decode(indptr, ids, learner.classes_, learner._kind)

    def decision_function(self, X: Any) -> Float32Array:
        """Return the scores of all classes: dense, as scikit-learn asks, so only where that fits.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.

        Returns
        -------
        array of shape (n,) for two classes, else (n, n_classes)
            In a row that no feature votes for, the most frequent class has the next larger number.
        """
        learner = self._at_rest()
        rows = learner._rows(X)
        n_classes = len(learner._classes)
        check_dense(rows.n_rows, n_classes, 4, "use predict_topk, which keeps the best classes only")
        scores = learner._score_and_fill(rows)
        if n_classes == 2 and learner._kind == "single":
            difference: Float32Array = scores[:, 1] - scores[:, 0]
            return difference
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how good `predict` is: micro-F1, which is the accuracy (R1) where a row has one label.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        y : array, list of lists or indicator
            Their labels; those that the model does not know count as missed.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        float
            From 0 to 1.
        """
        predicted = self.predict(X)
        truth = encode_truth(y, self.classes_)
        return weighted_f1(truth, encode_predicted(predicted, truth.classes), sample_weight)

    def explain(self, x: Any, label: Any) -> list[tuple[Any, float]]:
        """Tell which features of a row speak for a class, and how much.

        Parameters
        ----------
        x : array or sparse matrix of one row
            The row.
        label : label
            The class.

        Returns
        -------
        list of (feature, contribution)
            Heaviest |contribution| first; they add up to the score. Features are named by ``feature_names_in_`` where
            there is one, else by number; what every row adds is named "bias".
        """
        learner = self._at_rest()
        rows = learner._rows(x)
        if rows.n_rows != 1:
            raise ValueError(f"explain takes one row, got {rows.n_rows}")
        parts = learner._contributions(rows, learner._class_id(label))
        names = getattr(learner, "feature_names_in_", range(learner.n_features_in_))
        named = [(names[feature] if 0 <= feature < len(names) else "bias", value) for feature, value in parts]
        return sorted(named, key=lambda part: -abs(part[1]))

    def save(self, path: str | Path) -> None:
        """Write the model to one file, which `abound.load` reads back.

        Parameters
        ----------
        path : path
            Where to; written beside and renamed, so that no half-written file is ever seen.
        """
        from abound.learn.model import Model

        Model(self).save(path)

    def _at_rest(self) -> Self:
        """What answers: of a learner that may be learning on in another thread, a copy that stays as it is."""
        if not hasattr(self, "partial_fit") or not self.__sklearn_is_fitted__():
            return self
        with turn_of(self):
            return self._frozen_copy()

    def _rows(self, X: Any) -> Rows:
        """The gate of every method but ``fit``."""
        check_is_fitted(self)
        return self._view(check_rows(self, X, reset=False))

    def _labels_of(self, ids: IdArray) -> npt.NDArray[Any]:
        """The labels of ids, None for -1; of a loaded model only those that are needed are decoded."""
        if isinstance(self._classes, LazyLabels):
            return self._classes.take(ids)
        if (ids >= 0).all():
            return self._classes[ids]
        labels = self._classes.astype(object)[ids]
        labels[ids < 0] = None
        return labels

    def _view(self, rows: Rows) -> Rows:
        """The rows as this learner sees them."""
        return rows

    def _width_of_view(self, n_features: int) -> int:
        """How many features the view has."""
        return n_features

    def _feature_behind(self, feature: int) -> int:
        """The user's feature behind a feature of the view."""
        return feature

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        index = self.index_
        ranking = rank_topk(index, rows, k, every_class=self.ranks_every_class, allowed=allowed, n_jobs=self.n_jobs)
        frequent = self._most_frequent(allowed)
        if not len(ranking.ids) or frequent < 0:
            return ranking
        if self.ranks_every_class:
            silent = np.flatnonzero(self._silent_rows(rows))
            if len(silent):
                if index.bias is not None:
                    said = rank_topk(without_bias(index), take_rows(rows, silent), k, every_class=True, allowed=allowed)
                    ranking.ids[silent], ranking.scores[silent] = said
                others = ranking.ids[silent[0]]
                ranking.ids[silent] = np.concatenate(([frequent], others[others != frequent]))[: len(others)]
        else:
            silent = np.flatnonzero(ranking.ids[:, 0] < 0)
            ranking.ids[silent, 0], ranking.scores[silent, 0] = frequent, 0
        return ranking

    def _silent_rows(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Tell which rows get the most frequent class, for nothing else speaks for any."""
        index = self.index_
        return silent_rows(index if self.ranks_by_bias else without_bias(index), rows)

    def _score_all(self, rows: Rows) -> Float32Array:
        index = self.index_
        scores = score_all(index, rows)
        if index.bias is not None and not self.ranks_by_bias:
            silent = np.flatnonzero(self._silent_rows(rows))
            scores[silent] = score_all(without_bias(index), take_rows(rows, silent))
        return scores

    def _score_and_fill(self, rows: Rows) -> Float32Array:
        """All scores; where nothing votes, the most frequent class gets the next larger number."""
        scores = self._score_all(rows)
        if not self._ranks_any_score():
            silent = scores.max(axis=1, initial=0) <= 0
        elif self._ranks_by_index():
            silent = self._silent_rows(rows)
        else:
            return scores
        frequent = self._most_frequent(None)
        level = scores[silent, frequent]
        # Above 0 the next number would be subnormal, which some processors take for 0.
        above = np.where(level == 0, np.finfo(np.float32).tiny, np.nextafter(level, np.float32(np.inf)))
        scores[silent, frequent] = above
        return scores

    def _ranks_any_score(self) -> bool:
        """Whether a class may rank with a score of 0 or less."""
        return self.ranks_every_class

    def _ranks_by_index(self) -> bool:
        """Whether scores are the index times the row, and nothing else."""
        return type(self)._rank is RankingClassifier._rank

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        """What each feature of one row adds to the score of a class, by the user's features."""
        index = self.index_
        index = without_bias(index) if self._silent_rows(rows)[0] else index
        return contributions(index, rows, c, self._feature_behind)

    def _most_frequent(self, allowed: npt.NDArray[np.bool_] | None) -> int:
        """Id of the most frequent class that is allowed, -1 if none is: the answer where nothing votes."""
        if allowed is None:
            return int(self.class_counts_.argmax())
        return int(np.where(allowed, self.class_counts_, -1).argmax()) if allowed.any() else -1

    def _allowed(self, include: Iterable[Any] | None, exclude: Iterable[Any] | None) -> npt.NDArray[np.bool_] | None:
        if include is None and exclude is None:
            return None
        allowed = np.full(len(self._classes), include is None, dtype=np.bool_)
        if include is not None:
            allowed[[self._class_id(label) for label in include]] = True
        if exclude is not None:
            allowed[[self._class_id(label) for label in exclude]] = False
        return allowed

    def _class_id(self, label: Any) -> int:
        wanted = label
        if isinstance(label, tuple):
            # NumPy would take it for an array to compare with, entry by entry.
            wanted = np.empty((), dtype=object)
            wanted[()] = label
        found = np.flatnonzero(self.classes_ == wanted)
        if len(found) != 1:
            raise ValueError(f"{label!r} is not a class of this model, which knows {len(self.classes_)} classes")
        return int(found[0])

    def _check_parameters(self) -> None:
        """Raise a clear error if a parameter is out of its range."""
        count_workers(self.n_jobs)
        check_cluster(self.cluster)
        check_checkpoint(self.checkpoint, getattr(self, "random_state", 0))
        self._check_decisions()

    def _with_index(self, index: ClassIndex) -> Self:
        """A copy that ranks by another index of the same shape and cannot learn on."""
        twin = copy.copy(self)
        nothing = Section(Path(), "state/", {})
        twin._restore(index, nothing, index.n_edges, self._fitted_values())
        return twin

    def _check_learned(self) -> None:
        for array in self._model_arrays().values():
            if array.dtype.kind == "f" and find_too_large(array.reshape(-1)) is not None:
                raise ValueError(
                    f"learning these rows gave weights beyond ±{LARGEST:.0e}, which cannot be ranked. Scale the rows, "
                    "for example to unit length, and the sample weights"
                )

    def _as_part(self) -> Self:
        """An unfitted copy to train inside another learner, which has the workers and learns the decisions."""
        part: Self = clone(self)
        known = part.get_params(deep=False)
        part.set_params(**{name: None for name in ("n_jobs", "cluster", "checkpoint") if name in known})
        part._is_part = True
        return part

    def _frozen_copy(self) -> Self:
        """A copy that ranks alike and need not learn on: what ensembles keep of a learner."""
        return copy.copy(self)

    def _pruned(self, **limits: Any) -> Self:
        """A copy without its light edges (see `ClassIndex.prune`), which cannot learn on."""
        return self._with_index(self.index_.prune(**limits))

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What ranks, as named arrays of a model file."""
        return prefixed("index/", index_arrays(self.index_))

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        """Take over a model file's arrays, checked; labels and numbers of classes and features are known."""
        shape = self._width_of_view(self.n_features_in_), len(self.class_counts_)
        index = index_from(stored.section("index/"), *shape, getattr(self, "bias", 0.0))
        self._restore(index, stored.section("state/"), n_edges, fitted)

    def _state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What must be saved to learn on; nothing if the learner is not online."""
        return {}

    def _fitted_values(self) -> dict[str, Any]:
        """Fitted values beside the index that a model file keeps; JSON must hold them."""
        return {}

    @abstractmethod
    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        """Take over what a model file holds; ``state`` is empty if it was left out."""

    def _remember(self, labels: Labels) -> None:
        """Keep what ``fit`` was given: the classes, how they were written, and how many a row has."""
        if labels.n_classes == 0:
            raise ValueError("y holds no label: there is nothing to learn")
        self._classes = labels.classes
        self._kind = labels.kind
        self.class_counts_ = labels.counts
        self._labels_a_row = len(labels.ids) / max(1, len(labels))
        self._decisions = Decisions()

    def _remember_more(self, labels: Labels) -> None:
        """Keep what ``partial_fit`` was given beyond what was known."""
        seen = self.class_counts_.sum() / max(1e-12, self._labels_a_row)
        counts = labels.counts
        counts[: len(self.class_counts_)] += self.class_counts_
        self._classes = labels.classes
        self.class_counts_ = counts
        self._labels_a_row = float(counts.sum() / max(1, seen + len(labels)))
        if self._kind == "single":
            self._kind = labels.kind

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_classes")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
