"""The options of ``abound compare``, as they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from abound.compare.memory import usable_memory
from abound.compare.protocol import Plan
from abound.distribute import check_cluster, count_workers
from abound.learn.decisions import CALIBRATIONS
from abound.learn.registry import LEARNERS
from abound.memory import parse_bytes as parse_size
from abound.serve.guard import wrong_usage
from abound.serve.output import megabytes
from abound.serve.settings import parse_pairs
from abound.serve.training import checked_vectoriser
from abound.validation import check_choice

DEFAULT_TEXT = {"ngram_range": (1, 2)}
"""Words and pairs of words, as in the demo."""

LEAST_MEMORY = 512 * 10**6
"""Python and its libraries alone need half of it."""

TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_plan(options: Mapping[str, Any], *, splits: int, seed: int) -> Plan:
    """Read the options of the command; a bad one is wrong usage.

    Parameters
    ----------
    options : mapping
        By option, as written.
    splits, seed : int
        As given.

    Returns
    -------
    Plan
        Without learners if none were named.
    """
    with wrong_usage("--learners"):
        names = parse_learners(options["--learners"])
    with wrong_usage("--time-limit"):
        seconds = parse_seconds(options["--time-limit"])
    with wrong_usage("--memory-limit"):
        memory = parse_bytes(options["--memory-limit"])
    with wrong_usage("--text"):
        text = dict(DEFAULT_TEXT) if options["--text"] is None else parse_pairs(options["--text"])
        checked_vectoriser(text)
    with wrong_usage("--jobs"):
        jobs = count_workers(options["--jobs"])
    cluster = options["--cluster"]
    with wrong_usage("--cluster"):
        check_cluster(cluster)
    with wrong_usage("--calibrate"):
        check_choice("calibrate", options["--calibrate"], CALIBRATIONS)
    if memory is None:
        usable = usable_memory()
        memory = usable if usable is None or cluster is None else usable // jobs
    # On a cluster experiments run side by side, each on one core.
    together = {} if cluster is None else {"cluster": cluster, "n_workers": jobs}
    calibrate = options["--calibrate"]
    return Plan(names, seconds, memory, splits, seed, 1 if together else jobs, text, calibrate=calibrate, **together)


def parse_learners(names: str | None) -> tuple[str, ...]:
    """Read names with commas between them.

    Parameters
    ----------
    names : str or None
        As written.

    Returns
    -------
    tuple of str
        Each once; empty if none were given.
    """
    found = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip())) if names else ()
    for name in found:
        if name not in LEARNERS:
            raise ValueError(f"no learner is called {name!r}; there are {', '.join(LEARNERS)}")
    if names is not None and not found:
        raise ValueError("no learner is named")
    return found


def parse_seconds(text: str) -> float:
    """Read a time.

    Parameters
    ----------
    text : str
        Such as ``90``, ``90s``, ``10m`` or ``1.5h``.

    Returns
    -------
    float
        Seconds, above 0.

    Examples
    --------
    >>> parse_seconds("10m"), parse_seconds("1.5h"), parse_seconds("90")
    (600.0, 5400.0, 90.0)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|m|h|)(?:ec|in)?\s*", text.lower())
    if match is None or float(match[1]) == 0:
        raise ValueError(f"{text!r} is no time; write 90s, 10m or 2h")
    return float(match[1]) * TIMES[match[2]]


def parse_bytes(text: str | None) -> int | None:
    """Read a size of memory.

    Parameters
    ----------
    text : str or None
        Such as ``800MB`` or ``2GB``.

    Returns
    -------
    int or None
        Bytes, a thousand each step; None for None.

    Examples
    --------
    >>> parse_bytes("2GB"), parse_bytes("1.5g"), parse_bytes(None)
    (2000000000, 1500000000, None)
    """
    if text is None:
        return None
    size = parse_size(text)
    if size < LEAST_MEMORY:
        raise ValueError(f"{text}: Python and its libraries alone need more; at least {megabytes(LEAST_MEMORY)}")
    return size


def check_target(path: Path | None) -> None:
    """Find out before the work that its result can be written.

    Parameters
    ----------
    path : Path or None
        A file to be; None for none.
    """
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: the folder {path.absolute().parent} does not exist")
