"""Bodies that are too large, too slow, too deep; tokens that ask too often."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.server.conftest import StartServer
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app
from tests.integration.server.wire import address, answered, connection, drip

from holdfast.remote import workers
from holdfast.server import connections, pages

TASKS = "/api/v1/tasks"
JSON = {"Content-Type": "application/json"}
MEGABYTE = 1024 * 1024
GOOD = {"task_type": "shop.add", "parameters": {"a": 1}}


def chunks(megabytes: int) -> Iterator[bytes]:
    yield b'{"task_type": "'
    for _ in range(megabytes):
        yield b"x" * MEGABYTE


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_a_hundred_megabytes_are_refused_without_being_kept(
    sqlite_url: str, server_process: StartServer, declared: bool
) -> None:
    with make_app(sqlite_url) as app:
        _, token = app.wait_for(app.client.tokens.create("test", "admin"))
    bearer = {"Authorization": f"Bearer {token}"}
    with server_process(sqlite_url) as server:
        httpx.post(f"{server.url}{TASKS}", json=GOOD, headers=bearer).raise_for_status()
        before = server.resident_bytes()

        for _ in range(2):
            body = b"x" * 100 * MEGABYTE if declared else chunks(100)
            try:
                answer = httpx.post(
                    f"{server.url}{TASKS}", content=body, headers=bearer | JSON, timeout=30
                )
            except httpx.WriteError:
                assert not declared  # the server hung up on a body that never said how long it is
            else:
                assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
        alive = httpx.post(f"{server.url}{TASKS}", json=GOOD, headers=bearer).status_code
        grown = server.peak_bytes() - before

    assert alive == 201
    assert grown < (4 if declared else 64) * MEGABYTE


def test_a_refused_body_may_arrive_to_its_end(live_server: LiveServer) -> None:
    """A client that sends before it listens hears why; what comes after is not taken for a head."""
    with connection(live_server) as sock:
        sock.sendall(head(live_server, 40 * MEGABYTE).encode())
        assert answered(sock) == 413
        for _ in range(40):
            sock.sendall(b"x" * MEGABYTE)
        sock.sendall(head(live_server, 2).encode() + b"{}")
        assert answered(sock) == 422, "the connection is as good as new"


def test_the_rest_of_a_refused_body_may_not_drip_for_ever(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REST_SECONDS", 0.3)
    with connection(live_server) as sock:
        sock.sendall(head(live_server, 40 * MEGABYTE).encode())
        assert answered(sock) == 413
        with pytest.raises(ConnectionError):
            drip(sock, seconds=5)


def test_the_rest_of_a_refused_body_may_take_its_time(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REST_SECONDS", 1.5)
    monkeypatch.setattr(connections, "SLOWEST", 1)
    with connection(live_server) as sock:
        sock.sendall(head(live_server, 40 * MEGABYTE).encode())
        assert answered(sock) == 413
        for _ in range(20):
            sock.sendall(b"x" * 2 * MEGABYTE)
            time.sleep(0.15)
        sock.sendall(head(live_server, 2).encode() + b"{}")
        assert answered(sock) == 422


def test_a_client_that_waits_for_100_continue_sends_nothing_of_a_large_body(
    live_server: LiveServer,
) -> None:
    with connection(live_server) as sock:
        sock.sendall(head(live_server, 100 * MEGABYTE, "Expect: 100-continue").encode())
        answer = sock.recv(65536)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_drips_is_given_up(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url, request_timeout=0.3)) as server, connection(server) as sock:
        sock.sendall(head(server, 1000).encode() + b"{")
        started = time.monotonic()
        answer = b"".join(iter(lambda: sock.recv(65536), b""))  # until the server hangs up
        took = time.monotonic() - started

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"request_timeout" in answer
    assert took < 5


def test_a_stream_may_take_its_time_as_long_as_it_moves(sqlite_url: str) -> None:
    def slowly() -> Iterator[bytes]:
        for _ in range(6):
            time.sleep(0.15)
            yield b'{"task_type": "shop.add", "parameters": {"a": 1}}\n'

    with serve(make_app(sqlite_url, request_timeout=0.6)) as server:
        answer = server.admin.post(
            TASKS, content=slowly(), headers={"Content-Type": "application/x-ndjson"}
        )

    assert (answer.status_code, answer.json()["accepted"]) == (201, 6)


def test_sixty_slow_sockets_do_not_stop_a_healthy_client(live_server: LiveServer) -> None:
    slow = [socket.create_connection(address(live_server)) for _ in range(60)]
    try:
        for n, sock in enumerate(slow):
            text = head(live_server, 1000).encode() + b"{"
            sock.sendall(text if n % 3 == 0 else text[: 20 * (n % 3)])
        client = live_server.client("submit")
        started = time.monotonic()
        answers = [client.post(TASKS, json=GOOD).status_code for _ in range(20)]
        took = time.monotonic() - started
    finally:
        for sock in slow:
            sock.close()

    assert answers == [201] * 20
    assert took < 10


def test_a_token_that_asks_too_often_is_told_when_to_come_back(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url, rate_limit=2)) as server:
        busy, other = server.client("read"), server.client("read")

        answers = [busy.get(TASKS) for _ in range(4)]
        others = other.get(TASKS).status_code
        server.until(lambda: busy.get(TASKS).status_code == 200)

    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert answers[2].json()["code"] == "rate_limited"
    assert answers[2].headers["retry-after"] == "1"
    assert others == 200


def test_health_is_not_rationed(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url, rate_limit=1)) as server:
        anybody = server.client()

        assert [anybody.get("/healthz").status_code for _ in range(5)] == [200] * 5


def test_a_payload_that_is_too_large_for_the_store_is_refused(tmp_path: Path) -> None:
    with serve(make_app(f"sqlite:///{tmp_path}/tasks.db", max_payload=1000)) as server:
        body = {"task_type": "shop.mail", "parameters": {"to": "x" * 1000}}

        answer = server.admin.post(TASKS, json=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "payload_refused")


def test_an_answer_does_not_grow_with_what_was_wrong(live_server: LiveServer) -> None:
    wrong = [
        {"x" * 500_000: 1},
        {"task_type": "shop.order", "parameters": {"customer": 1, "items": [0] * 300_000}},
        {"task_type": "shop.order", "parameters": {"customer": 1, "items": [0] * 5_000}},
        [{"task_type": "shop.add", "parameters": {"a": 1}, "k" * 100_000: 1}],
        dict.fromkeys(map(str, range(50_000)), 0),
    ]

    answers = [live_server.admin.post(TASKS, json=body) for body in wrong]

    assert [answer.status_code for answer in answers] == [422] * len(wrong)
    assert max(len(answer.content) for answer in answers) < 30_000


def test_an_array_may_be_larger_than_a_payload_but_none_of_its_tasks(sqlite_url: str) -> None:
    small = {"task_type": "shop.mail", "parameters": {"to": "x" * 900}}
    large = {"task_type": "shop.mail", "parameters": {"to": "x" * 100_000}}
    with serve(make_app(sqlite_url, max_payload=1000)) as server:
        many = server.admin.post(TASKS, json=[small] * 100)
        one_too_large = server.admin.post(TASKS, json=[small, large])

    assert many.status_code == 201
    assert (one_too_large.status_code, one_too_large.json()["code"]) == (422, "payload_refused")
    assert one_too_large.json()["index"] == 1


@pytest.fixture
def large_tasks(either_server: LiveServer) -> LiveServer:
    """Thirty tasks of 900 kB each, and one small one before them."""
    large = {"task_type": "shop.mail", "parameters": {"to": "x" * 900_000}}
    for many in ([GOOD], [large] * 15, [large] * 15):
        either_server.admin.post(TASKS, json=many).raise_for_status()
    return either_server


@pytest.mark.parametrize("sort", ["-created_at", "created_at"])
def test_a_page_ends_early_rather_than_grow_large(large_tasks: LiveServer, sort: str) -> None:
    got, cursor = list[list[str]](), dict[str, str]()
    while not got or cursor:
        answer = large_tasks.admin.get(TASKS, params={"limit": "1000", "sort": sort} | cursor)
        got.append([task["task_id"] for task in answer.json()["tasks"]])
        cursor = {"cursor": answer.json()["next"]} if answer.json()["next"] else {}

        assert len(answer.content) < 9 * MEGABYTE

    seen = [task_id for page in got for task_id in page]
    assert len(got) == 4
    assert len(seen) == len(set(seen)) == 31
    assert seen == sorted(seen, reverse=sort.startswith("-"))


def test_a_task_larger_than_a_page_has_one_to_itself(
    large_tasks: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 500_000)

    first = large_tasks.admin.get(TASKS).json()

    assert len(first["tasks"]) == 1
    assert first["next"] == first["tasks"][0]["task_id"]


def test_a_poll_is_bounded_in_bytes(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "POLL_BYTES", 3_500_000)
    large = {"task_type": "shop.mail", "parameters": {"to": "x" * 900_000}, "queue": "default"}
    with serve(make_app(sqlite_url)) as server:
        server.admin.post(TASKS, json=[large] * 5).raise_for_status()
        mine = server.admin.post("/internal/workers/register", json={"capacity": 100}).json()
        poll = f"/internal/workers/{mine['worker_id']}/poll"
        asked = {"available_capacity": 100, "wait_seconds": 5}
        answers = [server.admin.post(poll, json=asked) for _ in range(2)]

    assert [len(answer.json()["tasks"]) for answer in answers] == [3, 2]


def test_an_http_workers_log_ends_somewhere(live_server: LiveServer) -> None:
    client = live_server.admin
    client.post(TASKS, json=GOOD).raise_for_status()
    worker_id = client.post("/internal/workers/register", json={}).json()["worker_id"]
    asked = {"available_capacity": 1, "wait_seconds": 5}
    (task,) = client.post(f"/internal/workers/{worker_id}/poll", json=asked).json()["tasks"]
    fence = {"task_id": task["task_id"], "attempt": task["attempt"]}
    for _ in range(8):
        beat = {"reports": [{**fence, "log": ["y" * 8000] * 30}]}
        client.post(f"/internal/workers/{worker_id}/heartbeat", json=beat).raise_for_status()

    events = client.get(f"{TASKS}/{task['task_id']}/attempts").json()["events"]

    lines = [event["detail"] for event in events if event["kind"] == "log"]
    assert len(lines) == 133
    assert lines[-1] == (
        "[this attempt has logged 132 lines, 1,056,000 bytes: no more of it is kept]"
    )


def test_a_history_ends_with_its_newest_part(
    live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = live_server.admin.post(TASKS, json=GOOD).json()["task_id"]
    for _ in range(3):
        live_server.work()
        live_server.admin.post(f"{TASKS}/{task_id}/retry").raise_for_status()
    monkeypatch.setattr(pages, "PAGE_BYTES", 1300)

    history = live_server.admin.get(f"{TASKS}/{task_id}/attempts").json()

    assert [attempt["attempt"] for attempt in history["attempts"]] == [2, 3]
    assert [event["kind"] for event in history["events"]] == ["requeued", "requeued"]


def head(server: LiveServer, length: int, *more: str) -> str:
    lines = [
        f"POST {TASKS} HTTP/1.1",
        "Host: test",
        f"Authorization: Bearer {server.token('submit')}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""])
