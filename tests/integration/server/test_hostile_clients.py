"""Clients that break HTTP's rules, or keep them and mean harm."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest
from tests.integration.server.conftest import StartServer
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app
from tests.integration.server.wire import TASKS, answered, bearer, connection, drip, head, is_cut

from holdfast.server import brake, connections

GOOD = b'{"task_type": "shop.add", "parameters": {"a": 1}}'
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
MEGABYTE = 1024 * 1024
REGISTER = "/internal/workers/register"
IDLE = {"queues": ["nothing"]}


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for all of them: what one client does must not harm the next."""
    with serve(make_app(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/tasks.db")) as server:
        yield server


@pytest.fixture
def submit(server: LiveServer) -> str:
    return bearer(server, "submit")


def test_a_trailer_is_no_header(server: LiveServer, submit: str) -> None:
    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, JSON, CHUNKED) + chunk(GOOD))
        sock.sendall(b"0\r\n" + submit.encode() + b"\r\n\r\n")
        assert answered(sock) == 401

    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, JSON, CHUNKED, submit) + chunk(GOOD))
        sock.sendall(b"0\r\nAuthorization: Bearer nobody\r\nX-Sum: 1\r\n\r\n")
        assert answered(sock) == 201
        sock.sendall(head("GET", "/healthz"))
        assert answered(sock) == 200, "the connection is as good as new"


@pytest.mark.parametrize(
    "piece", [b"X: " + b"y" * 60_000 + b"\r\n", b"y" * 60_000], ids=["many", "one"]
)
@pytest.mark.parametrize("has_token", [True, False])
def test_trailers_end_somewhere(
    server: LiveServer, submit: str, piece: bytes, has_token: bool
) -> None:
    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, JSON, CHUNKED, *([submit] if has_token else [])))
        sock.sendall(chunk(GOOD) + b"0\r\nX: ")
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            drip(sock, seconds=20, piece=piece)


def test_endless_chunk_extensions_are_cut(server: LiveServer, submit: str) -> None:
    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, JSON, CHUNKED, submit) + b"5;x=")
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            drip(sock, seconds=20, piece=b"y" * 60_000)


def test_trailers_take_no_memory(sqlite_url: str, server_process: StartServer) -> None:
    with server_process(sqlite_url) as process, contextlib.ExitStack() as stack:
        before = process.resident_bytes()
        for _ in range(20):
            sock = stack.enter_context(connection(process))
            with contextlib.suppress(OSError):
                sock.sendall(head("POST", TASKS, JSON, CHUNKED) + chunk(GOOD) + b"0\r\n")
                for n in range(200):
                    sock.sendall(b"X-%d: %s\r\n" % (n, b"y" * 50_000))

        assert process.peak_bytes() - before < 20 * MEGABYTE


@pytest.mark.parametrize("first", [b"\r\n", b"G", b"\r\n\r\nGET / HT"])
def test_a_further_request_that_begins_must_come(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    with connection(server) as sock:
        sock.sendall(head("GET", "/healthz"))
        assert answered(sock) == 200
        monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
        sock.sendall(first)
        assert is_cut(sock)


def test_empty_lines_do_not_keep_a_connection(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    with connection(server) as sock:
        sock.sendall(head("GET", "/healthz"))
        assert answered(sock) == 200
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            drip(sock, seconds=20, piece=b"\r\n")


def test_an_empty_line_after_a_body_does_not_cut_the_answer_short(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old clients end a body with one; the answer may take longer than a head."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    _, token = server.new_token("worker")
    auth = {"Authorization": f"Bearer {token}"}
    worker = server.client().post(REGISTER, json=IDLE, headers=auth).json()
    body = b'{"available_capacity": 1, "wait_seconds": 1}'
    path = f"/internal/workers/{worker['worker_id']}/poll"
    lines = (JSON, f"Authorization: Bearer {token}", f"Content-Length: {len(body)}")
    with connection(server) as sock:
        sock.sendall(head("POST", path, *lines) + body + b"\r\n")
        assert answered(sock) == 200


AMBIGUOUS = {
    "length and chunks": ["Content-Length: 5", CHUNKED],
    "chunks and length": [CHUNKED, "Content-Length: 5"],
    "two lengths": ["Content-Length: 5", "Content-Length: 6"],
    "a list of lengths": ["Content-Length: 5, 6"],
    "a signed length": ["Content-Length: +5"],
    "a negative length": ["Content-Length: -5"],
    "a length in hex": ["Content-Length: 0x5"],
    "a huge length": ["Content-Length: 99999999999999999999999"],
    "chunks that are not the last coding": ["Transfer-Encoding: chunked, identity"],
    "chunks in another spelling": ["Transfer-Encoding: xchunked"],
    "chunks after a vertical tab": ["Transfer-Encoding:\x0bchunked"],
    "chunks twice": [CHUNKED, CHUNKED],
    "a blank before the colon": ["Transfer-Encoding : chunked"],
    "a folded line": ["X: a", " Transfer-Encoding: chunked"],
    "a NUL in a value": ["X: a\0b"],
    "a bare LF": ["X: a\nTransfer-Encoding: chunked"],
    "a bare CR": ["X: a\rTransfer-Encoding: chunked"],
    "an empty name": [": x"],
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_a_head_that_two_readers_would_read_differently_is_refused(
    server: LiveServer, submit: str, name: str
) -> None:
    smuggled = head("POST", TASKS, JSON, submit, f"Content-Length: {len(GOOD)}") + GOOD
    before = server.app.count()
    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, JSON, submit, *AMBIGUOUS[name]))
        sock.sendall(b"0\r\n\r\n" + smuggled)
        status = answered(sock)
        assert is_cut(sock)

    assert status in {400, 501}
    assert server.app.count() == before


BAD_CHUNKS = {
    "no number": b"xyz\r\n",
    "a negative size": b"-5\r\nhello\r\n",
    "a size with a prefix": b"0x5\r\nhello\r\n",
    "a size beyond 64 bits": b"ffffffffffffffffff\r\n",
    "a size that is too small": b"2\r\nhello\r\n0\r\n\r\n",
    "a bare LF": b"5\nhello\n0\n\n",
}


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_a_chunk_that_two_readers_would_read_differently_ends_the_connection(
    server: LiveServer, submit: str, name: str
) -> None:
    smuggled = head("POST", TASKS, JSON, submit, f"Content-Length: {len(GOOD)}") + GOOD
    before = server.app.count()
    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, JSON, submit, CHUNKED) + BAD_CHUNKS[name] + smuggled)
        assert is_cut(sock)

    assert server.app.count() == before


def test_pipelined_requests_are_answered_in_their_order(server: LiveServer, submit: str) -> None:
    post = head("POST", TASKS, JSON, submit, f"Content-Length: {len(GOOD)}") + GOOD
    with connection(server) as sock:
        sock.sendall((post + head("GET", "/healthz") + head("GET", "/nothing")) * 3)
        reader = sock.makefile("rb")
        assert [_next_status(reader) for _ in range(9)] == [201, 200, 401] * 3


def _next_status(reader) -> int:  # type: ignore[no-untyped-def]
    status = int(reader.readline().split()[1])
    headers = dict(iter(lambda: tuple(reader.readline().strip().lower().split(b": ")), (b"",)))
    reader.read(int(headers[b"content-length"]))
    return status


def test_nobody_may_pipeline_without_end(sqlite_url: str, server_process: StartServer) -> None:
    many = head("GET", "/readyz") * 50_000
    with server_process(sqlite_url) as process, contextlib.ExitStack() as stack:
        before = process.resident_bytes()
        for _ in range(20):
            sock = stack.enter_context(connection(process))
            with contextlib.suppress(OSError):
                sock.sendall(many)

        assert process.peak_bytes() - before < 20 * MEGABYTE


def test_an_upgrade_is_no_way_to_stay(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    for lines in (
        ["Upgrade: websocket", "Connection: upgrade"],
        ["Upgrade: h2c", "Connection: upgrade"],
    ):
        with connection(server) as sock:
            sock.sendall(head("GET", "/healthz", *lines))
            with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
                drip(sock, seconds=20, piece=b"xx")


@pytest.fixture
def large_page(either_server: LiveServer) -> bytes:
    """A request whose answer is larger than what a kernel takes off a server's hands."""
    many = [{"task_type": "shop.mail", "parameters": {"to": "x" * 900_000}}] * 8
    with either_server.client("submit") as client:
        client.post(TASKS, json=many).raise_for_status()
    either_server.until(lambda: either_server.connections() == 0)
    return head("GET", TASKS, bearer(either_server, "read"))


def test_an_answer_that_nobody_reads_is_given_up(
    either_server: LiveServer, large_page: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_SECONDS", 0.3)
    with connection(either_server, receive_buffer=4096) as sock:
        sock.sendall(large_page)
        assert sock.recv(1)
        either_server.until(lambda: either_server.connections() == 0)


def test_an_answer_that_is_read_slowly_arrives(
    either_server: LiveServer, large_page: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_SECONDS", 1.5)
    monkeypatch.setattr(connections, "SLOWEST", 1)
    with connection(either_server, receive_buffer=65536) as sock:
        sock.sendall(large_page)
        with HTTPResponse(sock) as answer:
            answer.begin()
            pieces = [answer.read(100_000) for _ in slowly(60)]
            assert len(json.loads(b"".join(pieces) + answer.read())["tasks"]) == 8


def slowly(steps: int) -> Iterator[int]:
    for n in range(steps):
        time.sleep(0.05)
        yield n


@pytest.fixture
def small_server(sqlite_url: str) -> Iterator[LiveServer]:
    """A server for three clients at once."""
    with serve(make_app(sqlite_url, max_connections=3)) as server:
        yield server


def test_a_flood_of_idle_connections_keeps_nobody_out(small_server: LiveServer) -> None:
    auth = bearer(small_server, "read")
    with contextlib.ExitStack() as stack:
        flood = [stack.enter_context(connection(small_server)) for _ in range(40)]
        for n, sock in enumerate(flood):
            with contextlib.suppress(OSError):
                sock.sendall([b"", b"GET", head("POST", TASKS, "Content-Length: 9")][n % 3])
        with connection(small_server) as sock:
            sock.sendall(head("GET", TASKS, auth))
            assert answered(sock) == 200
        small_server.until(lambda: small_server.connections() <= 3)


def test_where_all_are_busy_others_are_told_and_health_is_still_answered(
    small_server: LiveServer,
) -> None:
    _, token = small_server.new_token("worker")
    auth = {"Authorization": f"Bearer {token}"}
    worker = small_server.client().post(REGISTER, json={"capacity": 9}, headers=auth).json()
    small_server.close()
    body = b'{"available_capacity": 1, "wait_seconds": 30}'
    path = f"/internal/workers/{worker['worker_id']}/poll"
    bearing = f"Authorization: Bearer {token}"
    poll = head("POST", path, JSON, bearing, f"Content-Length: {len(body)}")
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(connection(small_server)).sendall(poll + body)
        small_server.until(lambda: small_server.busy() == 3)
        for asked, status in ((TASKS, 503), ("/healthz", 200), ("/readyz", 200)):
            with connection(small_server) as sock:
                sock.sendall(head("GET", asked))
                assert answered(sock) == status
        small_server.hurry()


def test_a_revocation_elsewhere_ends_a_long_poll(server: LiveServer) -> None:
    token, text = server.new_token("worker")
    auth = f"Authorization: Bearer {text}"
    headers = {"Authorization": f"Bearer {text}"}
    worker = server.client().post(REGISTER, json=IDLE, headers=headers).json()
    body = b'{"available_capacity": 1, "wait_seconds": 30}'
    path = f"/internal/workers/{worker['worker_id']}/poll"
    with connection(server) as sock:
        sock.sendall(head("POST", path, JSON, auth, f"Content-Length: {len(body)}") + body)
        server.until(lambda: server.busy() == 1)
        assert ended_by_revoking(server, token, sock).startswith(b"HTTP/1.1 401 ")


def test_a_revocation_elsewhere_ends_a_stream_of_lines(server: LiveServer) -> None:
    token, text = server.new_token("submit")
    lines = ("Content-Type: application/x-ndjson", f"Authorization: Bearer {text}", CHUNKED)
    with connection(server) as sock:
        sock.sendall(head("POST", TASKS, *lines) + chunk(GOOD + b"\n"))
        server.until(lambda: server.busy() == 1)
        assert ended_by_revoking(server, token, sock).startswith(b"HTTP/1.1 401 ")


def test_a_revocation_elsewhere_ends_an_event_stream(server: LiveServer) -> None:
    token, text = server.new_token("read")
    late = {"task_type": "shop.add", "parameters": {"a": 1}, "delay_seconds": 999}
    task_id = server.admin.post(TASKS, json=late).json()["task_id"]
    with connection(server) as sock:
        sock.sendall(head("GET", f"{TASKS}/{task_id}/events", f"Authorization: Bearer {text}"))
        assert b"200 OK" in sock.recv(65536)
        assert ended_by_revoking(server, token, sock).endswith(b"0\r\n\r\n")


def test_an_event_stream_ends_with_its_tokens_time(server: LiveServer) -> None:
    late = {"task_type": "shop.add", "parameters": {"a": 1}, "delay_seconds": 999}
    task_id = server.admin.post(TASKS, json=late).json()["task_id"]
    auth = f"Authorization: Bearer {server.token('read', expires='2s')}"
    with connection(server) as sock:
        sock.sendall(head("GET", f"{TASKS}/{task_id}/events", auth))
        assert b"200 OK" in sock.recv(65536)
        assert is_cut(sock)


def ended_by_revoking(server: LiveServer, token_id: str, sock: socket.socket) -> bytes:
    """What is said to the end, once another process has revoked the token."""
    with make_app(server.app.settings.url) as elsewhere:
        revoked = elsewhere.wait_for(elsewhere.client.tokens.revoke(token_id))
    at = time.monotonic()
    said = b""
    while not said.endswith(b"0\r\n\r\n") and (more := sock.recv(65536)):
        said += more
    assert revoked
    assert time.monotonic() - at < 5, "a second, on a machine that has nothing else to do"
    return said


def test_a_storm_of_bad_tokens_is_braked_and_a_good_one_passes(
    either_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brake, "MOST_FAILURES", 5)
    anybody, good = either_server.client(), either_server.client("read")
    bad = {"Authorization": "Bearer hf_0123456789abcdef_" + "A" * 43}
    storm = [anybody.get(TASKS, headers=bad) for _ in range(8)]

    assert [answer.status_code for answer in storm] == [401] * 5 + [429] * 3
    assert storm[-1].json()["code"] == "too_many_bad_tokens"
    assert 1 <= int(storm[-1].headers["retry-after"]) <= 60
    assert good.get(TASKS).status_code == 200
    assert anybody.get("/healthz").status_code == 200
    monkeypatch.setattr(brake, "WINDOW", 0.0)
    assert anybody.get(TASKS, headers=bad).status_code == 401
