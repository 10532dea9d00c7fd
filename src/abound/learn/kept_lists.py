"""The lists of a prototype learner as they stand, for a checkpoint.

A model file keeps their weights alone. Learning on from there is as good, but what is dense is added up after what is
sparse: only with the same lists sparse do sums have the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn._prototype_lists import HEAD, SPARSE, PrototypeLists, id_type
from abound.store import Section

FIELDS = ("start", "degree", "capacity", "row")


def lists_to_arrays(lists: PrototypeLists) -> dict[str, npt.NDArray[Any]]:
    """Take the lists apart.

    Parameters
    ----------
    lists : PrototypeLists
        The lists.

    Returns
    -------
    dict
        Named arrays.
    """
    n_places, n_rows = lists.used.tolist()
    classes = lists.classes[:n_places]
    return {
        **{name: lists.heads[name].copy() for name in FIELDS},
        "classes": classes.view(np.int16) if classes.dtype == np.uint16 else classes,
        "weights": lists.weights[:n_places],
        "dense": lists.dense[:n_rows],
        "used": lists.used,
        "stock": lists.stock,
    }


def lists_from_arrays(arrays: Section, n_features: int, width: int) -> PrototypeLists:
    """Put the lists together, checked so that kernels may follow their pointers.

    Parameters
    ----------
    arrays : Section
        What `lists_to_arrays` gave.
    n_features, width : int
        Features and columns.

    Returns
    -------
    PrototypeLists
        Its arrays are copies.
    """
    heads = np.zeros(n_features, dtype=HEAD)
    for name in FIELDS:
        heads[name] = arrays.require(name, HEAD[name], (n_features,))
    kind = id_type(width)
    stored = arrays.require("classes", np.int16 if kind == np.uint16 else kind)
    classes = np.array(stored.view(kind) if kind == np.uint16 else stored)
    weights = np.array(arrays.require("weights", np.float32, (len(classes),)))
    dense = np.array(arrays.require("dense", np.float32, (None, width)))
    used = np.array(arrays.require("used", np.int64, (2,)))
    stock = np.array(arrays.require("stock", np.int64, (None, 4)))
    sparse = heads[heads["row"] == SPARSE]
    if used.tolist() != [len(classes), len(dense)] or heads["row"].max(initial=SPARSE) >= len(dense):
        raise arrays.fault("used", "it does not fit the lists")
    ends = sparse["start"] + sparse["capacity"]
    if sparse["start"].min(initial=0) < 0 or ends.max(initial=0) > len(classes):
        raise arrays.fault("start", "a list stands outside of the arena")
    if (sparse["degree"] < 0).any() or (sparse["degree"] > sparse["capacity"]).any():
        raise arrays.fault("degree", "a list is longer than its place")
    if stock.min(initial=0) < 0 or (stock.max(axis=0, initial=0) > np.repeat(used, 2)).any():
        raise arrays.fault("stock", "it does not fit the lists")
    return PrototypeLists(heads, classes, weights, dense, used, stock)
