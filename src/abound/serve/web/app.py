"""The application: routes, page, errors and limits put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from abound import __version__
from abound.serve.version import InputError
from abound.serve.web.desk import Desk
from abound.serve.web.documented import documented, make_document
from abound.serve.web.gate import Gate
from abound.serve.web.problems import ProblemError, on_problem, problem_response
from abound.serve.web.v1 import make_v1
from abound.serve.web.v2 import make_v2

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""The page's files; nothing else is ever read from the disk for a request."""

METRICS = "text/plain; version=1.0.0; charset=utf-8"

DESCRIPTION = """Ranks very many classes from short texts or sparse vectors, and learns from corrections.

A correction is acknowledged once it is on the disk; it counts within a second. Errors are problem documents (RFC 9457).
"""


def make_app(desk: Desk) -> Any:
    """Make the application.

    Parameters
    ----------
    desk : Desk
        What to serve.

    Returns
    -------
    ASGI application
        It loads the models when it is started, if they are not loaded yet.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if not desk.is_ready:
            await asyncio.to_thread(desk.open)
        yield
        desk.close()

    app = FastAPI(
        title="abound",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.include_router(make_v1(desk))
    app.include_router(make_v2(desk))

    @app.get("/metrics", **documented(None, summary="Figures for Prometheus", media_type="text/plain"))
    async def metrics() -> Response:
        return Response(await desk.run(desk.meters.render), headers={"content-type": METRICS})

    for address, (name, media_type) in PAGE.items():
        app.router.routes.append(Route(address, _page_file(name, media_type), methods=["GET"]))
    for kind in (ProblemError, InputError, ValidationError, ClientDisconnect, HTTPException, Exception):
        app.add_exception_handler(kind, on_problem)
    app.add_exception_handler(RequestValidationError, _on_parameters)
    app.openapi = lambda: _once(app)  # type: ignore[method-assign]
    return Gate(
        app,
        desk.settings.max_body,
        desk.settings.names,
        lambda *seen: desk.meters.saw_request(*seen) if desk.is_ready else None,
    )


def _once(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = make_document(app)
    return app.openapi_schema


async def _on_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [{"field": str(fault["loc"][-1]), "detail": fault["msg"]} for fault in error.errors()]
    return problem_response(ProblemError(422, f"{errors[0]['field']}: {errors[0]['detail']}", errors))


def _page_file(name: str, media_type: str) -> Any:
    content = files("abound.serve").joinpath("page", name).read_bytes()

    async def page_file(request: Request) -> Response:
        return Response(content, headers={"content-type": media_type, "cache-control": "no-cache"})

    return page_file
