"""Small models to serve, a server in a process of its own, and a way to ask it, for the tests of the server."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from abound import Model, TextVectorizer
from abound.learn.registry import make_learner
from abound.read.taxonomy import Taxonomy
from cli_data import DRINKS, make_rows

TOKEN = "a token for tests"
TITLES = {label: f"{label.title()} and the like" for label in DRINKS}


def make_model(path: Path, learner: str = "pa", n_rows: int = 150, seed: int = 0, **parameters: Any) -> Path:
    """Train a model of drinks and save it."""
    if learner in ("pa", "mmp"):
        parameters = {"average": False, **parameters}
    rows = make_rows(n_rows, seed)
    vectoriser = TextVectorizer()
    X = vectoriser.fit_transform([text for _, text in rows])
    estimator = make_learner(learner, **parameters).fit(X, [label for label, _ in rows])
    edges = [("drink", "hot"), ("drink", "cold"), *(("hot", label) for label in ("tea", "coffee"))]
    edges += [("cold", label) for label in ("juice", "water", "beer")]
    taxonomy = Taxonomy.from_edges(edges, titles={"hot": "Hot drinks", "cold": "Cold drinks"})
    Model(estimator, vectoriser, taxonomy, TITLES).save(path)
    return path


def make_vector_model(path: Path, learner: str = "pa") -> Path:
    """Train a model of vectors that count from 0 and save it."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 8)) < 0.4) * rng.random((60, 8))
    y = X.argmax(axis=1)
    parameters = {"average": False} if learner == "pa" else {}
    estimator = make_learner(learner, **parameters).fit(X, y)
    Model(estimator, extra={"zero_based": "true"}).save(path)
    return path


def fingerprint(model: Model) -> str:
    """Digest everything that ranks, bit for bit."""
    digest = hashlib.sha256()
    index = model.estimator.index_
    for array in (index.indptr, index.classes, index.weights, model.estimator.class_counts_):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr(model.estimator.classes_.tolist()).encode())
    if model.vectoriser is not None:
        arrays, meta = model.vectoriser.to_arrays()
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        digest.update(json.dumps({key: meta[key] for key in ("n_documents", "n_fitted")}).encode())
    return digest.hexdigest()


def make_lessons(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Make corrections: known words in new mixtures, new words, and now and then a new class."""
    rng = np.random.default_rng(seed)
    words = [word for own in DRINKS.values() for word in own]
    lessons = []
    for i in range(n):
        chosen = rng.choice(words, size=rng.integers(1, 6)).tolist()
        chosen += [f"new{rng.integers(0, 40)}"] if rng.random() < 0.3 else []
        label = str(rng.choice(list(DRINKS))) if rng.random() < 0.9 else f"drink{rng.integers(0, 5)}"
        chosen += [f"n{i}"] if rng.random() < 0.5 else []
        lessons.append((label, " ".join(chosen)))
    return lessons


class Server:
    """`abound serve` in a process of its own."""

    def __init__(self, *models: Any, token: str | None = TOKEN, options: tuple[str, ...] = (), port: int = 0) -> None:
        self.port = port or free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        code = "from abound.serve.cli import main; main()"
        words = ["serve", *map(str, models), "--port", str(self.port), *options]
        environment = {name: value for name, value in os.environ.items() if name != "ABOUND_TOKEN"}
        if token is not None:
            environment["ABOUND_TOKEN"] = token
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words], env=environment, stderr=subprocess.PIPE, text=True
        )
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait for the first answer."""
        for _ in range(6000):
            if self.process.poll() is not None:
                assert self.process.stderr is not None
                raise AssertionError(self.process.stderr.read())
            try:
                urllib.request.urlopen(f"{self.base}/v2/health/ready", timeout=5).read()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def get(self, path: str) -> Any:
        """Get a document."""
        with urllib.request.urlopen(self.base + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path: str, body: Any, token: str | None = TOKEN) -> tuple[int, Any]:
        """Send a document; return the status and the answer."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def stop(self) -> str:
        """End the process as a service manager does; return what it has said."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        return said

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.stop()
        elif self.process.stderr is not None:
            self.process.stderr.close()


def free_port() -> int:
    """Find a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
