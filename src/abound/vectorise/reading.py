"""How the parameters of a vectoriser make tokens of a text: by the word kernel, or by scikit-learn's analyzers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from abound.labels import MAX_IDS
from abound.read.textbytes import TextBytes
from abound.validation import check_choice, check_number
from abound.vectorise.codepoints import Fold, fold_tables

DEFAULT_PATTERN = r"(?u)\b\w+\b"

LONGEST_WORDS, LONGEST_CHARACTERS = 8, 15
"""The longest n-gram, in words and in characters: rows and tables grow by each length more."""

UNSET_PATTERNS = (DEFAULT_PATTERN, r"(?u)\b\w\w+\b")
"""What `token_pattern` holds if nobody set it: ours; and scikit-learn's, which was ours in earlier model files."""

SWITCHES = ("lowercase", "binary", "sublinear_tf", "use_idf", "smooth_idf")
"""Parameters that are on or off."""

ENOUGH_WORDS = 50
UNSPACED_CHARACTERS = 4
"""Chinese or Japanese characters in a word, on average, that tell texts without spaces; words there have about two."""

_runs_of_word_characters = re.compile(r"(?:\(\?u\))?(?:\\b)?((?:\\w)+)\+(?:\\b)?")


@dataclass(frozen=True, slots=True)
class Reading:
    """The way from a text to its tokens.

    Parameters
    ----------
    analyze : callable or None
        Makes the list of a text's tokens; None leaves it to the word kernel.
    preprocess : callable or None
        Changes a text before the word kernel sees it.
    fold : Fold or None
        Tables of the word kernel.
    has_exceptions : bool
        Texts with characters that the tables cannot lower-case need Python.
    min_characters : int
        The shortest word.
    ngram_range : tuple of int
        Least and greatest number of tokens that make a feature.
    stop_words : sequence of str
        Words that the kernels leave out, sorted.
    """

    analyze: Callable[[str], list[str]] | None
    preprocess: Callable[[str], str] | None
    fold: Fold | None
    has_exceptions: bool
    min_characters: int
    ngram_range: tuple[int, int]
    stop_words: Sequence[str]


def shortest_word(token_pattern: str) -> int:
    r"""Return how many characters a word has at least if a pattern means "runs of word characters", else 0.

    Parameters
    ----------
    token_pattern : str
        A regular expression.

    Returns
    -------
    int
        The number of characters, or 0 for any other pattern.

    Examples
    --------
    >>> shortest_word(r"(?u)\b\w\w+\b"), shortest_word(r"\w+"), shortest_word(r"[a-z]+")
    (2, 1, 0)
    """
    match = _runs_of_word_characters.fullmatch(token_pattern)
    return len(match[1]) // len(r"\w") if match else 0


def is_known_pattern(token_pattern: str) -> bool:
    r"""Tell whether a regular expression is one of those that always take time linear in a text.

    Parameters
    ----------
    token_pattern : str
        A regular expression.

    Returns
    -------
    bool
        Whether it means "runs of word characters" and no more than that.

    Examples
    --------
    >>> is_known_pattern(DEFAULT_PATTERN), is_known_pattern(r"(?u)(?:\w+)+\d")
    (True, False)
    """
    return 0 < shortest_word(token_pattern) <= LONGEST_CHARACTERS


def make_reading(vectoriser: Any) -> Reading:
    """Choose the way for the parameters of a vectoriser.

    Parameters
    ----------
    vectoriser : TextVectorizer
        Its parameters have passed `check_reading`.

    Returns
    -------
    Reading
        The kernel's way wherever it gives the same tokens.
    """
    min_characters = shortest_word(vectoriser.token_pattern)
    if vectoriser.analyzer != "word" or not min_characters:
        return Reading(_analyzer(vectoriser), None, None, False, 0, (1, 1), ())
    lowercase, accents = bool(vectoriser.lowercase), vectoriser.strip_accents
    return Reading(
        analyze=None,
        preprocess=None if accents is None else partial(prepared, lowercase=lowercase, accents=accents),
        fold=fold_tables(lowercase and accents is None),
        has_exceptions=lowercase and accents is None,
        min_characters=min_characters,
        ngram_range=tuple(vectoriser.ngram_range),
        stop_words=list_stop_words(vectoriser.stop_words),
    )


def warn_of_unspaced(words: TextBytes) -> None:
    """Warn if words look like whole clauses of Chinese or Japanese: hardly any of them will ever be seen again.

    Parameters
    ----------
    words : TextBytes
        The distinct words of the training texts.
    """
    # The first byte of a character from U+3000 to U+9FFF: kana and Chinese characters, and no byte within another.
    n_characters = np.count_nonzero((words.buffer >= 0xE3) & (words.buffer <= 0xE9))
    if len(words) >= ENOUGH_WORDS and n_characters > UNSPACED_CHARACTERS * len(words):
        warnings.warn(
            f"the {len(words)} words of these texts hold {n_characters / len(words):.0f} Chinese or Japanese "
            "characters on average, so they seem to be clauses without spaces; use analyzer='char' with "
            "ngram_range=(1, 2), or put spaces between words first",
            UserWarning,
            stacklevel=4,
        )


def list_stop_words(stop_words: Any) -> Sequence[str]:
    """Return the words to leave out, sorted.

    Parameters
    ----------
    stop_words : None, "english" or collection of str
        As the user gave them.

    Returns
    -------
    sequence of str
        Each word once.
    """
    if stop_words is None:
        return ()
    if isinstance(stop_words, str):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return sorted(ENGLISH_STOP_WORDS)
    return sorted(set(stop_words))


def prepared(text: str, lowercase: bool, accents: str | None) -> str:
    """Lower-case a text and take accents off, as scikit-learn does.

    Parameters
    ----------
    text : str
        The text.
    lowercase : bool
        Lower-case it.
    accents : None, "ascii" or "unicode"
        How to take accents off.

    Returns
    -------
    str
        The text whose tokens are looked for.
    """
    text = text.lower() if lowercase else text
    if accents is None:
        return text
    from sklearn.feature_extraction.text import strip_accents_ascii, strip_accents_unicode

    stripped: str = strip_accents_ascii(text) if accents == "ascii" else strip_accents_unicode(text)
    return stripped


def _analyzer(vectoriser: Any) -> Callable[[str], list[str]]:
    from sklearn.feature_extraction.text import CountVectorizer

    if callable(vectoriser.analyzer):
        custom: Callable[[str], list[str]] = vectoriser.analyzer
        return custom
    names = ("analyzer", "ngram_range", "lowercase", "strip_accents", "token_pattern", "stop_words")
    made: Callable[[str], list[str]] = CountVectorizer(
        **{name: getattr(vectoriser, name) for name in names}
    ).build_analyzer()
    return made


def check_texts(texts: Any) -> None:
    """Raise a clear error unless there is something to iterate over that is not itself a text.

    Parameters
    ----------
    texts : object
        What the user gave.
    """
    if isinstance(texts, str | bytes):
        raise ValueError(
            "Iterable over raw text documents expected, string object received. Give a list, even of a single text"
        )
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts must be a list or another iterable of str; got {type(texts).__name__}")


def check_reading(vectoriser: Any) -> None:
    """Raise a clear error for parameters that make no sense, alone or together.

    Parameters
    ----------
    vectoriser : TextVectorizer
        Whose parameters to check.
    """
    analyzer, ngram_range = vectoriser.analyzer, vectoriser.ngram_range
    if not callable(analyzer):
        check_choice("analyzer", analyzer, ("word", "char", "char_wb"))
    if not (isinstance(ngram_range, Sequence) and len(ngram_range) == 2):
        raise ValueError(f"ngram_range={ngram_range!r}: it must be a pair of whole numbers, such as (1, 2)")
    longest = LONGEST_WORDS if analyzer == "word" else LONGEST_CHARACTERS
    check_number("ngram_range[0]", ngram_range[0], 1, longest, whole=True)
    check_number("ngram_range[1]", ngram_range[1], ngram_range[0], longest, whole=True)
    check_choice("strip_accents", vectoriser.strip_accents, (None, "ascii", "unicode"))
    if not isinstance(vectoriser.token_pattern, str):
        raise ValueError(f"token_pattern={vectoriser.token_pattern!r}: it must be a regular expression")
    check_number("hashing", vectoriser.hashing, 1, MAX_IDS, whole=True, or_none=True)
    for name in SWITCHES:
        check_choice(name, getattr(vectoriser, name), (True, False))
    _check_stop_words(vectoriser.stop_words)
    if analyzer != "word":
        for name, is_set in (
            ("stop_words", vectoriser.stop_words is not None),
            ("token_pattern", vectoriser.token_pattern not in UNSET_PATTERNS),
        ):
            if is_set:
                raise ValueError(f"{name} needs analyzer='word', not analyzer={analyzer!r}")
    if callable(analyzer):
        for name, plain in (("ngram_range", (1, 1)), ("strip_accents", None)):
            if getattr(vectoriser, name) != plain:
                raise ValueError(f"{name} is not used with an analyzer of your own: leave it at {plain!r}")


def _check_stop_words(stop_words: Any) -> None:
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise ValueError(f"stop_words={stop_words!r}: the one built-in list is 'english'; otherwise give the words")
        return
    for word in () if stop_words is None else stop_words:
        if not isinstance(word, str):
            raise ValueError(f"stop_words holds {word!r}, which is not a str")
