"""Changes of tasks that exist: a model may read them, the user's own words say which task."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.assistant.readings import TZ, planner, refused, request
from tests.kit.servers import model
from tests.kit.servers.model import ModelServer

from holdfast.assistant.llm import planner_of
from holdfast.ports.planner import Planned
from holdfast.settings import Settings

CHANNELS = ["EMAIL", "WEB", "MOBILE"]
TASKS = (
    {"id": "a1", "title": "Inbox summary", "status": "ACTIVE", "tz": TZ, "delivery": CHANNELS,
     "rrule": "FREQ=DAILY;BYHOUR=8;BYMINUTE=0", "dtstart": "2026-05-21T08:00:00"},
    {"id": "a2", "title": "Gym reminder", "status": "ACTIVE", "tz": TZ, "delivery": CHANNELS,
     "rrule": "FREQ=WEEKLY;BYDAY=TU,FR;BYHOUR=18;BYMINUTE=0", "dtstart": "2026-05-22T18:00:00"},
)  # fmt: skip


def change(text: str, **slots: Any) -> model.Answer:
    """A model that reads the change so, and quotes the whole request for it."""
    quotes = [{"slot": name, "quote": text} for name in slots]
    return model.says({"evidence": quotes, "slots": slots})


def times(**clock: Any) -> list[dict[str, Any]]:
    return [{"times": [clock]}]


async def both(text: str, focus: str | None = None, **slots: Any) -> Planned:
    """The outcome of the real grammar and a model that reads the request so."""
    with ModelServer(change(text, **slots)) as server:
        settings = Settings.load(llm_url=server.url, llm_model="scripted")
        return await planner_of(settings).plan(request(text, tasks=TASKS, focus=focus))


@pytest.mark.parametrize(
    ("text", "slots", "target"),
    [
        ("pause the inbox summary", {"operation": "pause", "target": "inbox summary"}, "a1"),
        ("cancel the gym reminder", {"operation": "cancel", "target": "gym reminder"}, "a2"),
        (
            "change the gym reminder to 7pm",
            {"operation": "reschedule", "target": "gym reminder",
             "lines": times(hour=7, half="pm")},
            "a2",
        ),
        (
            "skip the next inbox summary",
            {"operation": "skip", "target": "inbox summary"},
            "a1",
        ),
        (
            "pause the gym reminder until Monday",
            {"operation": "pause", "target": "gym reminder",
             "until": {"day": {"kind": "weekday", "weekday": 0}}},
            "a2",
        ),
    ],
)  # fmt: skip
async def test_a_change_that_both_read_alike_is_made(
    text: str, slots: dict[str, Any], target: str
) -> None:
    planned = await both(text, **slots)

    assert planned.notes == ()
    assert (planned.planner, planned.agreed) == ("llm+offline", True)
    assert (planned.result["op"], planned.result["target"]) == (slots["operation"], target)


@pytest.mark.parametrize(
    "slots",
    [
        {"operation": "cancel", "target": "gym reminder"},
        {"operation": "pause"},
        {"operation": "reschedule", "target": "gym reminder", "lines": times(hour=3, half="am")},
    ],
    ids=["another change", "another task", "a time"],
)
async def test_a_change_that_they_read_differently_is_asked(slots: dict[str, Any]) -> None:
    planned = await both("pause the gym reminder", focus="a1", **slots)

    assert not planned.agreed
    assert (planned.result["op"], planned.result["target"]) == ("pause", "a2")


async def test_a_change_that_only_the_model_understood_is_asked() -> None:
    text = "give the inbox summary a rest"
    said = change(text, operation="pause", target="inbox summary")
    with ModelServer(said) as server:
        planned = await planner(server.url, refused()).plan(request(text, tasks=TASKS))

    assert (planned.planner, planned.agreed) == ("llm", False)
    assert planned.result == {"kind": "update", "op": "pause", "target": "a1"}


async def test_a_pause_whose_end_only_the_model_read_is_not_one_without_end() -> None:
    text = "give the gym reminder a rest until Monday"
    until = {"day": {"kind": "weekday", "weekday": 0}}
    said = change(text, operation="pause", target="gym reminder", until=until)
    with ModelServer(said) as server:
        planned = await planner(server.url, refused()).plan(request(text, tasks=TASKS))

    assert planned.result == refused()


@pytest.mark.parametrize("target", ["gym", "reminder of somebody else", "a2"])
async def test_only_words_that_the_user_wrote_name_a_task(target: str) -> None:
    text = "give it a rest"
    said = change(text, operation="cancel", target=target)
    with ModelServer(said) as server:
        planned = await planner(server.url, refused()).plan(request(text, tasks=TASKS))

    assert planned.result == refused()
    assert planned.notes == ("invalid", "invalid", "invalid")


async def test_words_that_name_no_task_change_none() -> None:
    text = "cancel the payroll"
    said = change(text, operation="cancel", target="payroll")
    with ModelServer(said) as server:
        planned = await planner(server.url, refused()).plan(request(text, tasks=TASKS, focus="a1"))

    assert planned.result["kind"] == "refuse"
