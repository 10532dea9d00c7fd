"""The server and clients that are slow, leave, send too much, or ask under another name: none of them holds it up."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from threading import Thread

import pytest
from starlette.testclient import TestClient

from abound.serve.web.app import make_app
from abound.serve.web.desk import Desk, Settings
from abound.serve.web.hosts import answered_names
from cli_data import run
from serve_data import TOKEN, Server, make_model

LIMIT = 0.5
"""Seconds that the server of these tests waits for a client."""

PATH = "/v1/models/model/suggest"
BODY = json.dumps({"text": "green leaf drink"}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model = make_model(tmp_path_factory.mktemp("slow") / "model")
    with Server(model, options=("--timeout", str(LIMIT))) as server:
        yield server
        said = server.stop()
    assert "Traceback" not in said and "Exception" not in said, said


def head(length: int | str, host: str = "localhost", more: str = "") -> bytes:
    size = f"Content-Length: {length}" if length != "chunked" else "Transfer-Encoding: chunked"
    kind = "Content-Type: application/json"
    return f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\n{kind}\r\n{size}\r\n{more}\r\n".encode()


def dial(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def rest_of(connection: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    received = b""
    try:
        while more := connection.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received


def trickle(server: Server, begin: bytes, piece: bytes, pause: float = 0.05) -> bytes:
    """Send a piece again and again until the server ends the connection; return what it has said."""
    with dial(server) as connection:
        connection.sendall(begin)
        end = time.monotonic() + 30
        connection.settimeout(pause)
        received = b""
        while time.monotonic() < end:
            try:
                more = connection.recv(65536)
                if not more:
                    return received
                received += more
            except TimeoutError:
                pass
            except ConnectionResetError:
                return received
            try:
                connection.sendall(piece)
            except OSError:
                connection.settimeout(5)
                return received + rest_of(connection)
    raise AssertionError(f"the connection is still open; it has got {received!r}")


def ask(server: Server) -> None:
    """The server answers others."""
    assert server.post(PATH, {"text": "green leaf drink"})[0] == 200


def test_headers_have_a_time(server: Server) -> None:
    with dial(server) as silent:
        assert rest_of(silent) == b""
    for begin in (b"GET /", b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-"):
        with dial(server) as connection:
            connection.sendall(begin)
            assert rest_of(connection).startswith(b"HTTP/1.1 408 ")
        said = trickle(server, begin, b"a")
        assert said.startswith(b"HTTP/1.1 408 ") and b"the headers took longer than 0.5 s" in said
    assert trickle(server, b"", b"\r\n") == b""
    ask(server)


def test_bodies_have_a_rate(server: Server) -> None:
    for begin, piece in ((head(1000), b" "), (head("chunked"), b"1\r\n \r\n")):
        with dial(server) as connection:
            connection.sendall(begin + piece)
            assert rest_of(connection).startswith(b"HTTP/1.1 408 ")
        said = trickle(server, begin, piece)
        assert said.startswith(b"HTTP/1.1 408 ") and b"fewer than 1000 bytes a second" in said
    ask(server)


def test_a_body_that_comes_slowly_but_comes_is_taken(server: Server) -> None:
    body = BODY[:-1] + b" " * 6000 + b"}"
    with dial(server) as connection:
        connection.sendall(head(len(body), more="Connection: close\r\n"))
        for at in range(0, len(body), 600):
            time.sleep(4 * LIMIT / 10)
            connection.sendall(body[at : at + 600])
        assert rest_of(connection).startswith(b"HTTP/1.1 200 ")


def test_idle_connections_end(server: Server) -> None:
    with dial(server) as connection:
        for _ in range(3):
            connection.sendall(head(len(BODY)) + BODY)
            answer = HTTPResponse(connection)
            answer.begin()
            assert (answer.status, answer.will_close) == (200, False) and answer.read()
            answer.close()
            time.sleep(LIMIT / 5)
        assert rest_of(connection) == b""
    assert trickle(server, head(len(BODY)) + BODY, b"\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_route_that_needs_no_body_does_not_wait_for_it(server: Server) -> None:
    begin = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    assert trickle(server, begin, b" ").startswith(b"HTTP/1.1 200 ")


def test_requests_that_come_at_once_are_all_answered(server: Server) -> None:
    with dial(server) as connection:
        connection.sendall((head(len(BODY)) + BODY) * 20 + head(len(BODY), more="Connection: close\r\n") + BODY)
        assert rest_of(connection).count(b"HTTP/1.1 200 ") == 21


def test_too_many_requests_at_once_end_the_connection(server: Server) -> None:
    with dial(server) as connection:
        # The server ends the connection while this sends, and may do so before the answers are read.
        with suppress(OSError):
            connection.sendall((head(len(BODY)) + BODY) * 5000)
        assert rest_of(connection).count(b"HTTP/1.1 200 ") < 2000
    ask(server)


def test_answers_that_nobody_takes_are_given_up(server: Server) -> None:
    item = {"text": "green leaf drink"}
    body = json.dumps({"items": [item] * 10_000, "limit": 5}).encode()
    request = head(len(body)).replace(b"/suggest ", b"/suggest-batch ") + body
    held = []
    for _ in range(4):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request)
        held.append(connection)
    deadline = time.monotonic() + 60
    while n_connections(server) > 0:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    for connection in held:
        connection.close()
    ask(server)


def n_connections(server: Server) -> int:
    """Connections that the server's process holds."""
    listening = f":{server.port:04X}"
    lines = Path(f"/proc/{server.process.pid}/net/tcp").read_text().splitlines()[1:]
    inodes = {line.split()[9] for line in lines if line.split()[1].endswith(listening) and line.split()[3] != "0A"}
    links = []
    for link in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            links.append(str(link.readlink()))
        except OSError:
            continue
    return sum(f"socket:[{inode}]" in links for inode in inodes)


def test_many_slow_clients_do_not_hold_up_the_others(server: Server) -> None:
    connections = [dial(server) for _ in range(200)]
    for i, connection in enumerate(connections):
        connection.sendall((b"", b"GET / HT", head(500), head("chunked") + b"5\r\n")[i % 4])
    ask(server)
    for connection in connections:
        rest_of(connection)
        connection.close()
    ask(server)


ENDLESS = [
    pytest.param(b"GET /", b"a" * 60_000, b" 431 ", id="address"),
    pytest.param(b"GET / HTTP/1.1\r\nX: ", b"a" * 60_000, b" 431 ", id="header"),
    pytest.param(b"GET / HTTP/1.1\r\n", b"X: a\r\n" * 10_000, b" 431 ", id="headers"),
    pytest.param(head("chunked"), b"1;" + b"a" * 60_000 + b"\r\n \r\n", b" 431 ", id="extension"),
    pytest.param(head("chunked") + b"0\r\n", b"X: a\r\n" * 10_000, b" 431 ", id="trailers"),
    pytest.param(head("chunked") + b"0\r\nX:", b"a" * 60_000, b" 431 ", id="trailer"),
    pytest.param(head("chunked"), b"%x\r\n" % 60_000 + b" " * 60_000 + b"\r\n", b" 413 ", id="body"),
]


@pytest.mark.parametrize("begin, piece, status", ENDLESS)
def test_what_has_no_end_is_refused(server: Server, begin: bytes, piece: bytes, status: bytes) -> None:
    with dial(server) as connection:
        n_sent = 0
        try:
            connection.sendall(begin)
            for _ in range(1000):
                connection.sendall(piece)
                n_sent += len(piece)
        except OSError:
            pass
        assert n_sent < 40_000_000
    # Slowly enough to read the answer before the connection is reset.
    said = trickle(server, begin, piece, pause=0.01)
    assert not said or status in said.split(b"\r\n")[0]
    ask(server)


def test_pieces_of_one_byte_are_a_body(server: Server) -> None:
    body = BODY[:-1] + b" " * 100_000 + b"}"
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    with dial(server) as connection:
        connection.sendall(head("chunked", more="Connection: close\r\n") + pieces + b"0\r\n\r\n")
        assert rest_of(connection).startswith(b"HTTP/1.1 200 ")


def test_what_is_not_http_gets_a_problem(server: Server) -> None:
    for junk in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        with dial(server) as connection:
            connection.sendall(junk)
            said = rest_of(connection)
        assert said.startswith(b"HTTP/1.1 400 ") and b'"urn:abound:bad-request"' in said


def test_clients_that_leave_in_the_middle_are_not_in_the_log(tmp_path: Path) -> None:
    with Server(make_model(tmp_path / "model"), token=None) as server:
        for begin in (
            b"POST",
            head(1000),
            head(1000) + BODY,
            head("chunked") + b"5\r\n[",
            head(len(BODY)) + BODY,
            20 * (head(len(BODY)) + BODY),
        ):
            for how in (b"", b"\x01\x00\x00\x00\x00\x00\x00\x00"):
                with dial(server) as connection:
                    if how:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, how)
                    connection.sendall(begin)
                    time.sleep(0.0 if len(begin) > 2000 else 0.1)
        ask(server)
        time.sleep(0.2)
        said = server.stop()
    assert said.splitlines() == [f"abound: model: {server.base}/"], said


@pytest.mark.parametrize("n_workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_hangup_ends_the_server_after_what_was_begun(
    tmp_path: Path, n_workers: int, request: pytest.FixtureRequest
) -> None:
    # Whoever runs the tests may have told them to ignore it (nohup), which a server would do, too.
    request.addfinalizer(partial(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL)))
    model = make_model(tmp_path / "model")
    with Server(model, options=("--workers", str(n_workers))) as server:
        lesson = {"text": "green leaf drink", "labels": ["beer"]}
        assert server.post("/v1/models/model/learn", lesson)[0] == 200
        with dial(server) as connection:
            connection.sendall(head(len(BODY)) + BODY[:5])
            time.sleep(0.3)
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.8)
            connection.sendall(BODY[5:])
            assert rest_of(connection).startswith(b"HTTP/1.1 200 ")
        _, said = server.process.communicate(timeout=60)
    assert "Traceback" not in said and server.process.returncode in (0, -signal.SIGTERM)
    assert (tmp_path / "model.snapshot").exists()


@pytest.mark.long
def test_a_stop_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A client that sends for ever, and fast enough, is told so after a while."""
    with Server(make_model(tmp_path / "model"), options=("--timeout", "0.5")) as server, dial(server) as connection:
        connection.sendall(head(8_000_000) + BODY[:-1])
        answers: list[bytes] = []
        thread = Thread(target=lambda: answers.append(rest_of(connection)))
        thread.start()
        server.process.terminate()
        for _ in range(200):
            try:
                connection.sendall(b" " * 600)
            except OSError:
                break
            time.sleep(0.2)
        thread.join()
        _, said = server.process.communicate(timeout=60)
    assert answers[0].startswith(b"HTTP/1.1 503 ") and b"the server is stopping" in answers[0]
    assert "Traceback" not in said


NAMES = {
    "localhost": 200,
    "LOCALHOST:8000": 200,
    "127.0.0.1": 200,
    "127.0.0.1:1": 200,
    "[::1]": 200,
    "[::1]:8000": 200,
    "[0:0:0:0:0:0:0:1]": 200,
    "ranks.example.org": 200,
    "Ranks.Example.ORG:443": 200,
    "evil.example": 421,
    "localhost.evil.example": 421,
    "evil.example:8000": 421,
    "localhost@evil.example": 421,
    "evil.example\\localhost": 421,
    "localhost localhost": 421,
    "localhost, evil.example": 421,
    "::1": 421,
    "[::2]": 421,
    "[localhost]": 421,
    "127.0.0.1.": 421,
    "0.0.0.0": 421,
    "10.0.0.1": 421,
    "": 421,
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    files = {"model": make_model(tmp_path_factory.mktemp("named") / "model")}
    names = answered_names("127.0.0.1", ["ranks.example.org"])
    with TestClient(make_app(Desk(Settings(files, TOKEN, names=names)))) as client:
        yield client


@pytest.mark.parametrize("name", NAMES)
def test_only_known_hosts_are_answered_to(named: TestClient, name: str) -> None:
    for route in ("/", "/v1/models", "/metrics", "/openapi.json", "/nothing", "/v2", "/v2/models/model/ready"):
        answer = named.get(route, headers={"Host": name})
        assert answer.status_code == (404 if route == "/nothing" and NAMES[name] == 200 else NAMES[name])
    answer = named.post(PATH, content=BODY, headers={"Host": name, "Content-Type": "application/json"})
    assert answer.status_code == NAMES[name]
    if answer.status_code == 421:
        document = answer.json()
        assert document["type"] == "urn:abound:wrong-host" and "host" in document["detail"].lower()
    for route in ("/v2/health/live", "/v2/health/ready"):
        assert named.get(route, headers={"Host": name}).status_code == 200


def test_the_refusal_names_the_option(named: TestClient) -> None:
    detail = named.get("/v1/models", headers={"Host": "evil.example:80"}).json()["detail"]
    assert detail.endswith("start it with --allow-host evil.example")


def test_requests_name_one_host(named: TestClient) -> None:
    for hosts in ([], [("Host", "localhost"), ("Host", "evil.example")], [("Host", "localhost")] * 2):
        request = named.build_request("GET", "/v1/models")
        request.headers = type(request.headers)(hosts)
        assert named.send(request).status_code == 421


def test_names_on_other_addresses() -> None:
    local = {"localhost", "127.0.0.1", "::1"}
    assert answered_names("0.0.0.0", []) is None and answered_names("::", []) is None
    assert set(answered_names("127.0.0.1", []) or ()) == local
    assert set(answered_names("::1", []) or ()) == local
    assert set(answered_names("127.0.0.2", []) or ()) == local | {"127.0.0.2"}
    assert set(answered_names("10.0.0.1", ["A.example", "::2"]) or ()) == local | {"10.0.0.1", "a.example", "::2"}
    assert set(answered_names("localhost", ["[::2]"]) or ()) == local | {"::2"}


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "[::1]:80", "a.example/", "", "*", "a b"])
def test_names_are_checked(tmp_path: Path, name: str) -> None:
    said = run("serve", make_model(tmp_path / "model"), "--allow-host", name, code=2).stderr
    assert "no name of a host" in " ".join(said.split())


def status(server: Server, host: str) -> int:
    """How the server answers to a name."""
    with dial(server) as connection:
        connection.sendall(f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return int(rest_of(connection).split()[1])


def test_hosts_of_the_command(tmp_path: Path) -> None:
    model = make_model(tmp_path / "model")
    with Server(model, token=None, options=("--allow-host", "a.example", "--allow-host", "b.example")) as server:
        told = [status(server, host) for host in ("a.example", "B.example:1", "localhost", "c.example")]
        said = server.stop()
    assert told == [200, 200, 200, 421] and "warning" not in said
    with Server(model, token=None, options=("--host", "0.0.0.0")) as server:
        assert status(server, "c.example") == 200
        assert "it answers to any name (Host header); --allow-host NAME" in server.stop()


@pytest.mark.long
def test_workers_answer_to_the_same_names(tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--allow-host", "a.example", "--workers", "2")
    with Server(make_model(tmp_path / "model"), token=None, options=options) as server:
        for _ in range(10):
            assert [status(server, host) for host in ("a.example", "c.example")] == [200, 421]
        assert "any name" not in server.stop()
