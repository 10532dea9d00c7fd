"""A connection that no client can hold for ever, and that takes no more memory than a request needs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from abound.serve.web.problems import ProblemError, problem_response

RATE = 1000
"""Bytes of a body a second that are waited for."""

MOST_HEAD = 64 * 2**10
"""Bytes that the line and the headers of a request may have, and what is in a body beside its content."""

MOST_WAITING = 100
"""Requests that a connection may have sent before their turn."""

MOST_AROUND = 8
"""Bytes that may stand around a byte of content: a piece of one byte has five."""


class Connection(HttpToolsProtocol):
    """HTTP, with limits of time: `timeout_keep_alive` of the server's settings, in seconds.

    The headers are complete after this time, and a body brings `RATE` bytes a second over each such time; a client
    takes its answer, or some of it, and sends its next request within it.
    """

    _clock: asyncio.TimerHandle | None = None
    _write_clock: asyncio.TimerHandle | None = None
    _in_body = False
    _has_begun = False
    _began_now = False
    _n_head = _n_body = _n_piece = _n_around = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._unanswered: deque[RequestResponseCycle] = deque()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first headers."""
        super().connection_made(transport)
        self._wait(self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks, and tell whoever answers that nobody listens."""
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._stop()
        self._stop_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in some bytes, unless they are too many."""
        was_in_body, n_before = self._in_body, self._n_body
        self._began_now = False
        super().data_received(data)
        if self.transport.is_closing():
            self._wait(self.transport.abort)
        elif self._in_body:
            if was_in_body:
                self._n_around += len(data) - (self._n_body - n_before)
            if self._n_around > MOST_HEAD + MOST_AROUND * self._n_body:
                self._refuse(431, "there is more around the body than in it")
            elif self._clock is None:
                self._wait(self._body_is_late)
        elif self._has_begun:
            if not self._began_now:
                self._n_head += len(data)
            if self._n_head > MOST_HEAD:
                self._refuse(431, f"the headers have more than {MOST_HEAD} bytes")
            elif self._clock is None:
                self._wait(self._head_is_late)
        elif not self._is_answering and self._clock is None:
            self._wait(self._head_is_late)

    def on_message_begin(self) -> None:
        """Begin with a request."""
        if len(self.pipeline) >= MOST_WAITING:
            # What is read at once holds thousands of small ones.
            raise ValueError("too many requests at once")
        self._has_begun = self._began_now = True
        self._n_head = self._n_body = self._n_piece = self._n_around = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._in_body = True
        self._stop()

    def on_body(self, body: bytes) -> None:
        """Take in some of the body."""
        self._n_body += len(body)
        self._n_piece += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the answer."""
        self._in_body = self._has_begun = False
        self._stop()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to take the last answer."""
        self._unanswered.popleft()
        super().on_response_complete()
        if self.transport.is_closing():
            self._wait(self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Let go of a client that sends no further request."""
        super().timeout_keep_alive_handler()
        self._wait(self.transport.abort)

    def shutdown(self) -> None:
        """Let go of a client as soon as it has its answer."""
        super().shutdown()
        if self.transport.is_closing():
            self._wait(self.transport.abort)

    def pause_writing(self) -> None:
        """Wait for the client to take what it asked for."""
        super().pause_writing()
        self._stop_writing()
        self._write_clock = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        self._stop_writing()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, "this is not HTTP")

    def _head_is_late(self) -> None:
        if self._is_answering or self.flow.read_paused:
            self._wait(self._head_is_late)
        elif self._has_begun:
            self._refuse(408, f"the headers took longer than {self.timeout_keep_alive:g} s")
        else:
            self.timeout_keep_alive_handler()

    def _body_is_late(self) -> None:
        # What the server itself does not read yet is not late.
        if not self.flow.read_paused and self._n_piece < RATE * self.timeout_keep_alive:
            self._refuse(408, f"the body takes too long: fewer than {RATE} bytes a second have come")
            return
        self._n_piece = 0
        self._wait(self._body_is_late)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: int, detail: str) -> None:
        """Answer with a problem, if no other answer is under way, and end the connection."""
        is_between = self.cycle is None or self.cycle.response_complete
        is_first = self._in_body and not self.pipeline and not self.cycle.response_started
        if is_between or is_first:
            response = problem_response(ProblemError(status, detail, headers={"connection": "close"}))
            lines = [name + b": " + value + b"\r\n" for name, value in response.raw_headers]
            self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", bytes(response.body)]))
        self.transport.close()
        self._wait(self.transport.abort)

    def _wait(self, late: Callable[[], Any]) -> None:
        self._stop()
        self._clock = self.loop.call_later(self.timeout_keep_alive, late)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _stop_writing(self) -> None:
        if self._write_clock is not None:
            self._write_clock.cancel()
            self._write_clock = None
