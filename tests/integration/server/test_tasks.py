"""Looking at tasks and steering them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer

TASKS = "/api/v1/tasks"
NOBODY = "018f3f6e-0000-7000-8000-000000000000"


def submit(server: LiveServer, task_type: str = "shop.add", **body: Any) -> str:
    body.setdefault("parameters", {"a": 1} if task_type == "shop.add" else {})
    answer = server.admin.post(TASKS, json={"task_type": task_type, **body})
    assert answer.status_code == 201, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


def test_a_completed_task_shows_its_whole_life(either_server: LiveServer) -> None:
    task_id = submit(either_server, tags=["x"])
    either_server.work()

    shown = either_server.client("read").get(f"{TASKS}/{task_id}").json()

    assert shown["task_type"] == "shop.add"
    assert (shown["status"], shown["result"], shown["attempt"]) == ("completed", 1, 1)
    assert (shown["priority"], shown["effective_priority"]) == ("normal", "normal")
    assert shown["created_at"] <= shown["finished_at"]
    assert shown["finished_at"].endswith("Z")
    assert (shown["assigned_worker_id"], shown["started_at"]) == (None, None)
    assert (shown["error"], shown["progress"]) == (None, None)


def test_a_task_that_waited_long_is_shown_with_the_priority_it_has_grown_to(
    live_server: LiveServer,
) -> None:
    task_id = submit(live_server, priority="low", run_at="2020-01-01T00:00:00Z")

    shown = live_server.admin.get(f"{TASKS}/{task_id}").json()

    assert (shown["priority"], shown["effective_priority"]) == ("low", "high")


def test_an_error_is_shown_and_its_traceback_only_to_an_admin_who_asks(
    live_server: LiveServer,
) -> None:
    task_id = submit(live_server, "shop.fail", parameters={"message": "oh no"})
    live_server.work()
    reader = live_server.client("read")

    plain = reader.get(f"{TASKS}/{task_id}").json()
    refused = reader.get(f"{TASKS}/{task_id}?traceback=true")
    full = live_server.admin.get(f"{TASKS}/{task_id}?traceback=true").json()

    assert plain["status"] == "dead_letter"
    assert plain["error"] == {"type": "RuntimeError", "message": "oh no", "retriable": True}
    assert refused.status_code == 403
    assert "Traceback" in full["error"]["traceback"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("GET", "/attempts"),
        ("GET", "/why"),
    ],
)
@pytest.mark.parametrize("task_id", [NOBODY, "7", "%00", "a%20b", "☃"])
def test_a_task_that_does_not_exist_is_404_everywhere(
    live_server: LiveServer, method: str, path: str, task_id: str
) -> None:
    answer = live_server.admin.request(method, f"{TASKS}/{task_id}{path}")

    assert (answer.status_code, answer.json()["code"]) == (404, "task_not_found")


# -- lists ---------------------------------------------------------------------------------------


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [task["task_id"] for task in answer.json()["tasks"]]


@pytest.mark.parametrize("sort", ["-created_at", "created_at", "-finished_at", "finished_at"])
def test_pages_follow_each_other_in_the_order_asked_for(
    either_server: LiveServer, sort: str
) -> None:
    submitted = [submit(either_server, parameters={"a": n}) for n in range(7)]
    if sort.endswith("finished_at"):
        submitted = [submitted[n] for n in (3, 0, 6, 2, 5)]
        for task in submitted:
            either_server.admin.post(f"{TASKS}/{task}/cancel")
    client, found, cursor = either_server.client("read"), [], None

    while True:
        query: dict[str, str | int] = {"limit": 3, "sort": sort}
        query |= {"cursor": cursor} if cursor else {}
        page = client.get(TASKS, params=query)
        found += ids(page)
        cursor = page.json()["next"]
        if cursor is None:
            break

    assert found == (submitted[::-1] if sort.startswith("-") else submitted)


def test_a_cursor_of_the_other_order_is_a_conflict(live_server: LiveServer) -> None:
    for _ in range(3):
        submit(live_server)
    cursor = live_server.admin.get(TASKS, params={"limit": 1}).json()["next"]

    answer = live_server.admin.get(TASKS, params={"cursor": cursor, "sort": "created_at"})

    assert (answer.status_code, answer.json()["code"]) == (409, "cursor_of_another_list")


def test_every_filter_finds_its_task_and_no_other(either_server: LiveServer) -> None:
    wanted = submit(
        either_server,
        "shop.mail",
        parameters={"to": "ann"},
        queue="post",
        priority="critical",
        tags=["red"],
        owner="ann",
        unique_key="u",
        lock="l",
    )
    submit(either_server)
    filters = {
        "queue": "post",
        "task_type": "mail",
        "task_type_prefix": "shop.m",
        "priority": "critical",
        "tag": "red",
        "owner": "ann",
        "unique_key": "u",
        "lock": "l",
    }
    client = either_server.client("read")
    whose = {"unique_key": {"owner": "ann"}}

    found = {
        word: ids(client.get(TASKS, params={word: text} | whose.get(word, {})))
        for word, text in filters.items()
    }

    assert found == {word: [wanted] for word in filters}
    assert len(ids(client.get(TASKS, params={"status": ["queued", "failed"]}))) == 2
    assert ids(client.get(TASKS, params={"status": "completed"})) == []
    assert ids(client.get(TASKS, params={"created_before": "2020-01-01T00:00:00Z"})) == []
    assert len(ids(client.get(TASKS, params={"created_after": "2020-01-01T00:00:00Z"}))) == 2


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=1001", "limit=x", "sort=priority", "colour=red",
        "created_after=yesterday", "created_after=2020-01-01T00:00:00", "cursor=x", "queue=",
        "queue=a&queue=b", "parent_id=7", "priority=urgent", "queue=%00", "sort=created_at;drop",
    ],
)  # fmt: skip
def test_a_query_that_makes_no_sense_is_refused_by_its_word(
    live_server: LiveServer, query: str
) -> None:
    answer = live_server.admin.get(f"{TASKS}?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, query.partition("=")[0])


# -- steering ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("POST", "/cancel")])
def test_a_waiting_task_is_cancelled_at_once_and_only_once(
    either_server: LiveServer, method: str, path: str
) -> None:
    task_id = submit(either_server)
    client = either_server.client("operate")

    first = client.request(method, f"{TASKS}/{task_id}{path}")
    second = client.request(method, f"{TASKS}/{task_id}{path}")

    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert (second.status_code, second.json()["code"]) == (409, "invalid_transition")
    assert second.json()["task_status"] == "cancelled"


def test_a_dead_letter_is_started_again(either_server: LiveServer) -> None:
    task_id = submit(either_server, "shop.fail")
    either_server.work()

    answer = either_server.client("operate").post(f"{TASKS}/{task_id}/retry")

    assert (answer.status_code, answer.json()["status"]) == (200, "queued")


def test_a_retry_that_another_task_stands_in_the_way_of_is_a_conflict(
    live_server: LiveServer,
) -> None:
    first = submit(live_server, unique_key="k")
    live_server.admin.delete(f"{TASKS}/{first}")
    submit(live_server, unique_key="k")

    answer = live_server.admin.post(f"{TASKS}/{first}/retry")

    assert (answer.status_code, answer.json()["code"]) == (409, "unique_key_taken")


def test_attempts_and_events_tell_what_happened(either_server: LiveServer) -> None:
    task_id = submit(either_server, "shop.fail", parameters={"message": "oh no"})
    either_server.work()

    history = either_server.client("read").get(f"{TASKS}/{task_id}/attempts").json()

    (attempt,) = history["attempts"]
    assert (attempt["attempt"], attempt["cause"], attempt["ended"]) == (1, "submitted", "error")
    assert attempt["error"] == {"type": "RuntimeError", "message": "oh no", "retriable": True}
    assert history["events"][0]["kind"] == "submitted"


def test_why_says_what_is_missing_and_where_the_task_stands(either_server: LiveServer) -> None:
    submit(either_server)
    task_id = submit(either_server)

    why = either_server.client("read").get(f"{TASKS}/{task_id}/why").json()

    assert why["reasons"][0]["code"] == "no_worker"
    assert "No worker is alive" in why["sentence"]
    assert (why["status"], why["position"], why["eta_seconds"]) == ("queued", 2, None)


# -- many at once --------------------------------------------------------------------------------


def act(server: LiveServer, action: str, which: dict[str, Any], **more: Any) -> Any:
    body = {"action": action, "filter": which, **more}
    answer = server.admin.post(f"{TASKS}/actions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_dry_run_counts_what_the_action_then_changes(either_server: LiveServer) -> None:
    for _ in range(3):
        submit(either_server, queue="a")
    submit(either_server, queue="b")

    counted = act(either_server, "cancel", {"queue": "a"}, dry_run=True)
    untouched = either_server.app.count(state="cancelled")
    changed = act(either_server, "cancel", {"queue": "a"})

    assert counted == {"action": "cancel", "dry_run": True, "tasks": 3}
    assert untouched == 0
    assert changed == {"action": "cancel", "dry_run": False, "tasks": 3}
    assert either_server.app.count(state="queued") == 1


def test_retry_and_discard_mean_dead_letters_unless_told(either_server: LiveServer) -> None:
    dead = submit(either_server, "shop.fail")
    done = submit(either_server)
    either_server.work()

    retried = act(either_server, "retry", {"ids": [dead, done]}, dry_run=True)
    by_type = act(either_server, "retry", {"task_type_prefix": "shop."}, dry_run=True)
    gone = act(either_server, "discard", {"status": ["completed"]})

    assert (retried["tasks"], by_type["tasks"], gone["tasks"]) == (2, 1, 1)
    assert either_server.app.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "cancel"},
        {"action": "cancel", "filter": {}},
        {"action": "explode", "filter": {"queue": "a"}},
        {"action": "cancel", "filter": {"queue": "a"}, "dry_run": "yes"},
        {"action": "cancel", "filter": {"colour": "red"}},
        {"action": "retry", "filter": {"queue": "a"}, "pace": 0},
    ],
)
def test_an_action_without_a_clear_aim_is_refused(live_server: LiveServer, body: Any) -> None:
    submit(live_server)

    answer = live_server.admin.post(f"{TASKS}/actions", json=body)

    assert answer.status_code == 422
    assert live_server.app.count(state="queued") == 1
