"""Work in this process: one part after another, or in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from abound.distribute.parts import in_order

Result = TypeVar("Result")


class Serial:
    """One part after another, here."""

    n_workers = 1

    def share(self, value: Any) -> Any:
        """Return the value: there is one process."""
        return value

    def map(
        self, function: Callable[..., Result], parts: Iterable[Any], *shared: Any, cost: int = 0
    ) -> Iterator[Result]:
        """Yield ``function(part, *shared)`` for each part."""
        return (function(part, *shared) for part in parts)

    def close(self) -> None:
        """Do nothing: nothing was started."""


class Threads:
    """A pool of threads, for kernels that release the GIL.

    Parameters
    ----------
    n_workers : int
        Number of threads.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._pool = ThreadPoolExecutor(n_workers, thread_name_prefix="abound")

    def share(self, value: Any) -> Any:
        """Return the value: threads see the same memory."""
        return value

    def map(
        self, function: Callable[..., Result], parts: Iterable[Any], *shared: Any, cost: int = 0
    ) -> Iterator[Result]:
        """Yield results in the order of the parts; at most two parts a worker are under way at a time."""
        return in_order(
            parts,
            self.n_workers,
            lambda part: self._pool.submit(function, part, *shared),
            Future[Result].result,
            Future[Result].cancel,
        )

    def close(self) -> None:
        """End the threads once their parts are done."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def count_workers(n_jobs: int | None) -> int:
    """Read ``n_jobs`` as scikit-learn does: None is one, -1 all cores, -2 all but one.

    Parameters
    ----------
    n_jobs : int or None
        What the user set.

    Returns
    -------
    int
        At least one.
    """
    if n_jobs is None:
        return 1
    if n_jobs == 0 or isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise ValueError(f"n_jobs={n_jobs!r}: it must be a whole number other than 0, or None for one worker")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
