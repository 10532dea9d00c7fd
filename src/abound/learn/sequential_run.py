"""SaDyC on one row after another: the pool as the kernels take it, the state of a row, and the budget."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from abound.learn import _sequential_kernels as kernels
from abound.learn._sequential_kernels import Pool, State
from abound.learn._sequential_order import rank_words
from abound.learn.dichotomizers import Codes
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, check_number, frozen

Levels = npt.NDArray[np.uint8]

RATIO, FEWEST_STEPS = 0.2, 100
"""Default budget: this part of the number of classes, the paper's ratio, but not fewer steps."""

SUMS_A_CALL = 300_000_000
"""Sums that one kernel call brings up to date: a fraction of a second, so that Ctrl-C is heard."""


class Steps(NamedTuple):
    """What happened, step by step."""

    chosen: IdArray
    """The classifier."""
    asked: IdArray
    """How many of the words left it knew."""
    left: IdArray
    """How many words were left after it."""

    def first(self, n: int) -> Steps:
        """Return the first n steps.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        Steps
            A view.
        """
        return Steps(*(each[:n] for each in self))


class Trajectory(NamedTuple):
    """What happened to a row, step by step."""

    classifiers: IdArray
    """Which classifier was asked."""
    density: Float64Array
    """The part of all classes that it knows."""
    asked: IdArray
    """How many of the classes left it knows."""
    left: IdArray
    """How many classes were left after it."""
    best: npt.NDArray[Any]
    """The label of the best class then."""


class Budget(NamedTuple):
    """How much a row may cost."""

    steps: int
    seconds: float | None = None
    """None: as long as it takes."""

    @classmethod
    def of(
        cls, steps: int | None, max_ms: float | None, n_classifiers: int, default: int | None, n_classes: int
    ) -> Self:
        """Read a user's limits.

        Parameters
        ----------
        steps : int or None
            Classifiers that a row may ask; None as many as there are if ``max_ms`` is given, else the default.
        max_ms : float or None
            Milliseconds that a row may take.
        n_classifiers : int
            Size of the pool.
        default : int or None
            The learner's own budget; None for the paper's ratio.
        n_classes : int
            Number of classes.

        Returns
        -------
        Budget
            Both limits.
        """
        check_number("budget", steps, 1, whole=True, or_none=True)
        check_number("max_ms", max_ms, 0, above=True, or_none=True)
        if steps is None and max_ms is not None:
            steps = max(1, n_classifiers)
        usual = max(FEWEST_STEPS, round(RATIO * n_classes))
        return cls(steps or default or usual, None if max_ms is None else max_ms / 1000)


def make_pool(codes: Codes, levels: Levels) -> Pool:
    """Arrange code matrix and expected votes for the kernels.

    Parameters
    ----------
    codes : int8 array of shape (n_words, n_classifiers)
        +1, -1 or 0.
    levels : uint8 array of the same shape
        Expected votes in 64ths.

    Returns
    -------
    Pool
        By word and by classifier.
    """
    symbols = np.where(codes < 0, levels + kernels.NEGATIVE, levels)
    used = codes != 0
    words, classifiers = np.nonzero(used)
    # The positive side of a classifier first: its key is smaller.
    keys = 2 * classifiers + (codes[words, classifiers] < 0)
    by_classifier = np.argsort(keys, kind="stable")
    ends = np.cumsum(np.bincount(keys, minlength=2 * codes.shape[1]))
    return Pool(
        frozen(np.concatenate(([0], np.cumsum(used.sum(axis=1)))), np.int64),
        frozen(classifiers, np.int32),
        frozen(symbols[words, classifiers], np.uint8),
        frozen(np.where(used, levels, kernels.LEVELS).min(axis=1, initial=kernels.LEVELS), np.uint8),
        frozen(np.where(used, levels, 0).max(axis=1, initial=0), np.uint8),
        frozen(np.concatenate(([0], ends[1::2])), np.int64),
        frozen(ends[::2], np.int64),
        frozen(words[by_classifier], np.int32),
        frozen(symbols[words, classifiers][by_classifier], np.uint8),
    )


def scale_of(n_words: int) -> float:
    """Return what 1 is in the oracle's whole numbers: as large as sums over all words allow.

    Parameters
    ----------
    n_words : int
        Number of words.

    Returns
    -------
    float
        A power of two.
    """
    return float(2 ** (30 - max(1, n_words).bit_length()))


class Run:
    """Runs rows through a pool, one after another, in the same room.

    Parameters
    ----------
    pool : Pool
        The classifiers.
    words : int64 array
        The words that may win.
    b_min : float
        Words that fit this badly are discarded.
    n_candidates : int
        Classifiers that the oracle looks at in a step; 0 for all.
    """

    def __init__(self, pool: Pool, words: IntArray, b_min: float = 0.01, n_candidates: int = 0) -> None:
        self.pool, self.words = pool, words
        self.b_min, self.n_candidates = b_min, n_candidates
        n_words, n_classifiers = len(pool.lowest), len(pool.classifier_middle)
        self.scale = scale_of(n_words)
        self.state = State(
            np.zeros(n_words, dtype=np.int32),
            np.zeros(n_words),
            np.zeros(n_words),
            np.zeros(n_words),
            np.zeros(n_words, dtype=np.int32),
            np.zeros(n_words, dtype=np.int32),
            np.zeros(n_words, dtype=np.int32),
            np.zeros((n_words, 2, kernels.LEVELS + 1), dtype=np.int32),
            np.zeros((n_classifiers, 4), dtype=np.int32),
            np.zeros(n_classifiers, dtype=np.bool_),
            np.zeros(4, dtype=np.int64),
        )
        self.steps = Steps(*(np.zeros(n_classifiers, dtype=np.int32) for _ in range(3)))
        self._table = np.zeros((2, kernels.LEVELS + 1), dtype=np.int32)
        self._sums = np.zeros((n_classifiers, 4), dtype=np.int32)
        self._steps_a_call = max(1, SUMS_A_CALL // max(1, len(pool.word_symbols)))
        for part in np.array_split(words, 1 + len(pool.word_symbols) // SUMS_A_CALL):
            kernels.start_sums(pool, part, self.scale, self._table, self._sums)
        self._seconds_a_word = 0.0

    def begin(self) -> None:
        """Begin a row."""
        kernels.start_row(self.words, self._table, self._sums, self.scale, self.state)

    def advance(self, votes: Float64Array, n_steps: int) -> bool:
        """Take more steps with the row that was begun.

        Parameters
        ----------
        votes : float64 array of shape (n_classifiers,)
            Each classifier's vote for its positive side, from 0 to 1.
        n_steps : int
            How many, at most.

        Returns
        -------
        bool
            Whether there is more to do: more than one word is left, and a classifier that knows one of them.
        """
        more, end = True, min(self.n_steps + n_steps, len(self.state.used))
        while more and self.n_steps < end:
            few = min(end - self.n_steps, self._steps_a_call)
            more = kernels.advance(
                *(self.pool, votes, few, self.b_min, self.scale, self.n_candidates, self.state, *self.steps)
            )
        return more and end < len(self.state.used)

    @property
    def n_steps(self) -> int:
        """Steps that the row has taken."""
        return int(self.state.numbers[kernels.STEPS])

    def run(self, votes: Float64Array, budget: Budget, begin: float = 0.0) -> None:
        """Take a row as far as the budget goes; where it stands then is in ``state``.

        Parameters
        ----------
        votes : float64 array of shape (n_classifiers,)
            Each classifier's vote for its positive side, from 0 to 1.
        budget : Budget
            Steps and seconds; the first step is always taken.
        begin : float
            When the seconds began, by ``time.perf_counter``.
        """
        self.begin()
        if budget.seconds is None:
            self.advance(votes, budget.steps)
            return
        more, now = self.advance(votes, 1), time.perf_counter()
        while more and self.n_steps < budget.steps:
            n_changed = int(self.state.numbers[kernels.CHANGED])
            if now + n_changed * self._seconds_a_word > begin + budget.seconds:
                break
            started = now
            more, now = self.advance(votes, 1), time.perf_counter()
            if n_changed:
                self._seconds_a_word = max((now - started) / n_changed, 0.9 * self._seconds_a_word)

    def learn_pace(self) -> None:
        """Measure how long a step takes, so that the first row, too, ends in time."""
        if not self._seconds_a_word:
            self.run(np.full(len(self.state.used), 0.5), Budget(3, np.inf), time.perf_counter())

    def rank(self, class_of: IdArray, counts: IntArray, best: IdArray, ids: IdArray, scores: Float32Array) -> None:
        """Write the best classes of the row that was run.

        Parameters
        ----------
        class_of : int32 array
            The class of each word.
        counts : int64 array
            Training rows of the class of each word.
        best : int32 array of shape (n_classes,)
            Room.
        ids, scores : arrays of shape (k,)
            Written, best first.
        """
        rank_words(self.words, class_of, counts, self.state, best, ids, scores)


class Runs:
    """Lends the room that a row needs, and keeps it for the next row.

    Parameters
    ----------
    codes : int8 array of shape (n_words, n_classifiers)
        +1, -1 or 0.
    levels : uint8 array of the same shape
        Expected votes in 64ths.
    """

    def __init__(self, codes: Codes, levels: Levels) -> None:
        self._codes, self._levels = codes, levels
        self._every = np.arange(len(codes))
        self._spare: list[Run] = []

    @cached_property
    def _pool(self) -> Pool:
        return make_pool(self._codes, self._levels)

    def __reduce__(self) -> tuple[Any, ...]:
        return Runs, (self._codes, self._levels)

    def borrow(self, words: IntArray | None, b_min: float, n_candidates: int | None) -> Run:
        """Lend room for the rows of one thread.

        Parameters
        ----------
        words : int64 array or None
            The words that may win; None for all.
        b_min : float
            Words that fit this badly are discarded.
        n_candidates : int or None
            Classifiers that the oracle looks at in a step; None for all.

        Returns
        -------
        Run
            To be given back.
        """
        try:
            run = self._spare.pop() if words is None else None
        except IndexError:
            run = None
        run = run or Run(self._pool, self._every if words is None else words)
        run.b_min, run.n_candidates = b_min, n_candidates or 0
        return run

    def give_back(self, run: Run) -> None:
        """Take room back.

        Parameters
        ----------
        run : Run
            Is kept if all words may win.
        """
        if run.words is self._every:
            self._spare.append(run)
