"""Settings given as ``key=value`` on the command line."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

_WORDS = {"none": None, "true": True, "false": False}


def parse_value(text: str) -> Any:
    """Read a value: JSON, or none, true and false in any case, or numbers with commas between them, else a string.

    Parameters
    ----------
    text : str
        As written.

    Returns
    -------
    object
        A list becomes a tuple.

    Examples
    --------
    >>> [parse_value(text) for text in ("3", "0.5", "true", "None", "word", "1,2", "[1, 2]", '"7"')]
    [3, 0.5, True, None, 'word', (1, 2), (1, 2), '7']
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for written in (text, f"[{text}]") if "," in text else (text,):
        try:
            value = json.loads(written, parse_constant=_refuse)
        except ValueError:
            continue
        return tuple(value) if isinstance(value, list) else value
    return text


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def parse_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Read several settings.

    Parameters
    ----------
    pairs : iterable of str
        Each ``key=value``.

    Returns
    -------
    dict
        By key, dashes in it turned into underscores.

    Examples
    --------
    >>> parse_pairs(["passes=3", "max-degree=none"])
    {'passes': 3, 'max_degree': None}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        name = key.strip().replace("-", "_")
        if not equals or not name:
            raise ValueError(f"{pair!r}: expected key=value")
        if name in settings:
            raise ValueError(f"{name!r} is given twice")
        settings[name] = parse_value(text.strip())
    return settings


def check_names(settings: Iterable[str], known: Iterable[str], whose: str) -> None:
    """Refuse settings that nobody knows.

    Parameters
    ----------
    settings : iterable of str
        The names given.
    known : iterable of str
        The names there are.
    whose : str
        What has them, for the message.
    """
    names = list(known)
    for name in settings:
        if name not in names:
            raise ValueError(f"{whose} has no parameter {name!r}; it has {', '.join(names) or 'none'}")


def keyword_names(function: Callable[..., Any]) -> list[str]:
    """List the names of a function's keyword-only parameters.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    list of str
        In its order.
    """
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
