"""What the rows of a class count in its own binary problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.labels import Labels
from abound.learn.linear_solver import Costs
from abound.validation import Float32Array


def check_class_weight(class_weight: Any) -> None:
    """Raise a clear error unless it is None, "balanced" or a dictionary.

    Parameters
    ----------
    class_weight : object
        What the user set.
    """
    if class_weight is not None and class_weight != "balanced" and not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r}: it must be None, 'balanced' or a dict of label to weight")


def class_costs(class_weight: Any, labels: Labels, weights: Float32Array) -> Costs:
    """Return the weight of each class's positive and negative rows.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        "balanced" gives both sides half of the total; else both count alike (see `weighted_rows` for a dictionary).
    labels : Labels
        The labels.
    weights : float32 array
        How much each row counts.

    Returns
    -------
    Costs
        Two arrays of shape (n_classes,), to be multiplied by C.
    """
    ones = np.ones(labels.n_classes, dtype=np.float32)
    if class_weight != "balanced":
        return Costs(ones, ones)
    of_entry = np.repeat(weights.astype(np.float64), np.diff(labels.indptr))
    own = np.bincount(labels.ids, weights=of_entry, minlength=labels.n_classes)
    total = float(weights.sum(dtype=np.float64))
    with np.errstate(divide="ignore"):
        positive = np.where(own > 0, total / (2 * own), 1)
        negative = np.where(own < total, total / (2 * (total - own)), 1)
    return Costs(positive.astype(np.float32), negative.astype(np.float32))


def weighted_rows(class_weight: Any, labels: Labels, weights: Float32Array) -> Float32Array:
    """Return the weights of rows, multiplied by those of their classes where a dictionary has them.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        A dictionary from label to weight; classes that are not in it have 1.
    labels : Labels
        The labels; with several labels a row has the mean of their weights.
    weights : float32 array
        How much each row counts.

    Returns
    -------
    float32 array
        The given weights if there is no dictionary.
    """
    if not isinstance(class_weight, dict):
        return weights
    places = {label: c for c, label in enumerate(labels.classes.tolist())}
    of_class = np.ones(labels.n_classes)
    for label, weight in class_weight.items():
        if label not in places:
            raise ValueError(f"class_weight names {label!r}, which is not among the labels of y")
        if not weight > 0:
            raise ValueError(f"class_weight[{label!r}]={weight!r}: it must be a number above 0")
        of_class[places[label]] = weight
    counts = np.diff(labels.indptr)
    row = np.repeat(np.arange(len(labels)), counts)
    sums = np.bincount(row, weights=of_class[labels.ids], minlength=len(labels))
    factors = np.where(counts > 0, sums / np.maximum(1, counts), 1)
    weighted: Float32Array = (weights * factors).astype(np.float32)
    return weighted
