"""Text to sparse vectors: `TextVectorizer`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from abound.distribute import Workers, count_workers, workers
from abound.read.textbytes import TextBytes
from abound.vectorise.blocks import is_small
from abound.vectorise.counting import Corpus, read_corpus, weigh_corpus, weigh_texts
from abound.vectorise.known import KnownFeatures
from abound.vectorise.lexicon import Buckets, Coder, Lexicon
from abound.vectorise.reading import (
    DEFAULT_PATTERN,
    Reading,
    check_reading,
    check_texts,
    make_reading,
    warn_of_unspaced,
)
from abound.vectorise.saving import (
    HASH_DIGITS,
    Arrays,
    checked_parameters,
    dump,
    load_buckets,
    load_words,
    plain_parameters,
)
from abound.vectorise.spans import find_spans
from abound.vectorise.vocabulary import HashedVocabulary, Vocabulary, choose_codes, learn_vocabulary, make_limits
from abound.vectorise.weighting import Features, make_weighting

Texts = Iterable[str] | TextBytes


class TextVectorizer(TransformerMixin, KnownFeatures, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Turn texts into sparse unit vectors of tf-idf weights.

    The matrix is that of scikit-learn's ``TfidfVectorizer`` with the same parameters, made several times faster:
    words are found, counted and weighed by compiled kernels over UTF-8 bytes, by several threads if asked to.
    Two defaults differ: words of one character count, and `sublinear_tf` is on.

    Parameters
    ----------
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        What a feature is: a word, a run of characters, a run of characters within a word, or what a function makes of
        a text (a list of strings). All but words go through scikit-learn's analyzers, at their speed.
    ngram_range : tuple of int, default=(1, 1)
        Least and greatest number of words, up to 8, or characters, up to 15, that make a feature.
    lowercase : bool, default=True
        Lower-case texts first.
    strip_accents : {None, "ascii", "unicode"}, default=None
        Take accents off first.
    token_pattern : str, default=r"(?u)\b\w+\b"
        A regular expression for words. By default a single letter or digit is one, too; scikit-learn's
        ``r"(?u)\b\w\w+\b"`` leaves it out. Patterns that mean "a run of word characters, at least so long" are
        fast; any other one goes through scikit-learn.
    stop_words : None, "english" or collection of str, default=None
        Words to leave out, before n-grams are made.
    min_df, max_df : int or float, default=1 and 1.0
        Least and greatest number of texts that hold a feature; a float is a share of the texts.
    max_features : int or None, default=None
        Keep only so many features, the most frequent.
    binary : bool, default=False
        Take every count above one for one.
    sublinear_tf : bool, default=True
        Replace a count by one plus its logarithm. (scikit-learn's default is False.)
    use_idf : bool, default=True
        Weigh features by their inverse document frequency.
    smooth_idf : bool, default=True
        Count one more text that holds every word.
    norm : {"l2", "l1", None}, default="l2"
        Which length of a vector is made one.
    hashing : int or None, default=None
        Number of features, to number them by hashing instead of learning a vocabulary. Features then have no names.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all cores. It never shows in a result.

    Attributes
    ----------
    vocabulary_ : dict
        The feature of each name.
    idf_ : float32 array
        The inverse document frequency of each feature.
    n_features_ : int
        Number of features.
    vocabulary_hash_ : str
        A digest of the features at `fit` and of how texts are read and weighed. Growing keeps it.

    See Also
    --------
    sklearn.feature_extraction.text.TfidfVectorizer : The same in Python.

    Examples
    --------
    >>> vectorizer = TextVectorizer()
    >>> X = vectorizer.fit_transform(["green tea", "black tea", "black coffee"])
    >>> vectorizer.get_feature_names_out().tolist()
    ['black', 'coffee', 'green', 'tea']
    >>> X.toarray().round(2)[0]
    array([0.  , 0.  , 0.8 , 0.61], dtype=float32)
    >>> vectorizer.partial_fit(["green mate"]).n_features_
    5
    """

    def __init__(
        self,
        *,
        analyzer: Any = "word",
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        strip_accents: Literal["ascii", "unicode"] | None = None,
        token_pattern: str = DEFAULT_PATTERN,
        stop_words: Any = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        binary: bool = False,
        sublinear_tf: bool = True,
        use_idf: bool = True,
        smooth_idf: bool = True,
        norm: Literal["l1", "l2"] | None = "l2",
        hashing: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.token_pattern = token_pattern
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.binary = binary
        self.sublinear_tf = sublinear_tf
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.norm = norm
        self.hashing = hashing
        self.n_jobs = n_jobs

    def fit(self, raw_documents: Texts, y: Any = None) -> TextVectorizer:
        """Learn the vocabulary, sorted by name, and the idf of each feature.

        Parameters
        ----------
        raw_documents : iterable of str, or TextBytes
            The texts.
        y : None
            Ignored.

        Returns
        -------
        TextVectorizer
            Itself.
        """
        if self._is_stateless():
            make_limits(self)
            self._know(HashedVocabulary(self.hashing or 0, self._reading(raw_documents).stop_words))
        else:
            with workers(self._jobs(raw_documents)) as pool:
                self._learn(raw_documents, pool, keeps_counts=self.max_features is not None)
        return self

    def fit_transform(self, raw_documents: Texts, y: Any = None) -> Any:
        """Learn the vocabulary and return the vectors of the same texts, which are read once.

        Parameters
        ----------
        raw_documents : iterable of str, or TextBytes
            The texts.
        y : None
            Ignored.

        Returns
        -------
        csr_array of shape (n_texts, n_features)
            Float32 weights, sorted by feature.
        """
        if self._is_stateless():
            return self.fit(raw_documents).transform(raw_documents)
        weighting = make_weighting(self)
        with workers(self._jobs(raw_documents)) as pool:
            corpus, features = self._learn(raw_documents, pool, keeps_counts=True)
            return weigh_corpus(corpus, features, weighting, pool)

    def transform(self, raw_documents: Texts) -> Any:
        """Return the vectors of texts; words that are not in the vocabulary are left out.

        Parameters
        ----------
        raw_documents : iterable of str, or TextBytes
            The texts.

        Returns
        -------
        csr_array of shape (n_texts, n_features)
            Float32 weights, sorted by feature.
        """
        check_is_fitted(self)
        reading = self._reading(raw_documents)
        known = self._known(reading)
        weighting, features = make_weighting(self), known.features
        with workers(self._jobs(raw_documents)) as pool:
            return weigh_texts(raw_documents, reading, known.coder, features, weighting, pool)

    def partial_fit(self, raw_documents: Texts, y: Any = None) -> TextVectorizer:
        """Let the vocabulary grow; on a vectoriser that is not fitted, the same as `fit`.

        Known features keep their number and their idf. A new word becomes a feature once ``min_df`` texts since `fit`
        held it; the new features of a call are numbered by name. Its idf follows the texts that hold it.

        Parameters
        ----------
        raw_documents : iterable of str, or TextBytes
            More texts.
        y : None
            Ignored.

        Returns
        -------
        TextVectorizer
            Itself.
        """
        if not hasattr(self, "_vocabulary") or self._is_stateless():
            return self.fit(raw_documents)
        limits = make_limits(self)
        with workers(self._jobs(raw_documents)) as pool:
            corpus = self._read(raw_documents, self._reading(raw_documents), pool, keeps_counts=False)
        if isinstance(self._vocabulary, Vocabulary):
            self._vocabulary.grow(corpus, limits, use_idf=self.use_idf, is_smooth=self.smooth_idf)
        else:
            self._vocabulary.grow(corpus, is_smooth=self.smooth_idf)
        self._names = None
        return self

    def _jobs(self, raw_documents: Texts) -> int | None:
        """How many threads the texts are worth; ``n_jobs`` is checked all the same."""
        count_workers(self.n_jobs)
        return None if is_small(raw_documents) else self.n_jobs

    def spans(self, text: str, features: Collection[int]) -> list[tuple[int, int, int]]:
        """Find the places in a text where features stand, to highlight them.

        Parameters
        ----------
        text : str
            The text.
        features : collection of int
            The features to look for.

        Returns
        -------
        list of (begin, end, feature)
            Places in characters, in order.

        Examples
        --------
        >>> vectorizer = TextVectorizer().fit(["green tea", "black tea"])
        >>> vectorizer.spans("Tea is tea.", [vectorizer.vocabulary_["tea"]])
        [(0, 3, 2), (7, 10, 2)]
        """
        check_is_fitted(self)
        if callable(self.analyzer):
            raise ValueError("an analyzer of your own does not say where in a text its tokens stand")
        if not isinstance(text, str):
            raise TypeError(f"text is {type(text).__name__}, not str")
        reading = self._reading([])
        known = self._known(reading)
        return find_spans(self, reading, known.coder, known.features, text, features)

    def to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return the state as arrays and plain data, for a model file.

        Returns
        -------
        arrays : dict of str to array
            The vocabulary as UTF-8 bytes and offsets, and its numbers.
        meta : dict
            The parameters and a few numbers, as JSON can hold them.
        """
        check_is_fitted(self)
        parameters = plain_parameters(self.get_params(deep=False))
        arrays, meta = dump(self._known(self._reading([])))
        return arrays, {**meta, "parameters": parameters, "vocabulary_hash": self.vocabulary_hash_}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], meta: dict[str, Any], *, trust: bool = False) -> TextVectorizer:
        """Make a fitted vectoriser of what `to_arrays` returned.

        Parameters
        ----------
        arrays : mapping of str to array
            Checked before use; memory maps are fine and stay mapped until the first text is read.
        meta : dict
            The parameters and numbers; ``n_jobs`` is not among them.
        trust : bool
            Whether a `token_pattern` may be any regular expression: some take for ever on a short text. Otherwise only
            those are taken that mean "a run of word characters".

        Returns
        -------
        TextVectorizer
            One that gives the same vectors.
        """
        vectorizer = cls(**checked_parameters(meta, cls().get_params(deep=False), trust=trust))
        check_reading(vectorizer)
        make_limits(vectorizer)
        make_weighting(vectorizer)
        if vectorizer.hashing is None:
            vectorizer._vocabulary = load_words(arrays, meta)
        else:
            reading = vectorizer._reading([])
            vectorizer._vocabulary = HashedVocabulary(vectorizer.hashing, reading.stop_words)
            load_buckets(arrays, meta, vectorizer._vocabulary)
        features = vectorizer._vocabulary.features
        if len(features.idf) != (features.n_features if vectorizer.use_idf else 0):
            raise ValueError("the saved vectoriser is damaged: its idf must be there for each feature if use_idf")
        vectorizer._names = None
        digest = meta.get("vocabulary_hash")
        vectorizer._hash = digest if isinstance(digest, str) and len(digest) == HASH_DIGITS else None
        return vectorizer

    def _learn(self, raw_documents: Texts, pool: Workers, *, keeps_counts: bool) -> tuple[Corpus, Features]:
        limits = make_limits(self)
        reading = self._reading(raw_documents)
        corpus = self._read(raw_documents, reading, pool, keeps_counts=keeps_counts)
        if self.hashing is None:
            codes = choose_codes(corpus, limits, is_binary=self.binary)
            words, features = learn_vocabulary(
                corpus, codes, reading.stop_words, use_idf=self.use_idf, is_smooth=self.smooth_idf
            )
            self._know(words)
            if reading.analyze is None:
                warn_of_unspaced(words.coder.to_stored().names)
            return corpus, features
        buckets = HashedVocabulary(self.hashing, reading.stop_words)
        buckets.learn(corpus, is_smooth=self.smooth_idf)
        self._know(buckets)
        return corpus, buckets.features

    def _reading(self, raw_documents: Texts) -> Reading:
        """Check the parameters and the kind of input, and say how to read it."""
        check_texts(raw_documents)
        check_reading(self)
        return make_reading(self)

    def _read(self, raw_documents: Texts, reading: Reading, pool: Workers, *, keeps_counts: bool) -> Corpus:
        def make_coder() -> Coder:
            return Lexicon(reading.stop_words) if self.hashing is None else Buckets(self.hashing, reading.stop_words)

        return read_corpus(raw_documents, reading, make_coder, pool, keeps_counts=keeps_counts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = not self._is_stateless()
        return tags
