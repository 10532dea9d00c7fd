"""Work on a Ray cluster: shared values lie once in the memory of each node, tasks of lost nodes are done again."""

from __future__ import annotations

import os
import pickle
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from abound.distribute.kept import Handle, run
from abound.distribute.parts import bundles, in_order

Result = TypeVar("Result")

RETRIES = 20
"""How often a task is begun again after its node or process was lost."""

SECONDS_TO_ANSWER = 10
"""How long to wait for a cluster to answer at all."""

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value in Ray's object store."""

    name: str
    reference: Any

    def open(self) -> Any:
        """Get the value; a node fetches it once, and its processes see the same memory.

        Returns
        -------
        object
            Its arrays are read-only.
        """
        return _ray().get(self.reference)


class RayCluster:
    """The workers of a Ray cluster.

    Parameters
    ----------
    n_workers : int
        Processes to start on this machine, if there is no address.
    address : str or None
        ``host:port`` of a running cluster, of which this machine must be a node. None starts one that only this
        machine can reach. A connection that this process has already is used as it is, and left open.
    """

    def __init__(self, n_workers: int, address: str | None) -> None:
        ray = _ray()
        self._owns = not ray.is_initialized()
        if self._owns:
            _connect(n_workers, address)
        elif address is not None and ray.get_runtime_context().gcs_address != address:
            raise ValueError(
                f"cluster={address!r}: this process is connected to the Ray cluster at "
                f"{ray.get_runtime_context().gcs_address}; call ray.shutdown() first"
            )
        self.n_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._run = ray.remote(num_cpus=1, max_retries=RETRIES)(_run_packed)

    def share(self, value: Any) -> StoredValue:
        """Put a value into the object store."""
        reference = _ray().put(value)
        return StoredValue(reference.hex(), reference)

    def map(
        self, function: Callable[..., Result], parts: Iterable[Any], *shared: Any, cost: int = 0
    ) -> Iterator[Result]:
        """Yield results in the order of the parts; at most two tasks a worker are under way at a time."""
        ray = _ray()
        found: Iterator[list[Result]] = in_order(
            bundles(list(parts), cost, self.n_workers),
            self.n_workers,
            lambda some: self._run.remote(function, shared, some),
            lambda reference: _result(ray, reference),
            ray.cancel,
        )
        return chain.from_iterable(found)

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        if self._owns:
            _ray().shutdown()


def _ray() -> Any:
    """Ray, which is not needed on one machine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError:
        raise ImportError(
            "cluster= needs Ray, which is not installed: pip install 'abound[cluster]', on every machine of the "
            "cluster. cluster='processes' and n_jobs= do without it"
        ) from None
    return ray


def _connect(n_workers: int, address: str | None) -> None:
    # Ray tells its makers how it is used unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "configure_logging": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if address is None:
            _start(n_workers, quiet)
            return
        _knock(address)
        here = address.startswith((f"{LOOPBACK}:", "localhost:"))
        with on_loopback() if here else nullcontext():
            _ray().init(address=address.replace("localhost:", f"{LOOPBACK}:"), **quiet)


def _knock(address: str) -> None:
    """Find out whether somebody is there: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise ConnectionError(
            f"cluster={address!r}: nobody answers there ({error}). Start Ray with `ray start --head`, and run this on "
            "one of the machines of the cluster"
        ) from None


@contextmanager
def on_loopback() -> Iterator[None]:
    """Let Ray mean the loopback when it is told so.

    Otherwise it takes an address that others can reach in its place, and listens on all of them.
    """
    _ray()
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _start(n_workers: int, options: dict[str, Any]) -> None:
    """Start a cluster that only this machine can reach."""
    ray = _ray()
    with on_loopback():
        ray.init(address="local", num_cpus=n_workers, include_dashboard=False, _node_ip_address=LOOPBACK, **options)
    found = ray.nodes()[0]["NodeManagerAddress"]
    if found != LOOPBACK:
        ray.shutdown()
        raise RuntimeError(
            f"cluster='local': Ray would listen at {found} and not at {LOOPBACK} alone. Use cluster='processes', or "
            "start Ray yourself and give its address"
        )


def _run_packed(function: Callable[..., Any], handles: Sequence[Handle], parts: Sequence[Any]) -> bytes:
    """Work on some parts; as bytes, results do not hold on to the object store once they have arrived."""
    return pickle.dumps(run(function, handles, parts), protocol=5)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return pickle.loads(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
