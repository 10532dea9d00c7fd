"""The journal of a model: every correction that was ever acknowledged, in one order, on disk before the answer.

A SQLite file beside the model, in write-ahead mode and synced at every commit. Nothing in it is ever changed or
deleted: an entry that takes back another one is appended as well. What a model has learned is therefore a function of
its file and of the journal, and every process that follows the journal arrives at the same model.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

FORMAT = "1"

CHUNK = 500
"""Entries read at a time."""

TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    version TEXT NOT NULL,
    request TEXT UNIQUE,
    content TEXT,
    undoes INTEGER UNIQUE REFERENCES entries (id),
    CHECK ((content IS NULL) <> (undoes IS NULL))
);
"""


class JournalError(ValueError):
    """The journal cannot do what was asked."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What somebody says is right.

    Parameters
    ----------
    labels : tuple of str or int
        The classes.
    text : str or None
        The text; None for a model of vectors.
    features : tuple of (int, float) or None
        The vector: columns from 0 and their values.
    title : str or None
        What to show for a new class.
    """

    labels: tuple[Any, ...]
    text: str | None = None
    features: tuple[tuple[int, float], ...] | None = None
    title: str | None = None

    def to_json(self) -> str:
        """Write it down."""
        content: dict[str, Any] = {"labels": list(self.labels)}
        for name in ("text", "features", "title"):
            if getattr(self, name) is not None:
                content[name] = getattr(self, name)
        return json.dumps(content, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, content: str) -> Correction:
        """Read what `to_json` wrote.

        Parameters
        ----------
        content : str
            JSON.

        Returns
        -------
        Correction
            The same.
        """
        read = json.loads(content)
        features = read.get("features")
        return cls(
            tuple(read["labels"]),
            read.get("text"),
            None if features is None else tuple((int(column), float(value)) for column, value in features),
            read.get("title"),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the journal.

    Parameters
    ----------
    id : int
        Its place in the one order.
    at : str
        When it was written, UTC.
    version : str
        The version of the model that the correction was made against.
    request : str or None
        The client's own name for it; the same name is never learned twice.
    correction : Correction or None
        What to learn; None in an entry that takes another one back.
    undoes : int or None
        The entry that is taken back.
    """

    id: int
    at: str
    version: str
    request: str | None
    correction: Correction | None
    undoes: int | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A correction that is to be written.

    Parameters
    ----------
    correction : Correction
        What to learn.
    version : str
        The version of the model that it was made against.
    request : str or None
        The client's own name for it.
    """

    correction: Correction
    version: str
    request: str | None = None


class Journal:
    """The journal file of one model; safe to use from several threads, and by several processes at once.

    Parameters
    ----------
    path : path
        The file.
    create : bool
        Make it if it is not there.

    Attributes
    ----------
    name : str
        A name that no other journal has; snapshots hold it.

    Examples
    --------
    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "journal", create=True)
    >>> journal.append([Proposal(Correction(("tea",), "green leaf"), "v1", "mine")])
    [1]
    >>> journal.append([Proposal(Correction(("tea",), "green leaf"), "v1", "mine")])
    [1]
    >>> journal.undo(1, "v1")
    2
    >>> [entry.id for entry in journal.after(0)], journal.undone()
    ([1, 2], {1: 2})
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if not create and not path.exists():
            raise JournalError(f"{path}: there is no journal; a server that was started with a token makes one")
        self.path = path
        self._lock = RLock()
        try:
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self.name = self._prepare()
        except sqlite3.DatabaseError as error:
            raise JournalError(f"{path}: this is no journal, or it cannot be opened ({error})") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def append(self, proposals: Sequence[Proposal]) -> list[int]:
        """Write corrections, all in one transaction: when this returns, they are on the disk.

        Parameters
        ----------
        proposals : sequence of Proposal
            What to write. One whose request is there already is not written again.

        Returns
        -------
        list of int
            The entry of each; less than 0 where the request was used for another correction, and nothing was written.
        """
        at = _now()
        with self._writing() as connection:
            return [self._append_one(connection, proposal, at) for proposal in proposals]

    def undo(self, entry: int, version: str) -> int:
        """Take an entry back.

        Parameters
        ----------
        entry : int
            The entry.
        version : str
            The version of the model now.

        Returns
        -------
        int
            The entry that says so.
        """
        with self._writing() as connection:
            row = connection.execute("SELECT undoes FROM entries WHERE id = ?", (entry,)).fetchone()
            if row is None:
                raise JournalError(f"{self.path} has no entry {entry}")
            if row[0] is not None:
                raise JournalError(f"entry {entry} takes back entry {row[0]}; to learn that again, send it again")
            if connection.execute("SELECT 1 FROM entries WHERE undoes = ?", (entry,)).fetchone():
                raise JournalError(f"entry {entry} has been taken back already")
            cursor = connection.execute(
                "INSERT INTO entries (at, version, undoes) VALUES (?, ?, ?)", (_now(), version, entry)
            )
            return int(cursor.lastrowid or 0)

    def after(self, last: int, limit: int = CHUNK) -> list[Entry]:
        """Read on.

        Parameters
        ----------
        last : int
            The last entry that is known.
        limit : int
            How many at most.

        Returns
        -------
        list of Entry
            The next ones, in order.
        """
        query = "SELECT id, at, version, request, content, undoes FROM entries WHERE id > ? ORDER BY id LIMIT ?"
        with self._lock:
            rows = self._connection.execute(query, (last, limit)).fetchall()
        return [
            Entry(number, at, version, request, None if content is None else Correction.from_json(content), undoes)
            for number, at, version, request, content, undoes in rows
        ]

    def entries(self) -> Iterator[Entry]:
        """Read all, in order.

        Yields
        ------
        Entry
            The next one.
        """
        last = 0
        while chunk := self.after(last):
            yield from chunk
            last = chunk[-1].id

    def undone(self, last: int = 0) -> dict[int, int]:
        """Tell which entries were taken back, and by which.

        Parameters
        ----------
        last : int
            Only those after this entry.

        Returns
        -------
        dict of int to int
            The entry that takes back, by the one that is taken back.
        """
        with self._lock:
            rows = self._connection.execute("SELECT undoes, id FROM entries WHERE undoes > ?", (last,)).fetchall()
        return dict(rows)

    def last(self) -> int:
        """Return the last entry, 0 if there is none."""
        with self._lock:
            return int(self._connection.execute("SELECT COALESCE(MAX(id), 0) FROM entries").fetchone()[0])

    def count(self) -> int:
        """Count the corrections that were not taken back."""
        query = "SELECT COUNT(content) - COUNT(undoes) FROM entries"
        with self._lock:
            return int(self._connection.execute(query).fetchone()[0])

    def _append_one(self, connection: sqlite3.Connection, proposal: Proposal, at: str) -> int:
        content = proposal.correction.to_json()
        if proposal.request is not None:
            query = "SELECT id, content FROM entries WHERE request = ?"
            known = connection.execute(query, (proposal.request,)).fetchone()
            if known is not None:
                return int(known[0]) if known[1] == content else -int(known[0])
        cursor = connection.execute(
            "INSERT INTO entries (at, version, request, content) VALUES (?, ?, ?, ?)",
            (at, proposal.version, proposal.request, content),
        )
        return int(cursor.lastrowid or 0)

    def _prepare(self) -> str:
        with self._writing() as connection:
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT OR IGNORE INTO about VALUES ('format', ?)", (FORMAT,))
            connection.execute("INSERT OR IGNORE INTO about VALUES ('journal', ?)", (uuid.uuid4().hex,))
            about = dict(connection.execute("SELECT name, value FROM about").fetchall())
        if about["format"] != FORMAT:
            raise JournalError(f"{self.path} was written by another version of abound (format {about['format']})")
        return str(about["journal"])

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block or nothing."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def journal_path(model: Path) -> Path:
    """Return where the journal of a model file is.

    Parameters
    ----------
    model : Path
        The model file.

    Returns
    -------
    Path
        Beside it.
    """
    return model.with_name(model.name + ".journal")


def is_journal_empty(path: Path) -> bool:
    """Tell whether there is nothing to follow.

    Parameters
    ----------
    path : Path
        The journal file, which need not exist.

    Returns
    -------
    bool
        True if it is not there or has no entry.
    """
    if not path.exists():
        return True
    with closing(Journal(path)) as journal:
        return journal.last() == 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
