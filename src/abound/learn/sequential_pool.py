"""The pool of SaDyC: which classes its classifiers tell apart.

*Uniform*, as the paper has it: the share of the classes that a classifier knows is uniform in [0.1, 1], the share of
its positive side Gaussian around ½, and the classes are drawn at random. *Neighbours*, which the paper leaves for
later: beside such classifiers there are others that know a random class and those nearest to it by the cosine of their
centroids, from a few up to half of all, split at random. Once the classes left are neighbours of each other, these are
the ones that tell them apart.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.dichotomizers import Codes
from abound.rank.topk import score_all
from abound.validation import Float32Array, IntArray, Rows, as_rows

DESIGNS = ("neighbours", "uniform")

POOL_A_CLASS, SMALLEST_POOL, LARGEST_POOL = 3, 300, 10_000
"""Default size of the pool: the paper's 300 for 105 classes, about 10,000 for 12,294."""

LOWEST_DENSITY = 0.1
BALANCE, BALANCE_SPREAD, BALANCE_LIMIT = 0.5, 0.1, 0.1
"""Share of the positive side: mean and deviation, and the smallest share of a side."""

DENSE_SHARE = 0.01
"""Part of the pool, at least one classifier, that knows every class."""

NEIGHBOURS_SHARE = 0.5
"""Part of the pool that splits neighbours, if there are any."""

SMALLEST_GROUP = 8
"""Classes of the smallest group of neighbours."""

LARGEST_GROUP = 0.5
"""Part of all classes that the largest group has."""

CENTRES_A_BLOCK = 64
"""Groups of neighbours that are looked up at once."""


def pool_size(n_classes: int) -> int:
    """Return how many classifiers a pool has by default.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    int
        Three a class, within limits.
    """
    return min(LARGEST_POOL, max(SMALLEST_POOL, POOL_A_CLASS * n_classes))


def draw_pool(
    rows: Rows, labels: Labels, weights: Float32Array, n_classifiers: int, design: str, generator: np.random.Generator
) -> Codes:
    """Draw the code matrix of a pool.

    Parameters
    ----------
    rows : Rows
        Training rows, for the centroids.
    labels : Labels
        Their labels.
    weights : float32 array
        Their weights.
    n_classifiers : int
        Size of the pool.
    design : {"neighbours", "uniform"}
        See above.
    generator : numpy Generator
        Draws.

    Returns
    -------
    int8 array of shape (n_classes, n_classifiers)
        The first classifier knows every class, the others come in random order. A single class needs no classifiers.
    """
    n_classes = labels.n_classes
    if n_classes < 2:
        return np.zeros((n_classes, 0), dtype=np.int8)
    n_dense = max(1, round(DENSE_SHARE * n_classifiers))
    n_near = round(NEIGHBOURS_SHARE * (n_classifiers - n_dense)) if design == "neighbours" else 0
    sizes = np.maximum(2, np.rint(n_classes * generator.uniform(LOWEST_DENSITY, 1, n_classifiers - n_near)))
    sizes[:n_dense] = n_classes
    groups = [generator.permutation(n_classes)[: int(size)] for size in sizes]
    groups += draw_groups(centroids(rows, labels, weights), n_near, generator)
    order = np.concatenate(([0], 1 + generator.permutation(n_classifiers - 1)))
    codes = np.zeros((n_classes, n_classifiers), dtype=np.int8)
    for place, v in enumerate(order.tolist()):
        group = generator.permutation(groups[v])
        share = np.clip(generator.normal(BALANCE, BALANCE_SPREAD), BALANCE_LIMIT, 1 - BALANCE_LIMIT)
        n_positive = int(np.clip(round(share * len(group)), 1, len(group) - 1))
        codes[group[:n_positive], place] = 1
        codes[group[n_positive:], place] = -1
    return codes


def centroids(rows: Rows, labels: Labels, weights: Float32Array) -> sp.csr_array:
    """Return the sum of the rows of each class, of length 1.

    Parameters
    ----------
    rows : Rows
        The rows.
    labels : Labels
        Their labels.
    weights : float32 array
        How much each row counts.

    Returns
    -------
    csr_array of shape (n_classes, n_features)
        A class without rows has an empty one.
    """
    matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
    shares = np.repeat(weights, np.diff(labels.indptr))
    members = sp.csr_array((shares, labels.ids, labels.indptr), shape=(rows.n_rows, labels.n_classes))
    sums = sp.csr_array(members.T @ matrix)
    norms = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
    factors = np.divide(1, norms, out=np.zeros(len(norms)), where=norms > 0)
    return sp.csr_array(sp.diags_array(factors.astype(np.float32)) @ sums)


def draw_groups(centres: sp.csr_array, n_groups: int, generator: np.random.Generator) -> list[IntArray]:
    """Draw groups of neighbours: a random class and those nearest to it.

    Parameters
    ----------
    centres : csr_array of shape (n_classes, n_features)
        Centroids of length 1.
    n_groups : int
        How many.
    generator : numpy Generator
        Draws.

    Returns
    -------
    list of int64 arrays
        Sizes are uniform by their logarithm.
    """
    n_classes = centres.shape[0]
    largest = max(2.0, LARGEST_GROUP * n_classes)
    smallest = min(float(SMALLEST_GROUP), largest)
    sizes = np.exp(generator.uniform(np.log(smallest), np.log(largest), n_groups)).astype(np.int64)
    seeds = generator.integers(n_classes, size=n_groups)
    index = ClassIndex.from_matrix(centres.T)
    groups: list[IntArray] = []
    for begin in range(0, n_groups, CENTRES_A_BLOCK):
        block = slice(begin, begin + CENTRES_A_BLOCK)
        nearness = score_all(index, as_rows(centres[seeds[block]]))
        nearness[np.arange(len(nearness)), seeds[block]] = np.inf
        order = np.argsort(-nearness, axis=1, kind="stable")
        groups += [line[:size] for line, size in zip(order, np.maximum(2, sizes[block]).tolist(), strict=True)]
    return groups
