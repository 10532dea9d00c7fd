"""A smaller model: the same lists without their light edges."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

from abound.learn.model import Model
from abound.store import Section


def prune_model(
    model: Model,
    *,
    max_degree: int | None = None,
    min_weight: float | None = None,
    max_edges: int | None = None,
) -> Model:
    """Leave the light edges of a model out; what it needs to learn on goes with them.

    Parameters
    ----------
    model : Model
        Stays as it is.
    max_degree, min_weight, max_edges
        See `abound.ClassIndex.prune`.

    Returns
    -------
    Model
        Ranks, but cannot learn.
    """
    if not model.estimator._ranks_by_index():
        raise ValueError(
            f"{model.estimator.learner} ranks by several indexes, and prune cuts one: train it with members that keep "
            "fewer weights"
        )
    index = model.estimator.index_.prune(max_degree=max_degree, min_weight=min_weight, max_edges=max_edges)
    estimator = copy.copy(model.estimator)
    nothing = Section(Path(), "state/", {})
    estimator._restore(index, nothing, index.n_edges, model.estimator._fitted_values())
    return replace(model, estimator=estimator)
