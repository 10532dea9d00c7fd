"""A model file and its journal, followed: what the model has learned so far, from the newest snapshot on.

The file itself is never written. Its corrections are in the journal, and a snapshot beside it, which says up to which
entry it has learned, saves replaying all of them at every start.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from pathlib import Path
from typing import NamedTuple

from abound.learn.model import Model
from abound.serve.journal import Entry, Journal, JournalError
from abound.serve.student import Outcome, Student, can_learn, one_thread, own_copy
from abound.serve.version import InputError
from abound.store import ModelFileError

JOURNAL, MARK, ENTRY, BASE = "journal", "journal_mark", "journal_entry", "journal_base"
"""Entries of a model file's header: the journal it has learned from, up to which entry, the fingerprint of that entry,
and what it began from."""

NUMBER = re.compile("[0-9]{1,18}")

MAX_HEADER = 100 * 2**20

log = logging.getLogger("abound.serve")


class Signature(NamedTuple):
    """What tells a file from the one that takes its place."""

    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> Signature:
        """Look at a file.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        Signature
            Its signature.
        """
        found = os.stat(path)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class Learned(NamedTuple):
    """An entry and what became of it."""

    entry: Entry
    outcome: Outcome


def file_version(path: Path) -> str:
    """Name what is in a model file: a digest of its header, which holds the checksums of all arrays.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        Twelve hexadecimal digits.
    """
    with open(path, "rb") as file:
        length = min(int.from_bytes(file.read(8), "little"), MAX_HEADER)
        return hashlib.blake2b(file.read(length), digest_size=6).hexdigest()


def snapshot_path(model: Path) -> Path:
    """Return where the snapshot of a model file is.

    Parameters
    ----------
    model : Path
        The model file.

    Returns
    -------
    Path
        Beside it.
    """
    return model.with_name(model.name + ".snapshot")


class Follower:
    """The model of a file, with the corrections of a journal.

    Parameters
    ----------
    path : Path
        The model file.
    journal : Journal or None
        Its journal; None if there is nothing to learn.
    use_snapshot : bool
        Whether to go on from a snapshot, if there is one.
    trust : bool
        See `Model.load`.

    Attributes
    ----------
    base : str
        The version of the file.
    applied : int
        The last entry of the journal that has been looked at.
    """

    base: str
    applied: int
    _model: Model
    _skipped: set[int]
    _student: Student | None

    def __init__(self, path: Path, journal: Journal | None, *, use_snapshot: bool = True, trust: bool = False) -> None:
        self.path = path
        self.journal = journal
        self._trust = trust
        before = None
        while before != (signature := Signature.of(self.path)):
            model, version = one_thread(Model.load(self.path, trust=trust)), file_version(self.path)
            before = signature
        self.signature, self.base, self._file = signature, version, model
        self.base_mark = self._checked_mark(model)
        self._begin_again()
        if use_snapshot:
            self._restore_snapshot()

    def is_replaced(self) -> bool:
        """Tell whether another file has taken the model file's place; one that is missing has not."""
        try:
            return Signature.of(self.path) != self.signature
        except FileNotFoundError:
            return False

    @property
    def can_learn(self) -> bool:
        """Whether the model can learn corrections; if not, the journal waits for one that can."""
        return can_learn(self._model)

    @property
    def version(self) -> str:
        """The version of the model as it is now: the file's, and the last entry that it has learned."""
        return f"{self.base}-{self.applied}"

    def freeze(self) -> Model:
        """Return the model as it is now; it never changes."""
        return self._model if self._student is None else self._student.freeze()

    def advance(self, limit: int = 100) -> list[Learned]:
        """Learn what the journal holds beyond what is known.

        Parameters
        ----------
        limit : int
            How many entries at most.

        Returns
        -------
        list of Learned
            The corrections that were learned, in order; empty once there is nothing more.
        """
        if self.journal is None or not self.can_learn:
            return []
        entries = self.journal.after(self.applied, limit)
        undone = self.journal.undone(self.applied) if entries else {}
        learned: list[Learned] = []
        for entry in entries:
            if entry.undoes is not None and self._must_begin_again(entry):
                self._begin_again()
                return learned
            if entry.correction is not None and entry.id in undone:
                self._skipped.add(entry.id)
            elif entry.correction is not None:
                learned.append(Learned(entry, self._learn(entry)))
            self.applied = entry.id
        return learned

    def catch_up(self) -> int:
        """Learn everything that the journal holds.

        Returns
        -------
        int
            How many corrections were learned.
        """
        n_learned = 0
        while self.journal is not None and self.can_learn and self.applied < self.journal.last():
            n_learned += len(self.advance())
        return n_learned

    def save_snapshot(self) -> bool:
        """Write a snapshot, unless there is nothing new to write or another process has written a newer one.

        Returns
        -------
        bool
            Whether it was written.
        """
        if self.journal is None or self._student is None or self._snapshot_mark() >= self.applied:
            return False
        self._student.save(snapshot_path(self.path), {**self._marks(self.journal), BASE: self.base})
        return True

    def save(self, path: Path) -> None:
        """Write the model as a file that can take the place of its own; it says up to which entry it has learned.

        Parameters
        ----------
        path : Path
            Where to.
        """
        if self.journal is None or self._student is None:
            self._model.save(path)
            return
        self._student.model.extra.pop(BASE, None)
        self._student.save(path, self._marks(self.journal))

    def _learn(self, entry: Entry) -> Outcome:
        assert entry.correction is not None
        if self._student is None:
            # The model that ranks stays mapped and as it is.
            self._student = Student(own_copy(self._model))
        try:
            return self._student.learn(entry.correction)
        except InputError as error:
            # It was written before values were limited.
            log.error("entry %d of %s is left out: %s", entry.id, self.journal and self.journal.path, error)
            return Outcome(False, 0)
        except Exception:
            # It was checked before it was written, so this is a fault; the other corrections still count.
            log.exception("entry %d of %s could not be learned", entry.id, self.journal and self.journal.path)
            return Outcome(False, 0)

    def _must_begin_again(self, entry: Entry) -> bool:
        assert entry.undoes is not None
        if entry.undoes <= self.base_mark:
            log.warning("entry %d is part of %s itself and cannot be taken back", entry.undoes, self.path)
            return False
        return entry.undoes not in self._skipped

    def _begin_again(self) -> None:
        self.applied = self.base_mark
        self._model = self._file
        self._skipped = set()
        self._student = None

    def _restore_snapshot(self) -> None:
        """Go on from the snapshot if it belongs to this file and journal and holds nothing that was taken back."""
        snapshot = snapshot_path(self.path)
        if not snapshot.exists():
            return
        if self.journal is None:
            log.warning("%s is left aside: the journal that it has learned from is not there, or empty", snapshot)
            return
        try:
            model = one_thread(Model.load(snapshot, trust=self._trust))
        except (ModelFileError, OSError, ValueError) as error:
            log.warning("the snapshot is left aside: %s", error)
            return
        mark = self._mark(model)
        if mark is None:
            log.warning(
                "%s is left aside: it has learned corrections that %s does not have. Put the journal back that was "
                "there, or they are lost with the next snapshot",
                snapshot,
                self.journal.path,
            )
        if mark is None or mark < self.base_mark or model.extra.get(BASE) != self.base:
            return
        later = (target for target, undo in self.journal.undone().items() if undo > mark)
        if not any(self.base_mark < target <= mark for target in later):
            self._model, self.applied = model, mark

    def _snapshot_mark(self) -> int:
        try:
            model = Model.load(snapshot_path(self.path), trust=self._trust)
        except (ModelFileError, OSError, ValueError):
            return -1
        mark = self._mark(model)
        return mark if mark is not None and model.extra.get(BASE) == self.base else -1

    def _marks(self, journal: Journal) -> dict[str, str]:
        """What a file that is written now says about what it has learned."""
        return {JOURNAL: journal.name, MARK: str(self.applied), ENTRY: journal.fingerprint(self.applied)}

    def _mark(self, model: Model) -> int | None:
        """The last entry that a model file has learned; None if it is not one of this journal."""
        extra, mark = model.extra, model.extra.get(MARK, "")
        if self.journal is None or extra.get(JOURNAL) != self.journal.name or not NUMBER.fullmatch(mark):
            return None
        return int(mark) if extra.get(ENTRY) == self.journal.fingerprint(int(mark)) else None

    def _checked_mark(self, model: Model) -> int:
        """The last entry that is part of the model file itself; says so, or refuses, if this journal lacks it."""
        if JOURNAL not in model.extra:
            return 0
        mark, learned = self._mark(model), f"{self.path} has learned up to entry {model.extra.get(MARK)!r:.20} of"
        if mark is not None:
            return mark
        if self.journal is None:
            log.warning("%s a journal that is not beside it: none of this can be listed or taken back", learned)
        elif model.extra[JOURNAL] != self.journal.name:
            log.warning(
                "%s another journal than %s, which begins anew: nothing before can be taken back",
                learned,
                self.journal.path,
            )
        else:
            raise JournalError(
                f"{learned} {self.journal.path}, which does not have this entry: it is an older copy, and what it gets "
                "would never be learned. Put the newer one back, or remove it to begin anew"
            )
        return 0
