"""Progress of long work, shown on stderr and only where a person looks at a terminal.

Learners report through `track`; nothing is shown unless the caller, usually the command line, opens `shown`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_display: ContextVar[Any] = ContextVar("abound_progress", default=None)


class Track:
    """One line of progress.

    Parameters
    ----------
    task : object or None
        The line in the display, None if nothing is shown.
    """

    def __init__(self, task: Any = None) -> None:
        self._task = task

    def advance(self, steps: int = 1, note: str = "") -> None:
        """Move on.

        Parameters
        ----------
        steps : int
            How many steps are done.
        note : str
            A word on the state, shown beside the bar.
        """
        display = _display.get()
        if display is not None and self._task is not None:
            display.update(self._task, advance=steps, note=note)


@contextmanager
def track(what: str, total: int) -> Iterator[Track]:
    """Report work of ``total`` steps.

    Parameters
    ----------
    what : str
        What is being done.
    total : int
        Number of steps.

    Yields
    ------
    Track
        To be advanced.
    """
    display = _display.get()
    if display is None:
        yield Track()
        return
    task = display.add_task(what, total=total, note="")
    try:
        yield Track(task)
    finally:
        display.remove_task(task)


class _Heard:
    """A display that tells how far the outermost work is."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._open: list[list[int]] = []

    def add_task(self, what: str, *, total: int, note: str) -> int:
        self._open.append([0, total])
        return len(self._open) - 1

    def update(self, task: int, *, advance: int, note: str) -> None:
        entry = self._open[task]
        entry[0] += advance
        if task == 0 and advance and entry[1]:
            self._tell(min(1.0, entry[0] / entry[1]))

    def remove_task(self, task: int) -> None:
        del self._open[task:]


@contextmanager
def heard(tell: Callable[[float], None]) -> Iterator[None]:
    """Call ``tell`` with the part that is done, from 0 to 1, as the outermost work of the block moves on.

    Parameters
    ----------
    tell : callable
        Gets a number; work that follows other work begins at 0 again.

    Yields
    ------
    None
        While work is done.
    """
    token = _display.set(_Heard(tell))
    try:
        yield
    finally:
        _display.reset(token)


@contextmanager
def shown() -> Iterator[None]:
    """Show progress on stderr while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty() or _display.get() is not None:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    tail = (TimeElapsedColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, *tail, console=Console(stderr=True), transient=True) as display:
        token = _display.set(display)
        try:
            yield
        finally:
            _display.reset(token)
