"""What all adapters share: the prepared rows, the measures, and the record of one run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

K = 5
"""Classes ranked for each test row."""

MATRICES = ("X", "Y", "X_test", "Y_test")

Ranking = Callable[[], Any]
"""Ranks the test rows: ids of shape (rows, K), best first, -1 for none."""


class NotApplicable(Exception):
    """A system cannot learn from such rows."""


class Files:
    """The rows of one stage: the matrices, read when they are first used, and the paths of the other files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / name

    def __getattr__(self, name: str) -> Any:
        if name not in MATRICES:
            raise AttributeError(name)
        matrix = sp.load_npz(self.folder / f"{name}.npz")
        setattr(self, name, matrix)
        return matrix

    @property
    def is_single(self) -> bool:
        """Whether every training row has one label."""
        return bool((np.diff(self.Y.indptr) == 1).all())


def measured(ids: Any, Y: Any) -> dict[str, float]:
    """Return R1 and R5: the share of rows with a true class at the top, and among the best five.

    With several labels a row, R1 is precision at 1. Classes that no training row has are in no column of ``Y``: rows
    that have no others count as errors.
    """
    truth = sp.csr_matrix(Y)
    rows = np.repeat(np.arange(len(ids)), ids.shape[1])
    known = ids.ravel() >= 0
    hits = np.zeros(ids.size, dtype=bool)
    hits[known] = np.asarray(truth[rows[known], ids.ravel()[known]]).ravel() > 0
    hits = hits.reshape(ids.shape)
    return {"R1": float(hits[:, 0].mean()), "R5": float(hits.any(axis=1).mean())}


def top_of_scores(scores: Any) -> Any:
    """Return the ids of the best K columns of a dense block, best first."""
    k = min(K, scores.shape[1])
    some = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    return padded(np.take_along_axis(some, order, axis=1))


def padded(ids: Any) -> Any:
    """Fill up to K columns with -1."""
    full = np.full((len(ids), K), -1, dtype=np.int64)
    full[:, : ids.shape[1]] = ids
    return full


def of_lists(lists: Any) -> Any:
    """Return lists of ids, best first, as an array."""
    ids = np.full((len(lists), K), -1, dtype=np.int64)
    for row, best in enumerate(lists):
        ids[row, : len(best[:K])] = best[:K]
    return ids


def rank_linear(X: Any, weights: Any, offsets: Any = 0.0, block: int = 256) -> Any:
    """Rank rows by a linear model with one column of weights a class."""
    parts = []
    for low in range(0, X.shape[0], block):
        scores = X[low : low + block] @ weights
        scores = scores.toarray() if sp.issparse(scores) else np.asarray(scores)
        parts.append(top_of_scores(scores + offsets))
    return np.vstack(parts)


@contextmanager
def captured(path: Path) -> Iterator[Path]:
    """Send what libraries write to standard output and error into a file for a ``with`` block."""
    sys.stdout.flush()
    before = [os.dup(stream) for stream in (1, 2)]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    try:
        yield path
    finally:
        for stream, old in zip((1, 2), before, strict=True):
            os.dup2(old, stream)
            os.close(old)
