"""Accuracy against complexity ratio, for learners that can be told how much to do for a row.

The ratio is the number of classifiers that a row asks over the number of classes: 1 is what one classifier a class
costs. A learner whose ``predict_topk`` takes ``budget`` is told how many it may ask. A learner with ``beam`` and trees
is given wider and wider beams; how many classifiers that is is told from the shape of its trees.
"""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from abound.compare.prepared import Prepared
from abound.measure import ranking_measures
from abound.measure.encoding import encode_ranking

RATIOS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
BEAMS = (1, 2, 4, 8, 16, 32)
MOST_ROWS = 1000
"""Rows that are ranked each time, spread over all of them."""


class Way(NamedTuple):
    """One way to rank: at which ratio, with which budget or beam, and how."""

    ratio: float
    budget: int
    rank: Callable[..., Any]


def anytime_points(model: Any, prepared: Prepared) -> list[dict[str, Any]]:
    """Measure a learner at several ratios.

    Parameters
    ----------
    model : object
        A fitted learner.
    prepared : Prepared
        The rows to measure on.

    Returns
    -------
    list of dict
        ``ratio``, ``budget``, ``R1`` and ``seconds``; empty if the learner cannot be told how much to do.
    """
    some = np.arange(0, prepared.held_X.shape[0], max(1, prepared.held_X.shape[0] // MOST_ROWS))[:MOST_ROWS]
    X, truth = prepared.held_X[some], prepared.truth.take(some)
    points = []
    for way in _ways(model, prepared.facts.classes):
        begin = time.perf_counter()
        labels = way.rank(X, 1).labels
        seconds = time.perf_counter() - begin
        recall = ranking_measures(encode_ranking(labels, truth.classes), truth, ks=(1,))["R1"]
        points.append({"ratio": way.ratio, "budget": way.budget, "R1": recall, "seconds": seconds})
    return points


def _ways(model: Any, n_classes: int) -> Iterator[Way]:
    if "budget" in inspect.signature(model.predict_topk).parameters:
        for budget in sorted({max(1, round(ratio * n_classes)) for ratio in RATIOS}):
            yield Way(budget / n_classes, budget, partial(model.predict_topk, budget=budget))
    elif hasattr(model, "beam") and hasattr(model, "trees_"):
        for beam in BEAMS:
            asked = sum(children_asked(tree.slot_indptr, tree.slots, beam) for tree in model.trees_)
            yield Way(asked / n_classes, beam, copy.copy(model).set_params(beam=beam).predict_topk)


def children_asked(slot_indptr: Any, slots: Any, beam: int) -> float:
    """Return how many children a beam looks at on its way down a tree.

    Parameters
    ----------
    slot_indptr, slots : arrays
        The children of each node, as in `abound.rank.tree_weights.TreeWeights`; parents come before their children.
    beam : int
        Nodes of a level that are followed, of a width that is the mean of their level.

    Returns
    -------
    float
        The sum over the levels.

    Examples
    --------
    >>> empty = np.iinfo(np.int32).min
    >>> children_asked(np.array([0, 2, 5, 8]), np.array([1, 2, ~0, ~1, ~2, ~3, ~4, empty]), beam=1)
    4.5
    """
    n_nodes = len(slot_indptr) - 1
    is_child = slots > np.iinfo(np.int32).min
    owner = np.repeat(np.arange(n_nodes), np.diff(slot_indptr))
    widths = np.bincount(owner[is_child], minlength=n_nodes)
    depth = np.zeros(n_nodes, dtype=np.int64)
    for place in np.flatnonzero(slots >= 0).tolist():
        depth[slots[place]] = depth[owner[place]] + 1
    levels = np.bincount(depth)
    means = np.bincount(depth, weights=widths) / np.maximum(levels, 1)
    return float(np.sum(np.minimum(levels, beam) * means))
