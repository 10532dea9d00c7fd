"""Word windows: predict each word of a text from its neighbours, the task of JMLR 2009 made from any plain text.

Sentences end at ``.!?;`` or an empty line. Each word is a row and its own label. Its features are the six words at
-3..3 with their position, ``<s>`` beyond the sentence, and nine conjunctions of them; those seen often enough in
training are kept. Rows are Boolean and of unit length.

Words and conjunctions are numbers throughout, so the cost is that of sorting nine columns of integers.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.measure.splits import repeated_splits
from abound.read.compression import Source
from abound.read.errors import FormatError
from abound.validation import check_number

IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]

REACH = 3
BEYOND = "<s>"
TEMPLATES: tuple[tuple[int, ...], ...] = (
    *((position,) for position in (-3, -2, -1, 1, 2, 3)),
    *((-2, -1), (1, 2), (-1, 1), (-3, -2), (2, 3)),
    *((-3, -2, -1), (1, 2, 3), (-2, -1, 1), (-1, 1, 2)),
)
"""Positions, relative to the word, that make up each of the 15 features of a row."""

_MAX_WORDS = 2**21 - 1
_TOKEN = re.compile(r"[a-z']+|[.!?;]|\n\s*\n")


class Sentences(NamedTuple):
    """The words of a text.

    Parameters
    ----------
    words : int64 array of shape (n,)
        Each word as its place in ``vocabulary``.
    sentence : int64 array of shape (n,)
        Number of the sentence of each word, from 0.
    vocabulary : list of str
        Distinct words, sorted, after the mark for "beyond the sentence".
    """

    words: IntArray
    sentence: IntArray
    vocabulary: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class WordWindows:
    """Rows, labels and features of a word prediction task.

    Parameters
    ----------
    X : csr_array of shape (n_words, n_features)
        Float32, all non-zeros of a row equal, unit length.
    y : object array of shape (n_words,)
        The words to predict.
    feature_names : object array of shape (n_features,)
        Such as ``-1=the`` and ``-2,-1=of|the``.
    """

    X: Any
    y: npt.NDArray[np.object_]
    feature_names: npt.NDArray[np.object_]


def read_sentences(text: str | os.PathLike[str]) -> Sentences:
    """Cut a text into sentences and words.

    Words are runs of ``a`` to ``z`` and apostrophes after lower-casing; a typographic apostrophe counts as a plain one.

    Parameters
    ----------
    text : str or path
        A string is the text itself; a path (not a string) is a UTF-8 file, plain, gzip or zstd.

    Returns
    -------
    Sentences
        The words as numbers.

    Examples
    --------
    >>> sentences = read_sentences("It is. Is it?")
    >>> [sentences.vocabulary[word] for word in sentences.words], sentences.sentence.tolist()
    (['it', 'is', 'is', 'it'], [0, 0, 1, 1])
    """
    if not isinstance(text, str):
        text = _read(text)
    tokens = _TOKEN.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    distinct = sorted(set(tokens))
    ends = [token for token in distinct if token[0] not in "abcdefghijklmnopqrstuvwxyz'"]
    vocabulary = [token for token in distinct if token[0] in "abcdefghijklmnopqrstuvwxyz'"]
    if not vocabulary:
        raise ValueError("the text holds no words (letters a to z)")
    if len(vocabulary) > _MAX_WORDS:
        raise ValueError(f"the text holds {len(vocabulary)} distinct words; word windows take at most {_MAX_WORDS}")
    place = dict.fromkeys(ends, 0) | {word: i for i, word in enumerate(vocabulary, start=1)}
    numbers: IntArray = np.fromiter(map(place.__getitem__, tokens), dtype=np.int64, count=len(tokens))
    is_word = numbers > 0
    sentence = np.cumsum(~is_word)[is_word]
    begins = np.diff(sentence, prepend=sentence[0]) > 0
    return Sentences(numbers[is_word], np.cumsum(begins), [BEYOND, *vocabulary])


def word_windows(
    text: str | os.PathLike[str] | Sentences, *, min_count: int = 3, train_rows: IntArray | None = None
) -> WordWindows:
    """Make a row for each word of a text.

    Parameters
    ----------
    text : str, path or Sentences
        The text; see `read_sentences`.
    min_count : int
        Features seen in fewer training rows are left out.
    train_rows : integer array, optional
        The words that are for training; all if not given. The others are described by the training rows' features.

    Returns
    -------
    WordWindows
        Rows in the order of the text.

    Examples
    --------
    >>> windows = word_windows("the cat sat. the cat ran. the cat sat.", min_count=3)
    >>> windows.X.shape[0], windows.y[:3].tolist()
    (9, ['the', 'cat', 'sat'])
    >>> [name for name in windows.feature_names.tolist() if name.startswith(("-1=", "-2,-1="))]
    ['-1=<s>', '-1=cat', '-1=the', '-2,-1=<s>|<s>', '-2,-1=<s>|the', '-2,-1=the|cat']
    """
    check_number("min_count", min_count, 1, whole=True)
    sentences = text if isinstance(text, Sentences) else read_sentences(text)
    neighbours = _neighbours(sentences)
    columns = np.empty((len(sentences.words), len(TEMPLATES)), np.int32)
    names: list[str] = []
    for t, positions in enumerate(TEMPLATES):
        parts = [neighbours[position] for position in positions]
        kept_words, column = _keep(parts, len(sentences.vocabulary), min_count, train_rows)
        columns[:, t] = np.where(column >= 0, column + len(names), -1)
        names += _names(positions, kept_words, sentences.vocabulary)
    vocabulary = np.array(sentences.vocabulary, dtype=object)
    return WordWindows(
        _unit_rows(columns, len(names)), vocabulary[sentences.words], np.array(names, dtype=object).reshape(-1)
    )


def make_word_task(
    text: str | os.PathLike[str], *, test_fraction: float = 0.1, min_count: int = 3, random_state: Any = 0
) -> tuple[Any, npt.NDArray[np.object_], Any, npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Make a word prediction task: a random part of the words is for testing, features are counted on the others.

    Parameters
    ----------
    text : str or path
        The text; see `read_sentences`.
    test_fraction : float
        What part of the words is held out.
    min_count : int
        Features seen in fewer training rows are left out.
    random_state : int, RandomState or None
        Decides which words are held out.

    Returns
    -------
    X_train, y_train, X_test, y_test, feature_names
        See `WordWindows`.

    Examples
    --------
    >>> X_train, y_train, X_test, y_test, names = make_word_task("one two three. " * 10)
    >>> X_train.shape, len(y_test), len(names)
    ((27, 37), 3, 37)
    """
    sentences = read_sentences(text)
    if len(sentences.words) < 2:
        raise ValueError("the text holds a single word: there is nothing to split into training and test")
    train_rows, test_rows = next(repeated_splits(len(sentences.words), 1, test_fraction, random_state))
    windows = word_windows(sentences, min_count=min_count, train_rows=train_rows)
    X, y = windows.X, windows.y
    return X[train_rows], y[train_rows], X[test_rows], y[test_rows], windows.feature_names


def _read(path: str | os.PathLike[str]) -> str:
    with Source(path) as source:
        name, content = source.name, b"".join(block.data for block in source.blocks())
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(name, line, "the text is not UTF-8; convert it first") from None


def _neighbours(sentences: Sentences) -> dict[int, IntArray]:
    """The word at each position around each word; 0 beyond its sentence."""
    place = np.arange(len(sentences.words)) + REACH * (sentences.sentence + 1)
    padded = np.zeros(place[-1] + REACH + 1, np.int64)
    padded[place] = sentences.words
    return {position: padded[place + position] for position in range(-REACH, REACH + 1) if position != 0}


def _keep(
    parts: list[IntArray], n_words: int, min_count: int, train_rows: IntArray | None
) -> tuple[list[IntArray], IntArray]:
    """Keep the combinations of words seen often enough: their words, and the number of each row's or -1."""
    key = parts[0]
    for part in parts[1:]:
        key = key * n_words + part
    distinct, inverse = np.unique(key, return_inverse=True)
    counts = np.bincount(inverse if train_rows is None else inverse[train_rows], minlength=len(distinct))
    frequent = counts >= min_count
    number = np.where(frequent, np.cumsum(frequent) - 1, -1)
    kept = distinct[frequent]
    words = []
    for _ in parts:
        kept, word = np.divmod(kept, n_words)
        words.append(word)
    return words[::-1], number[inverse]


def _names(positions: tuple[int, ...], words: list[IntArray], vocabulary: list[str]) -> list[str]:
    where = ",".join(map(str, positions))
    columns = [[vocabulary[word] for word in column.tolist()] for column in words]
    return [f"{where}={'|'.join(combination)}" for combination in zip(*columns, strict=True)]


def _unit_rows(columns: IdArray, n_features: int) -> Any:
    """Rows of unit length from the columns that each row has a one in, -1 for none."""
    present = columns >= 0
    lengths = present.sum(axis=1)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    values = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths).astype(np.float32)
    index_type = np.int32 if indptr[-1] < 2**31 else np.int64
    indices = columns[present].astype(index_type)
    return sp.csr_array((values, indices, indptr.astype(index_type)), shape=(len(columns), n_features))
