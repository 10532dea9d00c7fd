"""The rows of experiments as lines of a file: appended whole or not at all, found again by key."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from abound.compare.experiment import Row, plain

BEGINNING = b'{"key":"'
"""How every row begins: what does not is no row that was torn, but somebody else's file."""


class RowFile:
    """A JSONL file that grows; without a path, rows are kept in memory only.

    A process that was killed may have left a torn last line: it is cut off when the file is opened. The newest row of
    a key counts.

    Parameters
    ----------
    path : Path or None
        The file; made if there is none.

    Examples
    --------
    >>> rows = RowFile(None)
    >>> rows.append({"key": "a", "R1": 0.5})
    >>> rows.get("a"), rows.get("b")
    ({'key': 'a', 'R1': 0.5}, None)
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._rows: dict[str, Row] = {}
        self._file: IO[bytes] | None = None
        if path is None:
            return
        self._file = open(path, "a+b", buffering=0)
        try:
            _lock(self._file, path)
            self._repair(self._file, path)
        except BaseException:
            self._file.close()
            raise

    def get(self, key: str) -> Row | None:
        """Return the newest row of a key.

        Parameters
        ----------
        key : str
            See `Experiment.key`.

        Returns
        -------
        dict or None
            None if there is none.
        """
        return self._rows.get(key)

    def append(self, row: Row) -> None:
        """Add a row; when this returns, it is on the disk.

        Parameters
        ----------
        row : dict
            With a ``key``.
        """
        row = plain({"key": row["key"], **row})
        if self._file is not None:
            line = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
            whole = os.fstat(self._file.fileno()).st_size
            try:
                view = memoryview(line)
                while view:
                    view = view[self._file.write(view) or 0 :]
            except BaseException:
                # A full disk or Ctrl-C must not leave half a line in front of the next one.
                with suppress(OSError):
                    self._file.truncate(whole)
                raise
            os.fsync(self._file.fileno())
        self._rows[row["key"]] = row

    def __len__(self) -> int:
        return len(self._rows)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _repair(self, file: IO[bytes], path: Path) -> None:
        file.seek(0)
        lines = file.read().split(b"\n")
        torn = lines.pop()
        for number, line in enumerate(lines, 1):
            row = _parse(line)
            if row is None:
                raise ValueError(f"{path}, line {number}: no row of a comparison; is it the file you meant?")
            self._rows[row["key"]] = row
        if torn:
            if torn[: len(BEGINNING)] != BEGINNING[: len(torn)]:
                raise ValueError(f"{path}, line {len(lines) + 1}: no row of a comparison; is it the file you meant?")
            file.truncate(os.fstat(file.fileno()).st_size - len(torn))


def _parse(line: bytes) -> Row | None:
    try:
        row: Any = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("key"), str) else None


def _lock(file: IO[bytes], path: Path) -> None:
    """Refuse a file that another comparison is writing; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ValueError(f"{path} is being written by another comparison; wait for it, or name another file") from None
