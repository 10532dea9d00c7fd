"""The features of a fitted vectoriser: learned sorted, later only appended, with an idf each."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.read.textbytes import TextBytes
from abound.validation import check_number
from abound.vectorise.counting import Corpus, by_code
from abound.vectorise.lexicon import Buckets, Lexicon
from abound.vectorise.order import sort_codes, with_parts
from abound.vectorise.tables import names_of
from abound.vectorise.weighting import Features, inverse_frequency

IdArray = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

NO_IDS = np.empty(0, np.int32)
NO_IDF = np.empty(0, np.float32)


class Limits(NamedTuple):
    """Which words become features.

    Parameters
    ----------
    min_df, max_df : int or float
        Least and greatest number of texts that hold the word; a float is a share of the texts.
    max_features : int or None
        Only so many, the most frequent.
    """

    min_df: float
    max_df: float
    max_features: int | None

    def bounds(self, n_documents: int) -> tuple[float, float]:
        """Return the least and greatest document count.

        Parameters
        ----------
        n_documents : int
            Number of texts.

        Returns
        -------
        low, high : float
            The bounds, inclusive.
        """
        low = self.min_df if isinstance(self.min_df, numbers.Integral) else self.min_df * n_documents
        high = self.max_df if isinstance(self.max_df, numbers.Integral) else self.max_df * n_documents
        if high < low:
            raise ValueError(
                f"max_df corresponds to < documents than min_df: of {n_documents} texts, max_df={self.max_df} allows "
                f"{high:g} and min_df={self.min_df} asks for {low:g}"
            )
        return low, high


def make_limits(vectoriser: Any) -> Limits:
    """Check and read the limits among the parameters of a vectoriser.

    Parameters
    ----------
    vectoriser : TextVectorizer
        Whose parameters to use.

    Returns
    -------
    Limits
        Which words become features.
    """
    limits = Limits(vectoriser.min_df, vectoriser.max_df, vectoriser.max_features)
    for name in ("min_df", "max_df"):
        value = getattr(limits, name)
        if isinstance(value, numbers.Integral):
            check_number(name, value, 1, whole=True)
        else:
            check_number(name, value, 0, 1)
    check_number("max_features", limits.max_features, 1, whole=True, or_none=True)
    if vectoriser.hashing is not None and limits != (1, 1.0, None):
        raise ValueError("min_df, max_df and max_features choose words: with hashing, leave them at 1, 1.0 and None")
    return limits


class Vocabulary:
    """Words and n-grams with their features.

    Parameters
    ----------
    lexicon : Lexicon
        The words and n-grams; not all of them are features.
    codes : int32 array
        The code of each feature.
    idf : float32 array
        Of each feature; empty if none is used.
    n_documents : int
        Number of texts seen.
    """

    def __init__(self, lexicon: Lexicon, codes: IdArray, idf: FloatArray, n_documents: int) -> None:
        self.coder = lexicon
        self.codes = codes
        self.n_fitted = len(codes)
        self.n_documents = n_documents
        n_words, n_grams = lexicon.sizes
        self.features = numbered(*features_of(codes, n_words, n_grams), codes, idf)
        self.word_documents = np.zeros(n_words, np.int64)
        self.gram_documents = np.zeros(n_grams, np.int64)

    def names(self, features: slice | IntArray = slice(None)) -> TextBytes:
        """Write the names of features.

        Parameters
        ----------
        features : slice or int64 array
            Which.

        Returns
        -------
        TextBytes
            Their names.
        """
        return names_of(self.codes[features], self.coder.words, self.coder.grams)

    def grow(self, corpus: Corpus, limits: Limits, *, use_idf: bool, is_smooth: bool) -> None:
        """Take in more texts: known features stay as they are, new words are appended once they are frequent enough.

        A word that came after `fit` counts from then on. Its idf takes all texts for those that might have held it.

        Parameters
        ----------
        corpus : Corpus
            The texts.
        limits : Limits
            Which words become features.
        use_idf, is_smooth : bool
            Whether there is an idf, and which.
        """
        low, high = limits.bounds(self.n_documents + corpus.n_documents)
        lexicon: Any = corpus.coder
        seen = sort_codes(lexicon, lexicon.all_codes())
        word_map, gram_map = self.coder.join(lexicon, seen)
        here = by_code(seen, word_map, -2 - gram_map)
        n_words, n_grams = self.coder.sizes
        self.word_documents = _extended(self.word_documents, n_words)
        self.gram_documents = _extended(self.gram_documents, n_grams)
        documents = corpus.documents(seen)
        is_word = here >= 0
        self.word_documents[here[is_word]] += documents[is_word]
        self.gram_documents[-2 - here[~is_word]] += documents[~is_word]
        self.n_documents += corpus.n_documents
        of_words, of_grams = features_of(self.codes, n_words, n_grams)
        counted = by_code(here, self.word_documents, self.gram_documents)
        is_new = (by_code(here, of_words, of_grams) < 0) & (documents > 0) & (counted >= low) & (counted <= high)
        new = here[is_new]
        if limits.max_features is not None:
            room = max(0, limits.max_features - len(self.codes))
            most_frequent = np.argsort(-counted[is_new], kind="stable")[:room]
            new = new[np.sort(most_frequent)]
        self.codes = np.concatenate((self.codes, new))
        numbers = np.arange(len(self.codes) - len(new), len(self.codes), dtype=np.int32)
        of_words[new[new >= 0]] = numbers[new >= 0]
        of_grams[-2 - new[new < 0]] = numbers[new < 0]
        idf = self.features.idf
        if use_idf:
            since = by_code(self.codes[self.n_fitted :], self.word_documents, self.gram_documents)
            idf = np.concatenate((idf[: self.n_fitted], inverse_frequency(since, self.n_documents, is_smooth)))
        self.features = numbered(of_words, of_grams, self.codes, idf)


def numbered(of_words: IdArray, of_grams: IdArray, codes: IdArray, idf: FloatArray) -> Features:
    """Put features together; where every word is the feature of its number, kernels need not look it up.

    Parameters
    ----------
    of_words, of_grams, codes : int32 arrays
        The feature of each word and n-gram, and the code of each feature.
    idf : float32 array
        Of each feature.

    Returns
    -------
    Features
        The features.
    """
    is_plain = len(codes) == len(of_words) and np.array_equal(codes, np.arange(len(codes)))
    return Features(NO_IDS if is_plain else of_words, of_grams, len(codes), idf)


class HashedVocabulary:
    """Features by hashing, with the idf of each bucket.

    Parameters
    ----------
    n_buckets : int
        Number of features.
    stop_words : sequence of str
        Words to leave out.
    """

    def __init__(self, n_buckets: int, stop_words: Sequence[str]) -> None:
        self.coder = Buckets(n_buckets, stop_words)
        self.n_fitted = n_buckets
        self.n_documents = 0
        self.is_known = np.zeros(0, bool)
        self.documents = np.zeros(0, np.int64)
        self.features = Features(NO_IDS, NO_IDS, n_buckets, NO_IDF)

    def learn(self, corpus: Corpus, *, is_smooth: bool) -> None:
        """Learn the idf of each bucket.

        Parameters
        ----------
        corpus : Corpus
            The texts.
        is_smooth : bool
            Which idf.
        """
        self.n_documents = corpus.n_documents
        self.is_known = corpus.word_documents > 0
        self.documents = np.zeros(self.n_fitted, np.int64)
        idf = inverse_frequency(corpus.word_documents, self.n_documents, is_smooth)
        self.features = self.features._replace(idf=idf)

    def grow(self, corpus: Corpus, *, is_smooth: bool) -> None:
        """Take in more texts: only buckets that were empty at `fit` change their idf.

        Parameters
        ----------
        corpus : Corpus
            The texts.
        is_smooth : bool
            Which idf.
        """
        self.n_documents += corpus.n_documents
        self.documents = self.documents + corpus.word_documents
        new = inverse_frequency(self.documents, self.n_documents, is_smooth)
        self.features = self.features._replace(idf=np.where(self.is_known, self.features.idf, new))


def features_of(codes: IdArray, n_words: int, n_grams: int) -> tuple[IdArray, IdArray]:
    """Number the features by word and by n-gram.

    Parameters
    ----------
    codes : int32 array
        The code of each feature.
    n_words, n_grams : int
        Sizes of the lexicon.

    Returns
    -------
    of_words, of_grams : int32 arrays
        The feature of each, -1 for none.
    """
    of_words, of_grams = np.full(n_words, -1, np.int32), np.full(n_grams, -1, np.int32)
    numbers, is_word = np.arange(len(codes), dtype=np.int32), codes >= 0
    of_words[codes[is_word]] = numbers[is_word]
    of_grams[-2 - codes[~is_word]] = numbers[~is_word]
    return of_words, of_grams


def _extended(counts: IntArray, size: int) -> IntArray:
    extended = np.zeros(size, np.int64)
    extended[: len(counts)] = counts
    return extended


def choose_codes(corpus: Corpus, limits: Limits, *, is_binary: bool) -> IdArray:
    """Choose the words and n-grams that become features, as scikit-learn does.

    Parameters
    ----------
    corpus : Corpus
        The texts.
    limits : Limits
        Which to choose.
    is_binary : bool
        The most frequent ones are those in most texts, not those that occur most often.

    Returns
    -------
    int32 array
        Their codes.
    """
    lexicon: Any = corpus.coder
    codes: IdArray = lexicon.all_codes()
    codes = codes[corpus.documents(codes) > 0]
    if not len(codes):
        raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
    low, high = limits.bounds(corpus.n_documents)
    if limits.max_features is not None:
        # Ties at the cut fall as NumPy's sort lets them fall on the words in order: so does scikit-learn's.
        codes = sort_codes(lexicon, with_parts(lexicon, codes))
        codes = codes[corpus.documents(codes) > 0]
    documents = corpus.documents(codes)
    codes = codes[(documents >= low) & (documents <= high)]
    if limits.max_features is not None and len(codes) > limits.max_features:
        frequencies = corpus.documents(codes) if is_binary else corpus.occurrences(codes)
        codes = codes[(-frequencies.astype(np.float32)).argsort()[: limits.max_features]]
    if not len(codes):
        raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
    return codes


def learn_vocabulary(
    corpus: Corpus, codes: IdArray, stop_words: Sequence[str], *, use_idf: bool, is_smooth: bool
) -> tuple[Vocabulary, Features]:
    """Make a vocabulary of some words and n-grams of a corpus, sorted by name.

    Parameters
    ----------
    corpus : Corpus
        The texts.
    codes : int32 array
        The codes to keep, in any order.
    stop_words : sequence of str
        Words to leave out of texts.
    use_idf, is_smooth : bool
        Whether there is an idf, and which.

    Returns
    -------
    vocabulary : Vocabulary
        Its lexicon is no larger than needed. Where all words are, it is the corpus' own, numbered anew: after that, the
        corpus is good for nothing but its counts.
    features : Features
        The same features by the corpus' codes.
    """
    source: Any = corpus.coder
    order = sort_codes(source, with_parts(source, codes))
    n_words, n_grams = source.sizes
    is_chosen = features_of(codes, n_words, n_grams)
    chosen = order[by_code(order, *is_chosen) >= 0]
    idf = inverse_frequency(corpus.documents(chosen), corpus.n_documents, is_smooth) if use_idf else NO_IDF
    features = Features(*features_of(chosen, n_words, n_grams), len(chosen), idf)
    if n_grams == 0 and len(order) == n_words - source.n_stop_words:
        lexicon = source
        lexicon.may_grow = False
        lexicon.words.renumber(np.concatenate((np.arange(source.n_stop_words, dtype=np.int32), order)))
        kept = np.arange(source.n_stop_words, n_words, dtype=np.int32)
    else:
        n_needed = int(np.count_nonzero(order >= 0))
        lexicon = Lexicon(stop_words, (n_needed, len(order) - n_needed), may_grow=False)
        word_map, gram_map = lexicon.join(source, order)
        kept = by_code(chosen, word_map, -2 - gram_map)
    return Vocabulary(lexicon, kept, idf, corpus.n_documents), features
