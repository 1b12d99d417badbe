"""The pages of queues: what they show, and what their buttons do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.dashboard.web import submit, web
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Limit
from holdfast.dashboard.app import create_app

LIMIT = "limit:queue:js[a/b]"


@pytest.fixture(params=["sqlite_url", "fresh_schema"], ids=["sqlite", "postgres"])
def limited(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A store with a queue that has a limit for each path."""
    app = make_app(request.getfixturevalue(request.param), open_queues="js")
    app.queue("js", concurrency=Limit(1, key="{path}"))
    with serve(app, make=create_app) as server:
        yield server


def fill(server: LiveServer, number: int) -> list[str]:
    body = {"task_type": "resize", "queue": "js", "parameters": {"path": "a/b"}}
    answer = server.admin.post("/api/v1/tasks", json=[body] * number)
    return [each["task_id"] for each in answer.json()["tasks"]]


def test_queues_are_listed_with_what_is_in_them_and_who_serves_them(both: LiveServer) -> None:
    for n in range(3):
        submit(both, "shop.add", a=n)
    submit(both, "shop.mail", to="ann")

    page = web(both, "read").get("/queues").text

    assert page.count('<tr data-key="') == 3  # `js` is open, and empty
    assert 'href="/queues/mail"' in page
    assert "nobody serves it" in page
    assert "A low task that is ready counts as normal after 10 min, as high after 30 min." in page


def test_a_queue_is_paused_and_resumed(both: LiveServer) -> None:
    submit(both, "shop.mail", to="ann")
    ops = web(both, "admin")

    paused = ops.said(ops.post("/queues/mail/pause"))
    page = ops.get("/queues/mail").text
    again = ops.said(ops.post("/queues/mail/pause", **{"from": "list"}))
    stats = {each.queue: each.paused for each in both.app.stats().queues}
    resumed = ops.said(ops.post("/queues/mail/resume"))

    assert paused == "Queue mail is paused. What runs goes on."
    assert '<span class="tag paused">paused</span>' in page
    assert again == "Queue mail was paused already."
    assert stats["mail"]
    assert resumed == "Queue mail goes on."
    assert not any(each.paused for each in both.app.stats().queues)


def test_a_queue_says_how_to_start_a_worker_for_it(dashboard: LiveServer) -> None:
    submit(dashboard, "shop.mail", to="ann")
    ops = web(dashboard, "admin")

    assert "holdfast worker module:app -q mail" in ops.get("/queues/mail").text
    assert "It may be misspelt" in ops.get("/queues/mial").text
    assert ops.get("/queues/a b").status_code == 404
    assert ops.post("/queues/a b/pause").status_code == 404


def test_a_limit_of_a_queue_is_changed_on_its_page(limited: LiveServer) -> None:
    ids = fill(limited, 3)
    ops = web(limited, "admin")

    page = ops.get("/queues/js").text
    said = ops.said(ops.post("/queues/js/limits", gate=LIMIT, capacity="2"))

    assert f'<option value="{LIMIT}"' in page
    assert 'href="/gates/limit:queue:js%5Ba/b%5D"' in page
    assert said == f"Now 2 may pass {LIMIT}, until that is taken back."
    assert [limited.app.get(each).state for each in ids] == ["queued", "queued", "blocked"]


@pytest.mark.parametrize(
    ("gate", "capacity", "says"),
    [
        (LIMIT, "x", "Expected a whole number from 0 to 1,000,000, got &#39;x&#39;"),
        (LIMIT, "-1", "Expected a whole number"),
        (LIMIT, "1e3", "Expected a whole number"),
        (LIMIT, "9" * 40, "Expected a whole number"),
        (LIMIT, "", "got nothing"),
        ("limit:other", "3", "Choose one of the limits of this queue"),
    ],
)
def test_what_is_no_capacity_is_said_at_the_page_and_changes_nothing(
    limited: LiveServer, gate: str, capacity: str, says: str
) -> None:
    ids = fill(limited, 2)

    answer = web(limited, "admin").post("/queues/js/limits", gate=gate, capacity=capacity)

    assert answer.status_code == 422
    assert says in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert [limited.app.get(each).state for each in ids] == ["queued", "blocked"]
    assert [each.capacity for each in limited.app.limits().limits] == [1]
