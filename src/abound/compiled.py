"""The one decorator behind every compiled kernel.

A kernel takes arrays and numbers, releases the GIL and is compiled once for the machine it runs on. Numba keeps the
machine code beside the source, or in ``NUMBA_CACHE_DIR``; where neither can be written (a read-only install) the
kernels are compiled anew in each process and one warning says so.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_can_cache: bool | None = None


def _cache_is_writable() -> bool:
    """Tell whether Numba has a folder to keep machine code in; warn once if it has none."""
    global _can_cache
    if _can_cache is None:
        folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent)
        user_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        _can_cache = _writable(folder) or _writable(user_folder)
        if not _can_cache:
            warnings.warn(
                f"abound compiles its kernels anew in every process: neither {folder} nor {user_folder} can be "
                "written. Set NUMBA_CACHE_DIR to a writable folder to keep the machine code.",
                RuntimeWarning,
                stacklevel=2,
            )
    return _can_cache


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays: no GIL, cached on disk where possible, arithmetic as written (no fastmath).

    Parameters
    ----------
    function : callable
        A function in Numba's nopython subset.

    Returns
    -------
    callable
        The compiled function.
    """
    compiled: Callable[..., Any] = numba.njit(nogil=True, cache=_cache_is_writable())(function)
    return compiled
