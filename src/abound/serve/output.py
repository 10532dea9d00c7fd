"""What a command prints: one JSON document for programs, or tables for people; both on standard output."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

PIPE_WIDTH = 120
"""Columns of a table that does not go to a terminal."""


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold.

    Parameters
    ----------
    value : object
        Mappings, sequences, NumPy values, paths and anything else that `str` can name.

    Returns
    -------
    object
        Dicts, lists, strings, numbers, booleans and None; None also for what is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"HR": float("inf"), "R1": np.float32(0.5), "degrees": np.arange(3)})
    {'HR': None, 'R1': 0.5, 'degrees': [0, 1, 2]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return str(value)


def write_json(value: Any) -> None:
    """Print one JSON document, in UTF-8.

    Parameters
    ----------
    value : object
        See `plain`.
    """
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=2)
    write_bytes((text + "\n").encode())


def write_bytes(data: bytes) -> None:
    """Print bytes.

    Parameters
    ----------
    data : bytes
        What to print.
    """
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(message: str) -> None:
    """Print a line for people on standard error.

    Parameters
    ----------
    message : str
        The line, without the program's name.
    """
    typer.echo(f"abound: {' '.join(message.split())}", err=True)


def show(*parts: Any) -> None:
    """Print tables and lines.

    Parameters
    ----------
    *parts : str or table
        One after the other.
    """
    from rich.console import Console

    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if narrow else PIPE_WIDTH, highlight=False, markup=False, emoji=False)
    # Rich would end the process when the reader of a pipe has gone; a captured text is written here instead.
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    write_bytes(captured.get().encode(sys.stdout.encoding or "utf-8", "replace"))


def make_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Make a table; columns of numbers are set to the right.

    Parameters
    ----------
    title : str
        What stands above it.
    columns : sequence of str
        The heads.
    rows : iterable of sequences
        The cells; see `cell`.

    Returns
    -------
    rich.console.Group
        For `show`.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    listed = [list(row) for row in rows]
    for i, column in enumerate(columns):
        is_number = any(isinstance(row[i], int | float) for row in listed)
        # Numbers are never cut: a table that is too narrow breaks its words instead.
        table.add_column(Text(column), justify="right" if is_number else "left", no_wrap=is_number)
    for row in listed:
        table.add_row(*(Text(cell(value)) for value in row))
    return Group(*([Text(title, style="bold")] if title else []), table, "")


def cell(value: Any) -> str:
    """Write a value for people.

    Parameters
    ----------
    value : object
        A number, a string, or None for nothing.

    Returns
    -------
    str
        Three places behind the point, thousands apart.

    Examples
    --------
    >>> cell(0.27249), cell(1234567), cell(float("inf")), cell(None), cell(12345.678)
    ('0.272', '1,234,567', '∞', '', '12,346')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "∞" if value > 0 else "" if math.isnan(value) else "-∞"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


def megabytes(n_bytes: int) -> str:
    """Write a size for people.

    Parameters
    ----------
    n_bytes : int
        Bytes.

    Returns
    -------
    str
        Such as ``1.2 MB``, a million bytes each.

    Examples
    --------
    >>> megabytes(1_234_567), megabytes(12_345), megabytes(321)
    ('1.2 MB', '12.3 kB', '321 bytes')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.1f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:,.1f} MB"
