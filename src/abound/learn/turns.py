"""Threads take turns at a learner: who changes it, or reads it piece by piece, has it alone.

Answers do not wait for one another: they are given by a copy that was made in a turn and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

Method = TypeVar("Method", bound=Callable[..., Any])

_TURNS: WeakKeyDictionary[Any, RLock] = WeakKeyDictionary()
_LOOKING = Lock()


def turn_of(learner: Any) -> RLock:
    """Find the lock of a learner; it is not in the learner, where copies and pickles would find it."""
    with _LOOKING:
        return _TURNS.setdefault(learner, RLock())


def alone(method: Method) -> Method:
    """Let no other thread at a learner while a method of it runs."""

    @wraps(method)
    def taking_a_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        with turn_of(self):
            return method(self, *args, **kwargs)

    return cast(Method, taking_a_turn)
