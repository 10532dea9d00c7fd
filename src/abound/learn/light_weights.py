"""Which weights are too light to keep: those far below what a typical class weighs most.

How heavy weights are differs with the data, the loss and C, by more than ten times. As a part of the largest weight of
a typical class, one threshold serves all data and every C. Logistic regression spreads what it knows over more weights
than a hinge does, and needs lighter ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from abound.learn.linear_solver import Edges
from abound.validation import Float32Array

SAMPLED_CLASSES = 64
"""Classes among which the typical one is looked for."""


class Lightest(NamedTuple):
    """The lightest weights to keep, as parts of a typical class's largest; chosen on held-out rows."""

    hinges: float
    logistic: float

    def of(self, min_weight: float | None, loss: str) -> float:
        """Return the user's choice, or that of the loss.

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


def without_light(edges: Edges, least: float) -> Edges:
    """Return the edges of at least this weight, by absolute value.

    Parameters
    ----------
    edges : Edges
        Of a block of classes.
    least : float
        Smallest weight that stays.

    Returns
    -------
    Edges
        In the same order.
    """
    stays = np.abs(edges.weights) >= least
    of_edge = np.repeat(np.arange(len(edges.counts)), edges.counts)
    counts = np.bincount(of_edge[stays], minlength=len(edges.counts)).astype(np.int8)
    return Edges(counts, edges.classes[stays], edges.weights[stays])
