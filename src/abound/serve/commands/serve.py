"""``abound serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abound.serve.commands.options import TrustOption
from abound.serve.output import say


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Model files, each FILE or NAME=FILE.", show_default=False)
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The port.")] = 8000,
    learn: Annotated[
        bool, typer.Option("--learn", help="Accept corrections; a token is made up if none is given.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Accept corrections from who knows the token in FILE; or set ABOUND_TOKEN."),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Processes that share the model.")] = 1,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1000, help="Largest body of a request.")] = 8 * 2**20,
    max_batch: Annotated[int, typer.Option(metavar="N", min=1, help="Most rows of a request.")] = 10_000,
    max_text: Annotated[int, typer.Option(metavar="N", min=1, help="Most characters of a text.")] = 100_000,
    trust: TrustOption = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another name that the server answers to; more than once if need be."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Longest wait for a client: its headers, its body, its next request."
        ),
    ] = 10.0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Serve models over HTTP, with a page to try them on.

    Corrections are written to a journal beside the model before they are acknowledged, and count within a second; see
    `abound journal`. The model file itself is never changed, and is taken up anew when it is replaced.
    """
    import os
    import secrets

    try:
        from abound.serve.server import TOKEN, named_models, run_server
        from abound.serve.web.desk import Settings
        from abound.serve.web.hosts import answered_names, is_loopback
    except ImportError as error:
        raise ImportError(f"abound serve needs more packages ({error}): pip install 'abound[serve]'") from None
    from abound.serve.guard import wrong_usage

    with wrong_usage("MODEL"):
        files = named_models(models)
    with wrong_usage("--allow-host"):
        names = answered_names(host, allow_host or ())
    for file in files.values():
        if not file.is_file():
            raise FileNotFoundError(f"{file}: there is no such file")
    token = os.environ.get(TOKEN) or None
    if token_file is not None:
        token = token_file.read_text().strip()
        if not token:
            raise ValueError(f"{token_file} is empty: it must hold the token")
    is_made_up = learn and token is None
    token = secrets.token_urlsafe(18) if is_made_up else token
    shown_host = f"[{host}]" if ":" in host else host
    address = f"http://{shown_host}:{port}/" + (f"#token={token}" if is_made_up else "")
    if not is_loopback(host):
        say(f"warning: {host} can be reached from other machines; put a server that encrypts in front")
    if names is None:
        say("warning: it answers to any name (Host header); --allow-host NAME limits it to those that are its own")
    say(f"{', '.join(files)}: {address}")
    if open_page:
        _open_when_up(host, port, address)
    settings = Settings(
        files,
        token,
        max_body=max_body,
        max_batch=max_batch,
        max_text=max_text,
        trust=trust,
        names=names,
        timeout=timeout,
    )
    try:
        run_server(settings, host=host, port=port, workers=workers)
    except KeyboardInterrupt:
        say("stopped")


def _open_when_up(host: str, port: int, address: str) -> None:
    """Open a browser once somebody listens, where there is a screen for it."""
    import os
    import socket
    import sys
    import time
    import webbrowser
    from threading import Thread

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return

    def wait_and_open() -> None:
        for _ in range(300):
            time.sleep(0.2)
            try:
                socket.create_connection((host, port), timeout=1).close()
            except OSError:
                continue
            webbrowser.open(address)
            return

    Thread(target=wait_and_open, daemon=True).start()
