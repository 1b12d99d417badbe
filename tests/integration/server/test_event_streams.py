"""`GET /api/v1/tasks/{id}/events` of a real server, listened to with plain HTTP."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Context, Holdfast
from holdfast.server import events

NOBODY = "0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60"


def with_a_walk(app: Holdfast) -> Holdfast:
    @app.task(name="shop.walk")
    def walk(ctx: Context, steps: int) -> str:
        for step in range(1, steps + 1):
            ctx.progress(step, steps)
            ctx.log(f"step {step}")
        return "there"

    return app


@pytest.fixture
def walking(sqlite_url: str) -> Iterator[LiveServer]:
    with serve(with_a_walk(make_app(sqlite_url))) as server:
        yield server


def submit(server: LiveServer, steps: int = 2) -> str:
    return server.app.submit_by_name("shop.walk", {"steps": steps}).id


class Heard:
    """What a listener heard: (event, data, id) each, and the comments."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Any, str]] = []
        self.comments: list[str] = []
        self.status = 0
        self.first_words = threading.Event()

    @property
    def story(self) -> list[str]:
        return [
            data.get("detail") or data.get("kind") or data.get("status") or event
            for event, data, _ in self.messages
        ]


def listen(client: httpx.Client, task_id: str, after: str | None = None) -> Heard:
    heard = Heard()
    follow(client, task_id, heard, after)
    return heard


def follow(client: httpx.Client, task_id: str, heard: Heard, after: str | None = None) -> None:
    headers = {"last-event-id": after} if after else {}
    with client.stream("GET", f"/api/v1/tasks/{task_id}/events", headers=headers) as answer:
        heard.status = answer.status_code
        message: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                heard.comments.append(line)
            elif line:
                message[name] = value
            elif "event" in message:
                event, data = message["event"], json.loads(message["data"])
                heard.messages.append((event, data, message.get("id", "")))
                message = {}
            heard.first_words.set()


def test_the_story_of_an_ended_task_is_told_and_closed(walking: LiveServer) -> None:
    task_id = submit(walking)
    walking.work()

    heard = listen(walking.client("read"), task_id)

    expected = ["submitted", "attempt_started", "step 1", "step 2", "attempt_ended"]
    assert sorted(heard.story[:5]) == sorted(expected)
    assert heard.story[5:] == ["progress", "completed", "completed"]
    assert [event for event, *_ in heard.messages][5:] == ["progress", "state", "end"]
    assert heard.messages[5][1] == {"attempt": 1, "done": 2.0, "total": 2.0, "message": None}


def test_a_listener_hears_what_happens_while_it_listens(either_server: LiveServer) -> None:
    with_a_walk(either_server.app)
    task_id, heard = submit(either_server), Heard()
    client = either_server.client("read")
    listening = threading.Thread(target=follow, args=(client, task_id, heard))
    listening.start()
    assert heard.first_words.wait(10)

    either_server.work()
    listening.join(20)

    assert not listening.is_alive()
    assert heard.story[0] == "submitted"
    assert {"attempt_started", "step 1", "step 2", "attempt_ended"} < set(heard.story)
    assert heard.story[-2:] == ["completed", "completed"]
    ids = [place for event, _, place in heard.messages if event != "end"]
    assert len(set(ids)) == len(ids)


def test_a_listener_that_comes_back_misses_nothing_and_hears_nothing_twice(
    walking: LiveServer,
) -> None:
    task_id = submit(walking, steps=5)
    walking.work()
    client = walking.client("read")
    everything = listen(client, task_id).messages

    for heard in range(len(everything) - 2):
        rest = listen(client, task_id, after=everything[heard][2])
        assert rest.messages == everything[heard + 1 :]


def test_a_listener_that_heard_the_end_is_told_not_to_come_again(walking: LiveServer) -> None:
    task_id = submit(walking)
    walking.work()
    client = walking.client("read")
    last = [place for event, _, place in listen(client, task_id).messages if event == "state"][-1]

    again = listen(client, task_id, after=last)

    assert (again.status, again.messages) == (204, [])


def test_a_task_that_was_started_again_can_be_followed_again(walking: LiveServer) -> None:
    task_id = submit(walking)
    walking.work()
    client = walking.client("read")
    last = [place for event, _, place in listen(client, task_id).messages if event == "state"][-1]
    walking.app.retry(task_id)
    walking.work()

    again = listen(client, task_id, after=last)

    assert again.story[0] == "requeued"
    assert again.story[-1] == "completed"


def test_a_task_that_does_not_exist_is_a_problem_and_no_stream(walking: LiveServer) -> None:
    answer = walking.client("read").get(f"/api/v1/tasks/{NOBODY}/events")

    assert answer.status_code == 404
    assert answer.json()["code"] == "task_not_found"


def test_silence_is_filled_with_comments(
    walking: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    task_id, heard = submit(walking), Heard()
    client = walking.client("read")
    listening = threading.Thread(target=follow, args=(client, task_id, heard))
    listening.start()
    while len(heard.comments) < 3:
        assert listening.is_alive()
        heard.first_words.wait(0.01)

    walking.app.cancel(task_id)
    listening.join(10)

    assert heard.story[-1] == "cancelled"


def test_a_stream_ends_when_its_token_is_revoked(
    walking: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    task_id, heard, text = submit(walking), Heard(), walking.token("read")
    headers = {"Authorization": f"Bearer {text}"}
    with httpx.Client(base_url=walking.url, headers=headers, timeout=10) as client:
        listening = threading.Thread(target=follow, args=(client, task_id, heard))
        listening.start()
        assert heard.first_words.wait(10)

        app = walking.app
        assert app.wait_for(app.client.tokens.revoke(text.split("_")[1]))
        listening.join(10)

    assert not listening.is_alive()
    assert heard.story[-1] != "end"


def test_a_listener_that_is_gone_leaves_nothing_behind(walking: LiveServer) -> None:
    task_id, client = submit(walking), walking.client("read")

    with contextlib.ExitStack() as stack:
        for _ in range(5):
            path = f"/api/v1/tasks/{task_id}/events"
            answer = stack.enter_context(client.stream("GET", path))
            lines = answer.iter_lines()
            while "event: state" not in next(lines):
                pass
        assert walking.watched() == 1

    assert walking.until(lambda: walking.watched() == 0)
