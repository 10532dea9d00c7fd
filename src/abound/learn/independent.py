"""IND: every feature votes with P(class | feature), each feature on its own.

Madani, Connor, Greiner: Learning When Concepts Abound, JMLR 10 (2009), figure 5. Features are Boolean, in training and
in ranking: ``w[f, c] = n[f, c] / n[f]``, kept where it is at least ``threshold``; ``s_c = Σ_f w[f, c]``. The threshold
matters and is chosen on a random fifth of the training rows; then all rows are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.disk_sums import dense_cuts, dense_sums
from abound.learn.feature_focus import FeatureFocusClassifier
from abound.learn.fitted_values import history_from, known_numbers, number_from
from abound.learn.index_learner import boolean_rows
from abound.learn.index_parts import joined_index
from abound.learn.online import split_negative, take_rows
from abound.measure.places import true_ranks
from abound.measure.ranking import recall
from abound.memory import check_memory, require_memory
from abound.progress import track
from abound.rank.topk import rank_topk
from abound.scratch import is_mapped
from abound.store import Section
from abound.validation import (
    Float32Array,
    IdArray,
    IntArray,
    Rows,
    VerifiedRows,
    check_choice,
    check_labels,
    check_number,
    check_rows,
    check_sample_weight,
    make_generator,
)

THRESHOLDS = (*(i / 100 for i in range(1, 10)), *(i / 20 for i in range(2, 13)))
"""The paper's candidates: 0.01, 0.02, ..., 0.09, 0.1, 0.15, ..., 0.6."""

VALUES_A_BLOCK = 5_000_000
"""Entries of the training rows that are counted at once."""


class IndependentClassifier(RankingClassifier):
    """Index of conditional probabilities (IND), the baseline of the index learners.

    Parameters
    ----------
    threshold : float or "auto", default="auto"
        p_ind: edges of less than this probability are left out. "auto" chooses among the paper's candidates by R1 on
        a held-out part.
    counts : {"exact", "stream"}, default="exact"
        Count exactly, or in bounded memory as Feature Focus counts, dropping light edges on the way (footnote 11).
    validation_fraction : float, default=0.2
        Part of the rows that "auto" holds out to choose the threshold.
    negative : {"ignore", "split"}, default="ignore"
        Non-positive values are ignored, or a feature becomes two, one for each sign.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the held-out part.
    n_jobs : int or None, default=None
        Threads when ranking; -1 for all cores.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk are then read once for as many features as can be counted at a time.

    Attributes
    ----------
    threshold_ : float
        The threshold used.
    history_ : list of dict
        ``threshold`` and ``R1`` of each candidate.

    Examples
    --------
    >>> from abound import IndependentClassifier
    >>> model = IndependentClassifier(threshold=0.1).fit([[1, 0], [0, 1], [1, 1]], ["a", "b", "a"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    """

    learner: ClassVar[str] = "ind"

    def __init__(
        self,
        threshold: float | str = "auto",
        counts: str = "exact",
        validation_fraction: float = 0.2,
        negative: str = "ignore",
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory: str | int | None = None,
    ) -> None:
        self.threshold = threshold
        self.counts = counts
        self.validation_fraction = validation_fraction
        self.negative = negative
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows; a positive value is an active feature.
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
        self._check_needs(rows, labels)
        rows = self._view(rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self._remember(labels)
        self.history_: list[dict[str, float]] = []
        self.threshold_ = self._choose(rows, labels, weights) if self.threshold == "auto" else float(self.threshold)
        self._index = self._count(rows, labels, weights, self.threshold_)
        return self._learn_decisions(X, labels, weights)

    @property
    def index_(self) -> ClassIndex:
        """The probabilities that are kept."""
        return self._index

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.threshold != "auto":
            check_number("threshold", self.threshold, 0, 1)
        check_choice("counts", self.counts, ("exact", "stream"))
        check_number("validation_fraction", self.validation_fraction, 0, 0.9, above=True)
        check_choice("negative", self.negative, ("ignore", "split"))
        check_memory(self.memory)

    def _view(self, rows: Rows) -> Rows:
        return boolean_rows(split_negative(rows) if self.negative == "split" else rows)

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self._index = self._index.remap_classes(new_ids, n_classes)

    def _copy_to_train(self) -> Self:
        twin = super()._copy_to_train()
        twin.set_params(threshold=self.threshold_)
        return twin

    def _fitted_values(self) -> dict[str, Any]:
        return {"history": self.history_} | known_numbers(threshold=self.threshold_)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._index = index
        self.threshold_ = number_from(state, fitted, "threshold")
        self.history_ = history_from(state, fitted)

    def _width_of_view(self, n_features: int) -> int:
        return 2 * n_features if self.negative == "split" else n_features

    def _feature_behind(self, feature: int) -> int:
        return feature // 2 if self.negative == "split" else feature

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _choose(self, rows: Rows, labels: Labels, weights: Float32Array) -> float:
        """The candidate with the best R1 on held-out rows, the larger of equals."""
        n_held = int(self.validation_fraction * rows.n_rows)
        if n_held == 0 or n_held == rows.n_rows:
            return THRESHOLDS[0]
        shuffled = make_generator(self.random_state).permutation(rows.n_rows)
        held, kept = shuffled[:n_held], np.sort(shuffled[n_held:])
        index = self._count(take_rows(rows, kept), labels.take(kept), weights[kept], THRESHOLDS[0])
        held_rows, truth = take_rows(rows, held), labels.take(held)
        with track("choose the threshold", len(THRESHOLDS)) as progress:
            for threshold in THRESHOLDS:
                index = index.prune(min_weight=threshold)
                ranking = rank_topk(index, held_rows, 1, n_jobs=self.n_jobs)
                self.history_.append({"threshold": threshold, "R1": recall(true_ranks(ranking.ids, truth), 1)})
                progress.advance()
        return max(self.history_, key=lambda entry: (entry["R1"], entry["threshold"]))["threshold"]

    def _count(self, rows: Rows, labels: Labels, weights: Float32Array, threshold: float) -> ClassIndex:
        if self.counts == "stream":
            return self._stream(rows, labels, weights, threshold)
        memory = check_memory(self.memory)
        if memory is not None and is_mapped(rows.data):
            return self._count_on_disk(rows, labels, weights, threshold, memory)
        active = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
        by_feature = (sp.diags_array(weights.astype(np.float64)) @ active).tocsc()
        by_feature.eliminate_zeros()
        truth = sp.csr_array(
            (np.ones(len(labels.ids)), labels.ids, labels.indptr), shape=(rows.n_rows, labels.n_classes)
        )
        blocks = []
        with track("count", rows.n_features) as progress:
            for begin, end in _blocks(by_feature.indptr):
                counts = (by_feature[:, begin:end].T @ truth).tocsr()
                totals = np.asarray(by_feature[:, begin:end].sum(axis=0)).ravel()
                counts.data /= np.repeat(totals, np.diff(counts.indptr))
                counts.data[counts.data < threshold] = 0
                counts.eliminate_zeros()
                blocks.append(counts)
                progress.advance(end - begin)
        return ClassIndex.from_matrix(sp.vstack(blocks, format="csr"))

    def _check_needs(self, rows: Rows, labels: Labels) -> None:
        """Refuse, before anything is done, what ``memory`` does not allow."""
        memory = check_memory(self.memory)
        if memory is None:
            return
        # On disk: the counts of some features, and room to make an index of them. Else copies in float64.
        counting = memory // 4 if is_mapped(rows.data) else 40 * int(rows.indptr[-1])
        needs = {"rows and labels": 64 * rows.n_rows + 32 * len(labels.ids), "counting": counting}
        require_memory(memory, needs | {"totals": 32 * rows.n_features + 16 * labels.n_classes}, "convert the rows")

    def _count_on_disk(
        self, rows: Rows, labels: Labels, weights: Float32Array, threshold: float, memory: int
    ) -> ClassIndex:
        """Count some features at a time, reading all rows for them."""
        by_label = np.repeat(weights.astype(np.float64), np.diff(labels.indptr))
        truth = sp.csr_array((by_label, labels.ids, labels.indptr), shape=(rows.n_rows, labels.n_classes))
        ones = sp.csr_array(weights.astype(np.float64)[:, None])
        cuts = dense_cuts(rows.n_features, labels.n_classes, memory // 8)

        def parts() -> Iterator[ClassIndex]:
            for begin, end in pairwise(cuts):
                counts, totals = dense_sums(rows, truth, begin, end), dense_sums(rows, ones, begin, end)
                np.divide(counts, totals, out=counts, where=totals > 0)
                counts[counts < threshold] = 0
                yield ClassIndex.from_matrix(sp.csr_array(counts))

        return joined_index(parts())

    def _stream(self, rows: Rows, labels: Labels, weights: Float32Array, threshold: float) -> ClassIndex:
        """Feature Focus that updates on every row: counts that forget light edges."""
        stream = FeatureFocusClassifier(
            margin=np.inf,
            min_weight=threshold,
            max_degree=None,
            rate_features=None,
            random_state=self.random_state,
            memory=self.memory,
        )
        stream._is_part = True
        return stream.fit(VerifiedRows(rows), labels, weights).index_


def _blocks(indptr: IntArray) -> list[tuple[int, int]]:
    """Spans of features with about `VALUES_A_BLOCK` entries each."""
    n_blocks = max(1, -(-int(indptr[-1]) // VALUES_A_BLOCK))
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], n_blocks + 1)[1:-1]).tolist()
    bounds = sorted({0, *cuts, len(indptr) - 1})
    return list(pairwise(bounds))
