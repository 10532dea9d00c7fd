"""Work in processes of this machine that map one copy of what they share."""

from __future__ import annotations

import mmap
import multiprocessing
import pickle
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from abound.distribute.kept import run
from abound.distribute.parts import bundles, in_order

Result = TypeVar("Result")

ALIGNMENT = 64


@dataclass(frozen=True, slots=True, weakref_slot=True)
class MappedValue:
    """A value whose arrays stand in a file that workers map; all but the arrays travels with the handle."""

    name: str
    head: bytes
    bounds: tuple[tuple[int, int], ...]

    def open(self) -> Any:
        """Map the arrays, read-only.

        Returns
        -------
        object
            The value.
        """
        if not self.bounds:
            return pickle.loads(self.head)
        with open(self.name, "rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return pickle.loads(self.head, buffers=[whole[begin:end] for begin, end in self.bounds])


def write_value(value: Any, path: Path) -> MappedValue:
    """Write the arrays of a value to a file.

    Parameters
    ----------
    value : object
        Can be pickled.
    path : Path
        The file.

    Returns
    -------
    MappedValue
        Its handle.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    bounds = []
    with open(path, "wb") as file:
        for buffer in buffers:
            file.write(bytes(-file.tell() % ALIGNMENT))
            begin = file.tell()
            file.write(buffer.raw())
            bounds.append((begin, file.tell()))
        # An empty file cannot be mapped.
        file.write(bytes(1))
    return MappedValue(str(path), head, tuple(bounds))


def _begin_worker() -> None:
    threadpool_limits(1)


class _Pool:
    """Worker processes, and how many have them open: whoever is inside another's ``with`` block uses the same ones."""

    def __init__(self, n_workers: int) -> None:
        # Only a new interpreter is sure to work beside the threads of this one.
        self.executor = ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn"), _begin_worker)
        self.n_open = 0


_pools: dict[int, _Pool] = {}
_lock = threading.Lock()


class Processes:
    """A pool of processes on this machine.

    Parameters
    ----------
    n_workers : int
        Number of processes.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        with _lock:
            if n_workers not in _pools:
                _pools[n_workers] = _Pool(n_workers)
            pool = _pools[n_workers]
            pool.n_open += 1
        self._executor = pool.executor
        self._folder = tempfile.TemporaryDirectory(prefix="abound-")
        self._n_shared = 0

    def share(self, value: Any) -> MappedValue:
        """Write the arrays of a value where all processes can map them."""
        self._n_shared += 1
        path = Path(self._folder.name, str(self._n_shared))
        handle = write_value(value, path)
        # What a round has shared makes room for the next; whoever has mapped the file keeps what it held.
        weakref.finalize(handle, path.unlink, missing_ok=True)
        return handle

    def map(
        self, function: Callable[..., Result], parts: Iterable[Any], *shared: Any, cost: int = 0
    ) -> Iterator[Result]:
        """Yield results in the order of the parts; at most two tasks a worker are under way at a time."""
        found = in_order(
            bundles(list(parts), cost, self.n_workers),
            self.n_workers,
            lambda some: self._executor.submit(run, function, shared, some),
            Future[list[Result]].result,
            Future[list[Result]].cancel,
        )
        return chain.from_iterable(found)

    def close(self) -> None:
        """End the processes, once their parts are done, if nobody else has them open."""
        with _lock:
            pool = _pools[self.n_workers]
            pool.n_open -= 1
            if not pool.n_open:
                del _pools[self.n_workers]
                pool.executor.shutdown(wait=True, cancel_futures=True)
        self._folder.cleanup()
