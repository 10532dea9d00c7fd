"""The state of a vectoriser as arrays and plain data, for a model file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.read.textbytes import TextBytes
from abound.store.check import LARGEST, MOST
from abound.validation import frozen
from abound.vectorise.checks import gram_problem, is_distinct, word_problem
from abound.vectorise.lexicon import Lexicon, StoredWords
from abound.vectorise.reading import is_known_pattern
from abound.vectorise.vocabulary import NO_IDF, HashedVocabulary, Vocabulary

Arrays = dict[str, npt.NDArray[Any]]

NOT_HASHED = ("n_jobs", "min_df", "max_df", "max_features")
"""Parameters that say how to learn, not what a vector means."""

HASH_DIGITS = 32

RUNTIME = ("n_jobs",)
"""Parameters that say how to work here: a file neither keeps them nor may set them."""


def plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON can hold them.

    Parameters
    ----------
    parameters : dict
        The parameters of a vectoriser.

    Returns
    -------
    dict
        Strings, numbers, lists and None.
    """
    if callable(parameters["analyzer"]):
        raise ValueError(
            "a vectoriser with an analyzer of your own cannot be saved: a model file holds no code. "
            "Save the estimator alone and vectorise outside, or use analyzer='word', 'char' or 'char_wb'"
        )
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
    plain = {name: value for name, value in plain.items() if name not in RUNTIME}
    plain["ngram_range"] = [int(n) for n in plain["ngram_range"]]
    if plain["stop_words"] is not None and not isinstance(plain["stop_words"], str):
        plain["stop_words"] = sorted(set(plain["stop_words"]))
    return plain


def checked_parameters(meta: dict[str, Any], known: dict[str, Any], *, trust: bool) -> dict[str, Any]:
    """Return the parameters of a saved vectoriser.

    Parameters
    ----------
    meta : dict
        What was saved.
    known : dict
        The parameters that a vectoriser has, with their defaults.
    trust : bool
        Whether a regular expression may be any.

    Returns
    -------
    dict
        The parameters; those that the file does not name, or must not say, have their defaults.
    """
    saved = meta.get("parameters")
    _demand(isinstance(saved, dict) and saved.keys() <= known.keys(), "parameters", f"be among {', '.join(known)}")
    parameters = known | {name: value for name, value in (saved or {}).items() if name not in RUNTIME}
    for name, value in parameters.items():
        _demand(not isinstance(value, int) or -MOST < value < MOST, name, f"be below {MOST}")
    _demand(isinstance(parameters["ngram_range"], list | tuple), "ngram_range", "be a pair")
    pattern = parameters["token_pattern"]
    if not trust and isinstance(pattern, str) and not is_known_pattern(pattern):
        raise UntrustedPattern(pattern)
    return {**parameters, "ngram_range": tuple(parameters["ngram_range"])}


class UntrustedPattern(ValueError):
    """A saved regular expression that nobody has said to trust.

    Parameters
    ----------
    pattern : str
        The expression.
    """

    remedy = (
        "If you trust who made the file, say so: abound.load(path, trust=True), or --trust on the command line. If "
        "not, do not use it"
    )

    def __init__(self, pattern: str) -> None:
        shown = repr(pattern if len(pattern) <= 200 else pattern[:200] + "...")
        self.problem = (
            f"token_pattern={shown} is a regular expression of its own, and a regular expression can take for ever "
            "on a short text"
        )
        super().__init__(f"{self.problem}. {self.remedy}")


def hash_vocabulary(parameters: dict[str, Any], vocabulary: Vocabulary | HashedVocabulary) -> str:
    """Make a digest of the features known at `fit`, their idf, and how texts are read and weighed.

    Parameters
    ----------
    parameters : dict
        The parameters of the vectoriser.
    vocabulary : Vocabulary or HashedVocabulary
        Its features.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    if callable(parameters["analyzer"]):
        parameters = {**parameters, "analyzer": "custom"}
    meaning = {name: value for name, value in plain_parameters(parameters).items() if name not in NOT_HASHED}
    digest = hashlib.blake2b(json.dumps(meaning, sort_keys=True).encode(), digest_size=HASH_DIGITS // 2)
    if isinstance(vocabulary, Vocabulary):
        names = vocabulary.names(slice(vocabulary.n_fitted))
        digest.update(names.ends.astype("<i8").tobytes())
        digest.update(names.buffer.tobytes())
        digest.update(vocabulary.features.idf[: vocabulary.n_fitted].astype("<f4").tobytes())
    elif len(vocabulary.features.idf):
        digest.update(vocabulary.is_known.tobytes())
        digest.update(vocabulary.features.idf[vocabulary.is_known].astype("<f4").tobytes())
    return digest.hexdigest()


def dump(vocabulary: Vocabulary | HashedVocabulary) -> tuple[Arrays, dict[str, Any]]:
    """Return the state of a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary or HashedVocabulary
        The vocabulary.

    Returns
    -------
    arrays : dict
        Its arrays by name.
    meta : dict
        Its numbers.
    """
    meta = {"n_documents": vocabulary.n_documents, "n_fitted": vocabulary.n_fitted}
    if isinstance(vocabulary, HashedVocabulary):
        idf, is_known = vocabulary.features.idf, vocabulary.is_known.astype(np.uint8)
        return {"idf": idf, "documents": vocabulary.documents, "is_known": is_known}, meta
    stored = vocabulary.coder.to_stored()
    arrays: Arrays = {
        "word_bytes": stored.names.buffer,
        "word_offsets": np.append(np.int64(0), stored.names.ends),
        "gram_prefixes": stored.prefixes,
        "gram_words": stored.words,
        "feature_codes": vocabulary.codes,
        "idf": vocabulary.features.idf,
        "word_documents": vocabulary.word_documents,
        "gram_documents": vocabulary.gram_documents,
    }
    return arrays, {**meta, "n_stop_words": vocabulary.coder.n_stop_words}


def load_words(arrays: Mapping[str, npt.NDArray[Any]], meta: dict[str, Any]) -> Vocabulary:
    """Make a vocabulary of what `dump` returned, after checking it.

    Parameters
    ----------
    arrays, meta : dict
        Its state.

    Returns
    -------
    Vocabulary
        The vocabulary; its table of words is made when it is first needed.
    """
    text, offsets = _take(arrays, "word_bytes", np.uint8), _take(arrays, "word_offsets", np.int64)
    _demand(len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(text), "word_offsets", "span the bytes")
    lengths = np.diff(offsets)
    _demand(bool((lengths >= 0).all() and (lengths < 2**31).all()), "word_offsets", "rise")
    n_words = len(lengths)
    names = TextBytes(text, offsets[:-1], offsets[1:])
    _refuse("word_bytes", word_problem(names))
    prefixes, words = _take(arrays, "gram_prefixes", np.int32), _take(arrays, "gram_words", np.int32)
    n_grams = len(words)
    _demand(len(prefixes) == n_grams, "gram_prefixes", "be as many as gram_words")
    _demand(_in_range(words, 0, n_words), "gram_words", "be words")
    is_earlier = (prefixes < -1) & (prefixes > -2 - np.arange(n_grams))
    _demand(bool(((prefixes < n_words) & ((prefixes >= 0) | is_earlier)).all()), "gram_prefixes", "come earlier")
    _refuse("gram_prefixes and gram_words", gram_problem(prefixes, words))
    codes = _take(arrays, "feature_codes", np.int32)
    _demand(_in_range(codes, -1 - n_grams, n_words) and -1 not in codes, "feature_codes", "be words or n-grams")
    _demand(is_distinct(codes, n_words, n_grams), "feature_codes", "differ")
    idf = _take(arrays, "idf", np.float32)
    _check_idf(idf, len(codes))
    n_stop_words, n_fitted = _number(meta, "n_stop_words"), _number(meta, "n_fitted")
    _demand(n_stop_words <= n_words, "n_stop_words", "be at most the number of words")
    _demand(n_fitted <= len(codes), "n_fitted", "be at most the number of features")
    lexicon = Lexicon.from_stored(StoredWords(names, prefixes, words), n_stop_words)
    vocabulary = Vocabulary(lexicon, codes, idf, _number(meta, "n_documents"))
    vocabulary.n_fitted = n_fitted
    vocabulary.word_documents = _check_documents(arrays, "word_documents", n_words, vocabulary.n_documents)
    vocabulary.gram_documents = _check_documents(arrays, "gram_documents", n_grams, vocabulary.n_documents)
    return vocabulary


def load_buckets(arrays: Mapping[str, npt.NDArray[Any]], meta: dict[str, Any], vocabulary: HashedVocabulary) -> None:
    """Fill a hashed vocabulary with what `dump` returned, after checking it.

    Parameters
    ----------
    arrays, meta : dict
        Its state.
    vocabulary : HashedVocabulary
        Gets the state.
    """
    n_buckets = vocabulary.n_fitted
    idf = _take(arrays, "idf", np.float32)
    _check_idf(idf, n_buckets)
    vocabulary.n_documents = _number(meta, "n_documents")
    vocabulary.documents = _check_documents(arrays, "documents", len(idf), vocabulary.n_documents)
    known = _take(arrays, "is_known", np.uint8)
    _demand(len(known) == len(idf), "is_known", "be as many as idf")
    vocabulary.is_known = known != 0
    vocabulary.features = vocabulary.features._replace(idf=idf if len(idf) else NO_IDF)


def _take(arrays: Mapping[str, npt.NDArray[Any]], name: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
    _demand(name in arrays, name, "be there")
    array = arrays[name]
    _demand(array.ndim == 1 and array.dtype == dtype, name, f"be one row of {dtype.__name__}")
    taken: npt.NDArray[Any] = frozen(array, dtype)
    return taken


def _number(meta: dict[str, Any], name: str) -> int:
    number = meta.get(name)
    _demand(type(number) is int and 0 <= number < MOST, name, f"be a whole number from 0 to {MOST}")
    return int(number or 0)


def _check_idf(idf: npt.NDArray[np.float32], n_features: int) -> None:
    _demand(len(idf) in (0, n_features), "idf", "be one for each feature")
    # A row all of whose words have an idf of 0 has no length to divide by.
    good = not len(idf) or (idf.min() > 0 and idf.max() <= LARGEST)
    _demand(bool(good), "idf", f"be above 0 and at most {LARGEST:.0e}")


def _check_documents(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, size: int, n_documents: int
) -> npt.NDArray[np.int64]:
    documents = _take(arrays, name, np.int64).copy()
    counts = len(documents) == size and _in_range(documents, 0, n_documents + 1)
    _demand(counts, name, f"count some of the {n_documents} documents, one number for each entry")
    return documents


def _in_range(values: npt.NDArray[Any], low: int, high: int) -> bool:
    return not len(values) or bool(values.min() >= low and values.max() < high)


def _refuse(name: str, problem: str | None) -> None:
    if problem is not None:
        _demand(False, name, problem)


def _demand(holds: bool, name: str, must: str) -> None:
    if not holds:
        raise ValueError(f"the saved vectoriser is damaged: its {name} must {must}")
