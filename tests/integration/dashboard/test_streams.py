"""Pages that are kept up to date: one rendering for all who see the same, and streams that end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
from tests.integration.dashboard.web import Web, submit, web
from tests.integration.server.live import LiveServer

from holdfast.dashboard.site import Site

STREAM = {"Accept": "text/event-stream"}


def site_of(server: LiveServer) -> Site:
    """The dashboard behind the server."""
    site = server.service.user_middleware[0].kwargs["pages"]
    assert isinstance(site, Site)
    return site


@contextmanager
def stream(somebody: Web, path: str, **headers: str) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events of a live page, as they come."""
    with somebody.client.stream("GET", path, headers=STREAM | headers) as answer:
        assert answer.status_code == 200, answer.read()
        yield events(answer)


def events(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    event = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield event, json.loads(line.removeprefix("data: "))


def test_a_listener_is_told_what_changes_and_nothing_else(both: LiveServer) -> None:
    task_id = submit(both, "shop.add", a=1)
    ops = web(both, "admin")

    with stream(ops, "/live/tasks?task_type=shop.add") as told:
        _, first = next(told)
        both.app.cancel(task_id)
        _, second = next(told)

    assert (first["name"], second["name"]) == ("rows", "rows")
    assert "is-queued" in first["html"]
    assert "is-cancelled" in second["html"]
    assert first["version"] != second["version"]


def test_who_comes_back_is_told_only_what_is_new(dashboard: LiveServer) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    ops = web(dashboard, "admin")
    with stream(ops, f"/live/tasks/{task_id}") as told:
        seen = {data["name"]: data["version"] for _, data in (next(told), next(told))}

    last = ".".join(f"{name}:{version}" for name, version in seen.items())
    with stream(ops, f"/live/tasks/{task_id}", **{"Last-Event-ID": last}) as told:
        _, first = next(told)

    assert (first["name"], first["version"]) not in seen.items()


def test_fifty_who_see_the_same_cost_one_rendering(dashboard: LiveServer) -> None:
    submit(dashboard, "shop.add", a=1)
    somebody = [web(dashboard, "admin") for _ in range(2)]
    with ExitStack() as open_streams:
        for n in range(50):
            told = open_streams.enter_context(stream(somebody[n % 2], "/live/tasks"))
            assert next(told)[0] == "fragment"

        pages = len(site_of(dashboard).live)

    assert pages == 1
    assert dashboard.until(lambda: len(site_of(dashboard).live) == 0)


def test_who_sees_less_shares_nothing_with_who_sees_more(dashboard: LiveServer) -> None:
    dashboard.app.submit_by_name("shop.mail", {"to": "x"}, owner="anna")
    ops, bob = web(dashboard, "admin"), web(dashboard, "read", "operate", owner="bob")

    with stream(ops, "/live/tasks") as all_of_it, stream(bob, "/live/tasks") as his:
        seen, nothing = next(all_of_it)[1], next(his)[1]

    assert "shop.mail" in seen["html"]
    assert "shop.mail" not in nothing["html"]
    assert 'name="ids"' in seen["html"]


def test_a_stream_ends_when_its_token_is_revoked_or_its_session_is_left(both: LiveServer) -> None:
    token_id, text = both.new_token("admin")
    revoked, left = Web(both, text), web(both, "admin")
    csrf = left.csrf()
    with stream(revoked, "/live/tasks") as one, stream(left, "/live/tasks") as other:
        next(one), next(other)

        both.app.wait_for(both.app.client.tokens.revoke(token_id))
        rest_of_one = list(one)
        with httpx.Client(base_url=both.url, cookies=left.client.cookies) as second:
            second.post("/logout", data={"csrf": csrf}, headers={"Origin": both.url})
        rest_of_other = list(other)

    assert all(event == "fragment" for event, _ in rest_of_one + rest_of_other)
    assert revoked.client.get("/live/tasks", headers=STREAM).status_code == 401


def test_a_stream_ends_when_the_server_stops(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")
    with stream(ops, "/live/") as told:
        next(told)
        threading.Timer(0.1, dashboard.hurry).start()

        rest = list(told)

    assert all(event == "fragment" for event, _ in rest)


def test_a_task_that_is_forgotten_is_gone(dashboard: LiveServer) -> None:
    task_id = submit(dashboard, "shop.add", a=1)
    dashboard.app.cancel(task_id)
    with stream(web(dashboard, "admin"), f"/live/tasks/{task_id}") as told:
        next(told)

        dashboard.app.discard(ids=[task_id])
        *_, last = told

    assert last == ("gone", {})


def test_a_script_that_polls_gets_the_same(dashboard: LiveServer) -> None:
    submit(dashboard, "shop.add", a=1)
    ops = web(dashboard, "admin")
    asking = {"Accept": "application/json"}

    first = ops.get("/live/tasks", headers=asking).json()
    (rows,) = first["fragments"]
    seen = {"Last-Event-ID": f"rows:{rows['version']}"}
    again = ops.get("/live/tasks", headers=asking | seen).json()

    assert "shop.add" in rows["html"]
    assert again == {"fragments": [], "away": None, "gone": False}


def test_a_hostile_last_event_id_is_none(dashboard: LiveServer) -> None:
    ops = web(dashboard, "admin")

    for text in ("x", ":::", "." * 3000, "rows:" + "9" * 3000):
        answer = ops.get("/live/tasks", headers={"Accept": "*/*;q=0.1", "Last-Event-ID": text})
        assert answer.status_code == 200
        assert len(answer.json()["fragments"]) == 1
