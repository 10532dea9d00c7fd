"""A smaller model: the same lists without their light edges."""

from __future__ import annotations

from dataclasses import replace

from abound.learn.model import Model


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
    limits = {"max_degree": max_degree, "min_weight": min_weight, "max_edges": max_edges}
    return replace(model, estimator=model.estimator._pruned(**limits))
