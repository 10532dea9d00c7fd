"""`kill -9` under a stream of corrections: what was acknowledged is there, once, and the model is the same."""

from __future__ import annotations

import os
import random
import shutil
import time
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from abound.serve.follower import Follower
from abound.serve.journal import Correction, Journal, Proposal, journal_path
from serve_data import Server, fingerprint, make_lessons, make_model


def stream(server: Server, lessons: list[tuple[str, str]], acknowledged: dict[str, int], name: str) -> None:
    """Send corrections one after the other until the server is gone."""
    for i, (label, text) in enumerate(lessons):
        request = f"{name}-{i}"
        body = {"text": text, "labels": [label], "new_class": True, "id": request}
        try:
            status, answer = server.post("/v1/models/model/learn", body)
        except (OSError, HTTPException, ValueError):
            return
        assert status == 200, answer
        acknowledged[request] = answer["entry"]


def crash_and_check(folder: Path, n_crashes: int, longest: float, monkeypatch: Any = None) -> int:
    """Kill the server so often; return how many corrections were acknowledged."""
    model = make_model(folder / "model")
    rng = random.Random(0)
    acknowledged: dict[str, int] = {}
    sent: dict[str, tuple[str, str]] = {}
    for crash in range(n_crashes):
        with Server(f"model={model}") as server:
            threads = []
            for worker in range(3):
                name = f"crash{crash}-{worker}"
                lessons = make_lessons(400, seed=1000 * crash + worker)
                sent |= {f"{name}-{i}": lesson for i, lesson in enumerate(lessons)}
                threads.append(Thread(target=stream, args=(server, lessons, acknowledged, name)))
                threads[-1].start()
            time.sleep(rng.uniform(0.05, longest))
            server.kill()
            for thread in threads:
                thread.join()
    with Server(f"model={model}") as server:
        learning = server.get("/v1/models/model")["learning"]
        assert learning["waiting"] == 0
        served = server.get("/v1/models/model")["version"]
    with closing(Journal(journal_path(model))) as journal:
        entries = list(journal.entries())
        requests = [entry.request for entry in entries]
        assert len(set(requests)) == len(requests), "a correction is there twice"
        by_request = {entry.request: entry for entry in entries}
        for request, number in acknowledged.items():
            entry = by_request[request]
            assert entry.id == number
            assert entry.correction == Correction((sent[request][0],), sent[request][1])
        follower = Follower(model, journal)
        assert served == f"{follower.base}-{journal.last()}"
        follower.catch_up()
    undisturbed = Path(shutil.copy(model, folder / "undisturbed"))
    with closing(Journal(journal_path(undisturbed), create=True)) as journal:
        journal.append([Proposal(entry.correction, "v") for entry in entries if entry.correction is not None])
        alone = Follower(undisturbed, journal)
        alone.catch_up()
        assert fingerprint(follower.freeze()) == fingerprint(alone.freeze())
    return len(acknowledged)


def test_killed_three_times(tmp_path: Path) -> None:
    assert crash_and_check(tmp_path, 3, 1.0) > 0


@pytest.mark.long
def test_killed_many_times(tmp_path: Path) -> None:
    """Five times; ABOUND_CRASHES=50 asks for more, which takes a good while."""
    assert crash_and_check(tmp_path, int(os.environ.get("ABOUND_CRASHES", "5")), 1.0) > 0


def test_stopped_politely_nothing_waits(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    acknowledged: dict[str, int] = {}
    with Server(f"model={model}") as server:
        stream(server, make_lessons(30), acknowledged, "polite")
        said = server.stop()
    assert len(acknowledged) == 30
    assert "Traceback" not in said and "a token for tests" not in said
    with closing(Journal(journal_path(model))) as journal:
        assert Follower(model, journal).applied == 30
