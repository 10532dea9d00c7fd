"""Why a model ranks a class where it does: the words that voted for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound.learn.index_parts import BIAS
from abound.learn.model import Model
from abound.serve.features import name_features
from abound.serve.inputs import counts_from_zero


@dataclass(frozen=True)
class Reason:
    """A class, its score, and the features that voted for it.

    Parameters
    ----------
    label : label
        The class.
    title : str
        What to show for it; may be empty.
    score : float
        Its score.
    votes : list of (feature, contribution)
        Heaviest first; they add up to the score.
    """

    label: Any
    title: str
    score: float
    votes: list[tuple[str, float]]


def explain_ranking(
    model: Model, text: str, k: int = 5, *, label: Any = None, names: Sequence[str] | None = None
) -> list[Reason]:
    """Rank the classes of one text and say which words voted for each.

    Parameters
    ----------
    model : Model
        What ranks.
    text : str
        The text, or ``index:value index:value ...`` for a model of vectors.
    k : int
        How many classes.
    label : label, optional
        Explain this class only, wherever it is ranked.
    names : sequence of str, optional
        Names of the features of a model of vectors.

    Returns
    -------
    list of Reason
        Best class first.
    """
    X = vector_of(model, text) if model.vectoriser is None else model.vectoriser.transform([text])
    chosen = None if label is None else [label]
    labels, scores = model.estimator.predict_topk(X, k if label is None else 1, include=chosen)
    titles = model.titles or {}
    reasons = []
    for best, score in zip(labels[0].tolist(), scores[0].tolist(), strict=True):
        if best is not None:
            parts = model.estimator.explain(X, best)
            features = [BIAS if feature == "bias" else feature for feature, _ in parts]
            shown = _names(model, text, features, names)
            votes = list(zip(shown, [value for _, value in parts], strict=True))
            reasons.append(Reason(best, titles.get(best, ""), score, votes))
    return reasons


def vector_of(model: Model, text: str) -> Any:
    """Read one vector.

    Parameters
    ----------
    model : Model
        Tells the width, and whether features count from 0.
    text : str
        ``index:value index:value ...``.

    Returns
    -------
    csr_array
        Of one row.
    """
    width = model.estimator.n_features_in_
    first = 0 if counts_from_zero(model) else 1
    columns, values = [], []
    for entry in text.split():
        index, _, value = entry.partition(":")
        try:
            column, number = int(index) - first, float(value)
        except ValueError:
            raise ValueError(f"{entry!r}: the model takes a vector, index:value index:value ...") from None
        if not 0 <= column < width:
            raise ValueError(f"{entry!r}: the model knows the features {first} to {width - 1 + first}")
        columns.append(column)
        values.append(number)
    return sp.csr_array((np.array(values, np.float32), (np.zeros(len(columns), np.int32), columns)), shape=(1, width))


def _names(model: Model, text: str, features: list[int], names: Sequence[str] | None) -> list[str]:
    """Name features; words that were hashed are looked up in the text."""
    shown = name_features(model, features, names)
    if model.vectoriser is None or model.vectoriser.hashing is None:
        return shown
    found = {feature: text[begin:end] for begin, end, feature in model.vectoriser.spans(text, features)}
    return [found.get(feature, name) for feature, name in zip(features, shown, strict=True)]
