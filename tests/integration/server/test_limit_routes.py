"""Limits over REST and through the HTTP client."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Breaker, Holdfast, HttpClient, Limit, ServiceError
from holdfast.core.breaker import BreakerState

LIMITS = "/api/v1/limits"


@pytest.fixture
def app(sqlite_url: str) -> Holdfast:
    app = make_app(sqlite_url, open_queues="js")
    app.queue("js", concurrency=Limit(1, key="{path}"), breaker=Breaker(at_least=3, window="20s"))
    return app


def _submit(server: LiveServer, number: int) -> list[str]:
    bodies = [{"task_type": "resize", "queue": "js", "parameters": {"path": "a/b"}}] * number
    answer = server.admin.post("/api/v1/tasks", json=bodies)
    assert answer.status_code == 201, answer.text
    return [each["task_id"] for each in answer.json()["tasks"]]


def test_a_limit_of_an_open_queue_is_seen_set_and_taken_back(app: Holdfast) -> None:
    name = "limit:queue:js[a/b]"
    path = f"{LIMITS}/{quote(name, safe='')}"
    with serve(app) as server:
        ids = _submit(server, 3)

        shown = server.client("read").get(path).json()
        listed = server.client("read").get(LIMITS).json()["limits"]
        done = server.client("operate").put(path, json={"capacity": 2}).json()
        states = [server.admin.get(f"/api/v1/tasks/{one}").json()["status"] for one in ids]
        undone = server.admin.delete(path).json()

    assert (shown["capacity"], shown["held"], shown["waiting"]) == (1, 1, 2)
    assert (shown["holders"], shown["waiters"]) == (ids[:1], ids[1:])
    assert [each["name"] for each in listed] == ["breaker:queue:js", name]
    assert done == {"name": name, "capacity": 2, "state": None, "changed": True, "known": True}
    assert states == ["queued", "queued", "blocked"]
    assert undone["changed"]


def test_what_cannot_be_is_refused(app: Holdfast) -> None:
    with serve(app) as server:
        put = server.admin.put
        answers = [
            put(f"{LIMITS}/limit:x", json={"capacity": -1}),
            put(f"{LIMITS}/limit:x", json={}),
            put(f"{LIMITS}/limit:x", json={"state": "open"}),
            put(f"{LIMITS}/lock:x", json={"capacity": 1}),
            server.admin.get(f"{LIMITS}/limit:x"),
            server.client("read").put(f"{LIMITS}/limit:x", json={"capacity": 1}),
        ]

    codes = [(each.status_code, each.json()["code"]) for each in answers]
    assert codes == [
        (422, "invalid_request"),
        (409, "conflicting_options"),
        (409, "conflicting_options"),
        (404, "limit_not_found"),
        (404, "limit_not_found"),
        (403, "insufficient_scope"),
    ]


def test_the_http_client_has_the_same_verbs(app: Holdfast) -> None:
    with serve(app) as server, HttpClient(server.url, token=server.token("admin")) as client:
        ids = _submit(server, 2)

        assert client.set_limit("limit:queue:js[a/b]", 5).changed
        (_, limit) = client.limits().limits
        found = client.limit(limit.name)
        assert client.unset_limit(limit.name).changed
        forced = client.set_limit("breaker:queue:js", "open")
        with pytest.raises(ServiceError, match="there is no such limit"):
            client.limit("limit:nobody")

    assert (limit.capacity, limit.is_set) == (5, True)
    assert found.holders == tuple(ids)
    assert forced.state is BreakerState.OPEN
