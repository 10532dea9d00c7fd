"""What gives the tokens of a block their codes: a growing or fixed lexicon, or a hash."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abound.read.textbytes import TextBytes
from abound.vectorise._row_kernels import count_rows, drop_words, hash_grams
from abound.vectorise._scan_kernels import pack_tokens, scan_words
from abound.vectorise._table_kernels import GramTable
from abound.vectorise.blocks import Block, encode, lowered
from abound.vectorise.reading import Reading
from abound.vectorise.tables import Grams, Words, make_tokens, names_of, pack

IdArray = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]

_making_tables = Lock()


class Counts(NamedTuple):
    """Counted codes of some texts; row ``i`` owns ``codes[ptr[i]:ptr[i + 1]]``, in the order they first came."""

    ptr: IntArray
    codes: IdArray
    counts: IdArray


class Space:
    """Room to work in, for one worker; it grows to the largest block and is used again."""

    def __init__(self) -> None:
        self.tokens = make_tokens(0)
        self.ids = np.empty(0, np.int32)
        self.codes = np.empty(0, np.int32)
        self.seen = np.empty(0, np.int32)
        self.row_codes = np.empty(0, np.int32)
        self.row_counts = np.empty(0, np.int32)

    def reserve_tokens(self, room: int) -> None:
        """Make room for the tokens of a block.

        Parameters
        ----------
        room : int
            How many there may be.
        """
        if len(self.ids) < room:
            self.tokens = make_tokens(room)
            self.ids = np.empty(room, np.int32)

    def count(self, code_ptr: IntArray, codes: IdArray) -> Counts:
        """Count the codes of each text.

        Parameters
        ----------
        code_ptr, codes : int64, int32 arrays
            The codes of each text, in their order; -1 is left out.

        Returns
        -------
        Counts
            Views of this space: use or copy them before the next block.
        """
        n = int(code_ptr[-1])
        if len(self.row_codes) < n:
            self.row_codes, self.row_counts = np.empty(n, np.int32), np.empty(n, np.int32)
        longest = 4 * int(np.diff(code_ptr).max(initial=8))
        if len(self.seen) < longest:
            self.seen = np.empty(longest, np.int32)
        row_ptr = np.empty(len(code_ptr), np.int64)
        count_rows(code_ptr, codes, self.seen, row_ptr, self.row_codes, self.row_counts)
        return Counts(row_ptr, self.row_codes[: row_ptr[-1]], self.row_counts[: row_ptr[-1]])


def scan(block: Block, reading: Reading, space: Space) -> IntArray:
    """Find the tokens of a block; they end up in ``space.tokens``.

    Parameters
    ----------
    block : Block
        Texts, or tokens found already.
    reading : Reading
        How to find them.
    space : Space
        Room to work in.

    Returns
    -------
    int64 array
        Where the tokens of each text begin.
    """
    texts = block.texts
    if block.token_ptr is not None:
        space.reserve_tokens((texts.n_bytes >> 3) + len(texts) + 1)
        pack_tokens(texts.buffer, texts.begins, texts.ends, space.tokens)
        return block.token_ptr.copy()
    marks = np.zeros(len(texts), np.uint8)
    token_ptr = np.empty(len(texts) + 1, np.int64)
    if _scan_words(texts, reading, space, token_ptr, marks) and reading.has_exceptions:
        _scan_words(lowered(texts, marks), reading, space, token_ptr, marks)
    return token_ptr


def _scan_words(
    texts: TextBytes, reading: Reading, space: Space, token_ptr: IntArray, marks: npt.NDArray[np.uint8]
) -> int:
    assert reading.fold is not None
    space.reserve_tokens((texts.n_bytes >> 1) + 2 * len(texts))
    places = (texts.buffer, texts.begins, texts.ends)
    edges = np.empty(int((texts.ends - texts.begins).max(initial=0)) + 1, np.int64)
    n_exceptions: int = scan_words(
        *places, *reading.fold, reading.min_characters, edges, token_ptr, space.tokens, marks
    )
    return n_exceptions


class Coder(Protocol):
    """What turns texts into counted codes."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of words and of n-grams that have a code."""
        ...

    def count(self, block: Block, reading: Reading, space: Space) -> Counts:
        """Count the codes of each text of a block."""
        ...

    def join(self, other: Any) -> tuple[IdArray, IdArray]:
        """Take over another one's codes; return where its words and n-grams are here."""
        ...


class StoredWords(NamedTuple):
    """A lexicon as it is saved.

    Parameters
    ----------
    names : TextBytes
        The words, stop words first.
    prefixes, words : int32 arrays
        The n-grams, see `GramTable`.
    """

    names: TextBytes
    prefixes: IdArray
    words: IdArray


class Lexicon:
    """Words and n-grams, numbered as they come; the stop words come first and get no code.

    Parameters
    ----------
    stop_words : sequence of str
        Words to leave out.
    room : tuple of int
        Number of words and n-grams expected.
    may_grow : bool
        New words and n-grams are appended when texts are counted; otherwise they are left out.
    """

    def __init__(
        self, stop_words: Sequence[str] = (), room: tuple[int, int] = (0, 0), *, may_grow: bool = True
    ) -> None:
        self.n_stop_words = len(stop_words)
        self.may_grow = may_grow
        self._stored: StoredWords | None = None
        self._tables: tuple[Words, Grams] | None = (Words(room[0] + len(stop_words)), Grams(room[1]))
        names = encode(list(stop_words))
        self.words.find(pack(names), len(names), np.empty(len(names), np.int32), may_grow=True)

    @classmethod
    def from_stored(cls, stored: StoredWords, n_stop_words: int) -> Lexicon:
        """Take over saved words; the tables are made when they are first needed.

        Parameters
        ----------
        stored : StoredWords
            Distinct words and n-grams, checked (see `abound.vectorise.checks`).
        n_stop_words : int
            How many of the first words are stop words.

        Returns
        -------
        Lexicon
            One that does not grow.
        """
        lexicon = cls(may_grow=False)
        lexicon.n_stop_words = n_stop_words
        lexicon._stored, lexicon._tables = stored, None
        return lexicon

    def __deepcopy__(self, memo: dict[int, Any]) -> Lexicon:
        twin = copy.copy(self)
        # What is stored never changes.
        twin._tables = copy.deepcopy(self._tables, memo)
        return twin

    def to_stored(self) -> StoredWords:
        """Return the words and n-grams in the form in which they are saved.

        Returns
        -------
        StoredWords
            All of them, in the order they came.
        """
        if self._tables is None and self._stored is not None:
            return self._stored
        grams = self.grams.table
        names = names_of(np.arange(len(self.words), dtype=np.int32), self.words, self.grams)
        return StoredWords(names, grams.prefixes[: len(self.grams)], grams.words[: len(self.grams)])

    @property
    def words(self) -> Words:
        """The words."""
        return self._made_tables()[0]

    @property
    def grams(self) -> Grams:
        """The n-grams."""
        return self._made_tables()[1]

    def _made_tables(self) -> tuple[Words, Grams]:
        if self._tables is None:
            with _making_tables:
                self._make_tables()
        assert self._tables is not None
        return self._tables

    def _make_tables(self) -> None:
        # Several workers may ask at once; the first one does it.
        if self._tables is None and self._stored is not None:
            names, prefixes, last_words = self._stored
            words, grams = Words(len(names)), Grams(len(prefixes))
            words.find(pack(names), len(names), np.empty(len(names), np.int32), may_grow=True)
            every_word, every_gram = (np.arange(n, dtype=np.int32) for n in (len(names), len(prefixes)))
            source = GramTable(np.empty(0, np.uint64), prefixes.copy(), last_words.copy(), np.array([len(prefixes)]))
            grams.join(source, every_gram, every_word)
            self._tables = words, grams

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of words and of n-grams."""
        if self._tables is None and self._stored is not None:
            return len(self._stored.names), len(self._stored.words)
        return len(self.words), len(self.grams)

    def count(self, block: Block, reading: Reading, space: Space) -> Counts:
        """Count the codes of each text of a block.

        Parameters
        ----------
        block : Block
            The texts.
        reading : Reading
            How to find their tokens.
        space : Space
            Room to work in.

        Returns
        -------
        Counts
            Views of the space.
        """
        token_ptr = scan(block, reading, space)
        self.words.find(space.tokens, int(token_ptr[-1]), space.ids, may_grow=self.may_grow)
        if self.n_stop_words:
            drop_words(token_ptr, space.ids, self.n_stop_words, space.tokens.keys)
        if reading.ngram_range == (1, 1):
            return space.count(token_ptr, space.ids)
        code_ptr, codes = _room_for_grams(token_ptr, reading, space)
        self.grams.find(token_ptr, space.ids, reading.ngram_range, code_ptr, codes, may_grow=self.may_grow)
        return space.count(code_ptr, codes)

    def join(self, other: Lexicon, codes: IdArray | None = None) -> tuple[IdArray, IdArray]:
        """Find or append words and n-grams of another lexicon.

        Parameters
        ----------
        other : Lexicon
            The other one.
        codes : int32 array, optional
            Codes in it, with each n-gram its words and, before it, its prefix; all if none are given.

        Returns
        -------
        word_map, gram_map : int32 arrays
            The ids here of the words and n-grams there.
        """
        if codes is None:
            codes = other.all_codes()
        word_map = self.words.join(other.words, codes[codes >= 0])
        gram_map = self.grams.join(other.grams.table, -2 - codes[codes < 0], word_map)
        return word_map, gram_map

    def all_codes(self) -> IdArray:
        """Return every code but the stop words', in the order they came.

        Returns
        -------
        int32 array
            Words, then n-grams.
        """
        words = np.arange(self.n_stop_words, len(self.words), dtype=np.int32)
        return np.concatenate((words, -2 - np.arange(len(self.grams), dtype=np.int32)))


class Buckets:
    """Codes by hashing: nothing to learn, nothing to grow, and no names.

    Parameters
    ----------
    n_buckets : int
        Number of codes.
    stop_words : sequence of str
        Words to leave out.
    """

    def __init__(self, n_buckets: int, stop_words: Sequence[str] = ()) -> None:
        self.n_buckets = n_buckets
        self._stop_words = Lexicon(stop_words, may_grow=False)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of codes; they count as words."""
        return self.n_buckets, 0

    def join(self, other: Buckets) -> tuple[IdArray, IdArray]:
        """Return where the other one's codes are here: at the same place.

        Parameters
        ----------
        other : Buckets
            With the same number of buckets.

        Returns
        -------
        word_map, gram_map : int32 arrays
            The codes, and nothing.
        """
        return np.arange(other.n_buckets, dtype=np.int32), np.empty(0, np.int32)

    def count(self, block: Block, reading: Reading, space: Space) -> Counts:
        """Count the codes of each text of a block.

        Parameters
        ----------
        block : Block
            The texts.
        reading : Reading
            How to find their tokens.
        space : Space
            Room to work in.

        Returns
        -------
        Counts
            Views of the space.
        """
        token_ptr = scan(block, reading, space)
        n_stop_words = self._stop_words.n_stop_words
        if n_stop_words:
            self._stop_words.words.find(space.tokens, int(token_ptr[-1]), space.ids, may_grow=False)
            drop_words(token_ptr, space.ids, n_stop_words, space.tokens.keys)
        code_ptr, codes = _room_for_grams(token_ptr, reading, space)
        hash_grams(token_ptr, space.tokens.keys, *reading.ngram_range, self.n_buckets, code_ptr, codes)
        return space.count(code_ptr, codes)


def _room_for_grams(token_ptr: IntArray, reading: Reading, space: Space) -> tuple[IntArray, IdArray]:
    min_n, max_n = reading.ngram_range
    room = int(token_ptr[-1]) * (max_n - min_n + 1)
    if len(space.codes) < room:
        space.codes = np.empty(room, np.int32)
    return np.empty(len(token_ptr), np.int64), space.codes
