"""Does the server fail a request, lose a correction or grow, with 64 clients that teach it and 64 that ask?

    python benchmarks/serve_soak.py [--seconds 60] [--requests 100000] [--quick]

The server and this script share the machine over loopback. The model is PA on the built-in diagnosis codes. 64 clients
ask as fast as they are answered, and connect anew after every 200 requests; 64 others send three corrections a second
each, of 2,000 texts with a label each. This goes on for so many seconds and until so many requests were answered, at
most ten times as long. Memory (RSS) and file descriptors of the server are looked at every half a second. Then the
teachers begin again, now as fast as they can, and the server is killed (SIGKILL) in the middle and started again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from abound import Model
from abound.serve.journal import Correction, Journal, journal_path
from record import Recorder
from serve_load import TOKEN, free_port, make_model

CLIENTS, CORRECTIONS, LESSONS, LASTS = 64, 3, 2000, 200
PAUSE = 0.5


class Soak:
    """What is sent, what came back, and what the server needed meanwhile."""

    def __init__(self, texts: list[str], labels: list[str]) -> None:
        self.texts, self.draw = texts, random.Random(0)
        self.lessons = [(text, self.draw.choice(labels)) for text in self.draw.sample(texts, min(LESSONS, len(texts)))]
        self.sent: dict[str, Correction] = {}
        self.acknowledged: dict[str, int] = {}
        self.errors: list[str] = []
        self.n_answers = self.n_ids = 0
        self.samples: list[tuple[float, float, int]] = []

    def question(self) -> tuple[str, bytes]:
        """A request for suggestions, under a name of its own."""
        self.n_ids += 1
        name = f"q{self.n_ids}"
        return name, request("suggest", {"text": self.draw.choice(self.texts), "id": name})

    def lesson(self) -> tuple[str, bytes]:
        """A correction, under a name of its own."""
        self.n_ids += 1
        name = f"c{self.n_ids}"
        text, label = self.draw.choice(self.lessons)
        self.sent[name] = Correction((label,), text)
        return name, request("learn", {"text": text, "labels": [label], "id": name})

    def take(self, name: str, head: bytes, body: bytes) -> None:
        """Look at an answer."""
        self.n_answers += 1
        answer = json.loads(body) if head.startswith(b"HTTP/1.1 200") else {}
        if answer.get("id") != name:
            self.errors.append(f"{name}: {head[:40]!r} {body[:200]!r}")
        elif name in self.sent:
            self.acknowledged[name] = answer["entry"]


class Client(asyncio.Protocol):
    """A connection that sends the next request when it has an answer, but not before its time."""

    def __init__(self, soak: Soak, teaches: bool, pace: float, is_over: Any) -> None:
        self.soak, self.next, self.pace, self.is_over = soak, soak.lesson if teaches else soak.question, pace, is_over
        self.loop = asyncio.get_running_loop()
        self.done = self.loop.create_future()
        self.due = time.monotonic() + random.random() * pace
        self.name, self.received, self.n_left = "", b"", LASTS

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send_next()

    def send_next(self) -> None:
        if self.transport.is_closing():
            return
        now = time.monotonic()
        if self.is_over() or (self.n_left == 0 and not self.pace):
            self.transport.close()
        elif now < self.due:
            self.loop.call_later(self.due - now, self.send_next)
        else:
            self.due = max(self.due + self.pace, now - 1)
            self.n_left -= 1
            self.name, content = self.next()
            self.transport.write(content)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]):
            self.soak.take(self.name, head, body)
            self.name, self.received = "", b""
            self.send_next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(self.name)


class Server:
    """`abound serve` in a process of its own."""

    def __init__(self, file: Path, port: int) -> None:
        self.port = port
        words = ["-m", "abound.serve.cli", "serve", f"icd10={file}", "--port", str(port)]
        self.process = subprocess.Popen([sys.executable, *words], env=dict(os.environ) | {"ABOUND_TOKEN": TOKEN})
        for _ in range(3000):
            with suppress(OSError):
                self.about()
                return
            time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def about(self) -> Any:
        """What the server says of its model."""
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models/icd10", timeout=60))

    def needs(self) -> tuple[float, int]:
        """MiB of memory and file descriptors."""
        folder = Path("/proc", str(self.process.pid))
        pages = int((folder / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(os.listdir(folder / "fd"))

    def settle(self, seconds: float = 300) -> int:
        """Wait until all is learned; return how many corrections still wait."""
        end = time.monotonic() + seconds
        while (n_waiting := int(self.about()["learning"]["waiting"])) and time.monotonic() < end:
            time.sleep(0.2)
        return n_waiting


def request(route: str, body: Any) -> bytes:
    """Write a request."""
    content = json.dumps(body).encode()
    lines = [
        f"POST /v1/models/icd10/{route} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Authorization: Bearer {TOKEN}",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


async def keep(soak: Soak, port: int, teaches: bool, pace: float, is_over: Any, may_break: bool) -> None:
    """One client, which connects anew when it has asked often enough."""
    loop = asyncio.get_running_loop()
    while not is_over():
        try:
            _, client = await loop.create_connection(lambda: Client(soak, teaches, pace, is_over), "127.0.0.1", port)
        except OSError as error:
            if not may_break:
                soak.errors.append(f"no connection: {error}")
            return
        unanswered = await client.done
        if unanswered:
            if not may_break:
                soak.errors.append(f"{unanswered}: the server ended the connection")
            return


async def load(soak: Soak, server: Server, seconds: float, n_requests: int) -> float:
    """Ask and teach; return the seconds that it took."""
    begin = time.monotonic()

    def is_over() -> bool:
        past = time.monotonic() - begin
        return past >= 10 * seconds or (past >= seconds and soak.n_answers >= n_requests)

    async def watch() -> None:
        while not is_over():
            await asyncio.sleep(PAUSE)
            soak.samples.append((time.monotonic() - begin, *server.needs()))

    asking = [keep(soak, server.port, False, 0.0, is_over, False) for _ in range(CLIENTS)]
    teaching = [keep(soak, server.port, True, 1 / CORRECTIONS, is_over, False) for _ in range(CLIENTS)]
    await asyncio.gather(watch(), *asking, *teaching)
    return time.monotonic() - begin


async def load_and_kill(soak: Soak, server: Server, seconds: float) -> None:
    """Teach as fast as the server answers, and kill it in the middle."""
    over = time.monotonic() + 2 * seconds
    teaching = [keep(soak, server.port, True, 0.0, lambda: time.monotonic() > over, True) for _ in range(CLIENTS)]
    asyncio.get_running_loop().call_later(seconds, server.process.kill)
    await asyncio.gather(*teaching)
    server.process.wait()


def lost(soak: Soak, file: Path) -> tuple[int, int]:
    """Count acknowledged corrections that the journal does not have as they were sent, and those it has twice."""
    with closing(Journal(journal_path(file))) as journal:
        entries = [entry for entry in journal.entries() if entry.request is not None]
    found = {entry.request: (entry.id, entry.correction) for entry in entries}
    n_lost = sum(found.get(name) != (entry, soak.sent[name]) for name, entry in soak.acknowledged.items())
    return n_lost, len(entries) - len(found)


def growth(soak: Soak, column: int) -> tuple[float, float]:
    """The median of the first and of the last third of the samples."""
    values = np.array([sample[column] for sample in soak.samples], float)
    third = max(1, len(values) // 3)
    return float(np.median(values[:third])), float(np.median(values[-third:]))


def measure(recorder: Recorder, file: Path, texts: list[str], seconds: float, n_requests: int) -> None:
    """Put the server under load, kill it, start it again, and say what became of it."""
    soak = Soak(texts, [str(label) for label in Model.load(file).estimator.classes_.tolist()])
    server = Server(file, free_port())
    try:
        before = server.needs()
        took = asyncio.run(load(soak, server, seconds, n_requests))
        n_asked, n_taught = soak.n_answers - len(soak.acknowledged), len(soak.acknowledged)
        waiting = int(server.about()["learning"]["waiting"])
        n_late = server.settle()
        time.sleep(1)
        after = server.needs()
        asyncio.run(load_and_kill(soak, server, min(5.0, seconds)))
    finally:
        server.process.kill()
        server.process.wait()
    n_lost, n_twice = lost(soak, file)
    with closing(Journal(journal_path(file))) as journal:
        last, n_corrections = journal.last(), journal.count()
    server = Server(file, free_port())
    try:
        about = server.about()
        is_whole = about["version"].endswith(f"-{last}") and about["learning"]["corrections"] == n_corrections
        unlearned = int(about["learning"]["waiting"])
    finally:
        server.process.terminate()
        code = server.process.wait()
    for error in soak.errors[:20]:
        print(error)
    note = (
        f"{CLIENTS} clients ask, {CLIENTS} send {CORRECTIONS} corrections a second each; then kill -9 and a new start"
    )
    table = recorder.table("Soak: requests", note)
    figures = {"requests": n_asked + n_taught, "of them corrections": n_taught, "errors": len(soak.errors)}
    more = {"seconds": round(took), "waiting at the end": waiting}
    table.row({"clients": f"{CLIENTS} + {CLIENTS}"}, figures | more)
    is_answered = not soak.errors and n_asked + n_taught >= n_requests
    table.target(is_answered and not n_late, f"{n_requests:,} requests and no error, and all is learned in the end")
    table = recorder.table("Soak: corrections after kill -9", note)
    figures = {"acknowledged": len(soak.acknowledged), "lost": n_lost, "twice": n_twice, "not learned": unlearned}
    table.row({"killed": "while 64 teach as fast as they can"}, figures)
    holds = not n_lost and not n_twice and not unlearned and is_whole and code in (0, -15)
    table.target(holds, "every acknowledged correction is in the journal once, and in the model of the next start")
    table = recorder.table("Soak: what the server needs", f"{note}; medians of samples every {PAUSE:g} s")
    flat = []
    for column, name in ((1, "MiB (RSS)"), (2, "file descriptors")):
        first, final = growth(soak, column)
        most = max(sample[column] for sample in soak.samples)
        flat.append(final / first)
        own = {"before": before[column - 1], "first third": first, "last third": final, "most": most}
        table.row({"of": name}, own | {"after": after[column - 1]})
    left = after[1] - before[1]
    table.target(
        max(flat) <= 1.1 and left <= 8,
        f"memory {flat[0]:.2f} and descriptors {flat[1]:.2f} times the first third's; {left} more than before the load",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="a small model and a short run, nothing recorded")
    arguments = parser.parse_args()
    quick = arguments.quick
    recorder = Recorder("serve_soak", __doc__, keep=not quick)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "icd10.safetensors")
        texts = make_model(file, quick)
        measure(recorder, file, texts, *((3.0, 1000) if quick else (arguments.seconds, arguments.requests)))


if __name__ == "__main__":
    main()
