"""What all requests share: the models, the token, the threads that work for the event loop."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from abound.serve.batching import Batcher
from abound.serve.served import ServedModel
from abound.serve.web.meters import Meters
from abound.serve.web.problems import ProblemError
from abound.serve.web.ranking import Answer, Question, answer_questions

Body = TypeVar("Body", bound=BaseModel)
Result = TypeVar("Result")

THREADS = 2
"""Threads for what is not a single suggestion."""


@dataclass(frozen=True)
class Settings:
    """How to serve.

    Parameters
    ----------
    models : mapping of str to Path
        Files by name.
    token : str or None
        Who knows it may correct; None refuses corrections.
    max_body : int
        Bytes that a body may have.
    max_batch : int
        Rows that a request may have.
    max_text : int
        Characters that a text may have.
    trust : bool
        See `Model.load`; it holds for files that take the models' place as well.
    names : sequence of str or None
        Hosts that are answered to, in small letters; None if any is.
    timeout : float
        Seconds that a client may take for its headers, for 1,000 bytes a second of a body, and between two requests.
    """

    models: Mapping[str, Path]
    token: str | None = None
    max_body: int = 8 * 2**20
    max_batch: int = 10_000
    max_text: int = 100_000
    trust: bool = False
    names: Sequence[str] | None = None
    timeout: float = 10.0


class Desk:
    """The state of a running server.

    Parameters
    ----------
    settings : Settings
        How to serve.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._digest = None if settings.token is None else _digest(settings.token)
        self.models: dict[str, ServedModel] = {}
        self.is_ready = False

    def open(self) -> None:
        """Load the models and start the threads."""
        for name, path in self.settings.models.items():
            self.models[name] = ServedModel(name, path, accepts=self._digest is not None, trust=self.settings.trust)
        self.meters = Meters(self.models)
        self.batcher: Batcher[Question, Answer] = Batcher(answer_questions)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="abound-work")
        self.is_ready = True

    def close(self) -> None:
        """End the threads; every correction that was acknowledged is in the journal already."""
        self.is_ready = False
        self.batcher.close()
        self._pool.shutdown()
        for served in self.models.values():
            served.close()

    def model(self, name: str) -> ServedModel:
        """Find a model.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        ServedModel
            The model.
        """
        served = self.models.get(name)
        if served is None:
            raise ProblemError(404, "there is no model of this name; GET /v1/models lists them")
        return served

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function outside the event loop.

        Parameters
        ----------
        function : callable
            What to run.
        *arguments
            With what.

        Returns
        -------
        object
            What it returns.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(function, *arguments))

    def check_token(self, request: Request) -> None:
        """Let pass only who knows the token; how long this takes tells nothing about it.

        Parameters
        ----------
        request : Request
            With ``Authorization: Bearer TOKEN``.
        """
        if self._digest is None:
            raise ProblemError(403, "this server takes no corrections: it was started without a token")
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        is_right = hmac.compare_digest(_digest(given.strip()), self._digest)
        if kind.lower() != "bearer" or not is_right:
            raise ProblemError(
                401, "send the right token: Authorization: Bearer TOKEN", headers={"www-authenticate": "Bearer"}
            )

    async def read(self, request: Request, shape: type[Body]) -> Body:
        """Read the body of a request.

        Parameters
        ----------
        request : Request
            The request.
        shape : type
            What it should be.

        Returns
        -------
        BaseModel
            What it is.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ProblemError(415, "send JSON, with Content-Type: application/json")
        body = await request.body()
        return shape.model_validate_json(body)

    def check_texts(self, *texts: str | None) -> None:
        """Refuse texts that are too long.

        Parameters
        ----------
        *texts : str or None
            The texts.
        """
        if any(text is not None and len(text) > self.settings.max_text for text in texts):
            raise ProblemError(413, f"a text has more than {self.settings.max_text} characters")

    def check_batch(self, n_rows: int) -> None:
        """Refuse too many rows.

        Parameters
        ----------
        n_rows : int
            How many there are.
        """
        if n_rows > self.settings.max_batch:
            raise ProblemError(413, f"{n_rows} rows in one request; at most {self.settings.max_batch} are taken")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
