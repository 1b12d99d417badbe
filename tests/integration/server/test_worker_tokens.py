"""An HTTP worker belongs to the token that it registered with, at every server of the store."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

REQUESTS: dict[str, Any] = {
    "poll": {"available_capacity": 1, "wait_seconds": 0},
    "result": {"task_id": "", "attempt": 1, "status": "completed", "result": None},
    "heartbeat": {},
    "drain": None,
}


def register(client: httpx.Client, **body: Any) -> httpx.Response:
    return client.post("/internal/workers/register", json=body)


def submit(server: LiveServer, queue: str) -> str:
    body = {"task_type": "resize", "queue": queue, "parameters": {}}
    task_id: str = server.admin.post("/api/v1/tasks", json=body).json()["task_id"]
    return task_id


def polled(client: httpx.Client, worker: str) -> list[str]:
    answer = client.post(f"/internal/workers/{worker}/poll", json=REQUESTS["poll"])
    assert answer.status_code == 200, answer.text
    return [task["task_id"] for task in answer.json()["tasks"]]


def test_no_other_token_speaks_for_a_worker(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url, open_queues="js")) as server:
        mine, others = server.client("worker"), server.client("worker")
        worker = register(mine, queues=["js"]).json()["worker_id"]
        task = submit(server, "js")
        assert polled(mine, worker) == [task]

        for client in (others, server.admin):
            for request, body in REQUESTS.items():
                sent = body | {"task_id": task} if body and "task_id" in body else body
                answer = client.post(f"/internal/workers/{worker}/{request}", json=sent)
                assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")

        done = REQUESTS["result"] | {"task_id": task}
        assert mine.post(f"/internal/workers/{worker}/result", json=done).status_code == 200


def test_another_server_of_the_store_knows_whose_a_worker_is(sqlite_url: str) -> None:
    with (
        serve(make_app(sqlite_url, open_queues="js")) as first,
        serve(make_app(sqlite_url, open_queues="js")) as second,
    ):
        text, other = first.token("worker"), second.client("worker")
        with httpx.Client(headers={"Authorization": f"Bearer {text}"}) as mine:
            registered = mine.post(f"{first.url}/internal/workers/register", json={})
            beat = f"{second.url}/internal/workers/{registered.json()['worker_id']}/heartbeat"

            assert other.post(beat, json={}).status_code == 404
            assert mine.post(beat, json={}).status_code == 200


def test_whose_a_worker_is_is_shown_to_nobody(live_server: LiveServer) -> None:
    register(live_server.client("worker"), capabilities=["gpu"])

    (worker,) = live_server.admin.get("/api/v1/workers").json()["workers"]

    assert worker["capabilities"] == ["gpu"]


@pytest.mark.parametrize("asked", [None, ["*"], ["js", "*"]])
def test_a_token_bound_to_queues_gets_workers_for_those(
    sqlite_url: str, asked: list[str] | None
) -> None:
    with serve(make_app(sqlite_url, open_queues="js,py")) as server:
        client = server.client("worker", queues=["js"])
        submit(server, "py")
        mine = submit(server, "js")

        worker = register(client, **({} if asked is None else {"queues": asked})).json()

        assert polled(client, worker["worker_id"]) == [mine]
        assert polled(client, worker["worker_id"]) == []
        refused = register(client, queues=["js", "py"])
        assert (refused.status_code, refused.json()["code"]) == (403, "out_of_bounds")


def test_a_late_result_is_not_told_who_has_the_task(live_server: LiveServer) -> None:
    client = live_server.client("worker")
    late = register(client, queues=["js"]).json()["worker_id"]
    task = submit(live_server, "js")
    assert polled(client, late) == [task]
    given_back = {"task_id": task, "attempt": 1, "status": "released"}
    client.post(f"/internal/workers/{late}/result", json=given_back)
    now = register(client, queues=["js"]).json()["worker_id"]
    assert polled(client, now) == [task]

    done = {"task_id": task, "attempt": 1, "status": "completed", "result": None}
    answer = client.post(f"/internal/workers/{late}/result", json=done)

    assert answer.status_code == 409
    assert now not in answer.text


def test_a_token_bound_to_a_rate_is_held_to_it_task_by_task(live_server: LiveServer) -> None:
    client = live_server.client("submit", rate="5/1h")
    body = {"task_type": "shop.add", "parameters": {"a": 1}}

    assert client.post("/api/v1/tasks", json=body).status_code == 201
    assert client.post("/api/v1/tasks", json=[body] * 3).status_code == 201
    refused = client.post("/api/v1/tasks", json=[body] * 2)

    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert 3590 < int(refused.headers["Retry-After"]) <= 3600
    assert len(live_server.admin.get("/api/v1/tasks").json()["tasks"]) == 4
