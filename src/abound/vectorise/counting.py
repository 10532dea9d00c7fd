"""Texts to counts and to rows, by several workers.

Each worker has room of its own and, while a vocabulary is being learned, a lexicon of its own. Lexicons are joined and
sorted in the end, so that it does not show which worker read what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.distribute import Workers
from abound.labels import MAX_IDS
from abound.vectorise._row_kernels import tally
from abound.vectorise.blocks import Block, make_blocks
from abound.vectorise.lexicon import Coder, Counts, Space
from abound.vectorise.reading import Reading
from abound.vectorise.weighting import Features, Rows, Weighting

IdArray = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]
Part = TypeVar("Part")
Result = TypeVar("Result")

FEW = 4
"""With fewer parts than this, handing them to threads takes longer than it saves."""

ONE_EACH = np.empty(0, np.int32)
"""No amounts: `tally` counts by ones."""


class Desk:
    """What one worker has before it: room, and the codes it gives.

    Parameters
    ----------
    coder : Coder
        Gives tokens their codes; nobody else uses it.
    """

    def __init__(self, coder: Coder) -> None:
        self.space = Space()
        self.coder = coder
        self.word_documents = np.zeros(0, np.int64)
        self.gram_documents = np.zeros(0, np.int64)

    def count(self, block: Block, reading: Reading) -> Counts:
        """Count a block and, for each code, the texts that hold it.

        Parameters
        ----------
        block : Block
            The texts.
        reading : Reading
            How to find their tokens.

        Returns
        -------
        Counts
            Views of this desk's space.
        """
        counts = self.coder.count(block, reading, self.space)
        n_words, n_grams = self.coder.sizes
        self.word_documents = _at_least(self.word_documents, n_words)
        self.gram_documents = _at_least(self.gram_documents, n_grams)
        tally(counts.codes, ONE_EACH, self.word_documents, self.gram_documents)
        return counts


class Corpus(NamedTuple):
    """What reading all texts has given.

    Parameters
    ----------
    coder : Coder
        Their words and n-grams.
    word_documents, gram_documents : int64 arrays
        In how many texts each of them occurs.
    n_documents : int
        Number of texts.
    maps : list of (word_map, gram_map)
        For each worker's lexicon, the ids here of its words and n-grams.
    parts : list of (int, Counts)
        The counts of the texts, in order, each with the worker whose codes they hold.
    """

    coder: Coder
    word_documents: IntArray
    gram_documents: IntArray
    n_documents: int
    maps: list[tuple[IdArray, IdArray]]
    parts: list[tuple[int, Counts]]

    def documents(self, codes: IdArray) -> IntArray:
        """Count the texts that hold each code.

        Parameters
        ----------
        codes : int32 array
            The codes wanted.

        Returns
        -------
        int64 array
            Their document counts.
        """
        return by_code(codes, self.word_documents, self.gram_documents)

    def occurrences(self, codes: IdArray) -> IntArray:
        """Count how often each code occurs in all texts together.

        Parameters
        ----------
        codes : int32 array
            The codes wanted.

        Returns
        -------
        int64 array
            Their counts.
        """
        of_words, of_grams = (np.zeros(size, np.int64) for size in self.coder.sizes)
        for at, (word_map, gram_map) in enumerate(self.maps):
            words_there, grams_there = np.zeros(len(word_map), np.int64), np.zeros(len(gram_map), np.int64)
            for owner, counts in self.parts:
                if owner == at:
                    tally(counts.codes, counts.counts, words_there, grams_there)
            _add_mapped(of_words, word_map, words_there)
            _add_mapped(of_grams, gram_map, grams_there)
        return by_code(codes, of_words, of_grams)


def _add_mapped(totals: IntArray, mapped: IdArray, amounts: IntArray) -> None:
    """Add amounts by a worker's ids to totals by the ids of all; stop words have no place and no amount."""
    known = mapped >= 0
    totals[mapped[known]] += amounts[: len(mapped)][known]


def by_code(codes: IdArray, of_words: npt.NDArray[Any], of_grams: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Look codes up in arrays by word and by n-gram.

    Parameters
    ----------
    codes : int32 array
        Codes.
    of_words, of_grams : arrays
        A value for each word and n-gram.

    Returns
    -------
    array
        The value of each code.
    """
    values = np.empty(len(codes), of_words.dtype)
    is_word = codes >= 0
    values[is_word] = of_words[codes[is_word]]
    values[~is_word] = of_grams[-2 - codes[~is_word]]
    return values


def read_corpus(
    texts: Any, reading: Reading, make_coder: Callable[[], Coder], pool: Workers, *, keeps_counts: bool
) -> Corpus:
    """Read texts with all their words.

    Parameters
    ----------
    texts : iterable of str, or TextBytes
        The texts.
    reading : Reading
        How to find their tokens.
    make_coder : callable
        Makes what gives tokens their codes, for one worker.
    pool : Workers
        Who works.
    keeps_counts : bool
        Keep the counts of each text, not only the sums.

    Returns
    -------
    Corpus
        Words, document counts and the texts' counts.
    """
    desks: list[Desk] = []
    idle: list[int] = []

    def work(block: Block) -> tuple[int, int, Counts | None]:
        try:
            at = idle.pop()
        except IndexError:
            desks.append(desk := Desk(make_coder()))
            at = desks.index(desk)
        counts = desks[at].count(block, reading)
        kept = Counts(counts.ptr, counts.codes.copy(), counts.counts.copy()) if keeps_counts else None
        idle.append(at)
        return at, len(counts.ptr) - 1, kept

    results = list(_work_through(work, make_blocks(texts, reading, pool.n_workers), pool))
    if not desks:
        desks.append(Desk(make_coder()))
    coder = desks[0].coder
    joined = [coder.join(desk.coder) for desk in desks[1:]]
    own_words, own_grams = (np.arange(size, dtype=np.int32) for size in coder.sizes)
    maps = [(own_words, own_grams), *joined]
    word_documents, gram_documents = (np.zeros(size, np.int64) for size in coder.sizes)
    for desk, (word_map, gram_map) in zip(desks, maps, strict=True):
        _add_mapped(word_documents, word_map, _at_least(desk.word_documents, len(word_map)))
        _add_mapped(gram_documents, gram_map, _at_least(desk.gram_documents, len(gram_map)))
    n_documents = sum(n for _, n, _ in results)
    parts = [(at, kept) for at, _, kept in results if kept is not None]
    return Corpus(coder, word_documents, gram_documents, n_documents, maps, parts)


def _at_least(array: IntArray, size: int) -> IntArray:
    if len(array) >= size:
        return array
    longer = np.zeros(max(size, 2 * len(array)), np.int64)
    longer[: len(array)] = array
    return longer


def _work_through(work: Callable[[Part], Result], parts: Iterable[Part], pool: Workers) -> Iterator[Result]:
    """Let workers work on parts, in order; few parts are not worth a thread."""
    following = iter(parts)
    ahead = list(islice(following, FEW))
    return pool.map(work, chain(ahead, following)) if len(ahead) == FEW else map(work, ahead)


def weigh_corpus(corpus: Corpus, features: Features, weighting: Weighting, pool: Workers) -> Any:
    """Make the matrix of texts that have been counted.

    Parameters
    ----------
    corpus : Corpus
        The texts' counts; their memory is used up.
    features : Features
        The features of the corpus' codes.
    weighting : Weighting
        What to do with counts.
    pool : Workers
        Who works.

    Returns
    -------
    csr_array
        One row a text.
    """
    of_owner = [
        features._replace(of_words=_mapped(features.of_words, words), of_grams=_mapped(features.of_grams, grams))
        for words, grams in corpus.maps
    ]

    def work(part: tuple[int, Counts]) -> Rows:
        owner, counts = part
        return weighting.weigh(counts, of_owner[owner])

    return to_matrix(list(_work_through(work, corpus.parts, pool)), features.n_features, pool)


def _mapped(features: IdArray, ids: IdArray) -> IdArray:
    """Return the feature of each of a worker's ids; stop words have none."""
    return np.append(features, np.int32(-1))[ids] if len(features) else np.empty(0, np.int32)


def weigh_texts(
    texts: Any, reading: Reading, coder: Coder, features: Features, weighting: Weighting, pool: Workers
) -> Any:
    """Make the matrix of texts, with known features.

    Parameters
    ----------
    texts : iterable of str, or TextBytes
        The texts.
    reading : Reading
        How to find their tokens.
    coder : Coder
        Gives tokens their codes.
    features : Features
        The features of the codes.
    weighting : Weighting
        What to do with counts.
    pool : Workers
        Who works.

    Returns
    -------
    csr_array
        One row a text.
    """
    idle: list[Space] = []

    def work(block: Block) -> Rows:
        try:
            space = idle.pop()
        except IndexError:
            space = Space()
        rows = weighting.weigh(coder.count(block, reading, space), features)
        rows = Rows(rows.indptr, rows.indices.copy(), rows.data.copy())
        idle.append(space)
        return rows

    return to_matrix(
        list(_work_through(work, make_blocks(texts, reading, pool.n_workers), pool)), features.n_features, pool
    )


def to_matrix(parts: list[Rows], n_features: int, pool: Workers) -> Any:
    """Put rows one below the other.

    Parameters
    ----------
    parts : list of Rows
        Sorted rows.
    n_features : int
        Number of columns.
    pool : Workers
        Who works.

    Returns
    -------
    csr_array
        All rows, in order.
    """
    n_rows = sum(len(part.indptr) - 1 for part in parts)
    n_entries = sum(len(part.indices) for part in parts)
    indptr = np.zeros(n_rows + 1, np.int64 if n_entries > MAX_IDS else np.int32)
    indices, data = np.empty(n_entries, np.int32), np.empty(n_entries, np.float32)
    places, row, entry = [], 0, 0
    for part in parts:
        places.append((part, row, entry))
        row += len(part.indptr) - 1
        entry += len(part.indices)

    def put(place: tuple[Rows, int, int]) -> None:
        part, row, entry = place
        indptr[row + 1 : row + len(part.indptr)] = part.indptr[1:] + entry
        indices[entry : entry + len(part.indices)] = part.indices
        data[entry : entry + len(part.data)] = part.data

    for _ in _work_through(put, places, pool):
        pass
    matrix = sp.csr_array((data, indices, indptr), shape=(n_rows, n_features))
    matrix.has_canonical_format = True
    return matrix
