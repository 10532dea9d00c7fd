"""A long training keeps its finished parts in a folder; started again, it does the others only.

Learners whose training falls into parts hand them to workers, always in the same order: the number of the call and the
place among its parts say which part a result belongs to. What is kept of a part is written beside and renamed, so a
part is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abound.distribute import TASK_VALUES, Workers, workers
from abound.labels import Labels
from abound.learn.checkpoint_run import claim_folder
from abound.learn.kept_values import Arrays, put_together, take_apart
from abound.store import ModelFileError, open_arrays, save_arrays
from abound.validation import Float32Array, Rows

if TYPE_CHECKING:
    from abound.learn.base import RankingClassifier

Result = TypeVar("Result")


def check_checkpoint(checkpoint: Any, random_state: Any) -> None:
    """Raise a clear error unless ``checkpoint`` is a folder, to be made or continued.

    Parameters
    ----------
    checkpoint : object
        None or a path.
    random_state : object
        The learner's: a run that is started again must draw the same numbers.
    """
    if checkpoint is None:
        return
    if not isinstance(checkpoint, str | Path) or not str(checkpoint):
        raise ValueError(f"checkpoint={checkpoint!r}: it must be None or the path of a folder")
    if random_state is None or isinstance(random_state, np.random.RandomState):
        raise ValueError(
            f"checkpoint={str(checkpoint)!r} with random_state={random_state!r}: a run that is started again must "
            "draw the same numbers; set random_state to a whole number"
        )


@contextmanager
def training_workers(
    learner: RankingClassifier, rows: Rows, labels: Labels, weights: Float32Array
) -> Iterator[Workers]:
    """Start the workers of a training; if the learner has a checkpoint, what they finish is kept in it.

    Parameters
    ----------
    learner : RankingClassifier
        Its ``n_jobs``, ``cluster`` and ``checkpoint`` count.
    rows, labels, weights : Rows, Labels, float32 array
        What it learns from.

    Yields
    ------
    Workers
        The result does not depend on them.
    """
    folder = None if learner.checkpoint is None else claim_folder(learner, rows, labels, weights)
    with workers(learner.n_jobs, learner.cluster) as pool:
        yield pool if folder is None else KeepingWorkers(pool, folder)


class KeepingWorkers:
    """Workers whose finished parts are kept in a folder.

    Parameters
    ----------
    pool : Workers
        Who works.
    folder : Path
        Of this run alone.
    """

    def __init__(self, pool: Workers, folder: Path) -> None:
        self.n_workers = pool.n_workers
        self._pool, self._folder, self._n_calls = pool, folder, 0

    def share(self, value: Any) -> Any:
        """Make a value readable by all workers."""
        return self._pool.share(value)

    def map(
        self, function: Callable[..., Result], parts: Iterable[Any], *shared: Any, cost: int = 0
    ) -> Iterator[Result]:
        """Yield the results in the order of the parts; what the folder has of them is read from it."""
        return self._results(self.next_call(), function, list(parts), shared, cost)

    def close(self) -> None:
        """Do nothing: whoever started the workers ends them."""

    def next_call(self) -> Path:
        """Return where the results of the next call go."""
        self._n_calls += 1
        return self._folder / f"step-{self._n_calls:04}"

    def _results(
        self, folder: Path, function: Callable[..., Result], parts: list[Any], shared: tuple[Any, ...], cost: int
    ) -> Iterator[Result]:
        # Small parts share a file, whatever the number of workers.
        size = max(1, TASK_VALUES // cost) if cost else 1
        cut = [parts[first : first + size] for first in range(0, len(parts), size)]
        groups = {folder / f"{number * size}-{len(group)}": group for number, group in enumerate(cut)}
        lacking = {path: group for path, group in groups.items() if not is_whole(path)}
        fresh = self._pool.map(function, [part for group in lacking.values() for part in group], *shared, cost=cost)
        for path in groups:
            if path in lacking:
                found = [next(fresh) for _ in lacking[path]]
                keep_value(path, found)
            else:
                found = read_value(path)
            yield from found


def once(pool: Workers, function: Callable[[], Result]) -> Result:
    """Return what a function returns that works in this process; a checkpoint keeps it.

    Parameters
    ----------
    pool : Workers
        Whose training it is a part of.
    function : callable
        Not called if its result is in the checkpoint.

    Returns
    -------
    object
        Its result.
    """
    if not isinstance(pool, KeepingWorkers):
        return function()
    path = pool.next_call() / "0"
    if not is_whole(path):
        found = function()
        keep_value(path, found)
        return found
    kept: Result = read_value(path)
    return kept


def keep_value(path: Path, value: Any) -> None:
    """Write a value, whole or not at all.

    Parameters
    ----------
    path : Path
        The file; its folder is made.
    value : object
        See `take_apart`.
    """
    arrays: Arrays = {}
    told = take_apart(value, arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_arrays(path, arrays, {"value": told})


def read_value(path: Path) -> Any:
    """Read what `keep_value` has written.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    object
        The value; it does not need the file any more.
    """
    with open_arrays(path, verify=False) as stored:
        return put_together(stored.meta.get("value"), stored)


def is_whole(path: Path) -> bool:
    """Tell whether a result is there as it was written: after a power cut it may be damaged, and is made again.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bool
        Whether it can be read.
    """
    try:
        open_arrays(path).close()
    except (FileNotFoundError, ModelFileError):
        return False
    return True
