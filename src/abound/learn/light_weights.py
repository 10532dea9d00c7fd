"""Which weights are too light to keep: those far below what a typical class weighs most.

How heavy weights are differs with the data, the loss and C, by more than ten times. As a part of the largest weight of
a typical class, one threshold serves thousands of classes, all data and every C. Logistic regression spreads what it
knows over more weights than a hinge does, and needs lighter ones. Where classes are few or rows long, many light
weights decide together: unless the user sets ``min_weight``, less is left out there, see `lightest_without_harm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from abound.index.class_index import ClassIndex
from abound.learn.linear_disk import edges_on_disk
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import Edges
from abound.learn.row_views import take_rows
from abound.rank.topk import score_all
from abound.validation import Float32Array, IntArray, Rows, frozen

SAMPLED_CLASSES = 64
"""Classes among which the typical one is looked for."""

TRIED_CLASSES, TRIED_ROWS = 1024, 4000
"""Classes and rows on which it is tried what pruning changes, at most."""

TRIED = (1.0, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12)
"""Parts of the heaviest threshold that are tried, one after the other."""

LEAST_TRIED = 0.1
"""The part of it that is taken if none of them does no harm."""

COUNTS = 3
"""How often a change counts: rows that were learned are surer of their class than new ones. Chosen on held-out rows."""

HARM = 1e-3
"""The share of rows whose first class may change."""


class Lightest(NamedTuple):
    """The lightest weights to keep, as parts of a typical class's largest; chosen on held-out rows."""

    hinges: float
    logistic: float

    def of(self, min_weight: float | None, loss: str) -> float:
        """Return the user's choice, or the heaviest threshold of the loss.

        Parameters
        ----------
        min_weight : float or None
            The parameter.
        loss : str
            The loss.

        Returns
        -------
        float
            A part of the largest weight of a typical class.
        """
        if min_weight is not None:
            return min_weight
        return self.logistic if loss == "logistic" else self.hinges


def typical_weight(blocks: Sequence[Edges]) -> float:
    """Return the median over classes of a class's largest weight, by absolute value.

    Parameters
    ----------
    blocks : sequence of Edges
        All edges of some classes.

    Returns
    -------
    float
        0 if there is no edge.
    """
    classes = np.concatenate([edges.classes for edges in blocks])
    weights = np.abs(np.concatenate([edges.weights for edges in blocks]))
    if not len(weights):
        return 0.0
    names, places = np.unique(classes, return_inverse=True)
    largest = np.zeros(len(names), dtype=np.float32)
    np.maximum.at(largest, places, weights)
    return float(np.median(largest))


def typical_column(differences: Float32Array) -> float:
    """Return the same of weights in full, a column a class.

    Parameters
    ----------
    differences : float32 array of shape (n_features, n_classes)
        Weights of some classes, less what all share.

    Returns
    -------
    float
        0 if there is nothing.
    """
    largest = np.abs(differences).max(axis=0, initial=0)
    largest = largest[largest > 0]
    return float(np.median(largest)) if len(largest) else 0.0


def without_light(edges: Edges, least: float, on_disk: bool = False) -> Edges:
    """Return the edges of at least this weight, by absolute value.

    Parameters
    ----------
    edges : Edges
        Of a block of classes.
    least : float
        Smallest weight that stays.
    on_disk : bool
        Whether they go to a temporary file.

    Returns
    -------
    Edges
        In the same order.
    """
    stays = np.abs(edges.weights) >= least
    of_edge = np.repeat(np.arange(len(edges.counts)), edges.counts)
    counts = np.bincount(of_edge[stays], minlength=len(edges.counts)).astype(np.int8)
    lighter = Edges(counts, edges.classes[stays], edges.weights[stays])
    return edges_on_disk(lighter) if on_disk else lighter


def lightest_without_harm(index: ClassIndex, rows: Rows, heaviest: float) -> float:
    """Return the largest threshold that changes the first class of hardly any row.

    Parameters
    ----------
    index : ClassIndex
        Some classes, with all weights from `LEAST_TRIED` times the heaviest threshold on.
    rows : Rows
        Some of the rows that they have learned from.
    heaviest : float
        The largest threshold to try.

    Returns
    -------
    float
        A part of it.
    """
    if rows.n_rows == 0 or index.n_classes < 2:
        return heaviest
    scores = score_all(index, rows)
    first = scores.argmax(axis=1)
    for part in TRIED:
        change = score_all(index.prune(min_weight=part * heaviest), rows) - scores
        if np.mean((scores + np.float32(COUNTS) * change).argmax(axis=1) != first) <= HARM:
            return part * heaviest
    return LEAST_TRIED * heaviest


def tried_rows(rows: SolverRows, some: IntArray, n_features: int) -> Rows:
    """Return up to `TRIED_ROWS` of some rows, as the user has them.

    Parameters
    ----------
    rows : SolverRows
        The solver's.
    some : int64 array
        Numbers of rows there, in any order, each once or several times.
    n_features : int
        The user's features.

    Returns
    -------
    Rows
        In the user's order, spread over all of it.
    """
    some = np.unique(some)
    by_user = some[np.argsort(rows.order[some], kind="stable")]
    chosen = by_user[:: max(1, -(-len(by_user) // TRIED_ROWS))]
    taken = take_rows(Rows(rows.indptr, rows.indices, rows.data, rows.n_features), chosen)
    is_feature = taken.indices >= rows.n_constant
    ends = np.concatenate(([0], np.cumsum(is_feature)))[taken.indptr]
    features = rows.features[taken.indices[is_feature] - rows.n_constant]
    values = taken.data[is_feature]
    return Rows(frozen(ends, np.int64), frozen(features, np.int32), frozen(values, np.float32), n_features)
