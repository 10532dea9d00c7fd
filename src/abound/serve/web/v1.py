"""The server's own interface: suggestions, explanations, corrections."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.security import HTTPBearer
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from abound.serve.inputs import label_like
from abound.serve.journal import Correction, JournalError, StorageError
from abound.serve.served import ServedModel
from abound.serve.version import InputError
from abound.serve.web.desk import Desk
from abound.serve.web.documented import documented
from abound.serve.web.problems import ProblemError
from abound.serve.web.ranking import Answer, Question, answer_batch, explain
from abound.serve.web.schemas import (
    BatchAnswer,
    BatchRequest,
    ClassesAnswer,
    ExplainAnswer,
    ExplainRequest,
    LearnAnswer,
    LearnRequest,
    ModelAnswer,
    ModelsAnswer,
    SuggestAnswer,
    SuggestRequest,
)

PATIENCE = 10.0
"""Seconds that a correction is waited for."""

NEW_FEATURES = 10_000
"""Features beyond its own that a model of vectors takes in at once: it makes room for every one below."""

ModelName = Annotated[str, Path(description="The name of a model.", examples=["icd10"], max_length=200)]
BEARER = HTTPBearer(auto_error=False, description="The token that the server was started with.")


def make_v1(desk: Desk) -> APIRouter:
    """Make the routes.

    Parameters
    ----------
    desk : Desk
        The state of the server.

    Returns
    -------
    APIRouter
        To be included in an application.
    """
    router = APIRouter(prefix="/v1", tags=["suggest"])

    @router.get("/models", **documented(ModelsAnswer, summary="List the models"))
    async def list_models() -> Response:
        about = await desk.run(lambda: [_about(desk, served) for served in desk.models.values()])
        return _json({"models": about})

    @router.get("/models/{m}", **documented(ModelAnswer, 404, summary="Describe a model"))
    async def describe_model(m: ModelName) -> Response:
        return _json(await desk.run(_about, desk, desk.model(m)))

    @router.post(
        "/models/{m}/suggest",
        **documented(SuggestAnswer, 404, 503, body=SuggestRequest, summary="Rank the classes of a text or vector"),
    )
    async def suggest(request: Request, m: ModelName) -> Response:
        served = desk.model(m)
        asked = await desk.read(request, SuggestRequest)
        desk.check_texts(asked.text)
        parsed = time.perf_counter() - request.scope["abound.begin"]
        answer = await _in_time(desk.batcher.ask(Question(served, asked)), asked.max_ms)
        desk.meters.saw_rows(served, 1)
        return _answered(request, answer, parsed)

    @router.post(
        "/models/{m}/suggest-batch",
        **documented(BatchAnswer, 404, 503, body=BatchRequest, summary="Rank the classes of many texts or vectors"),
    )
    async def suggest_batch(request: Request, m: ModelName) -> Response:
        served = desk.model(m)
        asked = await desk.read(request, BatchRequest)
        desk.check_batch(len(asked.items))
        desk.check_texts(*(item.text for item in asked.items))
        parsed = time.perf_counter() - request.scope["abound.begin"]
        answer = await _in_time(desk.run(answer_batch, served, asked), asked.max_ms)
        desk.meters.saw_rows(served, len(asked.items))
        return _answered(request, answer, parsed)

    @router.post(
        "/models/{m}/explain",
        **documented(ExplainAnswer, 404, body=ExplainRequest, summary="Tell which words vote for which class"),
    )
    async def explain_ranking(request: Request, m: ModelName) -> Response:
        served = desk.model(m)
        asked = await desk.read(request, ExplainRequest)
        desk.check_texts(asked.text)
        parsed = time.perf_counter() - request.scope["abound.begin"]
        answer = await desk.run(explain, served, asked)
        desk.meters.saw_rows(served, 1)
        return _answered(request, answer, parsed)

    @router.get(
        "/models/{m}/classes", **documented(ClassesAnswer, 404, summary="Find classes by words of label or title")
    )
    async def find_classes(
        m: ModelName,
        query: Annotated[str, Query(max_length=1000, description="Words, or parts of words.", examples=["wrist"])] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    ) -> Response:
        version = desk.model(m).version
        found = await desk.run(lambda: [version.card(c) for c in version.search.find(query, limit)])
        return _json({"classes": found})

    @router.post(
        "/models/{m}/learn",
        **documented(
            LearnAnswer, 401, 403, 404, 409, 507, body=LearnRequest, security=BEARER, summary="Correct the model"
        ),
    )
    async def learn(request: Request, m: ModelName) -> Response:
        desk.check_token(request)
        served = desk.model(m)
        if not served.accepts:
            raise ProblemError(409, "this model cannot learn: its learner is not online, or its state was left out")
        asked = await desk.read(request, LearnRequest)
        desk.check_texts(asked.text)
        correction = checked_correction(served, asked)
        try:
            entry = await asyncio.wrap_future(served.append(correction, asked.id))
        except StorageError:
            raise ProblemError(
                507, "the correction cannot be written to the disk, and is not learned; the server's log says why"
            ) from None
        except JournalError as error:
            raise ProblemError(409, str(error)) from None
        served.announce(asked.labels, entry)
        if asked.wait:
            try:
                await asyncio.wait_for(asyncio.wrap_future(served.when_learned(entry)), PATIENCE)
            except TimeoutError:
                pass
        body: dict[str, Any] = {"entry": entry, "learned": served.version.mark >= entry}
        return _json(body if asked.id is None else {"id": asked.id, **body})

    return router


def checked_correction(served: ServedModel, asked: LearnRequest) -> Correction:
    """Check a correction before it is written: what is in the journal can be learned.

    Parameters
    ----------
    served : ServedModel
        The model.
    asked : LearnRequest
        What somebody says is right.

    Returns
    -------
    Correction
        With labels of the model's type.
    """
    version = served.version
    if (asked.text is None) == (version.takes == "texts"):
        wanted = "a text" if version.takes == "texts" else "features"
        raise InputError("text" if asked.features is None else "features", f"this model takes {wanted}")
    if len(asked.labels) > 1 and version.model.estimator._kind == "single":
        raise InputError("labels", "a row of this model has one class")
    unknown = [label for label in asked.labels if not served.knows(label)]
    if unknown and not asked.new_class:
        raise InputError("labels", f"{unknown[0]!r} is not a class of this model; set new_class to make it one")
    if asked.title is not None and not unknown:
        raise InputError("title", "only a new class gets a title")
    try:
        labels = tuple(label_like(version.model, label) for label in dict.fromkeys(asked.labels))
    except ValueError as error:
        raise InputError("labels", str(error)) from None
    features = None
    if asked.features is not None:
        features = version.columns(asked.features.indices, asked.features.values, NEW_FEATURES)
    return Correction(labels, asked.text, features, asked.title)


async def _in_time(answer: Any, max_ms: float | None) -> Answer:
    if max_ms is None:
        result: Answer = await answer
        return result
    try:
        async with asyncio.timeout(max_ms / 1000):
            return await answer  # type: ignore[no-any-return]
    except TimeoutError:
        raise ProblemError(503, f"there was no answer within {max_ms:g} ms", headers={"retry-after": "1"}) from None


def _about(desk: Desk, served: ServedModel) -> dict[str, Any]:
    return {**served.describe(), "rate": round(desk.meters.rates[served.name].per_second(), 3)}


def _answered(request: Request, answer: Answer, parsed: float) -> Response:
    request.scope["abound.steps"] = [("parse", parsed), *answer.steps]
    return Response(answer.body, media_type="application/json")


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")
