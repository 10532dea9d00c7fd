"""Requests that wait at the same time are ranked in one call: what a call costs beside its rows is paid once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from abound.serve.turns import TURN

Question = TypeVar("Question")
Answer = TypeVar("Answer")

MOST = 64
"""Requests in one call."""


@dataclass(slots=True)
class Waiting(Generic[Question, Answer]):
    """A request that waits for its turn."""

    question: Question
    future: asyncio.Future[Answer]
    loop: asyncio.AbstractEventLoop
    since: float = field(default_factory=time.perf_counter)


class Batcher(Generic[Question, Answer]):
    """A thread that answers whatever waits, all at once.

    Parameters
    ----------
    answer : callable
        Takes questions and for how many seconds each has waited, and returns as many answers. An answer that is an
        exception is raised where it was asked for.

    Examples
    --------
    >>> batcher = Batcher(lambda questions, waited: [question + 1 for question in questions])
    >>> asyncio.run(batcher.ask(41))
    42
    >>> batcher.close()
    """

    def __init__(self, answer: Callable[[Sequence[Question], Sequence[float]], Sequence[Answer | Exception]]) -> None:
        self._answer = answer
        self._queue: SimpleQueue[Waiting[Question, Answer] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="abound-rank", daemon=True)
        self._thread.start()

    async def ask(self, question: Question) -> Answer:
        """Ask and wait.

        Parameters
        ----------
        question : object
            The question.

        Returns
        -------
        object
            The answer.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._queue.put(Waiting(question, future, loop))
        return await future

    def close(self) -> None:
        """Answer what still waits and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            taken = [self._queue.get()]
            while len(taken) < MOST and not self._queue.empty():
                taken.append(self._queue.get())
            goes_on = None not in taken
            waiting = [one for one in taken if one is not None and not one.future.cancelled()]
            if waiting:
                self._answer_all(waiting)

    def _answer_all(self, waiting: list[Waiting[Question, Answer]]) -> None:
        now = time.perf_counter()
        answers: Sequence[Any]
        try:
            with TURN:
                answers = self._answer([one.question for one in waiting], [now - one.since for one in waiting])
        except Exception as error:
            answers = [error] * len(waiting)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for one, answer in zip(waiting, answers, strict=True):
            by_loop.setdefault(one.loop, []).append((one.future, answer))
        for loop, pairs in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, pairs)


def _deliver(pairs: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in pairs:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
