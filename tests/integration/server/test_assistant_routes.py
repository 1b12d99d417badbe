"""The assistant over REST."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.integration.server.live import LiveServer, serve
from tests.integration.server.shop import make_app

from holdfast import Holdfast

MESSAGES = "/api/v1/assistant/messages"
SCHEDULES = "/api/v1/schedules"
ZONE = "Europe/Berlin"


def said(text: str, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"chat_id": "c1", "timezone": ZONE, "messages": [message], **more}


def ask(client: httpx.Client, text: str, **more: Any) -> dict[str, Any]:
    answer = client.post(MESSAGES, json=said(text, **more))
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


@pytest.fixture
def ann(either_server: LiveServer) -> httpx.Client:
    return either_server.client("submit", "read", "operate", owner="ann")


def test_a_sentence_becomes_a_schedule_of_the_tokens_owner(
    either_server: LiveServer, ann: httpx.Client
) -> None:
    made = ask(ann, "every weekday at 9 summarise my inbox")

    shown = ann.get(f"{SCHEDULES}/{made['task_id']}").json()
    assert (made["status"], made["category"], len(made["next_runs"])) == ("created", "REPORT", 5)
    assert (shown["owner"], shown["title"]) == ("ann", "Summarise my inbox")
    assert (shown["task_type"], shown["tz"]) == ("shop.assistant", ZONE)
    assert shown["parameters"]["purpose"] == "summarise my inbox"
    assert shown["chat_id"] == "c1"


def test_the_answer_streams_what_is_being_done(ann: httpx.Client) -> None:
    headers = {"accept": "text/event-stream"}
    with ann.stream("POST", MESSAGES, json=said("at 6pm feed the cat"), headers=headers) as stream:
        blocks = "".join(stream.iter_text()).strip().split("\n\n")

    events = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    told = [(event["event"], json.loads(event["data"])) for event in events]
    assert [step["step"] for name, step in told if name == "progress"] == [
        "Understanding your task", "Understanding past tasks", "Creating a task",
    ]  # fmt: skip
    assert (told[-1][0], told[-1][1]["status"]) == ("answer", "created")


def test_a_problem_in_a_stream_is_told_as_one(ann: httpx.Client) -> None:
    headers = {"accept": "text/event-stream"}
    body = said("hello", timezone="Mars/Olympus")
    answer = ann.post(MESSAGES, json=body, headers=headers)

    name, data = answer.text.strip().splitlines()[-2:]
    assert name == "event: problem"
    assert json.loads(data.removeprefix("data: "))["field"] == "timezone"


def test_a_conversation_goes_on(ann: httpx.Client) -> None:
    asked = ask(ann, "next month, do the audit")
    made = ask(ann, "on the 5th at 10am")

    assert (asked["status"], asked["fields"]) == ("refused", ["date", "time", "schedule"])
    assert (made["status"], made["purpose"]) == ("created", "do the audit")


def test_owners_are_apart_though_their_chats_have_one_name(
    either_server: LiveServer, ann: httpx.Client
) -> None:
    made = ask(ann, "every day at 8am water the plants")
    bob = either_server.client("submit", "read", "operate", owner="bob")

    ask(bob, "cancel the plants")

    assert ann.get(f"{SCHEDULES}/{made['task_id']}").status_code == 200
    assert bob.get(f"{SCHEDULES}/{made['task_id']}").status_code == 404
    refused = bob.post(MESSAGES, json=said("every day at 8 spy", owner="ann"))
    assert (refused.status_code, refused.json()["field"]) == (403, "owner")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"timezone": ZONE, "messages": []}, "chat_id"),
        ({"chat_id": "c1", "messages": []}, "timezone"),
        (said("hi", timezone="Mars/Olympus"), "timezone"),
        (said("hi", now="yesterday"), "now"),
        (said("x" * 100_000), "messages[0].content"),
        (said(" "), "messages"),
        ({"chat_id": "c1", "timezone": ZONE, "messages": [{"role": "system", "content": "x"}]},
         "messages[0].role"),
    ],
)  # fmt: skip
def test_bad_requests_name_the_field_and_store_nothing(
    either_server: LiveServer, ann: httpx.Client, body: dict[str, Any], field: str
) -> None:
    refused = ann.post(MESSAGES, json=body)

    assert (refused.status_code, refused.json()["field"]) == (422, field)
    store = either_server.app.client.store
    assert either_server.app.wait_for(store.records("conversation", limit=10)) == []


def test_an_app_without_an_agent_says_so(sqlite_url: str) -> None:
    with serve(Holdfast(url=sqlite_url)) as server:
        refused = server.client("submit").post(MESSAGES, json=said("at 6pm feed the cat"))

    assert (refused.status_code, refused.json()["code"]) == (409, "no_agent")


def test_a_token_for_other_tasks_may_not_ask(either_server: LiveServer) -> None:
    narrow = either_server.client("submit", names=["shop.add"])

    refused = narrow.post(MESSAGES, json=said("at 6pm feed the cat"))

    assert (refused.status_code, refused.json()["code"]) == (403, "out_of_bounds")


def test_an_agent_runs_what_was_asked_for(sqlite_url: str) -> None:
    with serve(make_app(sqlite_url)) as server:
        client = server.client("submit", "read", "operate", owner="ann")
        made = ask(client, "every day at 8am water the plants")
        client.post(f"{SCHEDULES}/{made['task_id']}/trigger")
        server.work()

        [run] = client.get(f"{SCHEDULES}/{made['task_id']}/runs").json()["runs"]

    assert (run["status"], run["content"]["content"]) == ("success", "done: water the plants")
