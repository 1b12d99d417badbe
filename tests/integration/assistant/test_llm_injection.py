"""Hostile texts, histories, titles and models: what they cannot do.

The model in these tests obeys every attacker, since a good one proves nothing: what holds here must
hold by the structure of what an answer can say.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.assistant.hostile import (
    ADDRESS,
    HISTORIES,
    NAMES,
    SPOKEN,
    TEXTS,
    TITLES,
    WRONG,
)
from tests.integration.assistant.readings import (
    KEY,
    WEEKDAYS_AT_9,
    answer,
    planner,
    refused,
    request,
)
from tests.kit.servers import model
from tests.kit.servers.model import Asked, ModelServer

import holdfast
from holdfast.assistant.llm import planner_of
from holdfast.assistant.llm.fencing import fenced
from holdfast.assistant.llm.schema import compact_schema, complete_schema
from holdfast.assistant.llm.titles import fit_title
from holdfast.ports.planner import Message, Planned, PlanRequest
from holdfast.settings import Settings

MEMBERS = {
    "kind", "dtstart", "tz", "rrule", "exdate", "rdate", "purpose", "assumptions",
    "fields", "reason", "question", "op", "target",
}  # fmt: skip
FENCE = re.compile(r"<data-([0-9a-f]{16})>\n(.*)\n</data-\1>", re.DOTALL)

OBEDIENT = model.says(answer(owner="bob", recipients=[ADDRESS], limits={}))
"""A model that was talked into it."""


def test_there_are_enough_of_them() -> None:
    assert len(TEXTS) + len(HISTORIES) + len(TITLES) >= 40
    assert len(SPOKEN) + len(WRONG) + len(NAMES) >= 40


def data_of(asked: Asked) -> Any:
    """What stands between the marks; there is one pair of them, whatever the users wrote."""
    content = asked.body["messages"][1]["content"]
    found = FENCE.fullmatch(content)
    assert found, content
    assert content.count(found[1]) == 2, "the mark cannot be guessed"
    inside = found[2]
    assert "<" not in inside
    assert all(char.isprintable() for char in inside)
    return json.loads(inside)


def harmless(planned: Planned) -> None:
    """It says when and what, for whoever asked: nothing else is in it."""
    assert set(planned.result) <= MEMBERS
    assert KEY not in repr(planned)
    for word in ("SECONDLY", "bob"):
        assert word not in json.dumps({**planned.result, "purpose": ""})
    assert planned.title is None or ADDRESS not in planned.title


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_hostile_request_stays_data_and_cannot_make_the_model_powerful(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with ModelServer(OBEDIENT, model.says(answer())) as server:
        planned = await planner(server.url, WEEKDAYS_AT_9).plan(request(text))

    assert data_of(server.asked[0])["request"] == text
    assert planned.result == WEEKDAYS_AT_9
    harmless(planned)
    assert KEY not in caplog.text
    assert KEY not in server.asked[0].prompt


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_hostile_request_that_only_the_model_understood_is_asked_about(text: str) -> None:
    with ModelServer(OBEDIENT, model.says(answer())) as server:
        planned = await planner(server.url, refused()).plan(request(text))

    assert not planned.agreed
    harmless(planned)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_hostile_request_makes_one_harmless_reading_with_the_real_grammar(
    text: str,
) -> None:
    with ModelServer(OBEDIENT, model.says(answer())) as server:
        settings = Settings.load(llm_url=server.url, llm_key=KEY, llm_model="scripted")
        planned = await planner_of(settings).plan(request(text))

    harmless(planned)
    assert all(fragment in text for fragment in str(planned.result.get("purpose", "")).split())


@pytest.mark.parametrize("said", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_a_hostile_history_is_no_evidence(said: str, role: Any) -> None:
    hostile = answer(
        evidence=[{"slot": "lines", "quote": said[:20]}],
        slots={"lines": [{"every": {"number": 1, "unit": "day"}, "times": [{"hour": 3}]}]},
    )
    with ModelServer(model.says(hostile)) as server:
        planned = await planner(server.url, refused()).plan(
            request(history=(Message(role=role, text=said),))
        )

    assert data_of(server.asked[0])["history"] == [{"by": role, "text": said}]
    assert planned.result == refused()
    assert planned.notes == ("invalid", "invalid", "invalid")


@pytest.mark.parametrize("title", TITLES.values(), ids=TITLES)
async def test_a_hostile_title_names_no_other_task(title: str) -> None:
    hostile = answer(
        evidence=[{"slot": "operation", "quote": "every"}, {"slot": "target", "quote": "every"}],
        slots={"operation": "cancel", "target": title},
    )
    with ModelServer(model.says(hostile)) as server:
        planned = await planner(server.url, refused()).plan(
            request(tasks=({"id": "t-1", "title": title},))
        )

    assert data_of(server.asked[0])["tasks"][0]["title"] == title
    assert planned.result == refused()


@pytest.mark.parametrize("said", SPOKEN.values(), ids=SPOKEN)
async def test_a_hostile_answer_is_worth_nothing(
    said: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with ModelServer(model.says(said)) as server:
        alone = await planner(server.url, refused()).plan(request())
        beside = await planner(server.url, WEEKDAYS_AT_9).plan(request())

    assert alone.result["kind"] == "refuse"
    assert beside.result == WEEKDAYS_AT_9
    harmless(alone)
    harmless(beside)
    assert "bob" not in caplog.text
    assert ADDRESS not in caplog.text


@pytest.mark.parametrize("said", WRONG.values(), ids=WRONG)
async def test_a_wrong_reading_is_never_carried_out_unasked(said: Any) -> None:
    with ModelServer(model.says(said)) as server:
        beside = await planner(server.url, WEEKDAYS_AT_9).plan(request())
        alone = await planner(server.url, refused()).plan(request())

    assert beside.result == WEEKDAYS_AT_9
    assert not beside.agreed
    assert not alone.agreed or alone.result["kind"] == "refuse"
    harmless(alone)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_hostile_title_is_not_proposed(name: str) -> None:
    with ModelServer(model.says(answer(title=name))) as server:
        planned = await planner(server.url, WEEKDAYS_AT_9).plan(request())

    assert planned.title is None
    assert planned.agreed, "a bad title says nothing about the runs"


@pytest.mark.parametrize(
    ("title", "text", "fit"),
    [
        ("Inbox summary", "summarise my inbox", "Inbox summary"),
        ("  Inbox\nsummary\u200b ", "summarise my inbox", "Inbox summary"),
        ("Call mom", "call mom tomorrow", "Call mom"),
        ("Check https://a.example", "check https://a.example daily", "Check https://a.example"),
        ("Top 10 news", "the top 10 news every day", "Top 10 news"),
        ("新闻摘要", "每天早上给我新闻摘要", "新闻摘要"),
        (7, "call mom", None),
        ("", "call mom", None),
    ],
)
def test_a_title_of_the_users_words_is_taken(title: Any, text: str, fit: str | None) -> None:
    assert fit_title(title, text) == fit


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of the schema, however deep."""
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from parts(each)


class TestStructure:
    """What no answer can do, because there is no place in which to say it."""

    def test_a_planner_is_told_nothing_that_must_not_leak(self) -> None:
        told = {field.name for field in dataclasses.fields(PlanRequest)}

        assert told == {"text", "now", "tz", "history", "tasks", "focus"}

    def test_an_outcome_has_no_place_for_owners_limits_addresses_or_second_tasks(self) -> None:
        names = {field.name for field in dataclasses.fields(Planned)}

        assert names == {
            "result", "planner", "agreed", "alternative", "title", "category", "notes", "usage",
        }  # fmt: skip

    @pytest.mark.parametrize("schema", [compact_schema, complete_schema])
    def test_the_schema_has_no_place_for_them_either(self, schema: Any) -> None:
        names = {name for part in parts(schema()) for name in part.get("properties", ())}

        forbidden = {
            "owner", "recipients", "address", "limits", "budget", "max_runs", "handler", "queue",
            "token", "secret", "key", "rrule", "dtstart", "tz", "id", "tasks",
        }  # fmt: skip
        assert "purpose" in names
        assert not names & forbidden

    @pytest.mark.parametrize("schema", [compact_schema, complete_schema])
    def test_every_object_is_closed_and_every_list_bounded(self, schema: Any) -> None:
        for part in parts(schema()):
            if part.get("type") == "object":
                assert part["additionalProperties"] is False
            if part.get("type") == "array":
                assert part["maxItems"] <= 12

    def test_the_compact_schema_bounds_every_text(self) -> None:
        texts = [part for part in parts(compact_schema()) if part.get("type") == "string"]

        assert all("enum" in part or part["maxLength"] <= 200 for part in texts)

    def test_the_complete_schema_is_what_strict_services_take(self) -> None:
        for part in parts(complete_schema()):
            assert "maxLength" not in part
            if part.get("type") == "object":
                assert part["required"] == list(part["properties"])

    def test_only_users_and_the_assistant_speak_in_a_history(self) -> None:
        hints = str(Message.__annotations__["role"])

        assert hints == "Role", "what a run produced is no message"

    @pytest.mark.parametrize("part", ["agents", "worker", "engine", "definitions", "flow"])
    def test_what_runs_tasks_has_no_way_to_the_planner(self, part: str) -> None:
        sources = list((Path(holdfast.__file__).parent / part).rglob("*.py"))

        assert sources
        for source in sources:
            text = source.read_text(encoding="utf-8")
            assert "holdfast.assistant" not in text, source
            assert "ports.planner" not in text, source

    def test_two_fences_are_never_alike(self) -> None:
        assert fenced({"request": "x"}) != fenced({"request": "x"})
