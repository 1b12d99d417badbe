"""Who may do what: what a token sees and steers of others' tasks, route by route."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast.core.task import Json
from holdfast.delivery.inbox import Inbox
from holdfast.ports.channel import Message
from holdfast.server.access import TABLE, WhenBound

TASKS = "/api/v1/tasks"
SECRET = "annas-secret"
ROUTES = [
    (method, path, rule)
    for path, methods in TABLE.items()
    for method, rule in methods.items()
    if rule is not None
]
ENDPOINTS = [f"{method} {path}" for method, path, _ in ROUTES]
BODIES: dict[str, Json] = {
    f"POST {TASKS}": {"task_type": "shop.add", "parameters": {"a": 1}, "unique_key": SECRET},
    f"POST {TASKS}/actions": {"action": "cancel", "filter": {"status": ["queued"]}},
    "POST /api/v1/dead-letters/replay": {"filter": {}},
    "POST /api/v1/dead-letters/discard": {"filter": {}},
    "POST /api/v1/schedules": {"task_type": "shop.add", "parameters": {"a": 1}, "every": "1h"},
    "POST /api/v1/schedules/preview": {"every": "1h"},
    "POST /api/v1/schedules/import": {
        "task_type": "shop.fail",
        "calendar": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20900101T100000Z\nEND:VEVENT\n"
        "END:VCALENDAR",
    },
    "PATCH /api/v1/schedules/{schedule}": {"title": "mine"},
    "PUT /api/v1/budgets/{budget:path}": {"day": {"runs": 0}},
    "POST /api/v1/schedules/{schedule}/backfill": {
        "begin": "2026-01-05T00:00:00Z",
        "end": "2026-01-06T00:00:00Z",
    },
    "PATCH /api/v1/inbox/{item_id}": {"read": True},
    "PUT /api/v1/recipients/{recipient}": {"timezone": "UTC"},
    "PATCH /api/v1/recipients/{recipient}": {"timezone": "UTC"},
    "POST /api/v1/assistant/messages": {
        "chat_id": "c1",
        "timezone": "Europe/Berlin",
        "messages": [{"content": "cancel all my tasks"}],
    },
    "POST /internal/workers/{worker_id}/poll": {"available_capacity": 1, "wait_seconds": 0},
}


def submitted(client: httpx.Client, **words: Json) -> Json:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, **words}
    answer = client.post(TASKS, json=body)
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('reach')}/tasks.db"
    with serve(make_app(url, open_queues="js")) as live:
        live.hurry()  # streams end at once
        yield live


@pytest.fixture(scope="module")
def anna(server: LiveServer) -> httpx.Client:
    return server.client("submit", "read", "operate", owner="anna")


@pytest.fixture(scope="module")
def schedule(server: LiveServer, anna: httpx.Client) -> str:
    """A schedule of Anna's, who has a budget."""
    body = {"name": "annas", "task_type": "shop.add", "parameters": {"a": 1}, "every": "1h"}
    answer = anna.post("/api/v1/schedules", json={**body, "title": SECRET, "queue": "annas-queue"})
    limits = {"day": {"runs": 5}}
    assert server.admin.put("/api/v1/budgets/owner:anna", json=limits).status_code == 200
    return str(answer.json()["id"])


@pytest.fixture(scope="module")
def inbox_item(server: LiveServer) -> str:
    """What was delivered to Anna, and where that goes."""
    app = server.app
    message = Message(
        id="018f3f6e-0000-7000-8000-00000000a11a", channel="inbox", owner="anna", title=SECRET,
        content=SECRET, is_failure=False, at=datetime.now(UTC),
    )  # fmt: skip
    app.wait_for(Inbox(app.client.store, 3600.0).add(message))
    app.recipients.put("anna", devices=[SECRET])
    return message.id


@pytest.fixture
def bert(server: LiveServer) -> httpx.Client:
    return server.client("submit", "read", "operate", owner="bert")


# -- tokens with the scope submit alone ------------------------------------------------------------


def test_who_may_only_submit_steers_what_it_submitted_and_is_told_little(
    server: LiveServer,
) -> None:
    client = server.client("submit")
    task = submitted(client)["task_id"]

    stopped = client.post(f"{TASKS}/{task}/cancel")
    again = client.post(f"{TASKS}/{task}/retry")
    gone = client.delete(f"{TASKS}/{task}")

    for answer, status in ((stopped, "cancelled"), (again, "queued"), (gone, "cancelled")):
        assert answer.status_code == 200
        assert answer.json() == {"task_id": task, "status": status, "cancel_requested": False}


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_who_may_only_submit_steers_nothing_of_others(server: LiveServer, verb: str) -> None:
    of_admin = submitted(server.admin)["task_id"]
    of_other = submitted(server.client("submit"))["task_id"]
    mallory = server.client("submit", "read")

    for task in (of_admin, of_other):
        answer = mallory.post(f"{TASKS}/{task}/{verb}")

        assert (answer.status_code, answer.json()["code"]) == (403, "not_your_task")
        assert server.admin.get(f"{TASKS}/{task}").json()["status"] == "queued"


def test_who_may_operate_steers_others_tasks(server: LiveServer) -> None:
    task = submitted(server.client("submit"))["task_id"]
    operator = server.client("operate")

    brief = operator.post(f"{TASKS}/{task}/cancel").json()
    whole = server.client("operate", "read").post(f"{TASKS}/{task}/retry").json()

    assert brief == {"task_id": task, "status": "cancelled", "cancel_requested": False}
    assert whole["parameters"] == {"a": 1}
    assert operator.get(f"{TASKS}/{task}").status_code == 403


def test_who_may_only_submit_acts_on_no_filter(server: LiveServer) -> None:
    client = server.client("submit", "read")

    for path in (f"{TASKS}/actions", "/api/v1/dead-letters/replay", "/api/v1/queues/mail/pause"):
        assert client.post(path, json={}).status_code == 403


# -- tokens that are bound to an owner -------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "rule"), ROUTES, ids=ENDPOINTS)
def test_no_route_shows_or_changes_what_is_anothers(
    server: LiveServer,
    anna: httpx.Client,
    schedule: str,
    inbox_item: str,
    method: str,
    path: str,
    rule: Any,
) -> None:
    """Every route of the table, called by Bert with what is Anna's."""
    task = submitted(anna, unique_key=SECRET, tags=[SECRET], queue="annas-queue")["task_id"]
    scopes = {"submit", "read", "operate"}
    if scopes.isdisjoint(rule.scopes):
        return  # no token that is bound to an owner can have `worker` or `admin`
    bert = server.client(*scopes, owner="bert")
    url = path.replace("{task_id}", task).replace("{queue}", "annas-queue")
    url = url.replace("{schedule}", schedule).replace("{item_id}", inbox_item)
    url = url.replace("{recipient}", "anna").replace("{budget:path}", "owner:anna")

    answer = bert.request(method, url, json=BODIES.get(f"{method} {path}"))

    match rule.bound:
        case WhenBound.REFUSED:
            assert (answer.status_code, answer.json()["code"]) == (403, "bound_token")
        case WhenBound.OWN if "{task_id}" in path:
            assert (answer.status_code, answer.json()["code"]) == (404, "task_not_found")
        case WhenBound.OWN if "{budget:path}" in path:
            assert (answer.status_code, answer.json()["code"]) == (404, "budget_not_found")
        case WhenBound.OWN if "{schedule}" in path:
            assert (answer.status_code, answer.json()["code"]) == (404, "schedule_not_found")
        case WhenBound.OWN if "{item_id}" in path:
            assert (answer.status_code, answer.json()["code"]) == (404, "item_not_found")
        case WhenBound.OWN if "{recipient}" in path:
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        case _:
            assert answer.status_code in {200, 201}
            assert task not in answer.text
            assert "annas-queue" not in answer.text
    assert SECRET not in answer.text
    assert server.admin.get(f"{TASKS}/{task}").json()["status"] == "queued"
    whole = server.admin.get(f"/api/v1/schedules/{schedule}").json()
    assert (whole["status"], whole["version"], whole["skips"]) == ("active", 1, [])
    item = server.admin.get(f"/api/v1/inbox/{inbox_item}").json()
    assert (item["title"], item["read_at"]) == (SECRET, None)
    assert server.admin.get("/api/v1/recipients/anna").json()["timezone"] is None


def test_every_route_of_the_page_has_a_decision_for_bound_tokens(server: LiveServer) -> None:
    page = server.admin.get("/openapi.json").json()
    rules = {path.replace(":path}", "}"): methods for path, methods in TABLE.items()}

    undecided = [
        f"{method} {path}"
        for path, methods in page["paths"].items()
        for method, described in methods.items()
        if described.get("security") != []
        and not isinstance(getattr(rules[path][method.upper()], "bound", None), WhenBound)
    ]

    assert not undecided


def test_an_owner_sees_and_steers_its_own(anna: httpx.Client, bert: httpx.Client) -> None:
    mine, _ = submitted(bert)["task_id"], submitted(anna)

    listed = bert.get(TASKS, params={"limit": 1000}).json()["tasks"]
    assert mine in {task["task_id"] for task in listed}
    assert {task["owner"] for task in listed} == {"bert"}
    assert bert.get(TASKS, params={"owner": "anna"}).json()["tasks"] == []
    assert bert.get(f"{TASKS}/{mine}/why").status_code == 200
    assert bert.get(f"{TASKS}/{mine}/attempts").status_code == 200
    counted = bert.post(
        f"{TASKS}/actions", json={"action": "cancel", "filter": {"ids": [mine]}, "dry_run": True}
    )
    assert counted.json()["tasks"] == 1
    assert bert.post(f"{TASKS}/{mine}/cancel").json()["status"] == "cancelled"


def test_an_owner_without_operate_steers_what_any_of_its_tokens_submitted(
    server: LiveServer, bert: httpx.Client
) -> None:
    task = submitted(bert)["task_id"]

    answer = server.client("submit", owner="bert").post(f"{TASKS}/{task}/cancel")

    assert answer.json()["status"] == "cancelled"


def test_what_an_owner_submits_is_its_own_and_nobody_elses(bert: httpx.Client) -> None:
    refused = bert.post(
        TASKS, json=[{"task_type": "shop.add", "parameters": {"a": 1}, "owner": "anna"}]
    )

    assert (refused.status_code, refused.json()["code"]) == (403, "out_of_bounds")
    assert refused.json()["field"] == "[0].owner"
    task = submitted(bert, owner="bert")["task_id"]
    assert bert.get(f"{TASKS}/{task}").json()["owner"] == "bert"


def test_keys_of_another_owner_are_neither_taken_nor_told(
    server: LiveServer, anna: httpx.Client, bert: httpx.Client
) -> None:
    hers = submitted(anna, unique_key="u", idempotency_key="i")
    crafted = [f"\x1f{sha256(b'anna').hexdigest()[:32]}{key}" for key in "ui"]
    unowned = submitted(server.admin, unique_key=crafted[0], idempotency_key=crafted[1])

    mine = submitted(bert, unique_key="u", idempotency_key="i", parameters={"a": 2})

    assert [each["existing"] for each in (hers, unowned, mine)] == [False] * 3
    seen = bert.get(TASKS, params={"unique_key": "u"}).json()["tasks"]
    assert [each["task_id"] for each in seen] == [mine["task_id"]]
    assert (seen[0]["unique_key"], seen[0]["idempotency_key"]) == ("u", "i")
    again = submitted(bert, unique_key="u", idempotency_key="i", parameters={"a": 2})
    assert (again["task_id"], again["existing"]) == (mine["task_id"], True)
    other = {"task_type": "shop.add", "parameters": {"a": 3}, "idempotency_key": "i"}
    conflict = bert.post(TASKS, json=other)
    assert conflict.status_code == 409
    assert "'i' was already used" in conflict.json()["detail"]


# -- other bounds ----------------------------------------------------------------------------------


def test_a_token_bound_to_queues_names_and_a_priority_keeps_to_them(server: LiveServer) -> None:
    client = server.client(
        "submit", "read", "operate", queues=["mail", "js"], names=["shop.mail"],
        max_priority="normal",
    )  # fmt: skip
    other = submitted(server.admin)["task_id"]
    mail: Json = {"task_type": "shop.mail", "parameters": {"to": "ann"}}

    for wrong, field in (
        ({"task_type": "shop.add", "parameters": {"a": 1}, "queue": "mail"}, "task_type"),
        (mail | {"queue": "default"}, "queue"),
        (mail | {"priority": "high"}, "priority"),
    ):
        refused = client.post(TASKS, json=wrong)
        assert (refused.status_code, refused.json()["code"]) == (403, "out_of_bounds")
        assert refused.json()["field"] == field
    task = client.post(TASKS, json=mail).json()["task_id"]

    seen = client.get(f"{TASKS}/{task}").json()
    assert (seen["queue"], seen["priority"]) == ("mail", "normal")  # its definition says high
    assert client.get(f"{TASKS}/{other}").status_code == 404
    listed = client.get(TASKS, params={"limit": 1000}).json()["tasks"]
    assert {each["queue"] for each in listed} == {"mail"}


def test_a_stream_of_lines_stops_at_what_is_out_of_bounds(server: LiveServer) -> None:
    client = server.client("submit", names=["shop.add"])
    good = b'{"task_type": "shop.add", "parameters": {"a": 1}}\n'
    bad = b'{"task_type": "shop.mail", "parameters": {"to": "ann"}}\n'

    answer = client.post(
        TASKS, content=good + bad + good, headers={"Content-Type": "application/x-ndjson"}
    )

    assert (answer.status_code, answer.json()["code"]) == (403, "out_of_bounds")
    assert (answer.json()["accepted"], answer.json()["failed_at_line"]) == (1, 2)


# -- making tokens ---------------------------------------------------------------------------------


def test_a_bound_token_is_made_and_listed_over_rest(server: LiveServer) -> None:
    made = server.admin.post(
        "/api/v1/tokens",
        json={
            "name": "anna", "scopes": ["submit"], "owner": "anna", "queues": ["mail"],
            "task_types": ["shop.mail"], "max_priority": "normal", "rate": "100/1m",
        },
    )  # fmt: skip

    assert made.status_code == 201
    listed = server.admin.get("/api/v1/tokens").json()["tokens"]
    (seen,) = [each for each in listed if each["token_id"] == made.json()["token_id"]]
    bounds = ("owner", "queues", "task_types", "max_priority", "rate", "last_used_at")
    assert [seen[word] for word in bounds] == [
        "anna", ["mail"], ["shop.mail"], "normal", "100/1m", None,
    ]  # fmt: skip
    creator = [each for each in listed if each["token_id"] == seen["created_by"]]
    assert creator[0]["scopes"] == ["admin"]
    assert creator[0]["last_used_at"] is not None or server.until(
        lambda: bool(
            [
                each
                for each in server.admin.get("/api/v1/tokens").json()["tokens"]
                if each["token_id"] == seen["created_by"] and each["last_used_at"]
            ]
        )
    )


@pytest.mark.parametrize(
    ("scopes", "bounds"),
    [(["admin"], {"owner": "anna"}), (["worker"], {"task_types": ["shop.mail"]})],
)
def test_bounds_that_could_not_hold_are_refused(
    server: LiveServer, scopes: list[str], bounds: Json
) -> None:
    refused = server.admin.post("/api/v1/tokens", json={"name": "x", "scopes": scopes, **bounds})

    assert (refused.status_code, refused.json()["code"]) == (409, "conflicting_options")
