"""Rank: the best k classes of each row, row block by row block, never an array of rows × classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import spans, workers
from abound.index.class_index import ClassIndex
from abound.progress import track
from abound.rank import _topk_kernels as kernels
from abound.rank.common_features import common_features
from abound.validation import Float32Array, IdArray, Rows, frozen

EDGES_A_CALL = 20_000_000
"""Edges that one kernel call touches: a fraction of a second, so that Ctrl-C is heard."""


class Ranking(NamedTuple):
    """The one result of ranking: two arrays of shape (n, k), best first; -1 and -inf where fewer classes rank."""

    ids: IdArray
    scores: Float32Array


def rank_topk(
    index: ClassIndex,
    rows: Rows,
    k: int,
    *,
    every_class: bool = False,
    allowed: npt.NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> Ranking:
    """Rank the classes of each row by ``Σ_f x_f · w[f, c] + bias[c]``.

    Parameters
    ----------
    index : ClassIndex
        The model.
    rows : Rows
        Rows over the index's features.
    k : int
        Number of classes wanted.
    every_class : bool
        Rank classes of any score, those that no feature votes for with their bias or 0 (learners with weights of any
        sign); otherwise only classes with a positive score are ranked (index learners).
    allowed : bool array of shape (n_classes,), optional
        Which classes may be ranked.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.

    Returns
    -------
    Ranking
        Ids and scores, best first, ties by the lower id.
    """
    k = min(k, index.n_classes)
    ids = np.full((rows.n_rows, k), -1, dtype=np.int32)
    scores = np.full((rows.n_rows, k), -np.inf, dtype=np.float32)
    if k == 0 or rows.n_rows == 0:
        return Ranking(ids, scores)
    offset, bias = _or_empty(index.offset), _or_empty(index.bias)
    mask = frozen(np.empty(0) if allowed is None else allowed, np.bool_)
    full = common_features(index, rows)
    spare: list[kernels.Votes] = []

    def rank_span(span: tuple[int, int]) -> int:
        votes = spare.pop() if spare else kernels.no_votes(index.n_classes)
        kernels.rank_rows(
            *(rows.indptr, rows.indices, rows.data),
            *(index.indptr, index.classes, index.weights, offset),
            *(*full, bias, index.by_bias, mask, every_class, *span, votes, ids, scores),
        )
        spare.append(votes)
        return span[1] - span[0]

    with workers(n_jobs) as pool, track("rank", rows.n_rows) as progress:
        for done in pool.map(rank_span, _parts(index, rows, pool.n_workers)):
            progress.advance(done)
    return Ranking(ids, scores)


def _or_empty(array: Float32Array | None) -> Float32Array:
    """An array as kernels take it: empty if there is none."""
    given: Float32Array = frozen(np.empty(0) if array is None else array, np.float32)
    return given


def _parts(index: ClassIndex, rows: Rows, n_workers: int) -> list[tuple[int, int]]:
    """Cut the rows so that every worker has something to do and no kernel call is long."""
    n_values = int(rows.indptr[-1] - rows.indptr[0])
    edges = n_values * (1 + index.n_edges / max(1, index.n_features))
    n_parts = max(4 * n_workers if n_workers > 1 else 1, int(edges / EDGES_A_CALL) + 1)
    return spans(rows.indptr, min(n_parts, rows.n_rows)) or [(0, rows.n_rows)]


def silent_rows(index: ClassIndex, rows: Rows) -> npt.NDArray[np.bool_]:
    """Tell which rows nothing speaks for: no feature votes, and there is no bias.

    Parameters
    ----------
    index : ClassIndex
        The model.
    rows : Rows
        Rows over the index's features.

    Returns
    -------
    bool array of shape (n,)
        True where nothing votes.
    """
    if index.bias is not None:
        return np.zeros(rows.n_rows, np.bool_)
    first = rows.indptr[0]
    votes = index.degrees[rows.indices[first : rows.indptr[-1]]] > 0
    voting = np.concatenate(([0], np.cumsum(votes)))
    silent: npt.NDArray[np.bool_] = voting[rows.indptr[1:] - first] == voting[rows.indptr[:-1] - first]
    return silent


def score_all(index: ClassIndex, rows: Rows) -> Float32Array:
    """Score every class of each row: dense, for few rows or few classes.

    Parameters
    ----------
    index : ClassIndex
        The model.
    rows : Rows
        Rows over the index's features.

    Returns
    -------
    float32 array of shape (n, n_classes)
        The scores; the caller has made sure that it fits.
    """
    scores = np.zeros((rows.n_rows, index.n_classes), dtype=np.float32)
    offset, bias = _or_empty(index.offset), _or_empty(index.bias)
    for begin, end in _parts(index, rows, 1):
        kernels.score_dense(
            *(rows.indptr, rows.indices, rows.data),
            *(index.indptr, index.classes, index.weights, offset, bias, begin, end, scores),
        )
    return scores


def spread(ranking: Ranking, n_classes: int) -> Float32Array:
    """Write a ranking as dense scores.

    Parameters
    ----------
    ranking : Ranking
        Of all classes that rank.
    n_classes : int
        Number of classes.

    Returns
    -------
    float32 array of shape (n, n_classes)
        Classes that do not rank have one less than the last that does, and than 0.
    """
    found = ranking.ids >= 0
    lowest = np.where(found, ranking.scores, 0).min(axis=1, initial=0)
    dense = np.repeat((lowest - 1)[:, None], n_classes, axis=1).astype(np.float32)
    dense[np.nonzero(found)[0], ranking.ids[found]] = ranking.scores[found]
    return dense
