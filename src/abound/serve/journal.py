"""The journal of a model: every correction that was ever acknowledged, in one order, on disk before the answer.

A SQLite file beside the model, in write-ahead mode and synced at every commit. Nothing in it is ever changed or
deleted: an entry that takes back another one is appended as well. What a model has learned is therefore a function of
its file and of the journal, and every process that follows the journal arrives at the same model.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
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


REMEDY = (
    "Stop the server, keep a copy, and put a backup in its place, or what `sqlite3 {path} .recover` can save; without "
    "the files {path}* the corrections begin anew"
)

DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class JournalError(ValueError):
    """The journal cannot do what was asked."""


class StorageError(JournalError):
    """The journal cannot be read or written: a full disk, a damaged file, a file that is gone."""


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
        self._counted = (0, 0)
        self._place: tuple[int, int] | None = None
        with self._told():
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            with self._told():
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=FULL")
                self.name = self._prepare()
            self._place = self._look()
        except BaseException:
            self._connection.close()
            raise

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
        return [self._entry(*row) for row in self._read(query, last, limit)]

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
        return dict(self._read("SELECT undoes, id FROM entries WHERE undoes > ?", last))

    def last(self) -> int:
        """Return the last entry, 0 if there is none."""
        return int(self._read("SELECT COALESCE(MAX(id), 0) FROM entries")[0][0])

    def fingerprint(self, entry: int) -> str:
        """Digest an entry: a journal that was put back from an older copy has another one of the same number.

        Parameters
        ----------
        entry : int
            The entry.

        Returns
        -------
        str
            Sixteen hexadecimal digits; nothing if there is no such entry.
        """
        rows = self._read("SELECT at, version, request, content, undoes FROM entries WHERE id = ?", entry)
        return hashlib.blake2b(json.dumps(rows[0]).encode(), digest_size=8).hexdigest() if rows else ""

    def count(self) -> int:
        """Count the corrections that were not taken back."""
        with self._lock:
            # Nothing is ever changed, so only what is new has to be counted: anybody may ask, as often as he likes.
            last, n = self._counted
            query = "SELECT COALESCE(MAX(id), ?), COUNT(content) - COUNT(undoes) FROM entries WHERE id > ?"
            last, more = self._read(query, last, last)[0]
            self._counted = (last, n + more)
            return n + int(more)

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
        if self._connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0:
            with self._writing() as connection:
                for statement in TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute("INSERT OR IGNORE INTO about VALUES ('format', ?)", (FORMAT,))
                connection.execute("INSERT OR IGNORE INTO about VALUES ('journal', ?)", (uuid.uuid4().hex,))
        about = dict(self._connection.execute("SELECT name, value FROM about").fetchall())
        if about.get("format") != FORMAT or "journal" not in about:
            found = about.get("format", "none")
            raise JournalError(f"{self.path} was written by another version of abound (format {found})")
        return str(about["journal"])

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._lock, self._told():
            return self._connection.execute(query, values).fetchall()

    def _entry(
        self, number: int, at: str, version: str, request: str | None, content: str | None, undoes: int | None
    ) -> Entry:
        try:
            correction = None if content is None else Correction.from_json(content)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            problem = f"{self.path}: entry {number} is damaged ({type(error).__name__})"
            raise StorageError(f"{problem}. {REMEDY.format(path=self.path)}") from None
        return Entry(number, at, version, request, correction, undoes)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block or nothing."""
        with self._lock, self._told():
            if self._place is not None and self._place != self._look():
                raise StorageError(f"{self.path} is not the journal that was opened; start the server anew")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise

    def _look(self) -> tuple[int, int] | None:
        """What tells the file from one that takes its place; None if there is none."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell what the database says in words that name the file and what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE:
                problem = f"{self.path}: this is no journal, or it is damaged ({error})"
                raise StorageError(f"{problem}. {REMEDY.format(path=self.path)}") from None
            problem = f"{self.path} cannot be read or written ({error})"
            raise StorageError(f"{problem}. Look at the disk, its space, and who may write there") from None


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
