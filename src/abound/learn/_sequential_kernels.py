"""Kernels of SaDyC: the votes of a classifier, and the oracle that picks the next one.

Notation of the paper: a class has ``T`` votes with mean ``μ`` and expected mean ``Q``; ``A = T (Q − μ)`` is how far its
votes are behind, ``b = exp(−2 T max(0, Q − μ)²) = exp(−2 max(0, A)²/T)`` how well it fits. One more vote of expected
worth ``q`` makes it ``right(q) = exp(−2 max(0, A + q − 1)²/(T + 1))`` if the vote is for the class and
``wrong(q) = exp(−2 max(0, A + q)²/(T + 1))`` if it is against it. The oracle wants the classifier with the smallest

    Σ_left b − (b₊ + b₋) + p (right₊ + wrong₋) + (1 − p) (wrong₊ + right₋),    p = b₊/(b₊ + b₋),

sums over the classes left on its positive and its negative side. These four sums of each classifier are kept up to
date: only classes that have got a vote change. They are sums of whole numbers, multiples of 1/scale, so that the order
of adding makes no difference; and as ``q`` has 65 levels, a class needs a table of 130 numbers and not an exponential
for each classifier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from abound.compiled import kernel
from abound.validation import IdArray, IntArray

LEVELS = 64
"""Expected votes ``q`` are multiples of 1/64."""

NEGATIVE = LEVELS + 1
"""Symbols from here on are levels of classes on the negative side."""

SYMBOLS = 2 * NEGATIVE


class Pool(NamedTuple):
    """The words of the classes by word and by classifier; a symbol is side and level of ``q``.

    Within a classifier the words of the positive side come first.
    """

    word_indptr: IntArray
    word_classifiers: IdArray
    word_symbols: Any
    lowest: Any
    """Lowest level of each word."""
    highest: Any
    classifier_indptr: IntArray
    classifier_middle: IntArray
    """Where the negative side of a classifier begins."""
    classifier_words: IdArray
    classifier_symbols: Any


class State(NamedTuple):
    """Where a row stands, by word; sums by classifier."""

    votes: Any
    """T."""
    gained: Any
    """T μ."""
    behind: Any
    """A."""
    belief: Any
    """b; 0 once the word is discarded."""
    left: Any
    """The words that are left, first."""
    changed: Any
    """Words that have got a vote of the last classifier, first."""
    fixed: Any
    """b in whole numbers, as it stands in the sums."""
    tables: Any
    """Words × right and wrong × levels, as they stand in the sums."""
    sums: Any
    """Classifiers × (right₊ + wrong₋, wrong₊ + right₋, b₊, b₋)."""
    used: Any
    numbers: Any
    """How many words are left, how many changed, steps taken, the sum of ``fixed``."""


LEFT, CHANGED, STEPS, TOTAL = range(4)

_FOUR = ir.VectorType(ir.IntType(32), 4)
_NUMBER = ir.IntType(64)


def _add_four(_typing: Any, table: Any, symbol: Any, sums: Any, classifier: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def four_at(place: int, row: Any) -> Any:
            array = context.make_array(signature.args[place])(context, builder, arguments[place])
            begin = builder.gep(array.data, [builder.shl(row, ir.Constant(_NUMBER, 2))])
            return builder.bitcast(begin, _FOUR.as_pointer())

        source, target = four_at(0, arguments[1]), four_at(2, arguments[3])
        change, old = builder.load(source), builder.load(target)
        change.align = old.align = 4
        builder.store(builder.add(old, change), target).align = 4
        return context.get_dummy_value()

    return types.void(table, types.int64, sums, types.int64), generate


add_four: Any = intrinsic(_add_four)
"""``add_four(table, symbol, sums, classifier)``: sums[classifier] += table[symbol], all four numbers at once."""


@kernel
def fill_table(behind: float, votes: int, scale: float, low: int, high: int, table: Any) -> None:
    """Write right(q) and wrong(q) as multiples of 1/scale for the levels ``low`` to ``high``.

    exp by the series of x/64, squared six times; below -16 nothing is left. Plain arithmetic in a fixed order, so that
    all processors get the same numbers.
    """
    factor = -2.0 / (64 * (votes + 1))
    for outcome in range(2):
        shift = behind - 1.0 + outcome
        for level in range(low, high + 1):
            z = shift + level * (1 / LEVELS)
            z = z if z > 0.0 else 0.0
            x = factor * z * z
            x = x if x > -0.25 else -0.25
            e = x * (1 / 9) + 1.0
            e = x * (1 / 8) * e + 1.0
            e = x * (1 / 7) * e + 1.0
            e = x * (1 / 6) * e + 1.0
            e = x * (1 / 5) * e + 1.0
            e = x * (1 / 4) * e + 1.0
            e = x * (1 / 3) * e + 1.0
            e = x * (1 / 2) * e + 1.0
            e = x * e + 1.0
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            e = e * e
            table[outcome, level] = np.int32(e * scale + 0.5)


@kernel
def add_word(pool: Any, word: int, changes: Any, sums: Any) -> None:
    """Add a word's changes, by symbol, to the sums of its classifiers."""
    for e in range(pool.word_indptr[word], pool.word_indptr[word + 1]):
        add_four(changes, np.int64(pool.word_symbols[e]), sums, np.int64(pool.word_classifiers[e]))


@kernel
def write_changes(right: Any, wrong: Any, belief: Any, level: int, changes: Any) -> None:
    """Write what a level adds to the four sums, on the positive and on the negative side."""
    changes[level, 0], changes[level, 1], changes[level, 2], changes[level, 3] = right, wrong, belief, 0
    changes[NEGATIVE + level, 0], changes[NEGATIVE + level, 1] = wrong, right
    changes[NEGATIVE + level, 2], changes[NEGATIVE + level, 3] = 0, belief


@kernel
def start_sums(pool: Any, words: Any, scale: float, table: Any, sums: Any) -> None:
    """Add words, none of which has a vote yet, to the sums; ``table`` is theirs in common."""
    changes = np.zeros((SYMBOLS, 4), dtype=np.int32)
    fill_table(0.0, 0, scale, 0, LEVELS, table)
    for level in range(LEVELS + 1):
        write_changes(table[0, level], table[1, level], np.int32(scale), level, changes)
    for word in words:
        add_word(pool, word, changes, sums)


@kernel
def start_row(words: Any, table: Any, sums: Any, scale: float, state: Any) -> None:
    """Begin a row: all of ``words`` are left, nobody has a vote."""
    state.votes[:] = 0
    state.gained[:] = 0
    state.behind[:] = 0
    state.belief[:] = 0
    state.fixed[:] = 0
    state.used[:] = False
    state.sums[:] = sums
    for t in range(len(words)):
        word = words[t]
        state.left[t] = word
        state.belief[word] = 1
        state.fixed[word] = np.int32(scale)
        state.tables[word] = table
    state.numbers[LEFT] = len(words)
    state.numbers[CHANGED] = 0
    state.numbers[STEPS] = 0
    state.numbers[TOTAL] = len(words) * np.int64(scale)


@kernel
def cast_votes(pool: Any, classifier: int, vote: float, b_min: float, state: Any) -> Any:
    """Give the words left that a classifier knows their votes; discard those that fit too badly.

    ``vote`` is the vote for the positive side, from 0 to 1. Returns how many words were asked.
    """
    state.used[classifier] = True
    n_asked = 0
    for e in range(pool.classifier_indptr[classifier], pool.classifier_indptr[classifier + 1]):
        word = pool.classifier_words[e]
        if state.belief[word] == 0:
            continue
        symbol = np.int64(pool.classifier_symbols[e])
        positive = symbol < NEGATIVE
        got = vote if positive else 1 - vote
        level = symbol if positive else symbol - NEGATIVE
        state.votes[word] += 1
        state.gained[word] += got
        state.behind[word] += level / LEVELS - got
        behind = max(0.0, state.behind[word])
        belief = np.exp(-2 * behind * behind / state.votes[word])
        state.belief[word] = belief if belief > b_min else 0.0
        state.changed[n_asked] = word
        n_asked += 1
    n_left = 0
    for t in range(state.numbers[LEFT]):
        word = state.left[t]
        if state.belief[word] > 0:
            state.left[n_left] = word
            n_left += 1
    state.numbers[LEFT] = n_left
    state.numbers[CHANGED] = n_asked
    state.numbers[STEPS] += 1
    return n_asked


@kernel
def refresh(pool: Any, scale: float, with_sums: bool, state: Any) -> None:
    """Bring tables, and the sums if they are wanted, up to date with the votes of the last classifier."""
    new = np.zeros((2, LEVELS + 1), dtype=np.int32)
    changes = np.zeros((SYMBOLS, 4), dtype=np.int32)
    for t in range(state.numbers[CHANGED]):
        word = state.changed[t]
        low, high = np.int64(pool.lowest[word]), np.int64(pool.highest[word])
        table = state.tables[word]
        if state.belief[word] > 0:
            fill_table(state.behind[word], state.votes[word], scale, low, high, new)
        else:
            new[:] = 0
        fixed = np.int32(state.belief[word] * scale + 0.5)
        change = fixed - state.fixed[word]
        state.fixed[word] = fixed
        state.numbers[TOTAL] += change
        for level in range(low, high + 1):
            if with_sums:
                right, wrong = new[0, level] - table[0, level], new[1, level] - table[1, level]
                write_changes(right, wrong, change, level, changes)
            table[0, level] = new[0, level]
            table[1, level] = new[1, level]
        if with_sums:
            add_word(pool, word, changes, state.sums)
    state.numbers[CHANGED] = 0


@kernel
def objective(total: Any, right: Any, wrong: Any, positive: Any, negative: Any) -> Any:
    """What the oracle minimises, for one classifier; infinite if it knows none of the classes left."""
    known = np.float64(positive) + np.float64(negative)
    if known <= 0:
        return np.inf
    p = positive / known
    return np.float64(total) - known + (p * right + (1 - p) * wrong)


@kernel
def pick_best(state: Any) -> Any:
    """Return the unused classifier with the smallest objective, the first of equals; -1 if none is of use."""
    best, smallest = -1, np.inf
    for v in range(len(state.used)):
        if state.used[v]:
            continue
        s = state.sums[v]
        found = objective(state.numbers[TOTAL], s[0], s[1], s[2], s[3])
        if found < smallest:
            best, smallest = v, found
    return best


@kernel
def pick_among(pool: Any, first: int, n_candidates: int, state: Any) -> Any:
    """Return the best of ``n_candidates`` unused classifiers that follow ``first``, the first of equals."""
    best, smallest, n_seen = -1, np.inf, 0
    n = len(state.used)
    for t in range(n):
        v = (first + t) % n
        if state.used[v]:
            continue
        right, wrong, positive, negative = 0, 0, 0, 0
        middle = pool.classifier_middle[v]
        for e in range(pool.classifier_indptr[v], middle):
            word, level = pool.classifier_words[e], pool.classifier_symbols[e]
            right += state.tables[word, 0, level]
            wrong += state.tables[word, 1, level]
            positive += state.fixed[word]
        for e in range(middle, pool.classifier_indptr[v + 1]):
            word, level = pool.classifier_words[e], pool.classifier_symbols[e] - NEGATIVE
            right += state.tables[word, 1, level]
            wrong += state.tables[word, 0, level]
            negative += state.fixed[word]
        found = objective(state.numbers[TOTAL], right, wrong, positive, negative)
        n_seen += found < np.inf
        if found < smallest:
            best, smallest = v, found
        if n_seen == n_candidates:
            break
    return best


@kernel
def advance(
    pool: Any,
    votes: Any,
    n_steps: int,
    b_min: float,
    scale: float,
    n_candidates: int,
    state: Any,
    chosen: Any,
    asked: Any,
    left: Any,
) -> Any:
    """Take up to ``n_steps`` more steps; return whether there is more to do.

    ``votes`` is each classifier's vote for its positive side. ``n_candidates`` 0 is the exact oracle. The first
    classifier is the pool's first. ``chosen``, ``asked`` and ``left`` get, for each step, the classifier, how many
    words it was asked for, and how many were left after it.
    """
    numbers = state.numbers
    for _ in range(n_steps):
        step = numbers[STEPS]
        if numbers[LEFT] <= 1 and step > 0:
            return False
        if step == 0:
            v = 0
        else:
            refresh(pool, scale, n_candidates == 0, state)
            if n_candidates == 0:
                v = pick_best(state)
            else:
                v = pick_among(pool, (step * n_candidates) % len(state.used), n_candidates, state)
        if v < 0:
            return False
        chosen[step] = v
        asked[step] = cast_votes(pool, v, votes[v], b_min, state)
        left[step] = numbers[LEFT]
    return numbers[LEFT] > 1
