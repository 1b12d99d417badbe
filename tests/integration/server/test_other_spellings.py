"""What people type who know another service is understood, or answered with our words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast.server.spelling import snake_case

TASKS = "/api/v1/tasks"
CLIENT = Path(__file__).parent / "literal_client.py"


def submitted(server: LiveServer, **body: Any) -> dict[str, Any]:
    """A task as it is shown, after such a submit."""
    answer = server.admin.post(
        TASKS, json={"task_type": "shop.add", "parameters": {"a": 1}, **body}
    )
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = server.admin.get(f"{TASKS}/{answer.json()['task_id']}").json()
    return shown


@pytest.mark.parametrize("store", ["sqlite_url", "fresh_schema", "fresh_mongo"])
def test_a_client_that_knows_only_such_services_in_general_is_served(
    request: pytest.FixtureRequest, store: str
) -> None:
    with serve(make_app(request.getfixturevalue(store), open_queues="default")) as server:
        environment = os.environ | {"BASE": server.url, "TOKEN": server.token("admin")}

        done = subprocess.run(
            [sys.executable, str(CLIENT)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    assert (done.stdout, done.returncode) == ("all as expected\n", 0), done.stderr


def test_members_may_be_written_in_camel_case(live_server: LiveServer) -> None:
    body = {
        "taskType": "shop.mail",
        "parameters": {"to": "ann"},
        "maxRetries": 7,
        "delaySeconds": 60,
        "requiredCapabilities": ["gpu"],
    }

    answer = live_server.admin.post(TASKS, json=body)

    task = live_server.admin.get(f"{TASKS}/{answer.json()['task_id']}").json()
    assert (task["max_retries"], task["required_capabilities"]) == (7, ["gpu"])
    named = live_server.admin.get(TASKS, params={"taskType": "shop.mail"}).json()["tasks"]
    assert [each["task_id"] for each in named] == [task["task_id"]]


def test_a_member_in_both_spellings_is_refused(live_server: LiveServer) -> None:
    body = {"task_type": "shop.add", "taskType": "shop.fail", "parameters": {"a": 1}}

    answer = live_server.admin.post(TASKS, json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, "taskType")


@pytest.mark.parametrize(
    ("member", "advice"),
    [
        ("kwargs", "It is 'parameters' here."),
        ("timeoutMs", "Did you mean"),
        ("countdown", "It is 'delay_seconds' here."),
        ("maxAttempts", "It is 'max_retries' here."),
        ("retryJitter", "It is 'retry' here."),
        ("qeue", "Did you mean 'queue'?"),
    ],
)
def test_an_unknown_member_is_refused_with_the_one_that_is_meant(
    live_server: LiveServer, member: str, advice: str
) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, member: 5}

    answer = live_server.admin.post(TASKS, json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, member)
    assert advice in answer.json()["detail"]


def test_parameters_keep_their_spelling(live_server: LiveServer) -> None:
    body = {
        "taskType": "any",
        "queue": "js",
        "parameters": {"maxRetries": None, "Priority": "HIGH"},
    }

    answer = live_server.admin.post(TASKS, json=body)

    task = live_server.admin.get(f"{TASKS}/{answer.json()['task_id']}").json()
    assert task["parameters"] == {"maxRetries": None, "Priority": "HIGH"}


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("HIGH", "high"),
        ("Medium", "normal"),
        (0, "low"),
        (5, "normal"),
        (8, "high"),
        (9, "critical"),
    ],
)
def test_priorities_are_read_in_any_case_and_as_numbers(
    live_server: LiveServer, given: object, ours: str
) -> None:
    assert submitted(live_server, priority=given)["priority"] == ours


@pytest.mark.parametrize("given", [10, -1, "urgent", 2.5, True])
def test_what_is_no_priority_is_refused(live_server: LiveServer, given: object) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, "priority": given}

    answer = live_server.admin.post(TASKS, json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, "priority")
    assert "0 to 9" in answer.json()["detail"]


def test_null_is_as_if_it_were_left_out(live_server: LiveServer) -> None:
    names = ("queue", "priority", "timeout_seconds", "idempotency_key", "run_at", "tags", "lock")

    task = submitted(live_server, **dict.fromkeys(names))

    assert (task["queue"], task["priority"], task["idempotency_key"]) == ("default", "normal", None)


def test_null_in_a_filter_is_refused_because_it_would_mean_more_tasks(
    live_server: LiveServer,
) -> None:
    body = {"action": "cancel", "filter": {"queue": "js", "owner": None}, "dry_run": True}

    answer = live_server.admin.post(f"{TASKS}/actions", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, "filter.owner")


def test_statuses_are_read_in_any_case(live_server: LiveServer) -> None:
    task = submitted(live_server)

    found = live_server.admin.get(TASKS, params={"status": ["PENDING", "Completed"]}).json()[
        "tasks"
    ]

    assert [each["task_id"] for each in found] == [task["task_id"]]
    late = live_server.admin.get(TASKS, params={"status": "TIMEOUT"})
    assert (late.status_code, late.json()["tasks"]) == (200, [])


def test_a_path_without_the_version_is_the_same(live_server: LiveServer) -> None:
    task = submitted(live_server)

    shown = live_server.admin.get(f"/api/tasks/{task['task_id']}")
    why = live_server.admin.get(f"/api/tasks/{task['task_id']}/why")
    unknown = live_server.admin.get("/api/nothing")
    nobody = live_server.client().get(f"/api/tasks/{task['task_id']}")

    assert shown.json()["task_id"] == task["task_id"]
    assert (why.status_code, unknown.status_code, nobody.status_code) == (200, 404, 401)


def test_a_submit_may_bring_its_own_backoff_and_no_time_limit(live_server: LiveServer) -> None:
    task = submitted(
        live_server,
        retry={"base_seconds": 1, "jitter": False},
        timeout_seconds="none",
        max_retries="unlimited",
    )

    assert (task["timeout_seconds"], task["max_retries"]) == (None, None)
    kept = live_server.app.get(task["task_id"])
    assert kept.retry == '{"base":1.0,"multiplier":2.0,"cap":3600.0,"jitter":false}'


@pytest.mark.parametrize("retry", [{"base_seconds": -1}, {"multiplier": 0.5}, {"base": 1}, "fast"])
def test_what_is_no_backoff_is_refused(live_server: LiveServer, retry: object) -> None:
    body = {"task_type": "shop.add", "parameters": {"a": 1}, "retry": retry}

    answer = live_server.admin.post(TASKS, json=body)

    assert answer.status_code == 422
    assert answer.json()["field"].startswith("retry")


def test_the_numbers_count_waiting_work_by_what_it_is_worth_now(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url, aging_low="200ms", aging_normal="1h")) as server:
        for _ in range(3):
            submitted(server, priority="low")
        submitted(server, priority="high", queue="slow")

        def aged() -> bool:
            queues = server.admin.get("/api/v1/queue/stats").json()["queues"]
            depths = {word: each["depth"] for word, each in queues.items()}
            return depths == {"critical": 0, "high": 1, "normal": 3, "medium": 3, "low": 0}

        assert server.until(aged)
        slow = server.admin.get("/api/v1/queue/stats", params={"queue": "slow"}).json()
        assert slow["queues"]["normal"] == {
            "depth": 0,
            "depth_is_capped": False,
            "oldest_age_seconds": None,
        }
        assert [each["queue"] for each in slow["named_queues"]] == ["slow"]


@pytest.mark.parametrize(
    ("theirs", "ours"), [("taskType", "task_type"), ("runAt", "run_at"), ("lock", "lock")]
)
def test_camel_case_becomes_ours(theirs: str, ours: str) -> None:
    assert snake_case(theirs) == ours
