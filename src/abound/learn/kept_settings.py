"""The settings of learners in a model file: what is kept of them, and what a file may say."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from abound.learn.base import RankingClassifier
from abound.learn.label_tree import CLUSTERINGS
from abound.learn.registry import LEARNERS, make_learner
from abound.read.taxonomy import Taxonomy
from abound.store import ModelFileError, Section
from abound.validation import LARGEST, check_number

RUNTIME = ("checkpoint", "cluster", "memory", "n_jobs")
"""Parameters that say where and how to work, not what to learn: a model file neither keeps them nor may set them."""

MOST_NESTED = 6
"""Learners among the parameters of learners, one in the other. scikit-learn writes such a learner, in messages, in a
time that doubles with each."""


def settings_of(learner: RankingClassifier, above: int = 0) -> dict[str, Any]:
    """Return a learner's name and parameters, without what says where to work.

    Parameters
    ----------
    learner : RankingClassifier
        Fitted or not.
    above : int
        Learners whose parameter it is, one in the other.

    Returns
    -------
    dict
        JSON can hold it.
    """
    _check_nested(above)
    kept = {}
    for name, value in learner.get_params(deep=False).items():
        if name not in RUNTIME:
            kept[name] = _plain(_without_path(name, value), above)
            check_setting(name, kept[name])
    return {"learner": learner.learner, "parameters": kept}


def learner_by(stored: Section, meta: Any, above: int = 0) -> RankingClassifier:
    """Make a learner from what `settings_of` gave, checked.

    Parameters
    ----------
    stored : Section
        Where it comes from, for messages.
    meta : dict
        The settings.
    above : int
        As for `settings_of`.

    Returns
    -------
    RankingClassifier
        Not fitted. What says where to work has its default, and no path is taken from a file.
    """
    name = field_of(stored, meta, "learner", str)
    if name not in LEARNERS:
        raise stored.fault("meta", f"the learner {name!r} is unknown", "Was it written by a newer abound? Upgrade.")
    given = field_of(stored, meta, "parameters", dict)
    try:
        _check_nested(above)
        parameters: dict[str, Any] = {}
        if "bias" in LEARNERS[name]._get_param_names():
            # Files of version 0.1 do not tell it where there was none.
            parameters["bias"] = 0.0
        for key, value in given.items():
            if key not in RUNTIME:
                check_setting(key, value)
                parameters[key] = _without_path(key, _revived(stored, value, above))
        estimator = make_learner(name, **parameters)
        estimator._check_parameters()
    except ModelFileError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise stored.fault("meta", f"its parameters are not valid ({error})") from None
    return estimator


def field_of(stored: Section, meta: Any, name: str, kind: Any) -> Any:
    """Return a setting that must be there and of its type.

    Parameters
    ----------
    stored : Section
        Where it comes from, for messages.
    meta : dict
        The settings.
    name : str
        Which.
    kind : type
        What it must be; a bool is no number.

    Returns
    -------
    object
        The setting.
    """
    if not isinstance(meta, dict) or not isinstance(meta.get(name), kind) or isinstance(meta.get(name), bool):
        raise stored.fault("meta", f"the setting {name!r} is missing or of a wrong type")
    return meta[name]


def check_setting(name: str, value: Any) -> None:
    """Raise a clear error for a parameter that no file holds: a number that leaves 64 bits or cannot be computed with.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        As JSON holds it.
    """
    if name == "random_state":
        check_number(name, value, 0, whole=True, or_none=True)
    elif isinstance(value, list):
        for each in value:
            check_setting(name, each)
    elif isinstance(value, dict) and isinstance(value.get("pairs"), list):
        check_setting(name, value["pairs"])
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{name}={value!r} does not fit into 64 bits")
    elif isinstance(value, float) and not abs(value) <= LARGEST:
        raise ValueError(f"{name}={value!r}: a model file holds numbers up to ±{LARGEST:.0e}")


def _without_path(name: str, value: Any) -> Any:
    """None in place of a taxonomy: it stands among the learner's arrays, and nobody opens a path that a file names."""
    if name == "tree" and isinstance(value, str) and value in CLUSTERINGS:
        return value
    return None if name in ("taxonomy", "tree") else value


def _check_nested(above: int) -> None:
    if above > MOST_NESTED:
        raise ValueError(f"learners are parameters of learners more than {MOST_NESTED} deep")


def _plain(value: Any, above: int) -> Any:
    """A parameter as JSON holds it; a generator cannot be kept, so the loaded learner draws its own."""
    if isinstance(value, RankingClassifier):
        return settings_of(value, above + 1)
    if isinstance(value, list | tuple):
        return [_plain(each, above) for each in value]
    if isinstance(value, dict):
        return {"pairs": [[_plain(key, above), _plain(each, above)] for key, each in value.items()]}
    if isinstance(value, np.random.RandomState | Taxonomy):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | numbers.Number):
        return value
    raise ValueError(f"the parameter value {value!r} cannot be saved")


def _revived(stored: Section, value: Any, above: int) -> Any:
    """A parameter as it was before `_plain`; a list comes back as a tuple."""
    if isinstance(value, dict) and isinstance(value.get("pairs"), list):
        pairs = [pair for pair in value["pairs"] if isinstance(pair, list) and len(pair) == 2]
        return dict(_revived(stored, pair, above) for pair in pairs)
    if isinstance(value, dict):
        return learner_by(stored, value, above + 1)
    if isinstance(value, list):
        return tuple(_revived(stored, each, above) for each in value)
    return value
