"""Queues, workers, dead letters, tokens and health."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app
from tests.kit.servers.redis import RedisServer

TASKS = "/api/v1/tasks"
DEAD = "/api/v1/dead-letters"


def submit(server: LiveServer, task_type: str = "shop.add", **body: Any) -> str:
    body.setdefault("parameters", {"a": 1} if task_type == "shop.add" else {})
    answer = server.admin.post(TASKS, json={"task_type": task_type, **body})
    assert answer.status_code == 201, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


# -- queues --------------------------------------------------------------------------------------


def test_the_numbers_tell_depth_workers_and_the_last_minute(either_server: LiveServer) -> None:
    submit(either_server)
    submit(either_server, "shop.fail")
    either_server.work()
    submit(either_server, priority="low", queue="slow")
    submit(either_server, priority="high", queue="slow", delay_seconds=60)

    reader = either_server.client("read")
    either_server.until(lambda: '"waiting":1' in reader.get("/api/v1/queue/stats").text)
    stats = reader.get("/api/v1/queue/stats").json()

    (slow,) = [queue for queue in stats["named_queues"] if queue["queue"] == "slow"]
    assert (slow["ready"], slow["waiting"], slow["running"], slow["paused"]) == (1, 1, 0, False)
    depths = {depth["priority"]: depth for depth in stats["priorities"]}
    assert depths["low"]["ready"] == 1
    assert depths["low"]["oldest_seconds"] >= 0
    assert stats["last_minute"]["completed"] == stats["last_minute"]["dead_letter"] == 1
    counts = {"active": 0, "draining": 0, "silent": 0, "stopped": 1, "dead": 0}
    assert stats["workers"] == counts | {"total_capacity": 0, "used_capacity": 0}
    assert stats["throughput"] == {"completed_last_minute": 1, "failed_last_minute": 1}
    assert stats["statuses"]["queued"] == 2


def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(either_server: LiveServer) -> None:
    task_id = submit(either_server, queue="slow")

    paused = either_server.admin.post("/api/v1/queues/slow/pause").json()
    again = either_server.admin.post("/api/v1/queues/slow/pause").json()
    either_server.work()
    held = either_server.app.get(task_id).state
    listed = either_server.admin.get("/api/v1/queues").json()["queues"]
    either_server.admin.post("/api/v1/queues/slow/resume")
    either_server.work()

    assert paused == {"queue": "slow", "paused": True, "changed": True, "known": True}
    assert again["changed"] is False
    assert held == "queued"
    assert {queue["queue"]: queue["paused"] for queue in listed}["slow"] is True
    assert either_server.app.get(task_id).state == "completed"


def test_pausing_a_queue_that_nothing_names_is_done_and_said(live_server: LiveServer) -> None:
    told = live_server.admin.post("/api/v1/queues/nosuch/pause").json()
    of_open = live_server.admin.post("/api/v1/queues/js/pause").json()

    assert told == {"queue": "nosuch", "paused": True, "changed": True, "known": False}
    assert of_open["known"] is True


def test_open_queues_are_listed_though_nothing_is_in_them(live_server: LiveServer) -> None:
    queues = live_server.admin.get("/api/v1/queues").json()["queues"]

    assert [(queue["queue"], queue["open"]) for queue in queues] == [("js", True)]


@pytest.mark.parametrize("name", ["a%20b", "a,b", "*", "%00", "x" * 201])
def test_a_name_that_no_queue_can_have_is_404(live_server: LiveServer, name: str) -> None:
    answer = live_server.admin.post(f"/api/v1/queues/{name}/pause")

    assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")


# -- workers -------------------------------------------------------------------------------------


def test_workers_are_listed_and_one_that_is_gone_cannot_be_drained(
    either_server: LiveServer,
) -> None:
    either_server.work()

    (worker,) = either_server.client("read").get("/api/v1/workers").json()["workers"]
    answer = either_server.admin.post(f"/api/v1/workers/{worker['worker_id']}/drain")

    assert (worker["status"], worker["kind"], worker["capacity"]) == ("stopped", "python", 4)
    assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")


# -- dead letters --------------------------------------------------------------------------------


def test_dead_letters_are_listed_replayed_and_discarded(either_server: LiveServer) -> None:
    first, second = submit(either_server, "shop.fail"), submit(either_server, "shop.fail")
    third = submit(either_server, "shop.fail", queue="other")
    submit(either_server)
    either_server.work()

    listed = either_server.client("read").get(DEAD, params={"sort": "created_at"}).json()["tasks"]
    one = either_server.admin.post(f"{DEAD}/{first}/replay")
    counted = either_server.admin.post(f"{DEAD}/replay", json={"dry_run": True}).json()
    gone = either_server.admin.post(f"{DEAD}/discard", json={"filter": {"queue": "other"}}).json()
    replayed = either_server.admin.post(f"{DEAD}/replay").json()

    assert [task["task_id"] for task in listed] == [first, second, third]
    assert (one.status_code, one.json()["status"]) == (200, "queued")
    assert counted == {"action": "replay", "dry_run": True, "tasks": 2}
    assert (gone["tasks"], replayed["tasks"]) == (1, 1)
    assert either_server.app.count(state="dead_letter") == 0
    assert either_server.app.count(state="completed") == 1


def test_a_paced_replay_starts_them_one_after_another(live_server: LiveServer) -> None:
    for _ in range(3):
        submit(live_server, "shop.fail")
    live_server.work()

    answer = live_server.admin.post(f"{DEAD}/replay", json={"pace": 0.1}).json()

    assert answer["tasks"] == 3
    waits = sorted(task.run_at for task in live_server.app.list(state="queued").tasks)
    assert [round((later - waits[0]).total_seconds()) for later in waits] == [0, 10, 20]


def test_a_task_that_is_no_dead_letter_is_not_replayed_as_one(live_server: LiveServer) -> None:
    task_id = submit(live_server)

    answer = live_server.admin.post(f"{DEAD}/{task_id}/replay")

    assert (answer.status_code, answer.json()["code"]) == (409, "invalid_transition")


# -- tokens --------------------------------------------------------------------------------------


def test_a_token_is_made_used_listed_and_revoked(either_server: LiveServer) -> None:
    body = {"name": "ci", "scopes": ["read"], "expires_in_seconds": 3600}

    made = either_server.admin.post("/api/v1/tokens", json=body)
    token = made.json()
    bearer = {"Authorization": f"Bearer {token['token']}"}
    anybody = either_server.client()
    before = anybody.get(TASKS, headers=bearer).status_code
    listed = either_server.admin.get("/api/v1/tokens")
    gone = either_server.admin.delete(f"/api/v1/tokens/{token['token_id']}")
    after = anybody.get(TASKS, headers=bearer).status_code
    twice = either_server.admin.delete(f"/api/v1/tokens/{token['token_id']}")

    assert made.status_code == 201
    assert (before, after) == (200, 401)
    assert token["token"] not in listed.text
    assert token["token_id"] in {each["token_id"] for each in listed.json()["tokens"]}
    assert (gone.status_code, gone.content) == (204, b"")
    assert (twice.status_code, twice.json()["code"]) == (404, "token_not_found")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "", "scopes": ["read"]},
        {"name": "x", "scopes": ["read"], "expires_in_seconds": 0},
        {"name": "x", "scopes": ["read"], "digest": "mine"},
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(live_server: LiveServer, body: Any) -> None:
    assert live_server.admin.post("/api/v1/tokens", json=body).status_code == 422


# -- health --------------------------------------------------------------------------------------


def test_everybody_may_ask_for_health(either_server: LiveServer) -> None:
    anybody = either_server.client()

    health, ready = anybody.get("/healthz"), anybody.get("/readyz")

    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert ready.status_code == 200
    assert ready.json()["ready"] is True
    assert ready.json()["missing"] == ["workers"]
    assert ready.json()["store"] == "ok"
    assert ready.json()["schema_version"] >= 1


def test_readiness_names_redis_while_it_is_away_and_stays_ready(
    tmp_path: Path, own_redis: RedisServer
) -> None:
    app = make_app(f"sqlite:///{tmp_path}/tasks.db", redis_url=own_redis.url)

    with serve(app) as server:
        anybody = server.client()
        before = anybody.get("/readyz").json()
        own_redis.kill9()
        server.until(lambda: anybody.get("/readyz").json()["dispatcher"] == "sockets")
        away = anybody.get("/readyz")
        own_redis.start()
        back = server.until(lambda: anybody.get("/readyz").json()["dispatcher"] == "redis")

    assert (before["dispatcher"], before["missing"]) == ("redis", ["workers"])
    assert (away.status_code, away.json()["missing"]) == (200, ["redis", "workers"])
    assert back


def test_a_server_without_its_store_says_so_and_recovers(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    folder.write_text("not a folder")
    app = make_app(f"sqlite:///{folder}/tasks.db")

    with serve(app, is_open=False) as server:
        anybody = server.client()
        before = anybody.get("/readyz")
        refused = anybody.get(TASKS, headers={"Authorization": f"Bearer hf_{'0' * 16}_{'a' * 43}"})
        folder.unlink()
        folder.mkdir()
        after = server.until(lambda: anybody.get("/readyz").status_code == 200)

    assert (before.status_code, before.json()["missing"]) == (503, ["store"])
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
    assert refused.headers["retry-after"] == "1"
    assert after


def test_every_answer_makes_browsers_careful(live_server: LiveServer) -> None:
    for answer in (
        live_server.client().get("/healthz"),
        live_server.client().get(TASKS),
        live_server.admin.get(TASKS, headers={"Origin": "https://evil.example"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
