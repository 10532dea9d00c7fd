"""The Open Inference Protocol, version 2: what model servers have in common, so that their clients work here too."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
from fastapi import APIRouter
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from abound import __version__
from abound.serve.served import ServedModel
from abound.serve.version import InputError, Ranked, Version
from abound.serve.web.desk import Desk
from abound.serve.web.documented import documented
from abound.serve.web.ranking import Answer
from abound.serve.web.schemas import (
    Health,
    InferAnswer,
    InferRequest,
    ModelMetadata,
    ServerMetadata,
    Tensor,
)
from abound.serve.web.v1 import ModelName

LOWEST = float(np.finfo(np.float32).min)
"""Score beside an empty label, where fewer classes rank than were asked for."""


def make_v2(desk: Desk) -> APIRouter:
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
    router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])

    @router.get("", **documented(ServerMetadata, summary="Describe the server"))
    async def server_metadata() -> Response:
        return _json({"name": "abound", "version": __version__, "extensions": []})

    @router.get("/health/live", **documented(Health, summary="Tell whether the server lives"))
    async def live() -> Response:
        return _json({"live": True})

    @router.get("/health/ready", **documented(Health, summary="Tell whether all models can rank"))
    async def ready() -> Response:
        return _json({"ready": desk.is_ready})

    @router.get("/models/{m}", **documented(ModelMetadata, 404, summary="Describe a model's tensors"))
    async def model_metadata(m: ModelName) -> Response:
        return _json(_metadata(desk.model(m)))

    @router.get("/models/{m}/ready", **documented(Health, 404, summary="Tell whether a model can rank"))
    async def model_ready(m: ModelName) -> Response:
        desk.model(m)
        return _json({"ready": desk.is_ready})

    @router.post("/models/{m}/infer", **documented(InferAnswer, 404, body=InferRequest, summary="Rank tensors"))
    async def infer(request: Request, m: ModelName) -> Response:
        served = desk.model(m)
        asked = await desk.read(request, InferRequest)
        parsed = time.perf_counter() - request.scope["abound.begin"]
        texts, vectors = _inputs(served.version, asked)
        desk.check_batch(len(texts if texts is not None else vectors or ()))
        desk.check_texts(*(texts or ()))
        answer = await desk.run(_infer, served, asked, texts, vectors)
        desk.meters.saw_rows(served, len(texts or vectors or ()))
        request.scope["abound.steps"] = [("parse", parsed), *answer.steps]
        return Response(answer.body, media_type="application/json")

    return router


def _inputs(version: Version, asked: InferRequest) -> tuple[list[str] | None, list[Any] | None]:
    tensors = {tensor.name: tensor for tensor in asked.inputs}
    if version.takes == "texts":
        text = _tensor(tensors, "text", ("BYTES",))
        if not all(isinstance(value, str) for value in text.data):
            raise InputError("inputs", "the data of the tensor 'text' must be strings")
        return text.data, None
    indptr = _numbers(_tensor(tensors, "indptr", ("INT64", "INT32")), np.int64)
    indices = _numbers(_tensor(tensors, "indices", ("INT64", "INT32")), np.int64)
    values = _numbers(_tensor(tensors, "values", ("FP32", "FP64")), np.float64)
    is_cut = len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(indices) and bool((np.diff(indptr) >= 0).all())
    if not is_cut or len(indices) != len(values):
        raise InputError("inputs", "indptr must rise from 0 to the number of indices, which is that of values")
    spans = [slice(low, high) for low, high in pairwise(indptr.tolist())]
    return None, [(indices[span].tolist(), values[span].tolist()) for span in spans]


def _tensor(tensors: dict[str, Tensor], name: str, kinds: tuple[str, ...]) -> Tensor:
    tensor = tensors.get(name)
    if tensor is None:
        raise InputError("inputs", f"the tensor {name!r} is missing")
    if tensor.datatype not in kinds:
        raise InputError("inputs", f"the tensor {name!r} must be of type {' or '.join(kinds)}")
    if int(np.prod(tensor.shape, dtype=object)) != len(tensor.data):
        raise InputError("inputs", f"the tensor {name!r} has {len(tensor.data)} values, not what its shape says")
    return tensor


def _numbers(tensor: Tensor, dtype: Any) -> Any:
    kinds = int if dtype is np.int64 else int | float
    if not all(isinstance(value, kinds) and not isinstance(value, bool) for value in tensor.data):
        raise InputError("inputs", f"the data of the tensor {tensor.name!r} must be numbers of its type")
    try:
        numbers = np.array(tensor.data, dtype)
    except OverflowError:
        raise InputError("inputs", f"a number of the tensor {tensor.name!r} is too large") from None
    if dtype is not np.int64 and not np.isfinite(numbers).all():
        raise InputError("inputs", f"the numbers of the tensor {tensor.name!r} must be finite")
    return numbers


def _infer(served: ServedModel, asked: InferRequest, texts: list[str] | None, vectors: list[Any] | None) -> Answer:
    version = served.version
    begin = time.perf_counter()
    n_rows = len(texts if texts is not None else vectors or ())
    limit = min(asked.parameters.limit, version.n_classes)
    if n_rows:
        ranking = version.rank(version.rows(texts, vectors), limit)
    else:
        ranking = Ranked(np.empty((0, limit), np.int32), np.empty((0, limit), np.float32), None)
    labels = [version.card(c)["label"] if c >= 0 else "" for c in ranking.ids.ravel().tolist()]
    scores = np.maximum(ranking.scores, LOWEST).ravel().tolist()
    outputs = [
        {"name": "labels", "shape": [n_rows, limit], "datatype": "BYTES", "data": labels},
        {"name": "scores", "shape": [n_rows, limit], "datatype": "FP32", "data": scores},
    ]
    body: dict[str, Any] = {"model_name": served.name, "model_version": version.name, "outputs": outputs}
    if asked.id is not None:
        body["id"] = asked.id
    return Answer(to_json(body), [("rank", time.perf_counter() - begin)])


def _metadata(served: ServedModel) -> dict[str, Any]:
    version = served.version
    inputs = (
        {"text": "BYTES"} if version.takes == "texts" else {"indptr": "INT64", "indices": "INT32", "values": "FP32"}
    )
    return {
        "name": served.name,
        "versions": [version.name],
        "platform": "abound",
        "inputs": [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in inputs.items()],
        "outputs": [
            {"name": "labels", "datatype": "BYTES", "shape": [-1, -1]},
            {"name": "scores", "datatype": "FP32", "shape": [-1, -1]},
        ],
    }


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")
