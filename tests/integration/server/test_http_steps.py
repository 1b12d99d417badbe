"""Durable steps of workers over HTTP, and events over REST."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.server.live import serve
from tests.integration.server.shop import make_app
from tests.integration.server.test_http_workers import Wire, done

EVENTS = "/api/v1/events"


@pytest.fixture
def wire(sqlite_url: str) -> Iterator[Wire]:
    with serve(make_app(sqlite_url, open_queues="js")) as server:
        yield Wire(server)


def said(task: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {"task_id": task["task_id"], "attempt": task["attempt"], **given}


def record(wire: Wire, worker: str, task: dict[str, Any], *steps: dict[str, Any]) -> Any:
    return wire.ask(worker, "heartbeat", {"reports": [said(task, steps=list(steps))]})


def defer(wire: Wire, worker: str, task: dict[str, Any], **until: Any) -> Any:
    return wire.ask(worker, "result", said(task, status="deferred", **until))


def emit(wire: Wire, **body: Any) -> Any:
    return wire.admin.post(EVENTS, json=body)


def polled(wire: Wire, worker: str) -> dict[str, Any]:
    (task,) = wire.poll(worker, wait=20.0)
    return task


def test_steps_come_with_the_next_attempt_in_their_order(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    assert task["steps"] == []

    told = record(wire, worker, task, {"name": "charge", "result": {"id": 7}}, {"name": "pack"})
    again = record(wire, worker, task, {"name": "charge", "result": "another"})
    assert [each.status_code for each in (told, again)] == [200, 200]
    assert told.json()["cancel"] == []
    wire.ask(worker, "result", said(task, status="released"))
    task = polled(wire, worker)

    assert task["steps"] == [
        {"name": "charge", "kind": "step", "key": None, "result": {"id": 7}, "timed_out": False},
        {"name": "pack", "kind": "step", "key": None, "result": None, "timed_out": False},
    ]
    assert wire.ask(worker, "result", done(task)).status_code == 200


def test_a_step_of_who_has_lost_the_task_is_refused(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    wire.ask(worker, "result", said(task, status="released"))

    told = record(wire, worker, task, {"name": "charge"})

    assert told.json()["cancel"] == [task["task_id"]]
    assert polled(wire, worker)["steps"] == []


def test_a_sleep_hands_the_task_back_and_is_counted_once(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)

    before = time.monotonic()
    assert defer(wire, worker, task, sleep={"name": "cool", "seconds": 1.0}).status_code == 200
    why = wire.admin.get(f"/api/v1/tasks/{task['task_id']}/why").json()
    assert why["reasons"][0]["code"] == "sleeping"
    wire.admin.post(f"/api/v1/tasks/{task['task_id']}/retry")
    early = polled(wire, worker)
    assert early["steps"] == []
    defer(wire, worker, early, sleep={"name": "cool", "seconds": 3600})
    task = polled(wire, worker)

    assert time.monotonic() - before >= 1.0
    assert [(step["name"], step["kind"]) for step in task["steps"]] == [("cool", "sleep")]


def test_an_event_comes_with_the_task_that_waits_for_it(wire: Wire) -> None:
    worker = wire.register()
    first = wire.started(worker)
    defer(wire, worker, first, wait_for={"event": "approved", "key": "17"})
    why = wire.admin.get(f"/api/v1/tasks/{first['task_id']}/why").json()
    assert why["reasons"][0]["code"] == "waiting_for_event"

    told = emit(wire, event="approved", key="17", payload={"by": "ada"})
    again = emit(wire, event="approved", key=17, payload="another")
    resumed = polled(wire, worker)
    late = wire.started(worker)
    defer(wire, worker, late, wait_for={"event": "approved", "key": "17", "timeout_seconds": 60})
    resumed_too = polled(wire, worker)

    assert told.json() == {"event": "approved", "key": "17", "first": True, "woken": 1}
    assert again.json() == {"event": "approved", "key": "17", "first": False, "woken": 0}
    (step,) = resumed["steps"]
    assert step == {
        "name": "approved",
        "kind": "event",
        "key": "17",
        "result": {"by": "ada"},
        "timed_out": False,
    }
    assert resumed_too["steps"] == [step]


def test_an_event_that_does_not_come_in_time_is_told_too(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)
    defer(wire, worker, task, wait_for={"event": "a", "key": "b", "timeout_seconds": 0.2})

    (step,) = polled(wire, worker)["steps"]

    assert (step["name"], step["timed_out"], step["result"]) == ("a", True, None)


@pytest.mark.parametrize(
    "body",
    [
        {"status": "deferred"},
        {"status": "deferred", "sleep": {"name": "a", "seconds": 1}, "wait_for": {}},
        {"status": "deferred", "sleep": {"name": "$a", "seconds": 1}},
        {"status": "deferred", "sleep": {"name": "a", "seconds": -1}},
        {"status": "deferred", "wait_for": {"event": "a b", "key": "c"}},
        {"status": "released", "sleep": {"name": "a", "seconds": 1}},
    ],
)
def test_a_deferral_that_makes_no_sense_is_refused(wire: Wire, body: dict[str, Any]) -> None:
    worker = wire.register()
    task = wire.started(worker)

    told = wire.ask(worker, "result", said(task, **body))

    assert told.status_code == 422, told.text
    assert wire.task(task["task_id"])["status"] == "running"


def test_a_step_that_no_store_may_hold_is_refused(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker)

    told = record(wire, worker, task, {"name": "charge", "result": "x" * 1_100_000})

    assert told.status_code == 422
    assert "max_result" in told.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"event": "a"}, "key"),
        ({"event": "a b", "key": "c"}, "event"),
        ({"event": "a", "key": ""}, "key"),
        ({"event": "a", "key": "c", "data": 1}, "data"),
    ],
)
def test_an_emit_that_makes_no_sense_is_refused(wire: Wire, body: Any, field: str) -> None:
    told = emit(wire, **body)

    assert told.status_code == 422
    assert field in told.text


def test_only_who_may_submit_everywhere_may_emit(wire: Wire) -> None:
    body = {"event": "a", "key": "b"}

    reader = wire.server.client("read").post(EVENTS, json=body)
    bound = wire.server.client("submit", owner="anna").post(EVENTS, json=body)
    other = wire.server.client("submit").post(EVENTS, json=body)

    assert [each.status_code for each in (reader, bound, other)] == [403, 403, 200]
