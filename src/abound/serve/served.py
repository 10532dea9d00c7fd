"""A model in use: the version that ranks now, and the thread that makes the next one.

The thread looks for a new model file, learns what the journal holds, and publishes a version by swapping one reference.
Requests that began with the old one end with it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from abound.serve.appending import Appender
from abound.serve.follower import Follower, Learned, Signature
from abound.serve.journal import Correction, Journal, Proposal, StorageError, is_journal_empty, journal_path
from abound.serve.student import warm_up
from abound.serve.turns import TURN
from abound.serve.version import Version

LISTEN = 0.2
"""Seconds between looks at the journal; a correction that comes through this process is seen at once."""

LOOK = 1.0
"""Seconds between looks at the model file."""

PUBLISH = 0.5
"""Least seconds between two versions; so that a correction counts within a second."""

GATHER = 0.05
"""Seconds to wait for more corrections before learning: one turn for ten costs much less than ten turns."""

AT_ONCE, PAUSE = 4, 0.002
"""Corrections that are learned while answers wait, and seconds that are left to answers before the next."""

SNAPSHOT_SECONDS, SNAPSHOT_ENTRIES = 60.0, 1000
"""A snapshot is written when something was learned and so much time or so many corrections have passed."""

RECENT = 50
"""Corrections that the history shows."""

log = logging.getLogger("abound.serve")


class ServedModel:
    """A model file that is served.

    Parameters
    ----------
    name : str
        Its name in addresses.
    path : Path
        The file.
    accepts : bool
        Whether corrections are accepted; those of the journal count in any case.
    trust : bool
        See `Model.load`.

    Attributes
    ----------
    version : Version
        The version that ranks now.
    """

    version: Version

    def __init__(self, name: str, path: Path, *, accepts: bool = False, trust: bool = False) -> None:
        self.name = name
        self.path = path
        self._trust = trust
        self.n_suggested = 0
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._wake, self._stop = Event(), Event()
        self._lock = Lock()
        self._waiting: list[tuple[int, Future[None]]] = []
        self._coming: dict[str, int] = {}
        self._published = self._looked = self._saved = time.monotonic()
        self._cost = 0.0
        self._fault = ""
        self._bad: tuple[Signature | None, Signature | None] | None = None
        self._journal = self._open_journal(create=accepts)
        if self._journal is not None and not self._journal.last():
            log.info("%s: %s has no entry yet; corrections begin with entry 1", name, self._journal.path)
        self._follower = Follower(path, self._journal, trust=trust)
        if accepts and self._follower.can_learn:
            warm_up(self._follower.freeze())
        self._unsaved = self._follower.catch_up()
        if self._unsaved >= SNAPSHOT_ENTRIES:
            # A server that is killed again and again would replay more and more.
            self._save_snapshot()
        self._remember_last()
        self._show(self._make_version(self._follower))
        self._appender = Appender(self._journal) if accepts and self._journal is not None else None
        self._thread = Thread(target=self._run, name=f"abound-learn-{name}", daemon=True)
        self._thread.start()

    @property
    def accepts(self) -> bool:
        """Whether corrections are taken: there is a token, and the model that is in use can learn."""
        return self._appender is not None and self._follower.can_learn

    def close(self) -> None:
        """Write what still waits, then a snapshot, and end the threads."""
        if self._appender is not None:
            self._appender.close()
        self._stop.set()
        self._wake.set()
        self._thread.join()
        if self._journal is not None:
            self._journal.close()

    def append(self, correction: Correction, request: str | None) -> Future[int]:
        """Write a correction into the journal.

        Parameters
        ----------
        correction : Correction
            What is right.
        request : str or None
            The client's name for it.

        Returns
        -------
        Future
            Its entry, once it is on the disk.
        """
        assert self._appender is not None
        future = self._appender.append(Proposal(correction, self.version.name, request))
        future.add_done_callback(lambda _: self._wake.set())
        return future

    def announce(self, labels: Iterable[str], entry: int) -> None:
        """Take note of classes that are on their way: they may be named before they are learned.

        Parameters
        ----------
        labels : iterable of str
            Their labels.
        entry : int
            The entry that names them.
        """
        with self._lock:
            if entry > self.version.mark:
                self._coming.update(dict.fromkeys(labels, entry))

    def knows(self, label: str) -> bool:
        """Tell whether a class is known or on its way.

        Parameters
        ----------
        label : str
            Its label.

        Returns
        -------
        bool
            Whether corrections may name it.
        """
        return label in self.version.class_ids or label in self._coming

    def when_learned(self, entry: int) -> Future[None]:
        """Wait for a correction to count.

        Parameters
        ----------
        entry : int
            Its entry.

        Returns
        -------
        Future
            Done once a version that has learned it ranks.
        """
        future: Future[None] = Future()
        # Who gives up waiting does not take it away from the thread that sets it.
        future.set_running_or_notify_cancel()
        with self._lock:
            if self.version.mark >= entry:
                future.set_result(None)
            else:
                self._waiting.append((entry, future))
        return future

    def describe(self) -> dict[str, Any]:
        """Return what there is to say about the model and what it has learned."""
        version, journal = self.version, self._journal
        learner = version.model.estimator
        last = 0 if journal is None else journal.last()
        return {
            "name": self.name,
            "version": version.name,
            "learner": learner.learner,
            "takes": version.takes,
            "first_feature": version.first_feature,
            "classes": version.n_classes,
            "features": learner.n_features_in_,
            "edges": learner.n_edges_,
            "bytes": self._follower.signature.size,
            "taxonomy": version.model.taxonomy is not None,
            "suggestions": self.n_suggested,
            "learning": {
                "possible": self._follower.can_learn,
                "accepted": self.accepts,
                "corrections": 0 if journal is None else journal.count(),
                "waiting": max(0, last - version.mark),
                "recent": list(self._recent)[::-1],
            },
        }

    def _open_journal(self, *, create: bool) -> Journal | None:
        path = journal_path(self.path)
        return Journal(path, create=create) if create or not is_journal_empty(path) else None

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(LISTEN)
            self._stop.wait(GATHER)
            self._wake.clear()
            try:
                while self._turn() and not self._stop.is_set():
                    pass
                self._fault = ""
            except Exception as error:
                self._say("learning goes on after an error", error)
        try:
            self._show(self._make_version(self._follower))
        except Exception as error:
            self._say("the last corrections were learned, but not shown", error)
        self._save_snapshot()

    def _turn(self) -> bool:
        """Do what there is to do; tell whether there may be more."""
        if time.monotonic() - self._looked >= LOOK:
            self._look()
        with TURN:
            learned = self._follower.advance(AT_ONCE)
        time.sleep(PAUSE)
        self._note(learned)
        is_new = self._follower.version != self.version.name
        if is_new and time.monotonic() - self._published >= max(PUBLISH, 3 * self._cost):
            self._show(self._make_version(self._follower))
        waited = time.monotonic() - self._saved
        if self._unsaved and (waited >= SNAPSHOT_SECONDS or self._unsaved >= SNAPSHOT_ENTRIES):
            self._save_snapshot()
        if learned:
            return True
        if self._follower.version != self.version.name:
            time.sleep(0.02)
            return True
        return False

    def _look(self) -> None:
        """Take up another model file, or a journal that was not there before; if that fails, all stays as it is."""
        self._looked = time.monotonic()
        found = _signature(self.path), None if self._journal else _signature(journal_path(self.path))
        if found == self._bad:
            return
        is_new = self._journal is None and not is_journal_empty(journal_path(self.path))
        if not is_new and not self._follower.is_replaced():
            return
        journal = self._journal
        try:
            journal = journal or self._open_journal(create=False)
            follower = Follower(self.path, journal, trust=self._trust)
            follower.catch_up()
            version = self._make_version(follower)
        except Exception as error:
            self._bad = found
            log.error("%s: the new file is not taken up: %s", self.name, error)
            if journal is not None and journal is not self._journal:
                journal.close()
            return
        self._journal, self._follower = journal, follower
        self._show(version)
        log.info("%s: version %s is in use", self.name, version.name)

    def _make_version(self, follower: Follower) -> Version:
        begin = time.monotonic()
        before = getattr(self, "version", None)
        if before is not None and not before.name.startswith(follower.base):
            before = None
        version = Version(follower.version, follower.applied, follower.freeze(), before)
        version.warm_up()
        self._cost = time.monotonic() - begin
        return version

    def _show(self, version: Version) -> None:
        """Let a version rank, and tell who waits for what it has learned."""
        self._published = time.monotonic()
        with self._lock:
            self.version = version
            self._coming = {label: entry for label, entry in self._coming.items() if entry > version.mark}
            done = [future for entry, future in self._waiting if entry <= version.mark]
            self._waiting = [(entry, future) for entry, future in self._waiting if entry > version.mark]
        for future in done:
            future.set_result(None)

    def _save_snapshot(self) -> None:
        """Write a snapshot; without one nothing is lost, but the next start takes longer."""
        self._saved, n_unsaved, self._unsaved = time.monotonic(), self._unsaved, 0
        try:
            self._follower.save_snapshot()
        except Exception as error:
            # Not at every turn: it is tried again after a while.
            self._unsaved = min(n_unsaved, 1)
            self._say("no snapshot was written; the next start replays the journal from the last one", error)

    def _say(self, what: str, error: Exception) -> None:
        """Log a fault, but not again at every turn."""
        if repr(error) == self._fault:
            return
        self._fault = repr(error)
        is_foreseen = isinstance(error, StorageError | OSError)
        log.error("%s: %s: %s", self.name, what, error, exc_info=None if is_foreseen else error)

    def _note(self, learned: list[Learned]) -> None:
        self._unsaved += len(learned)
        for entry, outcome in learned:
            self._recent.append(_shown(entry) | {"was_right": outcome.was_right, "tries": outcome.tries})

    def _remember_last(self) -> None:
        """Show what was learned before the start as well; how it went is not known any more."""
        if self._journal is not None:
            undone = self._journal.undone()
            for entry in self._journal.after(max(0, self._journal.last() - RECENT), RECENT):
                if entry.correction is not None and entry.id not in undone:
                    self._recent.append(_shown(entry) | {"was_right": None, "tries": None})


def _signature(path: Path) -> Signature | None:
    try:
        return Signature.of(path)
    except OSError:
        return None


def _shown(entry: Any) -> dict[str, Any]:
    """An entry without what it was about: texts may be private."""
    return {"entry": entry.id, "at": entry.at, "labels": [str(label) for label in entry.correction.labels]}
