"""Running the application: one process, or several that share the mapped model."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from abound.serve.follower import Follower
from abound.serve.journal import Journal, is_journal_empty, journal_path
from abound.serve.web.app import make_app
from abound.serve.web.desk import Desk, Settings

TOKEN = "ABOUND_TOKEN"
"""Environment variable that holds the token: unlike an argument, other users cannot see it."""

SETTINGS = "ABOUND_SERVE"
"""Environment variable that tells workers what to serve."""

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

SWITCH = 0.0005
"""Seconds after which a thread must let another one run: learning may not hold up an answer."""

LIMITS = ("max_body", "max_batch", "max_text", "trust", "names", "timeout")
"""What workers are told beside the models."""

DRAIN = 10
"""Seconds that requests under way have when the server is told to stop."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def named_models(arguments: Sequence[str]) -> dict[str, Path]:
    """Read the models on the command line.

    Parameters
    ----------
    arguments : sequence of str
        Each ``FILE`` or ``NAME=FILE``; without a name, it is the file's up to its first dot.

    Returns
    -------
    dict of str to Path
        Files by name.

    Examples
    --------
    >>> {name: str(path) for name, path in named_models(["a/icd10.safetensors", "shop=b"]).items()}
    {'icd10': 'a/icd10.safetensors', 'shop': 'b'}
    """
    models: dict[str, Path] = {}
    for argument in arguments:
        name, equals, file = argument.partition("=")
        if not equals or not NAME.fullmatch(name):
            name, file = "", argument
        path = Path(file)
        name = name or path.name.partition(".")[0]
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a model: give one before the file, NAME=FILE")
        if name in models:
            raise ValueError(f"two models are named {name!r}: give one of them another name, NAME=FILE")
        models[name] = path
    return models


def run_server(settings: Settings, *, host: str, port: int, workers: int = 1) -> None:
    """Serve until the process is told to stop.

    Parameters
    ----------
    settings : Settings
        What to serve.
    host : str
        The address to listen at.
    port : int
        The port.
    workers : int
        Processes; each ranks and, if corrections are accepted, follows the journal on its own.
    """
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from abound.serve.web.connection import Connection

    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": DRAIN,
        "timeout_keep_alive": settings.timeout,
        "http": Connection,
        "ws": "none",
    }
    if workers == 1:
        application = make_app(_opened(settings))
        _end_on_hangup()
        uvicorn.Server(uvicorn.Config(application, **options)).run()
        return
    for path in settings.models.values():
        # What is damaged is better found here than by each worker, which would be started again and again.
        _check_files(path, settings.trust)
    _hand_down(settings)
    heeds = _heeds_hangup()

    def end(manager: Multiprocess) -> None:
        if heeds:
            manager.handle_term()

    # Uvicorn would start the workers anew, one after the other.
    Multiprocess.handle_hup = end  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory(prefix="abound-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        uvicorn.run("abound.serve.server:app_of_worker", factory=True, workers=workers, **options)


def app_of_worker() -> Any:
    """Make the application of a worker from what `run_server` has handed down.

    Returns
    -------
    ASGI application
        The application.
    """
    handed = json.loads(os.environ[SETTINGS])
    models = {name: Path(file) for name, file in handed.pop("models").items()}
    _end_on_hangup()
    return make_app(_opened(Settings(models, os.environ.get(TOKEN), **handed)))


def _check_files(path: Path, trust: bool) -> None:
    written = journal_path(path)
    with nullcontext() if is_journal_empty(written) else closing(Journal(written)) as journal:
        Follower(path, journal, trust=trust)
        for _ in () if journal is None else journal.entries():
            pass


def _heeds_hangup() -> bool:
    """Tell whether a terminal that is closed ends the server; not if it was told to stay (nohup)."""
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


def _end_on_hangup() -> None:
    """End at a hangup as at the word of a service manager."""
    if _heeds_hangup():
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def _opened(settings: Settings) -> Desk:
    """Load the models into a process that does nothing but serve."""
    sys.setswitchinterval(SWITCH)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    desk = Desk(settings)
    desk.open()
    # What was loaded stays: looking through it for garbage would hold up answers for a tenth of a second.
    gc.collect()
    gc.freeze()
    return desk


def _hand_down(settings: Settings) -> None:
    limits = {name: getattr(settings, name) for name in LIMITS}
    models = {name: str(path) for name, path in settings.models.items()}
    os.environ[SETTINGS] = json.dumps({"models": models, **limits})
    if settings.token is not None:
        os.environ[TOKEN] = settings.token
