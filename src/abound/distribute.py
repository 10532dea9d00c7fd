"""The only place that knows of threads: work that falls into independent parts goes through here.

Results come back in the order of the parts, whatever order they finish in, so the number of workers never shows in a
result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class Workers(Protocol):
    """What every adapter offers."""

    n_workers: int

    def share(self, value: Any) -> Any:
        """Make a value readable by all workers and return a handle to pass to them."""
        ...

    def map(self, function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """Yield ``function(part)`` for each part, in order."""
        ...

    def close(self) -> None:
        """Let go of whatever was started."""
        ...


class Serial:
    """One part after another, here."""

    n_workers = 1

    def share(self, value: Any) -> Any:
        """Return the value: there is one process."""
        return value

    def map(self, function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """Yield ``function(part)`` for each part."""
        return map(function, parts)

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

    def map(self, function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """Yield results in the order of the parts; at most two parts a worker are under way at a time."""
        waiting: list[Future[Result]] = []
        try:
            for part in parts:
                waiting.append(self._pool.submit(function, part))
                if len(waiting) > 2 * self.n_workers:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()

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


class workers:  # noqa: N801 - reads as a verb: `with workers(n_jobs) as pool`
    """Start workers for a ``with`` block and let go of them at its end.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads; None is one, -1 all cores.

    Examples
    --------
    >>> with workers(2) as pool:
    ...     list(pool.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None) -> None:
        n_workers = count_workers(n_jobs)
        self._workers: Workers = Serial() if n_workers == 1 else Threads(n_workers)

    def __enter__(self) -> Workers:
        return self._workers

    def __exit__(self, *exception: object) -> None:
        self._workers.close()


def spans(weights: Any, n_parts: int) -> list[tuple[int, int]]:
    """Cut rows into consecutive spans of about equal weight.

    Parameters
    ----------
    weights : int64 array of shape (n + 1,)
        Running sums, such as ``indptr``.
    n_parts : int
        Number of spans wanted; empty ones are left out.

    Returns
    -------
    list of (begin, end)
        The spans, in order, covering all rows.

    Examples
    --------
    >>> import numpy as np
    >>> spans(np.array([0, 10, 11, 12, 20]), 2)
    [(0, 1), (1, 4)]
    """
    n = len(weights) - 1
    total = weights[-1] - weights[0]
    targets = [weights[0] + total * part / n_parts for part in range(1, n_parts)]
    cuts = [0, *(int(weights.searchsorted(target)) for target in targets), n]
    return [(a, b) for a, b in pairwise(cuts) if a < b]
