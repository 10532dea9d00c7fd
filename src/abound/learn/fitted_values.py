"""Fitted values of a model file beside its arrays: numbers, and the history of the training."""

from __future__ import annotations

import math
from typing import Any

from abound.store import Section


def history_from(stored: Section, fitted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the history of a model file, checked.

    Parameters
    ----------
    stored : Section
        Names the file, for messages.
    fitted : dict
        The fitted values of the file.

    Returns
    -------
    list of dict
        What was learned pass by pass; empty if the file tells none.
    """
    history = fitted.get("history")
    if history is None:
        return []
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise stored.fault("meta", "the history is no list of entries")
    for entry in history:
        number = entry.get("pass", 1)
        if type(number) is not int or not 0 <= number < 2**31:
            raise stored.fault("meta", f"the history has the pass {str(number)[:20]!r}")
    return history


def number_from(stored: Section, fitted: dict[str, Any], name: str) -> float:
    """Return a fitted number of a model file.

    Parameters
    ----------
    stored : Section
        Names the file, for messages.
    fitted : dict
        The fitted values of the file.
    name : str
        Its name.

    Returns
    -------
    float
        NaN if the file does not tell it.
    """
    value = fitted.get(name)
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, float | int) or not abs(value) <= 1e300:
        raise stored.fault("meta", f"{name} is {str(value)[:20]!r}, not a number")
    return float(value)


def known_numbers(**values: float) -> dict[str, float]:
    """Return the numbers that are known, for a model file: it cannot hold those that are not."""
    return {name: value for name, value in values.items() if not math.isnan(value)}
