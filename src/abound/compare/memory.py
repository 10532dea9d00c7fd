"""How much memory this process has used, has left, and may use."""

from __future__ import annotations

import sys

from abound.memory import KILOBYTE, kernel_figure

USABLE = 0.9
"""Part of the free memory that one experiment may take unless told otherwise."""


def peak_memory() -> int | None:
    """Return the largest number of bytes that this process has had in memory.

    Returns
    -------
    int or None
        None where the system does not tell.
    """
    # The system's own counter, as `getrusage` gives it, begins with what the parent process had.
    found = kernel_figure("/proc/self/status", "VmHWM")
    if found is not None:
        return found
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * KILOBYTE


def usable_memory() -> int | None:
    """Return the bytes that one experiment may take unless the user says otherwise.

    Returns
    -------
    int or None
        None where the system does not tell what is free.
    """
    free = kernel_figure("/proc/meminfo", "MemAvailable")
    return None if free is None else int(free * USABLE)


def limit_memory(n_bytes: int | None) -> None:
    """Make this process fail with a MemoryError where it asks for more.

    Parameters
    ----------
    n_bytes : int or None
        The limit; None for none. Mapped files do not count.
    """
    if n_bytes is None:
        return
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (n_bytes if hard < 0 else min(n_bytes, hard), hard))
