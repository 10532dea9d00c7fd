"""What is in a model: sizes, degrees, strong edges and leaky features, as sections 6.4.3 to 6.4.5 of JMLR 2009 do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.model import Model
from abound.serve.features import name_lists
from abound.store import Section, Stored, open_arrays
from abound.validation import DENSE_LIMIT

STRONG = 0.9
"""An edge of more weight than this is strong."""

LEAKY = 0.25
"""A feature whose weights add up to less than this leaks: it tells little about the class."""

DEGREE_BINS = (0, 1, 2, 5, 10, 25, 100)


def inspect_model(
    path: str | Path, *, examples: int = 10, names: Sequence[str] | None = None, trust: bool = False
) -> dict[str, Any]:
    """Describe a model file.

    Parameters
    ----------
    path : path
        The file.
    examples : int
        How many classes, edges and features to list.
    names : sequence of str, optional
        Names of the features of a model of vectors.
    trust : bool
        See `Model.load`.

    Returns
    -------
    dict
        Names and plain values; see ``docs/cli.md``.
    """
    model = Model.load(path, trust=trust)
    learner = model.estimator
    # Model.load has verified the content already.
    stored = open_arrays(path, verify=False)
    _check_width(learner.n_features_in_)
    index = learner.index_
    state = stored.section("state/")
    seen = state.require("seen", np.int64, (index.n_features,)) if "seen" in state else None
    # Learners that do not count leave zeros.
    seen = seen if seen is not None and seen.any() else None
    return {
        "model": str(path),
        "learner": learner.learner,
        "parameters": learner.get_params(deep=False),
        "takes": "vectors" if model.vectoriser is None else "texts",
        "can_learn": model.is_online,
        "classes": index.n_classes,
        "features": learner.n_features_in_,
        "edges": learner.n_edges_,
        "voting_edges": index.n_edges,
        "taxonomy_nodes": None if model.taxonomy is None else len(model.taxonomy),
        "out_degrees": _out_degrees(index.degrees),
        "in_degrees": _in_degrees(model, examples),
        "strong_edges": _strong_edges(model, seen, examples, names),
        "leaky_features": _leaky_features(model, state, seen, examples, names),
        "history": getattr(learner, "history_", []),
        "file": _sizes(stored),
    }


def _check_width(n_features: int) -> None:
    """Refuse what would take memory by the number of features alone, which nothing else in a file has to bear out."""
    if 16 * n_features > DENSE_LIMIT:
        raise ValueError(
            f"the model says that it has {n_features} features; a list of them all would take "
            f"{16 * n_features / 2**30:.0f} GiB (the limit is {DENSE_LIMIT / 2**30:.0f} GiB)"
        )


def _out_degrees(degrees: npt.NDArray[np.int64]) -> dict[str, Any]:
    used = degrees[degrees > 0]
    bins = np.bincount(np.searchsorted(DEGREE_BINS, degrees), minlength=len(DEGREE_BINS) + 1).tolist()
    lows = [low + 1 for low in DEGREE_BINS[:-1]]
    shown = [f"{low}-{high}" if low < high else str(high) for low, high in zip(lows, DEGREE_BINS[1:], strict=True)]
    return {
        "mean": float(used.mean()) if len(used) else 0.0,
        "max": int(degrees.max(initial=0)),
        "features": dict(zip(["0", *shown, f">{DEGREE_BINS[-1]}"], bins, strict=True)),
    }


def _in_degrees(model: Model, examples: int) -> dict[str, Any]:
    learner = model.estimator
    degrees, rows = learner.index_.indegrees, learner.class_counts_
    top = np.argsort(-degrees, kind="stable")[:examples]
    return {
        "mean": float(degrees.mean()) if len(degrees) else 0.0,
        "mean_over_rows": float((degrees * rows).sum() / max(1, rows.sum())),
        "max": int(degrees.max(initial=0)),
        "classes_without_edges": int(np.count_nonzero(degrees == 0)),
        "top": [{**_named(model, c), "in_degree": int(degrees[c]), "rows": int(rows[c])} for c in top.tolist()],
    }


def _strong_edges(
    model: Model, seen: npt.NDArray[Any] | None, examples: int, names: Sequence[str] | None
) -> dict[str, Any]:
    index = model.estimator.index_
    strong = np.flatnonzero(index.weights > STRONG)
    features = np.searchsorted(index.indptr, strong, side="right") - 1
    # The most frequent features first, where the learner has counted them.
    keys = [-index.weights[strong]] if seen is None else [-index.weights[strong], -seen[features]]
    best = np.lexsort(keys)[:examples]
    shown = name_lists(model, features[best], names)
    listed = [
        {"feature": name, **_named(model, int(index.classes[edge])), "weight": float(index.weights[edge])}
        for name, edge in zip(shown, strong[best].tolist(), strict=True)
    ]
    return {"above": STRONG, "count": len(strong), "examples": listed}


def _leaky_features(
    model: Model, state: Section, seen: npt.NDArray[Any] | None, examples: int, names: Sequence[str] | None
) -> dict[str, Any]:
    index = model.estimator.index_
    sums = index.row_sums()
    rate_features = getattr(model.estimator, "rate_features", None)
    if seen is not None and rate_features:
        # A rare feature votes with less than its weights, which is no leak.
        sums = sums / np.clip(seen / rate_features, 1 / rate_features, 1)
    has_learned = index.degrees > 0
    if hasattr(model.estimator, "leak") and "totals" in state:
        # A feature that was counted and has no edge left has leaked everything.
        has_learned |= state.require("totals", np.float64, (index.n_features,)) > 0
    leaky = np.flatnonzero((sums < LEAKY) & has_learned)
    keys = [sums[leaky]] if seen is None else [sums[leaky], -seen[leaky]]
    best = leaky[np.lexsort(keys)[:examples]]
    listed = [
        {"feature": name, "sum": float(sums[f]), "classes": int(index.degrees[f])}
        | ({} if seen is None else {"rows": int(seen[f])})
        for name, f in zip(name_lists(model, best, names), best.tolist(), strict=True)
    ]
    return {"below": LEAKY, "count": len(leaky), "examples": listed}


def _named(model: Model, c: int) -> dict[str, Any]:
    label = model.estimator.classes_[c]
    titles: Mapping[Any, str] = model.titles or {}
    return {"label": label, "title": titles.get(label, "")}


def _sizes(stored: Stored) -> dict[str, Any]:
    parts: dict[str, int] = {}
    for name, array in stored.items():
        part = name.partition("/")[0]
        parts[part] = parts.get(part, 0) + array.nbytes
    size = Path(stored.path).stat().st_size
    return {"bytes": size, "parts": {"header": size - sum(parts.values()), **parts}}
