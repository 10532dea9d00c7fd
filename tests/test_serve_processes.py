"""The server as a process: files replaced under it, journals changed beside it, several workers, its start."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from abound.serve.follower import snapshot_path
from abound.serve.journal import Journal, journal_path
from abound.store import open_arrays, save_arrays
from cli_data import run, run_json
from serve_data import Server, free_port, make_model

ASK = {"text": "green leaf drink", "limit": 1}


def eventually(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def best(server: Server, model: str = "model", text: str = "green leaf drink") -> str:
    status, answer = server.post(f"/v1/models/{model}/suggest", {"text": text, "limit": 1})
    assert status == 200, answer
    return str(answer["suggestions"][0]["label"])


def test_two_models_and_a_file_that_is_replaced(tmp_path: Path) -> None:
    one, two = make_model(tmp_path / "one"), make_model(tmp_path / "two", "ff", seed=3)
    with Server(one, two) as server:
        names = [model["name"] for model in server.get("/v1/models")["models"]]
        assert names == ["one", "two"]
        stop, statuses = Event(), []

        def ask() -> None:
            while not stop.is_set():
                statuses.append(server.post("/v1/models/one/suggest", ASK)[0])

        threads = [Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        versions = {server.get("/v1/models/one")["version"]}
        for seed in (7, 8):
            new = make_model(tmp_path / "new", seed=seed)
            os.replace(new, one)
            eventually(lambda: server.get("/v1/models/one")["version"] not in versions)
            versions.add(server.get("/v1/models/one")["version"])
        before = server.get("/v1/models/two")["version"]
        (tmp_path / "new").write_bytes(b"not a model" * 50)
        os.replace(tmp_path / "new", one)
        time.sleep(1.5)
        assert server.get("/v1/models/one")["version"] in versions
        stop.set()
        for thread in threads:
            thread.join()
        assert len(versions) == 3 and server.get("/v1/models/two")["version"] == before
        assert len(statuses) > 100 and set(statuses) == {200}
        said = server.stop()
    assert "the new file is not taken up" in said


def test_corrections_survive_a_new_model_file(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    with Server(model) as server:
        server.post("/v1/models/model/learn", {"text": ASK["text"], "labels": ["beer"], "wait": True})
        assert best(server) == "beer"
        base = server.get("/v1/models/model")["version"].partition("-")[0]
        os.replace(make_model(tmp_path / "new", seed=9), model)
        eventually(lambda: not server.get("/v1/models/model")["version"].startswith(base))
        assert best(server) == "beer"
        assert server.get("/v1/models/model")["version"].endswith("-1")


def test_the_server_follows_what_is_undone(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    with Server(model) as server:
        for label in ("beer", "water"):
            server.post("/v1/models/model/learn", {"text": ASK["text"], "labels": [label], "wait": True})
        assert best(server) == "water"
        run("journal", model, "undo", 2)
        eventually(lambda: best(server) == "beer")
        run("journal", model, "undo", 1)
        eventually(lambda: best(server) == "tea")
        assert server.get("/v1/models/model")["learning"]["corrections"] == 0


def test_all_workers_and_servers_follow_one_journal(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    with Server(model, options=("--workers", "2")) as server, Server(model, token=None) as reader:
        for i, label in enumerate(["beer", "water", "coffee"] * 5):
            text = f"word{i}"
            status, _ = server.post("/v1/models/model/learn", {"text": text, "labels": [label]})
            assert status == 200
        assert server.post("/v1/models/model/learn", {"text": ASK["text"], "labels": ["beer"]})[0] == 200
        eventually(lambda: all(best(server) == "beer" for _ in range(8)))
        eventually(lambda: best(reader) == "beer")
        assert best(reader, text="word1") == "water"
        assert reader.post("/v1/models/model/learn", {"text": "x", "labels": ["tea"]})[0] == 403
        metrics = urllib.request.urlopen(f"{server.base}/metrics").read().decode()
        assert "abound_requests_total" in metrics and 'abound_journal_corrections{model="model"} 16.0' in metrics
    assert len(run_json("journal", model)["entries"]) == 16


def test_only_this_machine_can_reach_it(tmp_path: Path) -> None:
    with Server(make_model(tmp_path / "model")) as server:
        addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for address in addresses - {"127.0.0.1"}:
            with pytest.raises(OSError):
                socket.create_connection((address, server.port), timeout=2)


def test_learn_makes_up_a_token(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    with Server(model, token=None, options=("--learn",)) as server:
        assert server.get("/v1/models/model")["learning"]["accepted"]
        said = server.stop()
    assert f"http://127.0.0.1:{server.port}/#token=" in said
    token = said.partition("#token=")[2].split()[0]
    assert len(token) >= 20 and said.count(token) == 1


def test_the_token_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from a file\n")
    options = ("--token-file", str(tmp_path / "token"))
    body = {"text": ASK["text"], "labels": ["beer"]}
    with Server(make_model(tmp_path / "model"), token=None, options=options) as server:
        assert server.post("/v1/models/model/learn", body, token="from a file")[0] == 200
        assert server.post("/v1/models/model/learn", body, token="wrong")[0] == 401
        assert "from a file" not in server.stop()


def test_wrong_usage(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model.v1")
    assert "no such file" in run("serve", tmp_path / "nothing", code=1).stderr
    assert "two models are named" in run("serve", model, shutil.copy(model, tmp_path / "model.v2"), code=2).stderr
    assert "cannot be the name" in run("serve", shutil.copy(model, tmp_path / "ä b"), code=2).stderr
    (tmp_path / "empty").write_text("")
    assert "it must hold the token" in run("serve", model, "--token-file", tmp_path / "empty", code=1).stderr
    (tmp_path / "bad").write_bytes(b"x" * 100)
    for workers in (1, 2):
        done = serve_once("serve", tmp_path / "bad", "--workers", workers)
        assert done.returncode == 1 and "abound: error:" in done.stderr and "Traceback" not in done.stderr


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port := free_port()))
        taken.listen()
        done = serve_once("serve", model, "--port", port)
    assert done.returncode != 0 and "address already in use" in done.stderr


def serve_once(*words: Any) -> subprocess.CompletedProcess[str]:
    code = "from abound.serve.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def rewritten(model: Path, change: Callable[[Any], Any]) -> Path:
    """The same model file with other settings, and with right checksums."""
    stored = open_arrays(model)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    change(meta)
    save_arrays(model, arrays, meta, extra=stored.extra)
    return model


@pytest.mark.parametrize("n_workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_model_file_does_not_say_where_the_server_writes(tmp_path: Path, n_workers: int) -> None:
    """A server that learned wrote into the folder that the file named."""
    folder = tmp_path / "written"
    settings = {"checkpoint": str(folder), "n_jobs": 100_000}
    model = rewritten(make_model(tmp_path / "model"), lambda meta: meta["estimator"]["parameters"].update(settings))
    with Server(model, options=("--workers", str(n_workers))) as server:
        lesson = {"text": ASK["text"], "labels": ["beer"], "wait": True}
        assert server.post("/v1/models/model/learn", lesson)[0] == 200
        assert "Traceback" not in server.stop()
    assert not folder.exists()


@pytest.mark.parametrize("n_workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_pattern_of_a_file_is_served_if_it_is_trusted(tmp_path: Path, n_workers: int) -> None:
    pattern = r"(?u)(?:\w)+"
    model = rewritten(
        make_model(tmp_path / "model"), lambda meta: meta["vectoriser"]["parameters"].update(token_pattern=pattern)
    )
    workers = ("--workers", str(n_workers))
    done = serve_once("serve", model, *workers)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert repr(pattern) in done.stderr and "--trust on the command line" in done.stderr
    with Server(model, token=None, options=("--trust", *workers)) as server:
        assert best(server, text="green leaf") == "tea"


def taught(model: Path) -> None:
    """Let a server learn that green leaves are beer, and end."""
    with Server(model) as server:
        assert server.post("/v1/models/model/learn", {"text": ASK["text"], "labels": ["beer"], "wait": True})[0] == 200
        assert best(server) == "beer"
        assert f"{journal_path(model)} has no entry yet; corrections begin with entry 1" in server.stop()
    assert snapshot_path(model).exists()


@pytest.mark.parametrize("how", ["removed", "no entries", pytest.param("no bytes", marks=pytest.mark.long)])
def test_what_a_lost_journal_taught_does_not_rank(tmp_path: Path, how: str) -> None:
    taught(model := make_model(tmp_path / "model"))
    for path in tmp_path.glob("model.journal*"):
        path.unlink()
    if how == "no bytes":
        journal_path(model).touch()
    elif how == "no entries":
        Journal(journal_path(model), create=True).close()
    with Server(model) as server:
        assert best(server) == "tea"
        assert server.get("/v1/models/model")["learning"]["corrections"] == 0
        learned = server.post("/v1/models/model/learn", {"text": "new", "labels": ["water"], "wait": True})
        assert learned == (200, {"entry": 1, "learned": True})
        assert best(server) == "tea" and best(server, text="new") == "water"
        said = server.stop()
    assert (
        f"{snapshot_path(model)} is left aside: it has learned corrections that {journal_path(model)} does not" in said
    )
    assert f"{journal_path(model)} has no entry yet" in said
    with Server(model) as server:
        assert best(server) == "tea" and best(server, text="new") == "water"
        assert "left aside" not in server.stop()


def test_a_damaged_journal_is_named_at_the_start(tmp_path: Path) -> None:
    taught(model := make_model(tmp_path / "model"))
    content = bytearray(journal_path(model).read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    journal_path(model).write_bytes(content)
    for workers in (1, 2):
        done = serve_once("serve", model, "--learn", "--workers", workers)
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert f"error: {journal_path(model)}: this is no journal, or it is damaged" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
def test_a_full_disk_is_said_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    import resource

    model = make_model(tmp_path / "model")
    with Server(model) as server:

        def learn(i: int) -> tuple[int, Any]:
            return server.post("/v1/models/model/learn", {"text": f"leaf{i} " * 2000, "labels": ["beer"], "id": str(i)})

        assert learn(0)[0] == 200
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1000, most))
        for i in range(1, 6):
            status, problem = learn(i)
            assert (status, problem["type"]) == (507, "urn:abound:not-stored")
            assert best(server, text="hop malt") == "beer"
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert learn(3) == (200, {"entry": 2, "learned": False, "id": "3"})
        said = server.stop()
    assert said.count("corrections are refused") == 1 and "Traceback" not in said
    assert str(journal_path(model)) in said
    assert [entry["entry"] for entry in run_json("journal", model)["entries"]] == [1, 2]
