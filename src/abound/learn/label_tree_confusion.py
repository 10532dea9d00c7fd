"""Classes that a flat model confuses, as vectors that are close: spectral clustering for label trees.

Bengio, Weston, Grangier: Label Embedding Trees for Large Multi-Class Tasks (NIPS 2010). ``A[c, c']`` counts the
held-out rows of ``c`` that a flat one-vs-rest model puts into ``c'``; two classes have the affinity ``(A + Aᵀ)/2``. The
leading eigenvectors of ``D^-½ (A + Aᵀ)/2 D^-½``, times their eigenvalues, give every class a vector; clusters of these
cut few confusions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from abound.labels import Labels
from abound.learn.expert_training import Data, confusions
from abound.learn.label_tree_centroids import Vectors
from abound.learn.linear import LinearClassifier
from abound.learn.row_views import take_rows
from abound.validation import Float32Array, Float64Array, Rows, frozen

DIMENSIONS = 64
"""Eigenvectors, if there are more classes than that."""

FEW = 500
"""Up to so many classes all eigenvectors are computed, which is exact and quick."""


def confusion_vectors(
    rows: Rows,
    labels: Labels,
    weights: Float32Array,
    cost: float,
    bias: float,
    fraction: float,
    generator: np.random.Generator,
    n_jobs: int | None,
) -> Vectors:
    """Train a flat model on a part of the rows, and see which classes it confuses on the others.

    Parameters
    ----------
    rows, labels, weights : Rows, Labels, float32 array
        What to learn from.
    cost, bias : float
        C and bias of the flat model.
    fraction : float
        Part of the rows that is held out.
    generator : numpy Generator
        Draws them.
    n_jobs : int or None
        Threads of the flat model.

    Returns
    -------
    Vectors
        One a class. A class that was never confused is alone.
    """
    data = Data(rows, labels, weights).take(np.flatnonzero(weights > 0))
    order = generator.permutation(data.rows.n_rows)
    n_held = min(max(1, round(fraction * len(order))), len(order) - 1)
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    counts = sp.csr_array((labels.n_classes, labels.n_classes))
    part = data.take(kept)
    if len(part.labels.ids) and part.rows.indptr[-1] > part.rows.indptr[0]:
        flat = LinearClassifier(C=cost, bias=bias, tol=0.01, cut=None, random_state=0, n_jobs=n_jobs)
        X = sp.csr_array((part.rows.data, part.rows.indices, part.rows.indptr), shape=(len(kept), rows.n_features))
        flat._is_part = True
        flat.fit(X, part.labels, part.weights)
        first = flat._rank(take_rows(data.rows, held), 1, None).ids[:, 0]
        counts = confusions(first, data.labels.take(held))
    start = generator.standard_normal(labels.n_classes)
    return spectral_vectors((counts + counts.T) / 2, start)


def spectral_vectors(affinity: Any, start: Float64Array) -> Vectors:
    """Give the nodes of a weighted graph vectors that are alike within its clusters.

    Parameters
    ----------
    affinity : sparse matrix of shape (n, n)
        Symmetric, at least 0.
    start : float64 array of shape (n,)
        Where the search for eigenvectors begins.

    Returns
    -------
    Vectors
        Of length 1; a node without edges has a vector of its own direction.
    """
    n = affinity.shape[0]
    degrees = np.asarray(affinity.sum(axis=1), dtype=np.float64).ravel()
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros(n), where=degrees > 0)
    normal = (sp.diags_array(scale) @ affinity @ sp.diags_array(scale)).tocsr()
    n_wanted = min(DIMENSIONS, n)
    if n <= FEW:
        values, vectors = scipy.linalg.eigh(normal.toarray())
        order = np.argsort(-values, kind="stable")[:n_wanted]
        values, vectors = values[order], vectors[:, order]
    else:
        values, vectors = eigsh(normal, k=n_wanted, which="LA", v0=start)
    # There may be fewer clusters than eigenvectors: those that tell little of any have small eigenvalues.
    vectors = vectors * np.maximum(values, 0)
    vectors[degrees == 0] = 0
    norms = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    # A class that nothing is confused with gets a dimension that it has alone.
    lonely = np.flatnonzero(norms.ravel() == 0)
    rest = sp.coo_array((np.ones(len(lonely)), (lonely, np.arange(len(lonely)))), shape=(n, len(lonely)))
    matrix = sp.hstack([sp.csr_array(unit), rest], format="csr")
    return Vectors(
        frozen(matrix.indptr, np.int64), frozen(matrix.indices, np.int32), frozen(matrix.data, np.float32),
        int(matrix.shape[1]),
    )  # fmt: skip
