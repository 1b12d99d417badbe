"""Whatever a model answers: both agree, or somebody is asked, or the grammar's answer stands."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.integration.assistant.readings import (
    DAILY_AT_9,
    KEY,
    TEXT,
    TZ,
    WEEKDAYS_AT_9,
    answer,
    planner,
    refused,
    request,
    with_slots,
)
from tests.kit.servers import model
from tests.kit.servers.model import ModelServer

from holdfast.assistant.llm import planner_of
from holdfast.ports.planner import Message, ModelUse, Planned
from holdfast.settings import Settings

BAD = model.says(answer(evidence=[]))
GOOD = model.says(answer())


async def plan(*script: model.Answer, offline: Any = WEEKDAYS_AT_9, **options: Any) -> Planned:
    with ModelServer(*script) as server:
        return await planner(server.url, offline, **options).plan(request())


class TestAgreement:
    async def test_two_planners_with_the_same_runs_need_no_question(self) -> None:
        planned = await plan(GOOD)

        assert planned == Planned(
            result=WEEKDAYS_AT_9,
            planner="llm+offline",
            agreed=True,
            title="Inbox summary",
            category="REPORT",
            usage=ModelUse(calls=1, tokens_in=100, tokens_out=20),
        )

    async def test_rules_that_are_written_differently_agree_by_their_runs(self) -> None:
        other = WEEKDAYS_AT_9 | {
            "rrule": [f"FREQ=WEEKLY;BYDAY={day}" for day in ("MO", "TU", "WE", "TH", "FR")]
        }

        planned = await plan(GOOD, offline=other)

        assert planned.agreed
        assert planned.planner == "llm+offline"

    async def test_planners_that_differ_ask_with_the_grammars_reading_first(self) -> None:
        planned = await plan(GOOD, offline=DAILY_AT_9)

        assert (planned.agreed, planned.planner) == (False, "offline")
        assert planned.result == DAILY_AT_9
        assert planned.alternative is not None
        assert planned.alternative["rrule"] != DAILY_AT_9["rrule"]

    async def test_what_only_the_model_understood_is_asked(self) -> None:
        planned = await plan(GOOD, offline=refused())

        assert (planned.agreed, planned.planner) == (False, "llm")
        assert planned.result["kind"] == "recurring"
        assert planned.result["dtstart"] == "2026-05-21T09:00:00"

    async def test_what_only_the_grammar_understood_is_asked(self) -> None:
        planned = await plan(model.says(answer(slots={"trouble": "event"}, evidence=[])))

        assert (planned.agreed, planned.planner) == (False, "offline")
        assert planned.result == WEEKDAYS_AT_9

    async def test_two_refusals_are_one(self) -> None:
        said = model.says(answer(slots={"trouble": "event"}, evidence=[]))

        planned = await plan(said, offline=refused())

        assert planned.agreed
        assert planned.result == refused()

    async def test_a_time_that_only_the_model_found_is_asked_before_the_usual_one(self) -> None:
        usual = {
            "kind": "once",
            "dtstart": "2026-05-20T11:35:00",
            "tz": TZ,
            "assumptions": ["no time was given: in 5 minutes"],
        }

        planned = await plan(GOOD, offline=usual)

        assert (planned.agreed, planned.planner) == (False, "llm")
        assert planned.result["kind"] == "recurring"
        assert planned.alternative == usual

    @pytest.mark.parametrize(
        "trouble", ["past", "impossible_time", "contradiction", "vague_time", "feast", "too_long"]
    )
    async def test_no_model_is_asked_to_allow_what_cannot_be(self, trouble: Any) -> None:
        with ModelServer(GOOD) as server:
            planned = await planner(server.url, refused(trouble)).plan(request())

        assert server.asked == []
        assert planned == Planned(result=refused(trouble), notes=("model_not_asked",))

    async def test_a_text_too_long_for_a_model_is_the_grammars_alone(self) -> None:
        with ModelServer(GOOD) as server:
            planned = await planner(server.url, refused()).plan(request("every day " * 300))

        assert server.asked == []
        assert planned.result == refused()


class TestCorrections:
    async def test_an_invalid_answer_is_sent_back_with_what_is_wrong(self) -> None:
        with ModelServer(BAD, GOOD) as server:
            planned = await planner(server.url, WEEKDAYS_AT_9).plan(request())

        assert planned.agreed
        assert planned.notes == ("invalid",)
        assert planned.usage == ModelUse(calls=2, tokens_in=200, tokens_out=40)
        told = server.asked[1].body["messages"]
        assert [each["role"] for each in told] == ["system", "user", "assistant", "user"]
        assert "lines: expected evidence" in told[3]["content"]

    async def test_the_third_invalid_answer_is_the_last(self) -> None:
        with ModelServer(BAD) as server:
            planned = await planner(server.url, WEEKDAYS_AT_9).plan(request())

        assert len(server.asked) == 3
        assert (planned.result, planned.planner) == (WEEKDAYS_AT_9, "offline")
        assert planned.agreed, "a model that says nothing is no second opinion"
        assert planned.notes == ("invalid", "invalid", "invalid")

    async def test_without_either_it_is_refused(self) -> None:
        planned = await plan(BAD, offline=refused())

        assert planned.result == refused()
        assert planned.result["question"]

    @pytest.mark.parametrize(
        ("said", "problem"),
        [
            ("Sure! Every weekday.", "expected one JSON object and nothing else"),
            ("[]", "expected one JSON object"),
            (answer(rrule="FREQ=SECONDLY"), "rrule: expected one of"),
            (answer(slots={"dtstart": "2026-01-01"}), "dtstart: expected one of"),
            (with_slots(count=-1), "count: expected 0 to"),
            (with_slots(zone="Mars"), "zone: expected the place as the request names it"),
            (with_slots(target="payroll"), "target: expected words of the request"),
            (with_slots(channels=["EMAIL"]), "channels: expected none"),
            (with_slots(purpose="wire the money"), "purpose: expected words of the request"),
            (answer(evidence=[{"slot": "lines", "quote": "daily"}]), "are not in the request"),
            (answer(evidence=[{"slot": "lines", "quote": "  "}]), "are not in the request"),
            (answer(evidence=[{"slot": "owner", "quote": "every"}]), "expected the name of a slot"),
            (answer(evidence="every"), "evidence: expected a list"),
        ],
    )
    async def test_what_is_wrong_is_said_so_that_a_model_can_mend_it(
        self, said: object, problem: str
    ) -> None:
        with ModelServer(model.says(said), GOOD) as server:
            planned = await planner(server.url, WEEKDAYS_AT_9).plan(request())

        assert problem in server.asked[1].body["messages"][-1]["content"]
        assert planned.planner == "llm+offline"

    async def test_slots_that_contradict_themselves_are_sent_back(self) -> None:
        both = answer()["slots"]["lines"][0] | {"days": [{"kind": "relative", "number": 1}]}

        planned = await plan(model.says(with_slots(lines=[both])), GOOD)

        assert planned.notes == ("invalid",)
        assert planned.planner == "llm+offline"

    async def test_json_in_a_code_block_is_json(self) -> None:
        import json

        planned = await plan(model.says(f"```json\n{json.dumps(answer())}\n```"))

        assert planned.planner == "llm+offline"


class TestTrouble:
    @pytest.mark.parametrize(
        ("said", "note"),
        [
            (model.truncated(answer()), "truncated"),
            (model.refuses(), "declined"),
            (model.filtered(), "declined"),
            (model.status(500), "http_error"),
            (model.status(429, retry_after="99"), "rate_limited"),
            (model.huge(10_000_000), "too_large"),
            (model.drops(), "unreachable"),
            (model.raw(b"hello", content_type="text/plain"), "not_json"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    async def test_then_the_grammar_answers_alone(self, said: model.Answer, note: str) -> None:
        planned = await plan(said)

        assert (planned.result, planned.planner) == (WEEKDAYS_AT_9, "offline")
        assert planned.agreed
        assert planned.notes == (note,)

    @pytest.mark.parametrize(
        "said",
        [model.late(60, GOOD), model.drips(0.02), model.late(0.3, BAD)],
        ids=["slow", "dripping", "slowly wrong"],
    )
    async def test_the_deadline_holds_for_all_calls_together(self, said: model.Answer) -> None:
        started = time.monotonic()

        planned = await plan(said, timeout=0.5)

        assert time.monotonic() - started < 4
        assert planned.notes[-1] == "deadline"
        assert planned.result == WEEKDAYS_AT_9

    async def test_a_busy_endpoint_is_waited_for(self) -> None:
        planned = await plan(model.status(429, retry_after="0.1"), GOOD)

        assert planned.planner == "llm+offline"
        assert planned.notes == ()

    async def test_an_endpoint_without_schemas_is_asked_for_plain_json_and_remembered(self) -> None:
        with ModelServer(model.without_schemas(GOOD)) as server:
            ours = planner(server.url, WEEKDAYS_AT_9)
            first, second = await ours.plan(request()), await ours.plan(request())

        kinds = [asked.body["response_format"]["type"] for asked in server.asked]
        assert kinds == ["json_schema", "json_schema", "json_object", "json_object"]
        assert first.planner == second.planner == "llm+offline"
        assert '"maxItems"' in server.asked[-1].prompt, "the shape stands in the prompt instead"

    async def test_an_endpoint_that_refuses_every_style_is_not_asked_for_ever(self) -> None:
        with ModelServer(model.status(400)) as server:
            planned = await planner(server.url, WEEKDAYS_AT_9).plan(request())

        assert len(server.asked) == 3
        assert planned.notes == ("http_error",)


async def test_the_prompt_holds_the_request_and_no_secrets() -> None:
    with ModelServer(GOOD) as server:
        await planner(server.url, WEEKDAYS_AT_9).plan(
            request(
                history=(Message(role="user", text="hello there"),),
                tasks=({"id": "t-1", "title": "Gym", "owner": "ada", "rrule": "FREQ=DAILY"},),
                focus="t-1",
            )
        )

    prompt = server.asked[0].prompt
    assert TEXT in prompt
    assert "hello there" in prompt
    assert '"title":"Gym","last_talked_about":true' in prompt
    assert not [word for word in (KEY, "ada", "FREQ=", "t-1") if word in prompt]


class TestWithTheGrammar:
    async def test_the_settings_choose_the_planner(self) -> None:
        alone = await planner_of(Settings.load()).plan(request())
        with ModelServer(GOOD) as server:
            settings = Settings.load(llm_url=server.url, llm_model="scripted")
            both = await planner_of(settings).plan(request())

        assert (alone.planner, both.planner) == ("offline", "llm+offline")
        assert alone.result == both.result == WEEKDAYS_AT_9
        assert "authorization" not in server.asked[0].headers, "no key, no header"

    @pytest.mark.parametrize(
        "text", ["today at 7am send the notes", "in 15 seconds call", "every 5 seconds poll it"]
    )
    async def test_what_the_grammar_forbids_stays_forbidden(self, text: str) -> None:
        with ModelServer(GOOD) as server:
            settings = Settings.load(llm_url=server.url, llm_model="scripted")
            planned = await planner_of(settings).plan(request(text))

        assert planned.result["kind"] == "refuse"
        assert server.asked == []
