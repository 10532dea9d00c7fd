"""What a worker process keeps of what it was sent, so that the next task finds it, and its scratch room, ready."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

LIMIT = 4
"""Shared values that a worker holds on to; those of an earlier round make room for the next."""

_kept: OrderedDict[str, Any] = OrderedDict()


class Handle(Protocol):
    """How a worker gets at a shared value."""

    name: str

    def open(self) -> Any:
        """Return the value, its arrays read-only and shared with other processes of the machine."""
        ...


def run(function: Callable[..., Any], handles: Sequence[Handle], parts: Sequence[Any]) -> list[Any]:
    """Work on some parts, in a worker process.

    Parameters
    ----------
    function : callable
        Called with a part and the shared values.
    handles : sequence of Handle
        The shared values.
    parts : sequence
        The parts.

    Returns
    -------
    list
        The results.
    """
    values = [_value(handle) for handle in handles]
    return [function(part, *values) for part in parts]


def _value(handle: Handle) -> Any:
    if handle.name not in _kept:
        while len(_kept) >= LIMIT:
            _kept.popitem(last=False)
        _kept[handle.name] = handle.open()
    _kept.move_to_end(handle.name)
    return _kept[handle.name]
