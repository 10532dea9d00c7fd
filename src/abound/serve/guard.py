"""Around every command: errors become one clear line and an exit code, an ended pipe or Ctrl-C ends quietly."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

import typer

from abound.serve.output import say

FAILED, INTERRUPTED, PIPE_ENDED = 1, 130, 141
"""Exit codes; wrong usage is 2, as everywhere in typer."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a word on what became of the work.

    Parameters
    ----------
    outcome : str
        Such as where the unfinished model was written.
    """


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that it ends with an exit code and never with a traceback, unless ``ABOUND_DEBUG`` is set.

    Parameters
    ----------
    command : callable
        The command.

    Returns
    -------
    callable
        The same command, guarded.
    """

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with _plain_warnings():
                command(*args, **options)
                sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(PIPE_ENDED) from None
        except KeyboardInterrupt as interrupt:
            outcome = str(interrupt) if isinstance(interrupt, Interrupted) else "nothing was written"
            say(f"interrupted: {outcome}")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if os.environ.get("ABOUND_DEBUG"):
                raise
            say(f"error: {_message(error)}")
            raise typer.Exit(FAILED) from None

    return run


@contextmanager
def wrong_usage(option: str) -> Iterator[None]:
    """Turn a ValueError of the block into a message about wrong usage, exit code 2.

    Parameters
    ----------
    option : str
        The option that is to blame.
    """
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, ValueError | OSError | ImportError | MemoryError) and str(error):
        return str(error)
    kind = type(error).__name__
    return f"{kind}: {error} (not foreseen; ABOUND_DEBUG=1 shows where it happened)"


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print a warning as one line, without the place in the code that raised it."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *place, **more: say(f"warning: {message}")
        yield


def _forget_stdout() -> None:
    """Point standard output to nowhere: Python would try to flush it, and complain, when it ends."""
    with suppress(OSError, ValueError):
        target = os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, sys.stdout.fileno())
        os.close(target)
