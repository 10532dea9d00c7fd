"""One experiment: data, split, learner, parameters, seed. Its key, and what of its row depends on the clock."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any, Literal

import abound

Row = dict[str, Any]
Stage = Literal["choose", "test"]

FORMAT = 1
"""Version of the rows; part of every key."""

CLOCK_FIELDS = ("timings", "memory", "limits", "machine", "date")
"""Fields of a row that depend on the machine and the moment. So do ``seconds`` in ``history`` and ``anytime``."""

CLOCK_ENTRIES = ("history", "anytime")


@dataclass(frozen=True)
class Experiment:
    """What is trained on what, and measured on what.

    Parameters
    ----------
    data : str
        A name for people.
    fingerprint : str
        A digest of the data, so that rows of another file are never taken for this one's.
    stage : {"choose", "test"}
        Trained on a part of the training rows and measured on the others, to choose settings; or trained on all of
        them and measured on the test rows.
    split : int
        Which split, from 0.
    learner : str
        Its short name.
    parameters : dict
        Those that differ from the defaults.
    text : dict
        Parameters of the vectoriser.
    seed : int
        Of all random choices.
    jobs : int
        Threads.
    """

    data: str
    fingerprint: str
    stage: Stage
    split: int
    learner: str
    parameters: dict[str, Any]
    text: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    jobs: int = 1

    @property
    def key(self) -> str:
        """The name of the experiment in a file of rows: the same for the same experiment, whatever its data is called.

        Returns
        -------
        str
            Sixteen hexadecimal digits.
        """
        facts = {**asdict(self), "format": FORMAT, "abound": abound.__version__}
        del facts["data"]
        return hashlib.sha256(json.dumps(plain(facts), sort_keys=True).encode()).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold: NumPy values, tuples; None for what is not finite.

    Parameters
    ----------
    value : object
        Mappings, sequences, numbers, strings.

    Returns
    -------
    object
        Dicts, lists, strings, numbers, booleans and None.

    Examples
    --------
    >>> plain({"ngram_range": (1, 2), "HR": float("inf")})
    {'ngram_range': [1, 2], 'HR': None}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return str(value)


def without_clock(row: Mapping[str, Any]) -> Row:
    """Return a row without what depends on the machine and the moment.

    Two runs of one experiment, one of them killed and started again, agree in what is left.

    Parameters
    ----------
    row : mapping
        A row.

    Returns
    -------
    dict
        The rest of it.

    Examples
    --------
    >>> without_clock({"key": "a", "timings": {"train": 1.5}, "history": [{"pass": 1, "seconds": 0.7}]})
    {'key': 'a', 'history': [{'pass': 1}]}
    """
    rest = {name: value for name, value in row.items() if name not in CLOCK_FIELDS}
    for name in CLOCK_ENTRIES:
        if name in rest:
            rest[name] = [{key: value for key, value in entry.items() if key != "seconds"} for entry in rest[name]]
    return rest


def versions() -> dict[str, str]:
    """Return the versions that a measurement depends on."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")}
    return {"abound": abound.__version__, **packages, "python": platform.python_version()}


def machine() -> dict[str, Any]:
    """Return the processor, its cores, and how busy they are."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {"cpu": _processor(), "cores": os.cpu_count(), "load": load}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
