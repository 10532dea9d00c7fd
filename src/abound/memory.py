"""How much memory there is to spend: sizes as people write them, what a process holds, and refusing too much."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KILOBYTE = 1024
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_bytes(text: str) -> int:
    """Read a size of memory.

    Parameters
    ----------
    text : str
        Such as ``800MB`` or ``2GB``.

    Returns
    -------
    int
        Bytes, a thousand each step.

    Examples
    --------
    >>> parse_bytes("2GB"), parse_bytes("1.5g")
    (2000000000, 1500000000)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?\s*", text.lower())
    if match is None:
        raise ValueError(f"{text!r} is no size; write 800MB or 2GB")
    return int(float(match[1]) * UNITS[match[2]])


def shown_bytes(n_bytes: int) -> str:
    """Write a size as people read it.

    Parameters
    ----------
    n_bytes : int
        The size.

    Returns
    -------
    str
        In MB below a gigabyte, else in GB.

    Examples
    --------
    >>> shown_bytes(5_000_000), shown_bytes(1_250_000_000)
    ('5 MB', '1.25 GB')
    """
    return f"{n_bytes / 1e9:.3g} GB" if n_bytes >= 10**9 else f"{-(-n_bytes // 10**6)} MB"


def check_memory(memory: Any) -> int | None:
    """Read the parameter ``memory`` of a learner.

    Parameters
    ----------
    memory : str, int or None
        What the user set.

    Returns
    -------
    int or None
        Bytes; None for no limit.

    Examples
    --------
    >>> check_memory("4GB"), check_memory(10**9), check_memory(None)
    (4000000000, 1000000000, None)
    """
    if memory is None:
        return None
    whole = isinstance(memory, numbers.Integral) and not isinstance(memory, bool)
    try:
        size = parse_bytes(memory) if isinstance(memory, str) else int(memory) if whole else 0
    except ValueError:
        size = 0
    if size <= 0:
        raise ValueError(f"memory={memory!r}: it must be a size such as '4GB', a whole number of bytes, or None")
    return size


def bytes_in_use() -> int:
    """Return what this process holds in memory now; 0 where the system does not tell."""
    return kernel_figure("/proc/self/status", "VmRSS") or 0


def kernel_figure(file: str, name: str) -> int | None:
    """Read a figure from a file of Linux's kernel.

    Parameters
    ----------
    file, name : str
        The file, and what its line starts with.

    Returns
    -------
    int or None
        Bytes; None where there is no such figure.
    """
    try:
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * KILOBYTE
    except (OSError, ValueError, IndexError):
        pass
    return None


def require_memory(memory: int, needs: Mapping[str, int], advice: str) -> None:
    """Refuse work that would take more than its budget, before it begins.

    Parameters
    ----------
    memory : int
        The budget in bytes, of the whole process.
    needs : mapping of str to int
        The bytes that the work will take at its peak, by what they are for.
    advice : str
        What else could be done about it.

    Raises
    ------
    MemoryError
        With the estimate.

    Examples
    --------
    >>> require_memory(10**6, {"the weights": 10**9}, "use fewer features")
    Traceback (most recent call last):
    ...
    MemoryError: training would take about ... GB: 1 GB for the weights, ...
    """
    in_use = bytes_in_use()
    total = in_use + sum(needs.values())
    if total <= memory:
        return
    parts = [f"{shown_bytes(size)} for {what}" for what, size in needs.items() if 100 * size >= total]
    parts.append(f"{shown_bytes(in_use)} in use already")
    raise MemoryError(
        f"training would take about {shown_bytes(total)}: {', '.join(parts)}. "
        f"That is more than memory={shown_bytes(memory)!r} allows; nothing was done. Give it more, or {advice}"
    )
