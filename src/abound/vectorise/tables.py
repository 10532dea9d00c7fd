"""Growing tables of words and n-grams: the Python side of the table kernels, which stop when they run out of room."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from abound.labels import MAX_IDS
from abound.read.textbytes import TextBytes
from abound.validation import frozen
from abound.vectorise._order_kernels import first_entries, name_lengths, sort_runs, write_names
from abound.vectorise._scan_kernels import LONG, Tokens, pack_tokens
from abound.vectorise._table_kernels import (
    ARENA_USED,
    N_WORDS,
    GramTable,
    WordTable,
    find_grams,
    find_words,
    join_grams,
    list_tokens,
    move_slots,
    renumber_slots,
)

IdArray = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]

SLOTS_AT_FIRST = 1024
Number = TypeVar("Number", bound=np.generic)

A_CALL = 1 << 19
"""Entries that one call of a kernel deals with, so that it returns soon."""


def make_tokens(room: int) -> Tokens:
    """Make room for so many tokens and words of long tokens.

    Parameters
    ----------
    room : int
        Number of tokens.

    Returns
    -------
    Tokens
        Uninitialised; the system gives the memory once it is used.
    """
    return Tokens(np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.uint64))


def pack(texts: TextBytes) -> Tokens:
    """Make the keys of tokens that are given one by one.

    Parameters
    ----------
    texts : TextBytes
        The tokens.

    Returns
    -------
    Tokens
        Their keys.
    """
    tokens = make_tokens((texts.n_bytes >> 3) + len(texts) + 1)
    pack_tokens(texts.buffer, texts.begins, texts.ends, tokens)
    return tokens


class Words:
    """Distinct words, numbered as they come.

    Parameters
    ----------
    room : int
        Number of words expected.

    Examples
    --------
    >>> words = Words()
    >>> names = TextBytes.from_strings(["tea", "coffee", "tea"])
    >>> ids = np.empty(3, np.int32)
    >>> words.find(pack(names), 3, ids, may_grow=True)
    >>> ids.tolist(), words.in_order(np.array([0, 1], np.int32)).tolist()
    ([0, 1, 0], [1, 0])
    """

    def __init__(self, room: int = 0) -> None:
        n = slots_for(room)
        self.table = WordTable(
            np.zeros(2 * n, np.uint64),
            np.empty(n // 2, np.int64),
            np.empty(n, np.uint64),
            np.zeros(2, np.int64),
        )

    def __len__(self) -> int:
        return int(self.table.sizes[N_WORDS])

    def find(self, tokens: Tokens, n: int, ids: IdArray, *, may_grow: bool) -> None:
        """Number the first ``n`` tokens.

        Parameters
        ----------
        tokens : Tokens
            The tokens.
        n : int
            How many there are.
        ids : int32 array
            Gets the numbers.
        may_grow : bool
            New words are appended; otherwise they are -1.
        """
        at = 0
        while at < n:
            stop = min(n, at + A_CALL)
            reached = find_words(tokens, at, stop, may_grow, self.table, ids)
            if reached < stop:
                is_long = tokens.keys[reached] >= LONG
                self._make_room(int(tokens.longs[reached] & 0xFFFFFFFF) // 8 + 2 if is_long else 2)
            at = reached

    def _make_room(self, n_entries: int) -> None:
        """Double whatever is full; ``n_entries`` is what a long word may need in the arena."""
        slots, starts, arena, sizes = self.table
        if 4 * len(self) >= len(slots):
            slots = _rehashed(slots)
            starts = _longer(starts, 2 * len(starts))
        if sizes[ARENA_USED] + n_entries > len(arena):
            arena = _longer(arena, 2 * len(arena) + n_entries)
        self.table = WordTable(slots, starts, arena, sizes)

    def in_order(self, words: IdArray) -> IdArray:
        """Sort words by their bytes, which is the order of Python's strings.

        Parameters
        ----------
        words : int32 array
            Ids of distinct words.

        Returns
        -------
        int32 array
            The same ids, in order.
        """
        heads = np.empty(len(words), np.uint64)
        first_entries(words, self.table, heads)
        by_head = np.argsort(heads)
        heads, order = heads[by_head], words[by_head]
        other = np.empty_like(order)
        at = 0
        while at < len(order):
            at = sort_runs(heads, at, A_CALL, self.table, order, other)
        return order

    def renumber(self, order: IdArray) -> None:
        """Number the words anew.

        Parameters
        ----------
        order : int32 array
            The old id of each new one; all words are there.
        """
        new_ids = np.empty(len(order), np.int32)
        new_ids[order] = np.arange(len(order))
        slots, starts, *_ = self.table
        for begin in range(0, len(slots) // 2, A_CALL):
            renumber_slots(slots, begin, min(begin + A_CALL, len(slots) // 2), new_ids)
        starts[: len(order)] = starts[order]

    def join(self, other: Words, words: IdArray) -> IdArray:
        """Find or append words of another table.

        Parameters
        ----------
        other : Words
            The other table.
        words : int32 array
            Ids in it.

        Returns
        -------
        int32 array
            The id here of each word there; only those of ``words`` are set.
        """
        tokens = Tokens(np.empty(len(words), np.uint64), np.empty(len(words), np.int64), other.table.arena)
        list_tokens(words, other.table, tokens.keys, tokens.longs)
        ids = np.empty(len(words), np.int32)
        self.find(tokens, len(words), ids, may_grow=True)
        word_map = np.full(len(other), -1, np.int32)
        word_map[words] = ids
        return word_map


class Grams:
    """Distinct n-grams, each a shorter one and a word, numbered as they come.

    Parameters
    ----------
    room : int
        Number of n-grams expected.
    """

    def __init__(self, room: int = 0) -> None:
        n = slots_for(room)
        self.table = GramTable(
            np.zeros(2 * n, np.uint64), np.empty(n // 2, np.int32), np.empty(n // 2, np.int32), np.zeros(1, np.int64)
        )

    def __len__(self) -> int:
        return int(self.table.sizes[0])

    def find(
        self,
        token_ptr: IntArray,
        ids: IdArray,
        ngram_range: tuple[int, int],
        code_ptr: IntArray,
        codes: IdArray,
        *,
        may_grow: bool,
    ) -> None:
        """List the codes of the n-grams of each text.

        Parameters
        ----------
        token_ptr, ids : int64, int32 arrays
            The words of each text; -1 for unknown ones.
        ngram_range : tuple of int
            Least and greatest number of words.
        code_ptr, codes : int64, int32 arrays
            Get the codes of each text.
        may_grow : bool
            New n-grams are appended; otherwise they are left out.
        """
        first = 0
        code_ptr[0] = 0
        while first < len(token_ptr) - 1:
            first = find_grams(token_ptr, ids, first, *ngram_range, may_grow, self.table, code_ptr, codes)
            if first < len(token_ptr) - 1:
                self.make_room()

    def make_room(self) -> None:
        """Double the table."""
        slots, prefixes, words, sizes = self.table
        room = 2 * len(words)
        self.table = GramTable(_rehashed(slots), _longer(prefixes, room), _longer(words, room), sizes)

    def join(self, other: GramTable, grams: IdArray, word_map: IdArray) -> IdArray:
        """Find or append n-grams of another table.

        Parameters
        ----------
        other : GramTable
            The other table.
        grams : int32 array
            Ids in it, every n-gram after its prefix.
        word_map : int32 array
            The id here of each word there.

        Returns
        -------
        int32 array
            The id here of each n-gram there; only those of ``grams`` are set.
        """
        gram_map = np.full(other.sizes[0], -1, np.int32)
        at = 0
        while at < len(grams):
            at = join_grams(grams, at, other, word_map, self.table, gram_map)
            if at < len(grams):
                self.make_room()
        return gram_map


def slots_for(room: int) -> int:
    """Return the power of two that so many entries fill by half at most."""
    return max(SLOTS_AT_FIRST, 1 << (2 * room).bit_length())


def _longer(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


def _rehashed(slots: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    if len(slots) > MAX_IDS:
        raise ValueError(f"more than {MAX_IDS} distinct words or n-grams: set min_df, or hashing")
    larger = np.zeros(2 * len(slots), np.uint64)
    for begin in range(0, len(slots) // 2, A_CALL):
        move_slots(slots, begin, min(begin + A_CALL, len(slots) // 2), larger)
    return larger


def names_of(codes: IdArray, words: Words, grams: Grams) -> TextBytes:
    """Write the names of features.

    Parameters
    ----------
    codes : int32 array
        Codes of words and n-grams.
    words, grams : Words, Grams
        What the codes refer to.

    Returns
    -------
    TextBytes
        The names, end to end.
    """
    codes = frozen(codes, np.int32)
    bounds = np.zeros(len(codes) + 1, np.int64)
    name_lengths(codes, words.table, grams.table, bounds[1:])
    np.cumsum(bounds, out=bounds)
    buffer = np.empty(bounds[-1], np.uint8)
    for begin in range(0, len(codes), A_CALL):
        part = slice(begin, begin + A_CALL)
        write_names(codes[part], words.table, grams.table, bounds[1:][part], buffer)
    return TextBytes(buffer, bounds[:-1], bounds[1:])
