"""JSON that comes back as it went in: no key twice, no NaN, no silent change of a tuple into a list."""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DEPTH = 64
"""Lists and objects inside one another, at most; a fixed number, whatever the depth of the caller's stack."""


def dumps(value: Any, where: str) -> str:
    """Write a value as compact JSON, or say which part of it JSON cannot hold.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, or lists and dicts of these.
    where : str
        Name of the value, for the message.

    Returns
    -------
    str
        JSON text; the same value always gives the same text.

    Examples
    --------
    >>> dumps({"passes": 2, "margin": 0.5}, "meta")
    '{"passes":2,"margin":0.5}'
    >>> dumps({"range": (1, 2)}, "meta")
    Traceback (most recent call last):
    ...
    ValueError: meta['range'] is (1, 2), a tuple: JSON holds only None, bool, int, float, str, list and dict
    """
    _check(value, where)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """Read JSON strictly.

    Parameters
    ----------
    text : str
        JSON text.

    Returns
    -------
    object
        The value.

    Raises
    ------
    ValueError
        If the text is not JSON, has a key twice, a number out of range or lone surrogates, or is nested too deeply.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        _check(value, "JSON")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _check(value: Any, where: str) -> None:
    found = _misfit(value)
    if found:
        raise ValueError(f"{where}{found[0]} {found[1]}")


def _misfit(value: Any, depth: int = 0) -> tuple[str, str] | None:
    """Return place and problem of the first part that JSON would change; the place is put together on the way out."""
    kind = type(value)
    if kind is list or kind is dict:
        if depth == MAX_DEPTH:
            return "", f"is nested too deeply (more than {MAX_DEPTH} levels)"
        for place, item in value.items() if kind is dict else enumerate(value):
            if kind is dict and type(place) is not str:
                return "", f"has the key {place!r}, a {type(place).__name__}: JSON keys are strings"
            found = (kind is dict and _misfit(place)) or _misfit(item, depth + 1)
            if found:
                return f"[{place!r}]{found[0]}", found[1]
        return None
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            return "", f"is {value!r}, which is not valid Unicode text (a lone surrogate)"
        return None
    if kind is float:
        return None if math.isfinite(value) else ("", f"is {value}, which JSON cannot hold")
    if value is None or kind is bool or kind is int:
        return None
    return "", f"is {value!r}, a {kind.__name__}: JSON holds only None, bool, int, float, str, list and dict"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} occurs twice")
        result[key] = value
    return result


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
