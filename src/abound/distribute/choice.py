"""Which workers a setting asks for."""

from __future__ import annotations

import re
from typing import Any

from abound.distribute.local import Serial, Threads, count_workers
from abound.distribute.parts import Workers

ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):\d{1,5}")


def check_cluster(cluster: Any) -> None:
    """Raise a clear error unless ``cluster`` says where to work.

    Parameters
    ----------
    cluster : object
        None, "processes", "local" or "host:port".
    """
    known = isinstance(cluster, str) and (cluster in ("local", "processes") or ADDRESS.fullmatch(cluster))
    if cluster is not None and not known:
        raise ValueError(
            f"cluster={cluster!r}: it must be None for threads, 'processes' for processes of this machine, 'local' for "
            "a Ray cluster on this machine alone, or 'host:port', the address of a Ray cluster"
        )


class workers:  # noqa: N801 - reads as a verb: `with workers(n_jobs) as pool`
    """Start workers for a ``with`` block and let go of them at its end.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads or processes; None is one, -1 all cores. A cluster at an address has its own number.
    cluster : None, "processes", "local" or "host:port"
        Threads, processes of this machine, Ray on this machine, or the Ray cluster at an address.

    Examples
    --------
    >>> with workers(2) as pool:
    ...     list(pool.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None, cluster: str | None = None) -> None:
        check_cluster(cluster)
        self._workers = _make(count_workers(n_jobs), cluster)

    def __enter__(self) -> Workers:
        return self._workers

    def __exit__(self, *exception: object) -> None:
        self._workers.close()


def _make(n_workers: int, cluster: str | None) -> Workers:
    if cluster is None:
        return Serial() if n_workers == 1 else Threads(n_workers)
    if cluster == "processes":
        from abound.distribute.processes import Processes

        return Processes(n_workers)
    from abound.distribute.ray_cluster import RayCluster

    return RayCluster(n_workers, None if cluster == "local" else cluster)
