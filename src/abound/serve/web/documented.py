"""How a route is described in the OpenAPI document, apart from how it works.

Bodies are read and answers written by hand, because that takes a fraction of the time; the document is made from the
same shapes.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Security
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from abound.serve.web.problems import MEDIA_TYPE
from abound.serve.web.schemas import Problem

REF = "#/components/schemas/{model}"

DETAILS = {
    400: "The request is not HTTP or not JSON.",
    401: "The token is missing or wrong.",
    403: "Corrections are not accepted.",
    404: "There is no such model or page.",
    405: "The address does not take this method.",
    409: "It cannot be done with this model, or the id was used for something else.",
    413: "Body, batch or text is too large.",
    415: "The body is not JSON.",
    421: "The server does not answer to this name.",
    422: "The request is not valid; `errors` says where.",
    503: "There was no answer in time.",
    507: "The correction cannot be written to the disk, and is not learned.",
}

_bodies: dict[str, type[BaseModel]] = {}


def documented(
    answer: type[BaseModel] | None,
    *statuses: int,
    summary: str,
    body: type[BaseModel] | None = None,
    security: Any = None,
    media_type: str | None = None,
) -> dict[str, Any]:
    """Describe a route.

    Parameters
    ----------
    answer : type or None
        The shape of its answer.
    *statuses : int
        Errors that it may answer with, beside those that any route has.
    summary : str
        What it does.
    body : type, optional
        The shape of its body.
    security : object, optional
        How a client says who it is.
    media_type : str, optional
        Of an answer that has no shape.

    Returns
    -------
    dict
        Arguments for a route's decorator.
    """
    several = {400, 421, 422, *statuses} | ({413, 415} if body is not None else set())
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": DETAILS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}},
        }
        for status in sorted(several)
    }
    if media_type is not None:
        responses[200] = {"description": "Done.", "content": {media_type: {"schema": {"type": "string"}}}}
    route: dict[str, Any] = {"responses": responses, "summary": summary, "response_model": answer}
    if body is not None:
        _bodies[body.__name__] = body
        schema = {"$ref": REF.format(model=body.__name__)}
        more: Any = body.model_config.get("json_schema_extra")
        content = {"schema": schema, "examples": {"example": {"value": more["examples"][0]}}}
        route["openapi_extra"] = {"requestBody": {"required": True, "content": {"application/json": content}}}
    if security is not None:
        route["dependencies"] = [Security(security)]
    return route


def make_document(app: FastAPI) -> dict[str, Any]:
    """Make the OpenAPI document of an application.

    Parameters
    ----------
    app : FastAPI
        The application.

    Returns
    -------
    dict
        The document.
    """
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    wanted: list[Any] = [(shape, "validation") for shape in _bodies.values()] + [(Problem, "serialization")]
    _, definitions = models_json_schema(wanted, ref_template=REF)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(definitions["$defs"])
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document
