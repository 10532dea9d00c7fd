"""What every request passes: the names that are answered to, the limit on its body, its headers, and the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, MutableMapping
from typing import Any

from abound.serve.web.hosts import host_name
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

HEALTH = "/v2/health/"
"""Who watches a server asks it by its address: these are answered under any name, and tell nothing."""

NO_STORE = (b"cache-control", b"no-store")


class Gate:
    """An ASGI application around another one.

    Parameters
    ----------
    app : ASGI application
        What answers.
    max_body : int
        Bytes that a body may have.
    names : collection of str or None
        The hosts that are answered to; None if any is.
    saw_request : callable
        Takes the route, the status and the seconds of each request.
    """

    def __init__(
        self,
        app: Any,
        max_body: int,
        names: Collection[str] | None,
        saw_request: Callable[[str, int, float], None],
    ) -> None:
        self._app = app
        self._max_body = max_body
        self._names = names
        self._saw_request = saw_request

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        scope["abound.begin"] = begin
        status, is_answered = 500, False
        n_received = 0

        async def receive_some() -> Message:
            nonlocal n_received
            message: Message = await receive()
            n_received += len(message.get("body", b""))
            if n_received > self._max_body:
                raise self._too_large()
            return message

        async def send_more(message: Message) -> None:
            nonlocal status, is_answered
            if message["type"] == "http.response.start":
                status, is_answered = message["status"], True
                headers = message["headers"]
                headers.extend(HEADERS)
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(NO_STORE)
                headers.append((b"server-timing", self._timing(scope, begin)))
            await send(message)

        try:
            self._check_host(scope)
            length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
            if length.isdigit() and int(length) > self._max_body:
                raise self._too_large()
            await self._app(scope, receive_some, send_more)
        except ProblemError as problem:
            await problem_response(problem)(scope, receive, send_more)
        except asyncio.CancelledError:
            # The server ends, and has waited long enough.
            if not is_answered:
                late = ProblemError(503, "the server is stopping", headers={"connection": "close"})
                await problem_response(late)(scope, receive, send_more)
        finally:
            route = scope.get("route")
            self._saw_request(getattr(route, "path", "none"), status, time.perf_counter() - begin)

    def _check_host(self, scope: Scope) -> None:
        if self._names is None or scope["path"].startswith(HEALTH):
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None:
            raise ProblemError(421, "the request must name one host, in a Host header")
        if name not in self._names:
            problem = (
                f"this server does not answer to the name {name[:100]!r}; if it should, start it with --allow-host"
            )
            raise ProblemError(421, f"{problem} {name[:100]}")

    def _too_large(self) -> ProblemError:
        # What is left of the body is not read, so the connection is of no more use.
        return ProblemError(413, f"the body has more than {self._max_body} bytes", headers={"connection": "close"})

    @staticmethod
    def _timing(scope: Scope, begin: float) -> bytes:
        total = time.perf_counter() - begin
        steps = [*scope.get("abound.steps", ()), ("total", total)]
        return ", ".join(f"{name};dur={1000 * seconds:.3f}" for name, seconds in steps).encode()
