"""Names of features, for people: words, lines of a file of names, or numbers as the vector file counted them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.model import Model
from abound.read.compression import Source
from abound.serve.inputs import counts_from_zero


def read_names(path: str | os.PathLike[str]) -> list[str]:
    """Read names of features, one a line.

    Parameters
    ----------
    path : path
        The file, such as the ``features.txt`` that ``abound data austen`` writes.

    Returns
    -------
    list of str
        In the order of the features.
    """
    with Source(path) as source:
        return [line.rstrip("\r\n") for line in source.lines()]


def name_features(model: Model, features: npt.ArrayLike, names: Sequence[str] | None = None) -> list[str]:
    """Name features of a model's rows.

    Parameters
    ----------
    model : Model
        The model.
    features : integer array
        Column numbers, from 0; what is no column is the bias.
    names : sequence of str, optional
        For a model of vectors, the name of each column.

    Returns
    -------
    list of str
        Without names, numbers as the vector file counted them; ``#`` and a number for words that were hashed.
    """
    numbers = np.asarray(features, dtype=np.int64)
    is_column = (numbers >= 0) & (numbers < model.estimator.n_features_in_)
    if not is_column.all():
        shown = iter(name_features(model, numbers[is_column], names))
        return [next(shown) if known else "bias" for known in is_column.tolist()]
    if model.vectoriser is not None:
        if model.vectoriser.hashing is not None:
            return [f"#{number}" for number in numbers.tolist()]
        return list(model.vectoriser.feature_names(numbers.tolist()))
    if names is not None:
        return [names[number] if number < len(names) else str(number) for number in numbers.tolist()]
    first = 0 if counts_from_zero(model) else 1
    return [str(number + first) for number in numbers.tolist()]


def name_lists(model: Model, lists: npt.ArrayLike, names: Sequence[str] | None = None) -> list[str]:
    """Name the features that own lists of an index; where a feature became two by its sign, say which.

    Parameters
    ----------
    model : Model
        The model.
    lists : integer array
        Numbers of lists of ``model.estimator.index_``.
    names : sequence of str, optional
        See `name_features`.

    Returns
    -------
    list of str
        Their names.
    """
    learner: Any = model.estimator
    numbers = np.asarray(lists, dtype=np.int64).tolist()
    behind = [learner._feature_behind(number) for number in numbers]
    is_split = learner.index_.n_features != learner.n_features_in_
    shown = name_features(model, behind, names)
    return [f"{name} < 0" if is_split and number % 2 else name for name, number in zip(shown, numbers, strict=True)]
