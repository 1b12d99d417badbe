"""Workers over HTTP, request by request, on a real server."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast.core.trace import EXAMPLE

SOON = 5.0
UNKNOWN = "0192f0c1-7a3b-7cc0-8000-1f2e3d4c5b6a"


class Wire:
    """A worker's and an operator's requests."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.http = server.client("worker")
        self.admin = server.admin
        self.pool = ThreadPoolExecutor(4)

    def register(self, **given: Any) -> str:
        body = {"capacity": 10, "queues": ["js", "default"], **given}
        told = self.http.post("/internal/workers/register", json=body)
        assert told.status_code == 201, told.text
        worker_id: str = told.json()["worker_id"]
        return worker_id

    def ask(self, worker: str, what: str, body: Any) -> httpx.Response:
        return self.http.post(f"/internal/workers/{worker}/{what}", json=body)

    def poll(self, worker: str, wait: float = 0.0, available: int = 10) -> list[dict[str, Any]]:
        body = {"available_capacity": available, "wait_seconds": wait}
        told = self.ask(worker, "poll", body)
        assert told.status_code == 200, told.text
        tasks: list[dict[str, Any]] = told.json()["tasks"]
        return tasks

    def submit(self, **given: Any) -> str:
        body = {"task_type": "resize", "queue": "js", "parameters": {"n": 1}, **given}
        told = self.admin.post("/api/v1/tasks", json=body)
        assert told.status_code == 201, told.text
        task_id: str = told.json()["task_id"]
        return task_id

    def started(self, worker: str, **given: Any) -> dict[str, Any]:
        task_id = self.submit(**given)
        (task,) = self.poll(worker)
        assert task["task_id"] == task_id
        return task

    def task(self, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get(f"/api/v1/tasks/{task_id}").json()
        return found

    def reaches(self, task_id: str, status: str, *, within: float = SOON) -> dict[str, Any]:
        deadline = time.monotonic() + within
        while (task := self.task(task_id))["status"] != status:
            assert time.monotonic() < deadline, task
            time.sleep(0.02)
        return task


def done(task: dict[str, Any], **given: Any) -> dict[str, Any]:
    plain = {"task_id": task["task_id"], "attempt": task["attempt"], "status": "completed"}
    return plain | given


@pytest.fixture
def wire(either_server: LiveServer) -> Wire:
    return Wire(either_server)


@pytest.fixture
def asleep(sqlite_url: str) -> Iterator[Wire]:
    """A server that finds nothing by polling: what comes soon was woken."""
    with serve(make_app(sqlite_url, open_queues="js", poll="30s")) as server:
        yield Wire(server)


def test_a_task_goes_all_the_way_through_a_worker_over_http(wire: Wire) -> None:
    worker = wire.register(capabilities=["gpu"])
    task_id = wire.submit(
        required_capabilities=["gpu"], timeout_seconds=30, lock="a", traceparent=EXAMPLE
    )

    (task,) = wire.poll(worker)
    told = wire.ask(worker, "result", done(task, result={"size": [3, 4]}))

    assert task == {
        "task_id": task_id,
        "task_type": "resize",
        "parameters": {"n": 1},
        "attempt": 1,
        "queue": "js",
        "priority": "normal",
        "timeout_seconds": 30.0,
        "trace_id": EXAMPLE[3:35],
        "traceparent": f"{EXAMPLE[:36]}{task_id.replace('-', '')[-16:]}-01",
        "owner": None,
        "lock": "a",
        "lock_fence": task["lock_fence"],
        "scheduled_for": None,
        "steps": [],
    }
    assert task["lock_fence"] >= 1
    assert told.status_code == 200
    assert told.json() == {
        "task_id": task_id,
        "attempt": 1,
        "accepted": True,
        "repeated": False,
        "status": 200,
    }
    shown = wire.task(task_id)
    assert (shown["status"], shown["result"]) == ("completed", {"size": [3, 4]})
    history = wire.admin.get(f"/api/v1/tasks/{task_id}/attempts").json()
    assert [attempt["worker_id"] for attempt in history["attempts"]] == [worker]


def test_a_worker_is_told_when_a_run_of_a_schedule_was_meant_to_be(wire: Wire) -> None:
    worker = wire.register()
    wanted = {"name": "nightly", "task_type": "resize", "queue": "js", "cron": "0 3 * * *"}
    made = wire.admin.post("/api/v1/schedules", json=wanted)
    day = {"begin": "2026-01-05T00:00:00Z", "end": "2026-01-06T00:00:00Z"}
    wire.admin.post("/api/v1/schedules/nightly/backfill", json=day)

    (task,) = wire.poll(worker)

    assert made.status_code == 201, made.text
    assert (task["scheduled_for"], task["parameters"]) == ("2026-01-05T03:00:00Z", {})


def test_worker_and_start_are_shown_only_while_the_task_runs(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    running = wire.task(task["task_id"])

    failed = done(task, status="failed", error={"message": "no", "retry_after": 60})
    wire.ask(worker, "result", failed)

    waiting = wire.task(task["task_id"])
    assert (running["status"], running["assigned_worker_id"]) == ("running", worker)
    assert running["started_at"]
    assert (waiting["status"], waiting["attempt"]) == ("retrying", 1)
    assert (waiting["assigned_worker_id"], waiting["started_at"]) == (None, None)


def test_the_capability_that_every_worker_over_http_has_is_shown_to_nobody(wire: Wire) -> None:
    worker = wire.register(capabilities=["gpu"])
    task_id = wire.submit(required_capabilities=["gpu"])

    (shown,) = wire.admin.get("/api/v1/workers").json()["workers"]
    assert (shown["worker_id"], shown["capabilities"]) == (worker, ["gpu"])
    assert wire.task(task_id)["required_capabilities"] == ["gpu"]


def test_a_worker_cannot_claim_a_capability_that_holdfast_gives(wire: Wire) -> None:
    told = wire.http.post("/internal/workers/register", json={"capabilities": ["token:abc"]})

    assert (told.status_code, told.json()["code"]) == (422, "invalid_option")


def test_a_waiting_poll_is_answered_as_a_task_is_submitted(asleep: Wire) -> None:
    worker = asleep.register()
    polling = asleep.pool.submit(asleep.poll, worker, 20.0)
    time.sleep(0.3)  # until it surely waits; if it does not yet, it finds the task even sooner

    began = time.monotonic()
    task_id = asleep.submit()

    (task,) = polling.result(SOON)
    assert task["task_id"] == task_id
    assert time.monotonic() - began < 2.0


def test_a_client_that_hung_up_is_handed_nothing(asleep: Wire) -> None:
    gone, other = asleep.register(), asleep.register()
    with parked_socket(asleep, gone):
        time.sleep(0.3)
    time.sleep(0.2)  # the server notices

    task_id = asleep.submit()

    (task,) = asleep.poll(other)
    assert (task["task_id"], task["attempt"]) == (task_id, 1)


@contextmanager
def parked_socket(wire: Wire, worker: str) -> Iterator[None]:
    """A poll by hand, hung up on leaving."""
    body = json.dumps({"available_capacity": 1}).encode()
    host, port = wire.server.url.removeprefix("http://").split(":")
    head = (
        f"POST /internal/workers/{worker}/poll HTTP/1.1\r\nHost: {host}\r\n"
        f"Authorization: {wire.http.headers['Authorization']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        yield


def test_the_owners_repeat_is_accepted(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    wire.ask(worker, "result", done(task, result=1))

    again = wire.ask(worker, "result", done(task, result=1))

    assert again.status_code == 200
    assert again.json()["repeated"] is True


def test_a_stale_result_is_refused_with_409(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    wire.ask(worker, "result", done(task, status="released"))
    (second,) = wire.poll(worker)

    told = wire.ask(worker, "result", done(task, result="late"))

    assert (told.status_code, told.json()["code"]) == (409, "lease_lost")
    assert told.headers["content-type"] == "application/problem+json"
    shown = wire.task(task["task_id"])
    assert (shown["status"], shown["attempt"]) == ("running", second["attempt"])
    assert wire.server.app.stats().refused == 1


def test_a_foreign_result_is_refused_with_409(wire: Wire) -> None:
    owner, other = wire.register(), wire.register()
    task = wire.started(owner)

    told = wire.ask(other, "result", done(task))

    assert (told.status_code, told.json()["code"]) == (409, "lease_lost")
    assert wire.task(task["task_id"])["status"] == "running"


def test_an_unknown_task_or_worker_is_refused_with_404(wire: Wire) -> None:
    worker = wire.register()
    result = {"task_id": UNKNOWN, "attempt": 1, "status": "completed"}

    unknown_task = wire.ask(worker, "result", result)
    unknown_worker = wire.ask("nobody", "result", result)

    assert (unknown_task.status_code, unknown_task.json()["code"]) == (404, "task_not_found")
    assert (unknown_worker.status_code, unknown_worker.json()["code"]) == (404, "worker_not_found")
    for what, body in (("poll", {"available_capacity": 1}), ("heartbeat", {}), ("drain", {})):
        assert wire.ask("nobody", what, body).status_code == 404


@pytest.mark.parametrize(
    "broken",
    [
        {"attempt": 0},
        {"attempt": 2**40},
        {"attempt": "1"},
        {"status": "done"},
        {"status": "completed", "error": {"message": "no"}},
        {"status": "failed", "result": 1},
        {"status": "failed", "error": {"message": "no", "retry_after": -1}},
        {"status": "failed", "error": {}},
        {"task_id": "none"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_result_without_its_fence_or_form_is_refused_with_422(
    wire: Wire, broken: dict[str, Any]
) -> None:
    worker = wire.register()
    task = wire.started(worker)
    body = done(task) | broken

    alone, in_a_batch = wire.ask(worker, "result", body), wire.ask(worker, "result", [body])

    assert (alone.status_code, in_a_batch.status_code) == (422, 422)
    assert wire.task(task["task_id"])["status"] == "running"


def test_a_result_that_is_too_large_is_refused_with_422(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)

    told = wire.ask(worker, "result", done(task, result="x" * 1_100_000))

    assert (told.status_code, told.json()["code"]) == (422, "payload_refused")
    assert wire.task(task["task_id"])["status"] == "running"


def test_a_batch_is_answered_one_by_one(wire: Wire) -> None:
    worker, other = wire.register(), wire.register()
    good, bad, foreign = wire.started(worker), wire.started(worker), wire.started(other)
    error = {"message": "no such file", "type": "ENOENT", "retriable": False}

    told = wire.ask(
        worker,
        "result",
        [
            done(good, result=1),
            done(bad, status="failed", error=error),
            done(foreign),
            {"task_id": UNKNOWN, "attempt": 1, "status": "completed"},
        ],
    )

    assert told.status_code == 200
    answers = told.json()["results"]
    assert [answer["status"] for answer in answers] == [200, 200, 409, 404]
    assert [answer.get("code") for answer in answers[2:]] == ["lease_lost", "task_not_found"]
    assert wire.task(good["task_id"])["status"] == "completed"
    failed = wire.task(bad["task_id"])
    assert failed["status"] == "failed"
    assert failed["error"] == {"type": "ENOENT", "message": "no such file", "retriable": False}


def test_a_failure_is_retried_when_the_worker_says(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    error = {"message": "busy", "retry_after": 0}

    wire.ask(worker, "result", done(task, status="failed", error=error))

    (again,) = wire.poll(worker, 5.0)
    assert (again["task_id"], again["attempt"]) == (task["task_id"], 2)


def test_words_that_are_too_long_are_shortened_not_refused(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    error = {"message": "no " * 500_000, "traceback": "x" * 1_500_000, "retriable": False}

    told = wire.ask(worker, "result", done(task, status="failed", error=error))

    assert told.status_code == 200
    kept = wire.task(task["task_id"])["error"]["message"]
    assert kept.startswith("no no ")
    assert len(kept) < 5_000


def test_a_heartbeat_stores_reports_and_names_what_was_cancelled(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    wire.admin.post(f"/api/v1/tasks/{task['task_id']}/cancel")
    report = {
        "task_id": task["task_id"],
        "attempt": 1,
        "progress": {"done": 1, "total": 2},
        "cost": {"units": 3},
        "log": ["half way"],
    }

    told = wire.ask(
        worker,
        "heartbeat",
        {"current_load": 1, "status": "active", "running": [task["task_id"]], "reports": [report]},
    )

    assert told.json() == {"acknowledged": True, "cancel": [task["task_id"]], "drain": False}
    assert wire.task(task["task_id"])["progress"] == {"done": 1.0, "total": 2.0, "message": None}
    wire.ask(worker, "result", done(task, status="released"))
    assert wire.task(task["task_id"])["status"] == "cancelled"


def test_the_load_shown_is_what_was_leased_and_not_what_the_worker_says(wire: Wire) -> None:
    worker = wire.register(capacity=3)
    task = wire.started(worker)
    wire.submit()
    wire.ask(worker, "heartbeat", {"current_load": 99, "status": "active"})

    (shown,) = wire.admin.get("/api/v1/workers").json()["workers"]

    assert (shown["load"], shown["capacity"]) == (1, 3)
    time.sleep(1.01)  # these numbers are good for a second
    stats = wire.admin.get("/api/v1/queue/stats").json()
    assert (stats["workers"]["total_capacity"], stats["workers"]["used_capacity"]) == (3, 1)
    wire.ask(worker, "result", done(task))
    (shown,) = wire.admin.get("/api/v1/workers").json()["workers"]
    assert shown["load"] == 0


def test_why_knows_that_a_worker_over_http_is_full(wire: Wire) -> None:
    worker = wire.register(capacity=1)
    wire.started(worker)
    waiting = wire.submit()

    told = wire.admin.get(f"/api/v1/tasks/{waiting}/why").json()

    assert [reason["code"] for reason in told["reasons"]] == ["workers_busy"]


def test_an_operator_can_send_a_worker_home(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)

    assert wire.admin.post(f"/api/v1/workers/{worker}/drain").is_success

    deadline = time.monotonic() + SOON
    while not (told := wire.ask(worker, "heartbeat", {}).json())["drain"]:
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    wire.submit()
    assert wire.poll(worker) == []
    assert wire.ask(worker, "drain", {}).json() == {"running": 1, "stopped": False}
    wire.ask(worker, "result", done(task))
    assert wire.ask(worker, "drain", {}).json() == {"running": 0, "stopped": True}
    gone = wire.ask(worker, "poll", {"available_capacity": 1})
    assert (gone.status_code, gone.json()["code"]) == (409, "worker_gone")


def test_a_worker_gets_the_secrets_that_nobody_else_is_shown(wire: Wire) -> None:
    worker = wire.register()
    parameters = {"user": "ann", "password": "hunter2"}
    task_id = wire.submit(task_type="shop.login", queue="default", parameters=parameters)

    (task,) = wire.poll(worker)

    assert task["parameters"] == parameters
    assert "hunter2" not in json.dumps(wire.task(task_id))

    error = {"type": "Error", "message": "no such user: ann/hunter2", "traceback": "at hunter2"}
    told = wire.ask(worker, "result", done(task, status="failed", error=error))

    assert told.status_code == 200
    shown = wire.admin.get(f"/api/v1/tasks/{task_id}?traceback=true").json()["error"]
    assert shown["message"] == "no such user: ann/**********"
    assert shown["traceback"] == "at **********"


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("poll", {}),
        ("poll", {"available_capacity": 0}),
        ("poll", {"available_capacity": 1, "wait_seconds": 31}),
        ("poll", []),
        ("heartbeat", {"status": "dead"}),
        ("heartbeat", {"current_load": -1}),
        ("heartbeat", {"running": ["x"]}),
        ("heartbeat", {"reports": [{"task_id": UNKNOWN}]}),
        ("result", 5),
        ("result", [[]]),
    ],
    ids=str,
)
def test_what_has_not_the_form_is_refused_with_422(
    live_server: LiveServer, what: str, body: Any
) -> None:
    wire = Wire(live_server)

    assert wire.ask(wire.register(), what, body).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"capacity": 0},
        {"capacity": 1.5},
        {"queues": []},
        {"queues": ["a b"]},
        {"queues": "js"},
        {"capabilities": ["*"]},
        {"version": 1},
        {"name": "me"},
    ],
    ids=str,
)
def test_a_worker_that_makes_no_sense_is_not_registered(
    live_server: LiveServer, body: dict[str, Any]
) -> None:
    told = live_server.client("worker").post("/internal/workers/register", json=body)

    assert told.status_code == 422
    assert live_server.admin.get("/api/v1/workers").json() == {"workers": []}
