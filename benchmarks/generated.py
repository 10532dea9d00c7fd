"""Data made by rule, for questions of speed and memory at sizes that no data set at hand has."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def documents(
    n_rows: int = 108_000, n_classes: int = 12_000, n_features: int = 350_000, seed: int = 0
) -> tuple[Any, Any]:
    """Make rows like those of the papers' challenge: about 124 non-zeros each, classes and words by Zipf's law.

    A tenth of a row's words come from the 60 words of its class, the others from all words by frequency. Weights are
    tf-idf, rows have length 1.
    """
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_classes + 1) ** 0.75
    y = rng.choice(n_classes, size=n_rows, p=share / share.sum()).astype(np.int32)
    topics = rng.integers(0, n_features, size=(n_classes, 60))
    frequency = np.cumsum(1 / np.arange(1, n_features + 1) ** 1.05)
    lengths = np.clip(rng.lognormal(np.log(130), 0.75, size=n_rows), 5, 4000).astype(np.int64)
    own = np.maximum(1, lengths // 10)
    background = np.searchsorted(frequency, rng.random((lengths - own).sum()) * frequency[-1])
    topical = topics[np.repeat(y, own), rng.integers(0, 60, size=own.sum())]
    rows = np.concatenate((np.repeat(np.arange(n_rows), lengths - own), np.repeat(np.arange(n_rows), own)))
    words = np.minimum(np.concatenate((background, topical)), n_features - 1)
    X = sp.coo_array((np.ones(len(rows), dtype=np.float32), (rows, words)), shape=(n_rows, n_features)).tocsr()
    X.sum_duplicates()
    document_frequency = np.maximum(1, np.bincount(X.indices, minlength=n_features))
    X.data = (1 + np.log(X.data)) * np.log(n_rows / document_frequency)[X.indices]
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data = (X.data / np.repeat(norms, np.diff(X.indptr))).astype(np.float32)
    return X, y
