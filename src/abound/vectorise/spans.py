"""Where in a text its features stand, so that a page can highlight them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from abound.vectorise.blocks import Block, encode
from abound.vectorise.counting import by_code
from abound.vectorise.lexicon import Coder, Space
from abound.vectorise.reading import Reading, list_stop_words, prepared
from abound.vectorise.weighting import Features


class Found(NamedTuple):
    """A run of tokens that may be a feature, at characters ``begin`` to ``end`` of the text."""

    begin: int
    end: int
    tokens: list[str]


def find_spans(
    vectoriser: Any, reading: Reading, coder: Coder, features: Features, text: str, wanted: Collection[int]
) -> list[tuple[int, int, int]]:
    """Find the places of features in a text.

    Parameters
    ----------
    vectoriser : TextVectorizer
        Its parameters say what a token is.
    reading : Reading
        The way that the vectoriser's texts go.
    coder : Coder
        Gives tokens their codes.
    features : Features
        The features of the codes.
    text : str
        The text.
    wanted : collection of int
        The features to look for.

    Returns
    -------
    list of (begin, end, feature)
        Places in characters, in order. What is found in the prepared text is traced back character by character.
    """
    prepare = partial(prepared, lowercase=vectoriser.lowercase, accents=vectoriser.strip_accents)
    whole = prepare(text)
    origins = [i for i, character in enumerate(text) for _ in prepare(character)]
    find: dict[str, Callable[[Any, str], Iterator[Found]]] = {
        "word": _word_ngrams,
        "char": _character_ngrams,
        "char_wb": _characters_in_words,
    }
    found = list(find[vectoriser.analyzer](vectoriser, whole))
    numbers = _features_of([run.tokens for run in found], reading, coder, features)
    chosen = set(wanted)
    places = (
        (origins[run.begin], origins[run.end - 1] + 1, feature)
        for run, feature in zip(found, numbers, strict=True)
        if feature in chosen
    )
    return sorted(places)


def _word_ngrams(vectoriser: Any, text: str) -> Iterator[Found]:
    pattern = re.compile(vectoriser.token_pattern)
    stop_words = set(list_stop_words(vectoriser.stop_words))
    matches = [match for match in pattern.finditer(text) if match[pattern.groups] not in stop_words]
    for size in range(vectoriser.ngram_range[0], vectoriser.ngram_range[1] + 1):
        for first in range(len(matches) - size + 1):
            run = matches[first : first + size]
            tokens = [match[pattern.groups] for match in run]
            if any(tokens):
                yield Found(run[0].start(pattern.groups), run[-1].end(pattern.groups), tokens)


def _character_ngrams(vectoriser: Any, text: str) -> Iterator[Found]:
    # scikit-learn takes a run of two or more white spaces for one space.
    kept = [run.start() for run in re.finditer(r"\s\s+|.", text, re.DOTALL)]
    ends = [*kept[1:], len(text)]
    characters = [" " if end - begin > 1 else text[begin] for begin, end in zip(kept, ends, strict=True)]
    for size in range(vectoriser.ngram_range[0], vectoriser.ngram_range[1] + 1):
        for first in range(len(kept) - size + 1):
            yield Found(kept[first], ends[first + size - 1], ["".join(characters[first : first + size])])


def _characters_in_words(vectoriser: Any, text: str) -> Iterator[Found]:
    for word in re.finditer(r"\S+", text):
        padded = f" {word[0]} "
        for size in range(vectoriser.ngram_range[0], vectoriser.ngram_range[1] + 1):
            for first in range(max(1, len(padded) - size + 1)):
                begin = word.start() + max(0, first - 1)
                end = min(word.start() + first + size - 1, word.end())
                if begin < end:
                    yield Found(begin, end, [padded[first : first + size]])
            if size >= len(padded):
                break


def _features_of(runs: list[list[str]], reading: Reading, coder: Coder, features: Features) -> list[int]:
    """Return the feature that each run of tokens is, -1 if none."""
    numbers = np.full(len(runs), -1, np.int64)
    if reading.analyze is not None:
        runs = [[" ".join(tokens)] for tokens in runs]
    sizes = np.array([len(tokens) for tokens in runs], np.int64)
    for size in np.unique(sizes).tolist():
        here = np.flatnonzero(sizes == size)
        tokens = encode(list(chain.from_iterable(runs[i] for i in here)))
        block = Block(tokens, np.arange(len(here) + 1, dtype=np.int64) * size)
        counts = coder.count(block, replace(reading, ngram_range=(size, size)), Space())
        known = np.diff(counts.ptr) > 0
        codes = counts.codes
        numbers[here[known]] = by_code(codes, features.of_words, features.of_grams) if len(features.of_words) else codes
    return numbers.tolist()
