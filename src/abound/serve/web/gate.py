"""What every request passes: the limit on its body, the headers of its answer, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping
from typing import Any

from abound.serve.web.problems import ProblemError, problem_response

Scope = dict[str, Any]
Message = MutableMapping[str, Any]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)

HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

NO_STORE = (b"cache-control", b"no-store")


class Gate:
    """An ASGI application around another one.

    Parameters
    ----------
    app : ASGI application
        What answers.
    max_body : int
        Bytes that a body may have.
    saw_request : callable
        Takes the route, the status and the seconds of each request.
    """

    def __init__(self, app: Any, max_body: int, saw_request: Callable[[str, int, float], None]) -> None:
        self._app = app
        self._max_body = max_body
        self._saw_request = saw_request

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        scope["abound.begin"] = begin
        status = 500
        n_received = 0

        async def receive_some() -> Message:
            nonlocal n_received
            message: Message = await receive()
            n_received += len(message.get("body", b""))
            if n_received > self._max_body:
                raise self._too_large()
            return message

        async def send_more(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"]
                headers.extend(HEADERS)
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(NO_STORE)
                headers.append((b"server-timing", self._timing(scope, begin)))
            await send(message)

        try:
            length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
            if length.isdigit() and int(length) > self._max_body:
                await problem_response(self._too_large())(scope, receive, send_more)
            else:
                await self._app(scope, receive_some, send_more)
        finally:
            route = scope.get("route")
            self._saw_request(getattr(route, "path", "none"), status, time.perf_counter() - begin)

    def _too_large(self) -> ProblemError:
        # What is left of the body is not read, so the connection is of no more use.
        return ProblemError(413, f"the body has more than {self._max_body} bytes", headers={"connection": "close"})

    @staticmethod
    def _timing(scope: Scope, begin: float) -> bytes:
        total = time.perf_counter() - begin
        steps = [*scope.get("abound.steps", ()), ("total", total)]
        return ", ".join(f"{name};dur={1000 * seconds:.3f}" for name, seconds in steps).encode()
