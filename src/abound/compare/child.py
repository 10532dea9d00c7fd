"""The process of one experiment: ``python -m abound.compare.child REQUEST ANSWER``.

It reads what to do from one file and writes what came out to another. Its standard input is a pipe that nobody writes
to: when it ends, the comparison that started this process is gone, and so is the need for the work.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from abound.compare.memory import limit_memory
from abound.progress import heard

SECONDS_BETWEEN = 0.5
"""Progress is written no more often."""

ORPHANED = 3
"""Exit code of a process whose comparison has ended."""


def main(request_file: str, answer_file: str) -> None:
    """Do what a request says.

    Parameters
    ----------
    request_file : str
        JSON: ``scratch``, ``prepared``, ``memory_limit``, ``progress`` (a file that gets the part that is done), and
        what `abound.compare.measuring.measure` takes.
    answer_file : str
        Gets a JSON object: the measured part of a row, or ``error``.
    """
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    threading.Thread(target=_end_with_parent, args=(request["scratch"],), daemon=True).start()
    limit_memory(request["memory_limit"])
    try:
        with heard(_teller(Path(request["progress"]))):
            answer = _measured(request)
    except MemoryError as error:
        answer = {"error": {"kind": "memory", "message": str(error) or "there was not enough memory"}}
    except (ValueError, TypeError, ImportError, OSError, RuntimeError, ArithmeticError, LookupError) as error:
        answer = {"error": {"kind": "failed", "message": f"{type(error).__name__}: {error}"}}
    Path(answer_file).write_text(json.dumps(answer, allow_nan=False), encoding="utf-8")


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    from abound.compare.experiment import plain
    from abound.compare.measuring import measure
    from abound.compare.prepared import load

    measured = measure(
        load(Path(request["prepared"])),
        request["learner"],
        request["parameters"],
        seed=request["seed"],
        jobs=request["jobs"],
        for_test=request["for_test"],
    )
    row: dict[str, Any] = plain(measured)
    return row


def _teller(file: Path) -> Callable[[float], None]:
    """What writes into a file, at most once in a while, which part is done."""
    last = 0.0

    def tell(part: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN:
            last = now
            file.write_text(repr(part), encoding="utf-8")

    return tell


def _end_with_parent(scratch: str) -> None:
    # Not through `sys.stdin`: a thread that waits inside it makes Python abort when it ends.
    os.read(0, 1)
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(ORPHANED)


if __name__ == "__main__":
    main(*sys.argv[1:])
