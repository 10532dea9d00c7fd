"""Group commit: corrections that wait at the same time share one transaction, and so one sync of the disk."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread

from abound.serve.journal import Journal, JournalError, Proposal, StorageError

MOST = 256
"""Corrections in one transaction."""

log = logging.getLogger("abound.serve")


class Appender:
    """A thread that writes to a journal whatever waits.

    Parameters
    ----------
    journal : Journal
        Where to.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abound.serve.journal import Correction
    >>> appender = Appender(Journal(Path(tempfile.mkdtemp()) / "journal", create=True))
    >>> appender.append(Proposal(Correction(("tea",), "green leaf"), "v1")).result()
    1
    >>> appender.close()
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: SimpleQueue[tuple[Proposal, Future[int]] | None] = SimpleQueue()
        self._fault = ""
        self._thread = Thread(target=self._run, name="abound-journal", daemon=True)
        self._thread.start()

    def append(self, proposal: Proposal) -> Future[int]:
        """Write a correction.

        Parameters
        ----------
        proposal : Proposal
            What to write.

        Returns
        -------
        Future
            Its entry, once it is on the disk; a `JournalError` if its request was used for something else, a
            `StorageError` if the disk does not take it.
        """
        future: Future[int] = Future()
        self._waiting.put((proposal, future))
        return future

    def close(self) -> None:
        """Write what still waits and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            taken = [self._waiting.get()]
            while len(taken) < MOST and not self._waiting.empty():
                taken.append(self._waiting.get())
            goes_on = None not in taken
            self._write([waiting for waiting in taken if waiting is not None])

    def _write(self, waiting: list[tuple[Proposal, Future[int]]]) -> None:
        # What nobody waits for any more was not acknowledged, and is not written.
        waiting = [(proposal, future) for proposal, future in waiting if future.set_running_or_notify_cancel()]
        try:
            ids = self._journal.append([proposal for proposal, _ in waiting]) if waiting else []
        except Exception as error:
            if isinstance(error, StorageError) and str(error) != self._fault:
                self._fault = str(error)
                log.error("corrections are refused: %s", error)
            for _, future in waiting:
                future.set_exception(error)
            return
        self._fault = ""
        for entry, (proposal, future) in zip(ids, waiting, strict=True):
            if entry > 0:
                future.set_result(entry)
            else:
                problem = f"the id {proposal.request!r} was used for another correction, entry {-entry}"
                future.set_exception(JournalError(problem))
