"""Errors as problem documents (RFC 9457): one shape for all of them, and nothing in it that should stay inside."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from abound.serve.version import InputError

MEDIA_TYPE = "application/problem+json"

MOST_ERRORS = 20

log = logging.getLogger("abound.serve")

KINDS = {
    400: "bad-request",
    401: "wrong-token",
    403: "learning-is-off",
    404: "not-found",
    405: "wrong-method",
    408: "too-slow",
    409: "conflict",
    413: "too-large",
    415: "not-json",
    421: "wrong-host",
    422: "not-valid",
    431: "too-large",
    500: "fault",
    503: "too-late",
    507: "not-stored",
}


class ProblemError(Exception):
    """An error that the client is told.

    Parameters
    ----------
    status : int
        The HTTP status.
    detail : str
        What is wrong, and what to do.
    errors : list of dict, optional
        What is wrong with which field.
    headers : dict, optional
        More headers.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        errors: list[dict[str, str]] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors
        self.headers = headers


def problem_response(error: ProblemError) -> Response:
    """Write an error as a problem document.

    Parameters
    ----------
    error : ProblemError
        The error.

    Returns
    -------
    Response
        The document.
    """
    document: dict[str, Any] = {
        "type": f"urn:abound:{KINDS.get(error.status, 'error')}",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
    }
    if error.errors is not None:
        document["errors"] = error.errors
    return Response(to_json(document), error.status, error.headers, MEDIA_TYPE)


def from_validation(error: ValidationError) -> ProblemError:
    """Turn what pydantic found into a problem, without repeating the input.

    Parameters
    ----------
    error : ValidationError
        What was found.

    Returns
    -------
    ProblemError
        Status 400 if it was not JSON at all, else 422.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        return ProblemError(400, f"the body is not valid JSON: {found[0]['msg'].removeprefix('Invalid JSON: ')}")
    errors = [
        {
            "field": ".".join(str(part) for part in fault["loc"]),
            "detail": fault["msg"].removeprefix("Value error, "),
        }
        for fault in found[:MOST_ERRORS]
    ]
    first = errors[0]
    return ProblemError(422, f"{first['field']}: {first['detail']}" if first["field"] else first["detail"], errors)


def from_input(error: InputError) -> ProblemError:
    """Turn what a model says about a request into a problem.

    Parameters
    ----------
    error : InputError
        What it says.

    Returns
    -------
    ProblemError
        Status 422.
    """
    return ProblemError(422, f"{error.field}: {error}", [{"field": error.field, "detail": str(error)}])


async def on_problem(request: Request, error: Exception) -> Response:
    """Answer with a problem document, whatever went wrong.

    Parameters
    ----------
    request : Request
        The request.
    error : Exception
        What went wrong.

    Returns
    -------
    Response
        The document. The error itself goes to the log if it was not foreseen, without the request's content.
    """
    if isinstance(error, ProblemError):
        return problem_response(error)
    if isinstance(error, InputError):
        return problem_response(from_input(error))
    if isinstance(error, ValidationError):
        return problem_response(from_validation(error))
    if isinstance(error, ClientDisconnect):
        # Nobody reads this; it is counted.
        return problem_response(ProblemError(400, "the client left before the end of the body"))
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        return problem_response(ProblemError(error.status_code, _detail(error), headers=headers))
    log.error("a request to %s failed", request.scope.get("path"), exc_info=error)
    return problem_response(ProblemError(500, "the server failed; its log says where"))


def _detail(error: HTTPException) -> str:
    return {404: "there is nothing at this address", 405: "this address does not take that method"}.get(
        error.status_code, str(error.detail)
    )
