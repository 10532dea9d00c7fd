"""What the prototype learners share: batches of rows scored in parallel, walked in order, then applied."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.distribute import Workers, spans, workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn import _batch_kernels as kernels
from abound.learn._prototype_lists import (
    PrototypeLists,
    copy_edges,
    count_edges,
    empty_lists,
    lists_from,
    restocked,
    widened,
    with_places,
    with_shares,
)
from abound.learn.base import RankingClassifier
from abound.learn.disk_order import WINDOW_SHARE
from abound.learn.disk_sums import add_to_sums
from abound.learn.index_parts import prefixed
from abound.learn.kept_lists import lists_from_arrays, lists_to_arrays
from abound.learn.online import Examples, OnlineClassifier, OnlineState
from abound.learn.prototype_arrays import csr_arrays, csr_from, remapped, steps_from
from abound.learn.prototype_bias import Bias, bias_from, exported, no_bias
from abound.learn.prototype_parts import Batch, ChangeBook, edges_kept, heaviest, make_batch, repeated_rows
from abound.learn.row_views import check_bias, feature_counts
from abound.memory import check_memory
from abound.scratch import is_mapped
from abound.store import Section
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, check_choice, check_number, frozen

BATCH = 64
"""Rows that are scored against the same weights; the result does not depend on it."""

PARTS = 2
"""Parts of a batch that a worker scores: more than one, so that none waits long for another."""

SCORE_BYTES = 64 * 2**20
"""Scores of a batch take no more than this: with very many classes a batch has fewer rows."""

PLACES = 2**28
"""Places of the arena that are asked for at most before anything is learned; unused ones take no memory."""

BOOK_CHANGES = 2**24
"""Changes that are kept to average the weights with before they are added up."""

BOOK_SHARE, BYTES_A_CHANGE = 16, 40
"""With a budget the book takes this part of it, and so does a product of rows and changes; what a change takes."""

EDGES_A_CALL = 20_000_000
"""Weights copied by one kernel call."""


@dataclass(slots=True, eq=False)
class PrototypeState(OnlineState):
    """Weights by feature, the steps they have been through, and the sum of their changes × step, features × classes.

    The mean of the weights over all steps is ``weights - sums / steps``: a change made after t of T steps has not been
    in force for t of them. A class that came after t of them had no weights until then: its mean over the steps since
    is T / (T - t) times as large.
    """

    lists: PrototypeLists
    since: IntArray
    """The steps before the first row of a column's class."""
    bias: Bias
    steps: int = 0
    sums: Any = None
    book: ChangeBook = field(default_factory=ChangeBook)

    def add_sums(self, rows: Rows, memory: int | None = None) -> None:
        """Add what the book holds of these rows; with a budget for rows on disk, part by part and in a file."""
        if self.book.rows:
            self.bias.add_totals(self.book)
        if self.book.rows and memory is not None and is_mapped(rows.data):
            by_row = self.book.take_all(rows.n_rows, self.lists.dense.shape[1])
            self.sums = add_to_sums(self.sums, rows, by_row, memory // BOOK_SHARE)
        elif self.book.rows:
            sums = self.book.sums(rows, self.lists.dense.shape[1])
            self.sums = sums if self.sums is None else (self.sums + sums).tocsr()


class PrototypeLearner(OnlineClassifier):
    """Base of the learners whose classes keep a weight vector each, of any sign.

    A learner fills in ``_walk``, the call of its kernel on a scored batch, and ``_changes_a_row``.
    """

    ranks_every_class: ClassVar[bool] = True
    ranks_by_bias: ClassVar[bool] = False
    negative: ClassVar[str] = "keep"  # type: ignore[misc]

    average: bool
    bias: float | str
    keep: float | int | None
    keep_when: str
    oversample: int | None
    resample: bool
    patience: int | None
    _state: PrototypeState
    _extra: IntArray
    _best: tuple[float, dict[str, npt.NDArray[Any]]]

    n_common: ClassVar[int] = 0
    """Columns before the classes: 1 if what all classes have in common is kept apart."""

    auto_bias: ClassVar[float] = 0.5
    """The value of ``bias="auto"``, as a part of the root mean square length of the rows; chosen on validation data."""

    batch_size: ClassVar[int] = BATCH
    dense_share: ClassVar[float] = 1 / 4
    """A feature with weights for this share of the classes keeps a dense row."""

    @abstractmethod
    def _walk(self, examples: Examples, batch: Batch) -> Callable[[int, int], None]:
        """A call of the kernel that walks the rows of a batch, from one place in the order to another."""

    def _changes_a_row(self, width: int) -> int:
        """How many columns of ``width`` a row changes at most."""
        return 2

    def _check_parameters(self) -> None:
        RankingClassifier._check_parameters(self)
        check_number("passes", self.passes, 1, whole=True)
        check_number("validation_fraction", self.validation_fraction, 0, 0.9)
        check_number("patience", self.patience, 1, whole=True, or_none=True)
        check_number("oversample", self.oversample, 1, whole=True, or_none=True)
        check_number("keep", self.keep, 0, above=True, or_none=True)
        check_choice("keep_when", self.keep_when, ("end", "pass"))
        for name in ("average", "shuffle", "resample"):
            check_choice(name, getattr(self, name), (True, False))
        check_bias(self.bias)
        check_memory(self.memory)
        if self.patience is not None and self.validation_fraction == 0:
            raise ValueError("patience needs rows to measure on: set validation_fraction above 0")

    @property
    def _dense_at(self) -> int:
        return max(32, int(self.dense_share * self._state.n_classes))

    def _start(self, n_features: int, n_classes: int) -> PrototypeState:
        width = n_classes + self.n_common
        lists, since = empty_lists(n_features, width), np.zeros(width, np.int64)
        return PrototypeState(n_features, n_classes, None, lists, since, no_bias(width))

    def _meet(self, rows: Rows) -> None:
        self._state.bias.settle(self.bias, rows, self.auto_bias)

    def _grow(self, n_features: int, n_classes: int) -> None:
        width = n_classes + self.n_common
        self._state.lists = widened(self._state.lists, n_features, width)
        # A class that comes now is averaged from now on: over all steps, it would hardly ever rank.
        more = width - len(self._state.since)
        self._state.since = np.pad(self._state.since, (0, more), constant_values=self._state.steps)
        self._state.bias.grow(width)
        if self._state.sums is not None:
            self._state.sums.resize((n_features, width))

    def _learn(self, examples: Examples, first_pass: bool) -> Float64Array:
        examples = replace(examples, order=examples.order[examples.weights[examples.order] > 0])
        order, width = examples.order, self._state.n_classes + self.n_common
        size = max(1, min(self.batch_size, SCORE_BYTES // (4 * width), len(order)))
        ends = np.concatenate(([0], np.cumsum(examples.rows.indptr[order + 1] - examples.rows.indptr[order])))
        bounds = ends[np.arange(0, len(order) + size, size).clip(max=len(order))]
        most = int(np.diff(bounds).max(initial=0))
        batch = make_batch(size, width, self._changes_a_row(width), self._state.n_features, most)
        walk = self._walk(examples, batch)
        memory = check_memory(self.memory)
        most_changes = BOOK_CHANGES if memory is None else min(BOOK_CHANGES, memory // BOOK_SHARE // BYTES_A_CHANGE)
        with workers(self.n_jobs) as pool:
            lists = with_shares(self._state.lists, pool.n_workers)
            self._state.lists = with_places(lists, min(4 * int(ends[-1]), PLACES)) if lists.used[0] == 0 else lists
            for begin in range(0, len(order), size):
                end = min(begin + size, len(order))
                self._score(examples, begin, end, ends[begin : end + 1], batch, pool)
                walk(begin, end)
                self._apply(examples, begin, end, batch, pool)
                self._state.bias.learn(batch, end - begin)
                if self.average:
                    self._state.book.note(order[begin:end], batch, self._state.steps)
                    if self._state.book.n_changes > most_changes:
                        self._settle(examples.rows)
                self._state.steps += end - begin
        return batch.tally

    def _may_be_large(self, X: Any, weights: Float32Array) -> bool:
        return self._state.bias.is_large or super()._may_be_large(X, weights)

    def _settle(self, rows: Rows) -> None:
        self._state.add_sums(rows, check_memory(self.memory))

    def _pass(self, number: int, examples: Examples, first_pass: bool) -> None:
        super()._pass(number, examples, first_pass)
        if self.keep is not None and self.keep_when == "pass":
            self._state.lists = lists_from(heaviest(self._weights(), self.keep))
            self.history_[-1]["edges"] = self._edges()

    def _sample(self, training: IntArray, labels: Labels, number: int, generator: np.random.Generator) -> IntArray:
        if self.oversample is None:
            return training
        if number == 1 or self.resample:
            self._extra = repeated_rows(training, labels, self.oversample, generator)
        return np.concatenate((training, self._extra))

    def _is_enough(self) -> bool:
        """Keep the best pass in mind; stop once patience has run out, with the best pass's weights."""
        if self.patience is None:
            return False
        recalls = [entry["R1"] for entry in self.history_]
        best = int(np.argmax(recalls))
        if best == len(recalls) - 1:
            self._best = recalls[-1], self._saved()
        enough = len(recalls) - 1 - best >= self.patience
        if (enough or len(recalls) == self.passes) and best != len(recalls) - 1:
            self._state = self._restored(Section(Path("best pass"), "", self._best[1]), self._state.n_classes)
        return enough

    def _score(self, examples: Examples, begin: int, end: int, ends: IntArray, batch: Batch, pool: Workers) -> None:
        rows, lists, bias = examples.rows, self._state.lists, self._state.bias

        def score(part: tuple[int, int] | None) -> None:
            taken = rows.indptr, rows.indices, rows.data, examples.order
            if part is None:
                kernels.multiply_rows(*taken, begin, end, bias.squared, batch.met, batch.products)
            else:
                span = begin + part[0], begin + part[1]
                kernels.score_rows(*taken, *span, begin, lists, bias.added, batch.scores)

        n_parts = 1 if pool.n_workers == 1 else PARTS * pool.n_workers
        for _ in pool.map(score, [None, *(spans(ends, n_parts) or [(0, end - begin)])]):
            pass

    def _apply(self, examples: Examples, begin: int, end: int, batch: Batch, pool: Workers) -> None:
        rows, order, n_shares, state = examples.rows, examples.order, pool.n_workers, self._state
        stops = np.zeros((n_shares, 4), dtype=np.int64)
        stops[:, 0] = begin

        def apply(share: int) -> tuple[int, int]:
            missing = kernels.apply_changes(
                *(rows.indptr, rows.indices, rows.data, order, end),
                *(batch.change_indptr, batch.change_classes, batch.changes),
                *(self._dense_at, share, n_shares, state.lists, stops[share]),
            )
            return share, missing

        left = list(range(n_shares))
        while left:
            short = [(share, missing) for share, missing in pool.map(apply, left) if missing]
            for share, missing in short:
                state.lists = restocked(state.lists, share, missing)
            left = [share for share, _ in short]

    def _edges(self) -> int:
        degrees = np.empty(self._state.n_features, dtype=np.int64)
        count_edges(self._state.lists, degrees)
        return int(degrees.sum())

    def _weights(self, first: int = 0, last: int | None = None) -> Any:
        """The weights other than 0 of some features, features × classes, classes in no order."""
        lists = self._state.lists
        last = self._state.n_features if last is None else last
        degrees = np.empty(self._state.n_features, dtype=np.int64)
        count_edges(lists, degrees)
        indptr = np.concatenate(([0], np.cumsum(degrees)))
        indptr -= indptr[first]
        own = indptr[first : last + 1]
        classes = np.empty(own[-1], dtype=np.int32)
        weights = np.empty(own[-1], dtype=np.float32)
        for begin, end in spans(own, max(1, int(own[-1]) // EDGES_A_CALL)):
            copy_edges(lists, indptr, first + begin, first + end, classes, weights)
        return sp.csr_array((weights, classes, own), shape=(last - first, lists.dense.shape[1]))

    def _mean_weights(self, first: int = 0, last: int | None = None) -> Any:
        """The weights of some features that rank: averaged over all steps, or the last ones."""
        weights, sums = self._weights(first, last), self._state.sums
        if sums is None:
            return weights
        own = sums if weights.shape == sums.shape else sums[first:last]
        mean, steps, since = (weights - own / self._state.steps).tocsr(), self._state.steps, self._state.since
        if since.any():
            mean.data *= (steps / np.maximum(steps - since, 1))[mean.indices]
        return mean

    def _mean_bias(self) -> npt.NDArray[Any]:
        """What is added to the score of each column, on average or last."""
        state = self._state
        return state.bias.added if state.sums is None else state.bias.mean(state.steps, state.since)

    def _degrees(self) -> IntArray:
        degrees = np.empty(self._state.n_features, dtype=np.int64)
        count_edges(self._state.lists, degrees)
        # An average may have classes of which the last weights know nothing more.
        return degrees if self._state.sums is None else degrees + np.diff(self._state.sums.indptr)

    def _export(self) -> ClassIndex:
        index = super()._export()
        index = index if self.keep is None else index.prune(max_edges=edges_kept(self.keep, index.n_edges))
        return replace(index, bias=exported(self._mean_bias(), self.n_common)) if self._state.bias.constant else index

    def _export_part(self, begin: int, end: int) -> ClassIndex:
        weights = self._mean_weights(begin, end)
        index = ClassIndex.from_matrix(weights[:, self.n_common :])
        if self.n_common == 0:
            return index
        return replace(index, offset=frozen(weights[:, [0]].toarray().ravel(), np.float32))

    def _model_needs(self, rows: Rows, labels: Labels, memory: int) -> dict[str, int]:
        width = labels.n_classes + self.n_common
        changes = self.passes * self._changes_a_row(width)
        degrees = np.minimum(feature_counts(rows) * float(changes), width)
        # Dense rows are moved to a larger array when there are more of them; lists leave their old places behind.
        weights = int(np.where(degrees >= self.dense_share * width, 16.0 * width, 24 * degrees).sum())
        if getattr(self, "init", "zero") == "random":
            weights = 8 * width * rows.n_features
        size = max(1, min(self.batch_size, SCORE_BYTES // (4 * width)))
        batch = size * (4 * width + 8 * self._changes_a_row(width) + 4 * size)
        averages = 3 * memory // BOOK_SHARE if self.average else 0
        if self.average and not is_mapped(rows.data):
            averages += 36 * int(degrees.sum()) + 8 * int(rows.indptr[-1])
        exporting = memory // WINDOW_SHARE + (24 * int(degrees.sum()) if self.keep is not None else 0)
        return {
            "the weights": weights + 40 * rows.n_features,
            "averaging or exporting them": max(averages, exporting),
            "a batch": batch,
        }

    def _saved(self) -> dict[str, npt.NDArray[Any]]:
        saved = csr_arrays("", self._weights())
        if self._state.sums is not None:
            saved |= csr_arrays("sum_", self._state.sums)
        if self._state.since.any():
            saved["since"] = self._state.since
        return saved | {"steps": np.array([self._state.steps])} | self._state.bias.to_arrays()

    def _restored(self, arrays: Section, n_classes: int) -> PrototypeState:
        width = n_classes + self.n_common
        weights = csr_from(arrays, "", np.float32, width)
        sums = csr_from(arrays, "sum_", np.float64, width) if "sum_indptr" in arrays else None
        if sums is not None and sums.shape != weights.shape:
            raise arrays.fault("sum_indptr", f"{sums.shape[0]} features, the weights have {weights.shape[0]}")
        steps = steps_from(arrays, sums)
        since = np.zeros(width, np.int64)
        if "since" in arrays:
            since[:] = arrays.require("since", np.int64, (width,))
            if since.min() < 0 or since.max() > steps:
                raise arrays.fault("since", f"a class came before the first or after the last of {steps} steps")
        bias = bias_from(arrays, width)
        return PrototypeState(weights.shape[0], n_classes, None, lists_from(weights), since, bias, steps, sums)

    def _kept(self) -> dict[str, npt.NDArray[Any]]:
        kept = prefixed("lists/", lists_to_arrays(self._state.lists))
        if self._state.sums is not None:
            kept |= csr_arrays("sum_", self._state.sums)
        return kept | {"steps": np.array([self._state.steps])} | self._state.bias.to_arrays()

    def _resumed(self, arrays: Section) -> PrototypeState:
        state = self._state
        width = state.n_classes + self.n_common
        lists = lists_from_arrays(arrays.section("lists/"), state.n_features, width)
        sums = csr_from(arrays, "sum_", np.float64, width) if "sum_indptr" in arrays else None
        steps = steps_from(arrays, sums)
        bias = bias_from(arrays, width)
        return PrototypeState(state.n_features, state.n_classes, None, lists, state.since, bias, steps, sums)

    def _remap_state(self, new_ids: IdArray, n_classes: int) -> None:
        """Weights that become one add up."""
        columns = np.concatenate((np.arange(self.n_common), np.where(new_ids >= 0, new_ids + self.n_common, -1)))
        width, state = n_classes + self.n_common, self._state
        weights, since = remapped(self._weights(), columns, width), np.full(width, state.steps)
        np.minimum.at(since, columns[columns >= 0], state.since[columns >= 0])
        state.bias = state.bias.remapped(columns, width, state.steps, state.since, since, state.sums is not None)
        if state.sums is not None and state.since.any():
            # Classes that become one may have come at different times; their means add up as their weights do.
            mean = remapped(self._mean_weights(), columns, width)
            left = sp.diags_array((state.steps - since).astype(np.float64))
            state.sums = (weights * float(state.steps) - mean @ left).tocsr()
        elif state.sums is not None:
            state.sums = remapped(state.sums, columns, width)
        state.lists, state.since = lists_from(weights), since

    def _view(self, rows: Rows) -> Rows:
        return rows
