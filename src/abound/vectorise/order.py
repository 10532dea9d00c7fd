"""Which words and n-grams a lexicon needs for its features, and the order of their names."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from abound.vectorise.lexicon import Lexicon

IdArray = npt.NDArray[np.int32]

U32 = np.uint64(32)


def gram_sizes(prefixes: IdArray) -> IdArray:
    """Count the words of each n-gram.

    Parameters
    ----------
    prefixes : int32 array
        The code of all but the last word of each n-gram.

    Returns
    -------
    int32 array
        Two or more.

    Examples
    --------
    >>> gram_sizes(np.array([4, -2, 5, -3])).tolist()  # a word and a word, n-gram 0 and a word, ...
    [2, 3, 2, 4]
    """
    sizes = np.zeros(len(prefixes), np.int32)
    longer = np.flatnonzero(prefixes < 0)
    sizes[prefixes >= 0] = size = 2
    while len(longer):
        ready = sizes[-2 - prefixes[longer]] == size
        size += 1
        sizes[longer[ready]] = size
        longer = longer[~ready]
    return sizes


def with_parts(lexicon: Lexicon, codes: IdArray) -> IdArray:
    """Add to n-grams their beginnings and words, without which they are not found.

    Parameters
    ----------
    lexicon : Lexicon
        What the codes refer to.
    codes : int32 array
        Distinct codes.

    Returns
    -------
    int32 array
        The codes and those they need, each once; words, then n-grams from short to long.
    """
    if not len(lexicon.grams):
        return codes
    grams = lexicon.grams.table
    needs_word = np.zeros(len(lexicon.words), bool)
    needs_gram = np.zeros(len(lexicon.grams), bool)
    needs_word[codes[codes >= 0]] = True
    needs_gram[-2 - codes[codes < 0]] = True
    sizes = gram_sizes(grams.prefixes[: len(lexicon.grams)])
    for size in range(int(sizes.max(initial=1)), 1, -1):
        here = np.flatnonzero(needs_gram & (sizes == size))
        needs_word[grams.words[here]] = True
        prefixes = grams.prefixes[here]
        needs_word[prefixes[prefixes >= 0]] = True
        needs_gram[-2 - prefixes[prefixes < 0]] = True
    needed = np.flatnonzero(needs_gram)
    needed = needed[np.argsort(sizes[needed], kind="stable")]
    return np.concatenate((np.flatnonzero(needs_word), -2 - needed)).astype(np.int32)


def sort_codes(lexicon: Lexicon, codes: IdArray) -> IdArray:
    """Sort codes by their names.

    A space sorts before every word character. So n-grams sort word by word, each behind its own beginning, and what
    is sorted are numbers: first the words, then, size by size, the n-grams into what is sorted already.

    Parameters
    ----------
    lexicon : Lexicon
        What the codes refer to.
    codes : int32 array
        With each n-gram, its beginnings and its words are among them.

    Returns
    -------
    int32 array
        The same codes, in order.
    """
    order = lexicon.words.in_order(codes[codes >= 0])
    new_grams = -2 - codes[codes < 0]
    if not len(new_grams):
        return order
    grams, n_words = lexicon.grams.table, len(lexicon.words)
    word_rank = np.zeros(n_words, np.uint64)
    word_rank[order] = np.arange(1, len(order) + 1)
    rank = np.zeros(n_words + len(lexicon.grams), np.uint64)
    sizes = gram_sizes(grams.prefixes[: len(lexicon.grams)])[new_grams]
    for size in range(2, int(sizes.max()) + 1):
        rank[_places(order, n_words)] = np.arange(len(order))
        new = new_grams[sizes == size]
        below = rank[_places(grams.prefixes[new], n_words)] << U32 | word_rank[grams.words[new]]
        keys = np.concatenate((np.arange(len(order), dtype=np.uint64) << U32, below))
        order = np.concatenate((order, -2 - new))[np.argsort(keys)]
    return order


def _places(codes: IdArray, n_words: int) -> npt.NDArray[np.int64]:
    """Number the codes: words, then n-grams."""
    return np.where(codes >= 0, codes, n_words - 2 - codes.astype(np.int64))
