"""Learners that see one row at a time: passes over the data, new classes and features, history, interruption."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from abound.distribute import spans
from abound.index.class_index import ClassIndex
from abound.labels import Labels, encode
from abound.learn.base import RankingClassifier
from abound.learn.disk_order import ADVICE, WINDOW_SHARE, make_windows, online_needs, window_entries
from abound.learn.fitted_values import history_from
from abound.learn.held_out import hold_out
from abound.learn.index_parts import joined_index
from abound.learn.kept_passes import KeptPasses
from abound.learn.online_parts import Examples as Examples
from abound.learn.online_parts import FrozenState as FrozenState
from abound.learn.online_parts import OnlineState as OnlineState
from abound.learn.online_parts import warn_if_sorted
from abound.learn.row_views import ignore_negative
from abound.learn.row_views import split_negative as split_negative
from abound.learn.row_views import take_rows as take_rows
from abound.learn.turns import alone
from abound.measure.places import true_ranks
from abound.measure.ranking import recall
from abound.memory import check_memory, require_memory
from abound.progress import track
from abound.store import Section
from abound.validation import (
    Float64Array,
    IdArray,
    IntArray,
    Rows,
    check_choice,
    check_labels,
    check_number,
    check_rows,
    check_sample_weight,
    make_generator,
)

FIRST_MEETINGS = 5
"""How often `partial_fit` learns the rows of a class that is new, at least: once would not do for it to be ranked."""
MOST_MEETINGS = 100
"""And at most so often, whatever number of passes a model file says."""

LONGEST_HISTORY = 1000
"""Entries that the history keeps when learning goes on and on, and that a model file has of it."""


class OnlineClassifier(RankingClassifier):
    """Base of the learners that learn row by row.

    A learner fills in ``_start``, ``_grow``, ``_learn``, ``_degrees``, ``_export_part`` and ``_edges``.

    Attributes
    ----------
    history_ : list of dict
        One entry a pass: ``pass``, ``online_R1`` (rows whose best class was right before they were learned),
        ``updates``, ``edges``, ``seconds``, and with a validation part ``R1`` and ``R5`` on it.
    """

    passes: int
    shuffle: bool
    validation_fraction: float
    random_state: Any
    negative: str
    memory: str | int | None = None
    history_: list[dict[str, float]]
    _state: Any
    _run: tuple[Any, int]
    _taught: bool = True
    """Whether it began with `fit`, and not with rows that come and go."""
    _watch: tuple[frozenset[int], Callable[[], None]] | None = None
    """Passes of `fit` after which a committee takes what was learned so far, and how it does."""

    @alone
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, in ``passes`` passes over the rows, each in a new random order.

        Ctrl-C raises KeyboardInterrupt and leaves a usable model that holds what was learned so far.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
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
        self._run = (None, 0)
        self.history_ = []
        self._taught = True
        self._state = self._start(rows.n_features, labels.n_classes)
        generator = make_generator(self.random_state)
        training, validation = self._hold_out(rows.n_rows, generator)
        try:
            self._run_passes(Examples(rows, labels, weights, training), validation, generator)
        finally:
            self._settle(rows)
        return self._learn_decisions(X, labels, weights, validation)

    def _run_passes(self, examples: Examples, validation: IntArray, generator: np.random.Generator) -> None:
        """All passes over the training rows, each in an order of its own, until ``passes`` or patience end."""
        rows, labels, training = examples.rows, examples.labels, examples.order
        kept = KeptPasses(self, examples)
        n_done, enough = kept.restore(self, generator)
        with track(f"train {self.learner}", self.passes) as progress:
            progress.advance(n_done)
            for number in range(self.passes + 1 if enough else n_done + 1, self.passes + 1):
                chosen = self._sample(training, labels, number, generator)
                ordered = self._ordered(examples, chosen, generator if self.shuffle else None)
                self._pass(number, ordered, number == 1)
                # After every pass, so that whoever looks at the learner in between does not change what it adds up.
                self._settle(rows)
                if len(validation):
                    self._validate(rows, labels, validation)
                if self._watch is not None and number in self._watch[0]:
                    self._watch[1]()
                progress.advance(1, f"R1 {self.history_[-1].get('R1', self.history_[-1]['online_R1']):.3f}")
                enough = self._is_enough()
                kept.keep(self, generator, enough)
                if enough:
                    break

    def _ordered(self, examples: Examples, chosen: IntArray, generator: np.random.Generator | None) -> Examples:
        """The rows of a pass in the order to take them in; see `abound.learn.disk_order` for rows on disk."""
        entries = window_entries(examples.rows, check_memory(self.memory))
        if entries is None:
            return replace(examples, order=chosen if generator is None else generator.permutation(chosen))
        return replace(examples, order=chosen, windows=make_windows(examples.rows, chosen, entries, generator))

    def _check_needs(self, rows: Rows, labels: Labels) -> None:
        """Refuse, before anything is done, what ``memory`` does not allow."""
        memory = check_memory(self.memory)
        if memory is None:
            return
        twice = not self._is_part and (self.calibrate is not None or (self.cut is not None and labels.kind != "single"))
        require_memory(memory, online_needs(rows, self._model_needs(rows, labels, memory), memory, twice), ADVICE)

    @alone
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows in the order given; unseen labels and new features (a wider ``X``) are taken in.

        Rows are learned once. After ``fit``, those of a class that had none before are learned ``passes`` times, and
        at least five times, so that it ranks for rows like its own, however few they are; a warning names classes that
        do not.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows; at least as many features as before.
        y : array, list of lists or indicator
            Their labels.
        classes : array, optional
            Labels to know from the start; others may still come later. ``classes_`` only ever grows at its end.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        self
            The learner.
        """
        self._check_parameters()
        first = not hasattr(self, "_classes")
        if not first and isinstance(self._state, FrozenState):
            self._thaw(self._state)
        rows = self._view(check_rows(self, X, reset=first, may_widen=True))
        known = encode(classes).classes if first and classes is not None else None if first else self.classes_
        labels = check_labels(y, rows.n_rows, known)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        order = np.arange(rows.n_rows, dtype=np.int64)
        new = order[:0]
        if first:
            self._remember(labels)
            self._run = (None, 0)
            self.history_ = []
            self._state = self._start(rows.n_features, labels.n_classes)
            self._taught = False
        else:
            new = self._rows_of_new(labels) if self._taught else new
            order = np.concatenate((order, np.tile(new, min(max(self.passes, FIRST_MEETINGS), MOST_MEETINGS) - 1)))
            self._extend(rows, labels)
        self._run = warn_if_sorted(labels, self.class_counts_, self._run)
        number = int(self.history_[-1].get("pass", 0)) + 1 if self.history_ else 1
        try:
            self._pass(number, self._ordered(Examples(rows, labels, weights, order), order, None), True)
        finally:
            self._settle(rows)
        del self.history_[:-LONGEST_HISTORY]
        if self._may_be_large(X, weights):
            self._check_learned()
        self._warn_of_silent(take_rows(rows, new), labels.take(new))
        return self

    @property
    @alone
    def index_(self) -> ClassIndex:
        """The index that ranks, made from what has been learned so far."""
        if self._state.index is None:
            self._state.index = self._export()
        index: ClassIndex = self._state.index
        return index

    @property
    def n_edges_(self) -> int:
        """|W|: all edges the learner keeps, of which the ``max_degree`` heaviest of a feature vote."""
        return self._state.n_edges if isinstance(self._state, FrozenState) else self._edges()

    @property
    def can_learn(self) -> bool:
        """False for a model that was saved without its state."""
        return not isinstance(self._state, FrozenState) or len(self._state.arrays) > 0

    @abstractmethod
    def _start(self, n_features: int, n_classes: int) -> Any:
        """An `OnlineState` that knows nothing yet."""

    @abstractmethod
    def _grow(self, n_features: int, n_classes: int) -> None:
        """Make room for more features and classes."""

    @abstractmethod
    def _learn(self, examples: Examples, first_pass: bool) -> Float64Array:
        """One pass; returns the kernel's tally. In a first pass features count how often they are seen."""

    def _rows_of_new(self, labels: Labels) -> IntArray:
        """The rows of classes that have had no rows so far."""
        is_new = np.ones(labels.n_classes + 1, np.bool_)
        is_new[: len(self.class_counts_)] = self.class_counts_ == 0
        owners = np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
        return np.unique(owners[is_new[labels.ids]])

    def _warn_of_silent(self, rows: Rows, labels: Labels) -> None:
        """Name the new classes that are not among the five best of any row of their own."""
        if not rows.n_rows:
            return
        best = self._rank(rows, 5, None).ids
        owners = np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
        counts = np.bincount(labels.ids, minlength=labels.n_classes)
        ranks = (best[owners] == labels.ids[:, None]).any(axis=1)
        is_new = self.class_counts_ == counts
        silent = np.setdiff1d(labels.ids[is_new[labels.ids]], labels.ids[ranks])
        if len(silent):
            names = [repr(label) for label in self._labels_of(silent[:3]).tolist()] + ["..."] * (len(silent) > 3)
            warnings.warn(
                f"{len(silent)} new classes do not rank for rows like their own yet ({', '.join(names)}): "
                f"{self.learner} changes too slowly for so few rows; learn them again, or train with all rows",
                UserWarning,
                stacklevel=3,
            )

    def _meet(self, rows: Rows) -> None:
        """Count the features of rows that are about to be learned for the first time."""

    def _export(self) -> ClassIndex:
        """The index of what has been learned, made of a few features at a time if a budget asks for it."""
        degrees = self._degrees()
        n_edges, memory = int(degrees.sum()), check_memory(self.memory)
        if memory is None or 64 * n_edges <= memory // WINDOW_SHARE:
            return self._export_part(0, len(degrees))
        cuts = spans(np.concatenate(([0], np.cumsum(degrees))), -(-64 * WINDOW_SHARE * n_edges // memory))
        return joined_index(self._export_part(begin, end) for begin, end in cuts)

    @abstractmethod
    def _degrees(self) -> IntArray:
        """How many edges each feature has at most."""

    @abstractmethod
    def _export_part(self, begin: int, end: int) -> ClassIndex:
        """The index of some features."""

    @abstractmethod
    def _model_needs(self, rows: Rows, labels: Labels, memory: int) -> dict[str, int]:
        """The most bytes that what is learned will take, by what they are for."""

    @abstractmethod
    def _edges(self) -> int:
        """Number of edges kept."""

    def _sample(self, training: IntArray, labels: Labels, number: int, generator: np.random.Generator) -> IntArray:
        """The rows of a pass: all of them, or with some repeated."""
        return training

    def _settle(self, rows: Rows) -> None:
        """Finish what passes over these rows have left open."""

    def _is_enough(self) -> bool:
        """Whether to stop before all passes are done."""
        return False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("passes", self.passes, 1, whole=True)
        check_choice("shuffle", self.shuffle, (True, False))
        check_number("validation_fraction", self.validation_fraction, 0, 0.9)
        check_choice("negative", self.negative, ("ignore", "split"))
        check_memory(self.memory)

    @abstractmethod
    def _saved(self) -> dict[str, npt.NDArray[Any]]:
        """The state as named arrays."""

    @abstractmethod
    def _restored(self, arrays: Section, n_classes: int) -> Any:
        """The state that `_saved` gave, checked; its arrays are copied."""

    def _kept(self) -> dict[str, npt.NDArray[Any]]:
        """What a checkpoint keeps of the state; `_resumed` must go on from it to the same bits."""
        return self._saved()

    def _resumed(self, arrays: Section) -> Any:
        """The state that `_kept` gave, in place of one that knows nothing."""
        return self._restored(arrays, self._state.n_classes)

    def _state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return dict(self._state.arrays) if isinstance(self._state, FrozenState) else self._saved()

    def _fitted_values(self) -> dict[str, Any]:
        return {"history": self.history_[-LONGEST_HISTORY:], "taught": self._taught}

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._taught = fitted.get("taught", True) is not False
        self._state = FrozenState(index.n_features, index.n_classes, index, n_edges, state)
        self.history_ = history_from(state, fitted)
        self._run = (None, 0)

    def _frozen_copy(self) -> Self:
        twin = self._with_index(self.index_)
        twin.history_ = []
        for name in ("_watch", "_best", "_extra"):
            twin.__dict__.pop(name, None)
        return twin

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        if isinstance(self._state, FrozenState) and self.can_learn:
            self._thaw(self._state)
        if isinstance(self._state, FrozenState):
            index = self.index_.remap_classes(new_ids, n_classes)
            self._state.index, self._state.n_edges = index, index.n_edges
        else:
            self._remap_state(new_ids, n_classes)
            self._state.index = None
        self._state.n_classes = n_classes
        self._run = (None, 0)

    @abstractmethod
    def _remap_state(self, new_ids: IdArray, n_classes: int) -> None:
        """Renumber the classes of the state; see `Reclassing._remap`."""

    def _thaw(self, frozen_state: FrozenState) -> None:
        if not len(frozen_state.arrays):
            raise ValueError(
                "this model was saved or pruned without what it needs to learn on; train it again, or load a copy that "
                "was saved with its state"
            )
        state = self._restored(frozen_state.arrays, frozen_state.n_classes)
        if state.n_features != frozen_state.n_features:
            problem = f"the state has {state.n_features} features, the index {frozen_state.n_features}"
            raise frozen_state.arrays.fault("", problem)
        self._state = state

    def _pass(self, number: int, examples: Examples, first_pass: bool) -> None:
        self._state.index = None
        begin = time.perf_counter()
        tally = np.zeros(3)
        if first_pass:
            self._meet(examples.rows)
        for part in examples.parts():
            tally += self._learn(part, first_pass)
        self.history_.append(
            {
                "pass": number,
                "online_R1": float(tally[1]) / max(1, len(examples.order)),
                "updates": int(tally[0]),
                "edges": self._edges(),
                "seconds": time.perf_counter() - begin,
            }
        )

    def _hold_out(self, n_rows: int, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
        n_held = int(self.validation_fraction * n_rows)
        if n_held == 0:
            return np.arange(n_rows, dtype=np.int64), np.empty(0, dtype=np.int64)
        learned, held = hold_out(np.arange(n_rows, dtype=np.int64), n_held, generator, self._groups)
        return np.sort(learned), np.sort(held)

    def _validate(self, rows: Rows, labels: Labels, held: IntArray) -> None:
        ranking = self._rank(take_rows(rows, held), 5, None)
        ranks = true_ranks(ranking.ids, labels.take(held))
        self.history_[-1] |= {"R1": recall(ranks, 1), "R5": recall(ranks, ranking.ids.shape[1])}

    def _extend(self, rows: Rows, labels: Labels) -> None:
        self._remember_more(labels)
        if rows.n_features > self._state.n_features or labels.n_classes > self._state.n_classes:
            self._grow(rows.n_features, labels.n_classes)
            self._state.n_features, self._state.n_classes = rows.n_features, labels.n_classes

    def _view(self, rows: Rows) -> Rows:
        return split_negative(rows) if self.negative == "split" else ignore_negative(rows)

    def _width_of_view(self, n_features: int) -> int:
        return 2 * n_features if self.negative == "split" else n_features

    def _feature_behind(self, feature: int) -> int:
        return feature // 2 if self.negative == "split" else feature

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.negative == "ignore"
        return tags
