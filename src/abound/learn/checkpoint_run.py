"""Which run a checkpoint belongs to: learner, parameters, data and version must be those that it was begun with."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import abound
from abound.labels import Labels
from abound.read.taxonomy import Taxonomy
from abound.scratch import let_go
from abound.store import pack_labels, replacing
from abound.validation import Float32Array, Rows

if TYPE_CHECKING:
    from abound.learn.base import RankingClassifier

RUN_FILE = "run.json"
"""Tells which run the folder belongs to."""

FORMAT = 2
"""Raised when parts are written in another way."""

ELSEWHERE = ("checkpoint", "cluster", "n_jobs")
"""Parameters that say where to work, not what to learn: another start may have others."""

BLOCK = 2**24
"""Bytes whose checksum is taken in one call."""


def claim_folder(learner: RankingClassifier, rows: Rows, labels: Labels, weights: Float32Array, **more: Any) -> Path:
    """Begin a checkpoint, or find out that it belongs to this run.

    Parameters
    ----------
    learner : RankingClassifier
        With its parameters; its ``checkpoint`` is the folder.
    rows, labels, weights : Rows, Labels, float32 array
        What it learns from.
    **more : object
        What else changes what is learned; JSON must hold it.

    Returns
    -------
    Path
        The folder.
    """
    folder = Path(os.path.abspath(learner.checkpoint))
    path = folder / RUN_FILE
    run = describe_run(learner, rows, labels, weights, **more)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if any(folder.iterdir()):
            raise ValueError(
                f"checkpoint={str(folder)!r}: the folder holds other files and no {RUN_FILE}; give a new or empty one"
            ) from None
        with replacing(path) as file:
            file.write(json.dumps(run, indent=1).encode())
        return folder
    except FileExistsError:
        raise ValueError(f"checkpoint={str(folder)!r} is a file; give the path of a folder") from None
    except ValueError:
        raise ValueError(f"{path} is damaged; delete the checkpoint {str(folder)!r} to start anew") from None
    if known != run:
        raise ValueError(
            f"checkpoint={str(folder)!r} belongs to another run: {_difference(known, run)}. Give another folder, or "
            "delete this one to start anew"
        )
    return folder


def describe_run(
    learner: RankingClassifier, rows: Rows, labels: Labels, weights: Float32Array, **more: Any
) -> dict[str, dict[str, Any]]:
    """Tell what makes a run what it is.

    Parameters
    ----------
    learner : RankingClassifier
        With its parameters.
    rows, labels, weights : Rows, Labels, float32 array
        What it learns from.
    **more : object
        What else changes what is learned.

    Returns
    -------
    dict
        As JSON holds it.
    """
    packed, _ = pack_labels(labels.classes)
    data = {
        "rows": rows.n_rows,
        "features": rows.n_features,
        "classes": labels.n_classes,
        "checksum of the rows": checksum((rows.indptr, rows.indices, rows.data)),
        "checksum of the labels": checksum((labels.indptr, labels.ids, *packed.values())),
        "checksum of the weights": checksum((weights,)),
        **more,
    }
    program = {"abound": abound.__version__, "format": FORMAT}
    described: dict[str, dict[str, Any]] = json.loads(
        json.dumps({"program": program, "learner": _told(learner), "data": data})
    )
    return described


def checksum(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return the checksum of arrays one after another.

    Parameters
    ----------
    arrays : iterable of arrays
        Of numbers.

    Returns
    -------
    str
        Eight hexadecimal digits.
    """
    found = 0
    for array in arrays:
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for begin in range(0, len(plain), BLOCK):
            block = plain[begin : begin + BLOCK]
            found = zlib.crc32(block.tobytes(), found)
            let_go(block)
    return f"{found:08x}"


def _told(value: Any) -> Any:
    """A parameter, or a learner with its parameters, so that equal ones are told alike."""
    from abound.learn.base import RankingClassifier

    if isinstance(value, RankingClassifier):
        parameters = value.get_params(deep=False)
        own = {name: _told(each) for name, each in sorted(parameters.items()) if name not in ELSEWHERE}
        return {"learner": value.learner, **own}
    if isinstance(value, Taxonomy):
        return f"taxonomy {checksum(value.to_arrays().values())}"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | Path) and Path(value).is_file():
        # The file of a taxonomy: it may be another one under the same name.
        return f"file {checksum((np.frombuffer(Path(value).read_bytes(), dtype=np.uint8),))}"
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    if isinstance(value, dict):
        return sorted([str(_told(key)), _told(each)] for key, each in value.items())
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _difference(known: Any, run: dict[str, dict[str, Any]]) -> str:
    for group, values in run.items():
        before = known.get(group) if isinstance(known, dict) else None
        for name, value in values.items():
            if not isinstance(before, dict) or name not in before:
                return f"it does not tell {name}"
            if before[name] != value:
                return f"{name} was {before[name]!r} and is {value!r}"
    return "it has further parameters"
