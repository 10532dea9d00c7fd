"""Slow, obvious twins of the vectoriser's kernels, on Python strings and dictionaries."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np


def words_of(text, min_characters=1, lowercase=True):
    """Runs of word characters, at least so long."""
    text = text.lower() if lowercase else text
    return [word for word in re.findall(r"\w+", text) if len(word) >= min_characters]


def ngrams_of(tokens, min_n, max_n):
    """N-grams as tuples, position by position, shorter ones first."""
    return [
        tuple(tokens[i : i + n]) for i in range(len(tokens)) for n in range(min_n, max_n + 1) if i + n <= len(tokens)
    ]


def key_of(token):
    """The kernels' 64-bit key of a token that fits into eight bytes and holds no zero byte."""
    encoded = token.encode("utf-8", "surrogatepass")
    assert 0 < len(encoded) <= 8 and 0 not in encoded
    return int.from_bytes(encoded.ljust(8, b"\0"), "big")


def is_short(token):
    """Whether a token is its key."""
    return 0 < len(token.encode()) <= 8 and "\0" not in token


def home_of(token, n_slots):
    """The slot of a table where the search for a short token begins."""
    key = key_of(token)
    return ((key ^ key >> 32) * 0x9E3779B97F4A7C15 % 2**64 >> 32) % n_slots


def longest_run(tokens, n_slots):
    """Put tokens into a table slot by slot; return how many are side by side at most."""
    taken = [False] * n_slots
    for token in tokens:
        slot = home_of(token, n_slots)
        while taken[slot]:
            slot = (slot + 1) % n_slots
        taken[slot] = True
    runs = "".join("x" if each else " " for each in taken * 2).split()
    return max(map(len, runs), default=0)


def count_row(codes):
    """Counts by code, in the order of first occurrence; -1 is left out."""
    return list(Counter(code for code in codes if code != -1).items())


def weigh_row(counts, idf, is_sublinear, norm):
    """Sorted (feature, weight) pairs of a row; ``counts`` is a dictionary by feature."""
    weights = {}
    for feature, count in sorted(counts.items()):
        weight = 1 + np.log(count) if is_sublinear else count
        weights[feature] = weight * (idf[feature] if len(idf) else 1)
    length = {None: 1, "l1": sum(weights.values()), "l2": np.sqrt(sum(w * w for w in weights.values()))}[norm]
    return [(feature, weight / length) for feature, weight in weights.items()]


class GrowingVocabulary:
    """What `partial_fit` promises, with dictionaries: idf frozen at `fit`, later words counted since."""

    def __init__(self, min_df=1):
        self.min_df = min_df
        self.features = {}
        self.fitted = {}
        self.n_documents = 0
        self.since = Counter()

    def fit(self, documents):
        self.n_documents = len(documents)
        df = Counter(name for tokens in documents for name in set(tokens))
        for name in sorted(name for name in df if df[name] >= self.min_df):
            self.features[name] = len(self.features)
            self.fitted[name] = 1 + np.log((1 + self.n_documents) / (1 + df[name]))

    def grow(self, documents):
        self.n_documents += len(documents)
        here = Counter(name for tokens in documents for name in set(tokens))
        self.since.update(here)
        for name in sorted(here):
            if name not in self.features and self.since[name] >= self.min_df:
                self.features[name] = len(self.features)

    def idf(self):
        return [
            self.fitted.get(name, 1 + np.log((1 + self.n_documents) / (1 + self.since[name]))) for name in self.features
        ]


def hash_bucket(keys, n_buckets):
    """The bucket of an n-gram of tokens with these keys, in Python's integers."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    state = 0
    for key in keys:
        state = (state ^ key) * golden & mask
        state ^= state >> 32
    return ((state * golden & mask) >> 32) * n_buckets >> 32
