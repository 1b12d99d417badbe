"""`follow_ups` of a result, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app
from tests.integration.server.test_http_workers import Wire, done

from holdfast.core.trace import EXAMPLE


@pytest.fixture(params=["sqlite_url", "fresh_schema"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    url = request.getfixturevalue(request.param)
    with serve(make_app(url, open_queues="js,later")) as server:
        yield may_submit(server)


@pytest.fixture
def here(sqlite_url: str) -> Iterator[Wire]:
    with serve(make_app(sqlite_url, open_queues="js,later")) as server:
        yield may_submit(server)


def may_submit(server: LiveServer, **bounds: Any) -> Wire:
    wire = Wire(server)
    wire.http = server.client("worker", "submit", **bounds)
    return wire


def later(**given: Any) -> dict[str, Any]:
    return {"task_type": "note", "queue": "later", **given}


def there(wire: Wire) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = wire.admin.get("/api/v1/tasks?queue=later").json()["tasks"]
    return tasks


def tell(wire: Wire, *follow_ups: Any, **given: Any) -> tuple[dict[str, Any], httpx.Response]:
    """A fresh task, and the answer to its result."""
    worker = wire.register()
    task = wire.started(worker)
    body = done(task, follow_ups=list(follow_ups), **given)
    return task, wire.ask(worker, "result", body)


def test_follow_ups_exist_once_the_result_counts_and_repeats_add_none(wire: Wire) -> None:
    worker = wire.register()
    task = wire.started(worker, traceparent=EXAMPLE)
    body = done(task, result=1, followUps=[later(parameters={"n": 1}, delaySeconds=60, tags=None)])

    told = [wire.ask(worker, "result", body) for _ in range(2)]

    assert [each.status_code for each in told] == [200, 200]
    assert [each.json()["repeated"] for each in told] == [False, True]
    (one,) = there(wire)
    assert (one["task_type"], one["status"]) == ("note", "queued")
    assert one["trace_id"] == EXAMPLE[3:35]
    assert wire.task(task["task_id"])["status"] == "completed"


def test_a_used_idempotency_key_is_a_conflict_and_the_task_still_runs(wire: Wire) -> None:
    wire.submit(**later(idempotency_key="k", parameters={"n": 1}))
    worker = wire.register()
    task = wire.started(worker)
    clash = later(idempotency_key="k", parameters={"n": 2})

    told = wire.ask(worker, "result", done(task, follow_ups=[later(), clash]))

    problem = told.json()
    assert (told.status_code, problem["code"]) == (409, "idempotency_conflict")
    assert (problem["field"], problem["task_id"]) == ("follow_ups", task["task_id"])
    assert "the attempt still runs" in problem["detail"]
    assert wire.task(task["task_id"])["status"] == "running"
    assert len(there(wire)) == 1
    (again,) = wire.ask(worker, "result", [done(task, follow_ups=[later(), clash])]).json()[
        "results"
    ]
    assert (again["status"], again["code"]) == (409, "idempotency_conflict")
    assert wire.ask(worker, "result", done(task, follow_ups=[later()])).status_code == 200
    assert len(there(wire)) == 2


def test_follow_ups_take_the_scope_submit_too(here: Wire) -> None:
    here.http = here.server.client("worker")

    task, told = tell(here, later())

    problem = told.json()
    assert (told.status_code, problem["code"]) == (403, "insufficient_scope")
    assert problem["field"] == "follow_ups"
    assert "follow_ups takes a token with the scope submit" in problem["detail"]
    assert here.task(task["task_id"])["status"] == "running"


def test_the_bounds_of_the_token_apply(here: Wire) -> None:
    bound = may_submit(here.server, queues=["js", "later"], max_priority="normal")
    worker = bound.register(queues=["js"])
    task = bound.started(worker)

    refused = bound.ask(
        worker, "result", done(task, follow_ups=[later(), later(priority="critical")])
    )
    accepted = bound.ask(worker, "result", done(task, follow_ups=[later()]))

    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (403, "out_of_bounds")
    assert problem["field"] == "follow_ups[1].priority"
    assert accepted.status_code == 200
    (one,) = there(here)
    assert bound.http.post(f"/api/v1/tasks/{one['task_id']}/cancel").status_code == 200


def test_each_follow_up_counts_against_the_rate_of_the_token(here: Wire) -> None:
    bound = may_submit(here.server, rate="6/1h")

    task, told = tell(bound, *[later()] * 5)

    assert (told.status_code, told.json()["code"]) == (429, "rate_limited")
    assert here.task(task["task_id"])["status"] == "running"
    assert there(here) == []


@pytest.mark.parametrize(
    ("follow_ups", "field"),
    [
        ([later(), later(), later(priority="soon")], "follow_ups[2].priority"),
        ([{"queue": "later"}], "follow_ups[0].task_type"),
        ([later(callback_url="https://example.com/")], "follow_ups[0].callback_url"),
        ([{"task_type": "shop.add", "parameters": {"a": "x"}}], "follow_ups[0].parameters.a"),
        ([{"task_type": "nobody.knows"}], "follow_ups[0].task_type"),
        (["note"], "follow_ups[0]"),
        ([later()] * 101, "follow_ups"),
    ],
)
def test_errors_name_the_field(here: Wire, follow_ups: list[Any], field: str) -> None:
    task, told = tell(here, *follow_ups)

    assert told.status_code in (409, 422)
    assert told.json()["field"] == field
    assert here.task(task["task_id"])["status"] == "running"
    assert there(here) == []


def test_in_an_array_errors_name_the_result_too(here: Wire) -> None:
    worker = here.register()
    first, second = here.started(worker), here.started(worker)
    bodies = [done(first), done(second, follow_ups=[later(priority="soon")])]

    told = here.ask(worker, "result", bodies)

    assert (told.status_code, told.json()["field"]) == (422, "[1].follow_ups[0].priority")
    assert here.task(first["task_id"])["status"] == "running"


@pytest.mark.parametrize("given", [{"status": "failed", "error": "no"}, {"status": "released"}])
def test_only_a_success_has_follow_ups(here: Wire, given: dict[str, Any]) -> None:
    _, told = tell(here, later(), **given)

    assert (told.status_code, told.json()["field"]) == (422, "follow_ups")
    assert "belongs to the status completed" in told.json()["detail"]


def test_a_task_ends_after_the_children_that_its_result_brings(wire: Wire) -> None:
    worker = wire.register(queues=["js", "later"])
    task = wire.started(worker)

    told = wire.ask(worker, "result", done(task, result=7, children=[later(), later()]))

    assert told.status_code == 200
    assert wire.task(task["task_id"])["status"] == "blocked"
    children = wire.poll(worker)
    assert [child["task_type"] for child in children] == ["note", "note"]
    for child in children:
        assert wire.ask(worker, "result", done(child)).status_code == 200
    assert wire.poll(worker) == []
    ended = wire.task(task["task_id"])
    assert (ended["status"], ended["result"]) == ("completed", 7)


def test_children_take_the_scope_submit_too(here: Wire) -> None:
    here.http = here.server.client("worker")
    worker = here.register()
    task = here.started(worker)

    told = here.ask(worker, "result", done(task, children=[later()]))

    assert (told.status_code, told.json()["field"]) == (403, "children")
    assert here.task(task["task_id"])["status"] == "running"
