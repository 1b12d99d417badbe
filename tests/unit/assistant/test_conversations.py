"""Conversations with the assistant, on a store in memory, with the grammar as the planner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.agents.run import AgentRun
from holdfast.core.assistant_answers import AssistantAnswer
from holdfast.core.task import Json
from holdfast.errors import InvalidOption
from holdfast.schedules.series import Status
from holdfast.testing import FakeClock, MemoryApp

NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)
"""A Wednesday, 11:30 in New York."""
ZONE = "America/New_York"


class Chat:
    """One user's conversation."""

    def __init__(self, app: MemoryApp, owner: str = "ann", chat_id: str = "c1") -> None:
        self.app = app
        self.owner = owner
        self.chat_id = chat_id

    async def say(self, text: str, **words: Any) -> AssistantAnswer:
        return await self.app.assistant.ask_async(
            text, timezone=ZONE, chat_id=self.chat_id, owner=self.owner, **words
        )

    async def send(self, text: str, message_id: str) -> AssistantAnswer:
        message: dict[str, Json] = {"role": "user", "content": text, "id": message_id}
        return await self.app.assistant.message_async(
            [message], timezone=ZONE, chat_id=self.chat_id, owner=self.owner
        )

    async def titles(self) -> list[str]:
        page = await self.app.schedules.list_async(owner=self.owner)
        return sorted(series.about.title or "" for series in page.schedules)


@pytest.fixture
async def app() -> AsyncIterator[MemoryApp]:
    app = MemoryApp(clock=FakeClock(NOW))

    @app.agent(name="agent")
    async def agent(run: AgentRun) -> str:
        return f"done: {run.purpose}"

    async with app:
        yield app


@pytest.fixture
def ann(app: MemoryApp) -> Chat:
    return Chat(app)


async def test_a_sentence_makes_a_task_and_says_all_about_it(ann: Chat) -> None:
    said = await ann.say("every weekday at 9 summarise my inbox")

    assert said["status"] == "created"
    assert said["title"] == said["delivery_title"] == "Summarise my inbox"
    assert said["purpose"] == "summarise my inbox"
    assert said["category"] == "REPORT"
    assert said["schedule"] is not None
    assert "Monday to Friday at 09:00" in said["schedule"]["words"]
    assert said["next_runs"] == [
        "2026-05-21T09:00:00-04:00", "2026-05-22T09:00:00-04:00", "2026-05-25T09:00:00-04:00",
        "2026-05-26T09:00:00-04:00", "2026-05-27T09:00:00-04:00",
    ]  # fmt: skip
    series = await ann.app.schedules.get_async(said["task_id"] or "")
    assert series is not None
    assert (series.about.owner, series.about.chat_id) == ("ann", "c1")
    assert series.template.name == "agent"


async def test_what_it_makes_is_run_by_the_agent_with_its_purpose(
    app: MemoryApp, ann: Chat
) -> None:
    said = await ann.say("in 10 minutes remind me to move the car")
    app.clock.advance(timedelta(minutes=11))

    await app.drain_async()

    [task] = (await app.client.list(tag=f"schedule={said['task_id']}")).tasks
    assert task.owner == "ann"
    assert task.value["content"] == "done: move the car"


async def test_without_a_time_it_runs_in_five_minutes_and_says_so(ann: Chat) -> None:
    said = await ann.say("translate the release notes into Italian")

    assert said["next_runs"] == ["2026-05-20T11:35:00-04:00"]
    assert any("5 minutes" in each for each in said["assumptions"])


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("at 26:10 restart the server", "time"),
        ("on April 31 at noon, file the form", "date"),
        ("in 15 seconds remind me to breathe", "nextExecutionTime"),
        ("every 5 seconds poll the sensor", "recurrence"),
        ("every day at 9am Atlantis time, send the tide", "timezone"),
        ("good morning", "purpose"),
    ],
)
async def test_what_cannot_be_is_refused_by_field_and_makes_nothing(
    ann: Chat, text: str, field: str
) -> None:
    said = await ann.say(text)

    assert said["status"] == "refused"
    assert field in said["fields"]
    assert said["reason"]
    assert said["question"]
    assert await ann.titles() == []


@pytest.mark.parametrize(
    ("first", "answer", "run"),
    [
        ("at 26:10 restart the server", "at 22:10", "2026-05-20T22:10:00-04:00"),
        ("remind me at some point to breathe", "tomorrow at 8am", "2026-05-21T08:00:00-04:00"),
        ("next month, do the audit", "on the 5th at 10am", "2026-06-05T10:00:00-04:00"),
        ("on April 31 at noon, file the form", "April 30", "2027-04-30T12:00:00-04:00"),
        ("today at 7am send the notes", "tomorrow at 7am", "2026-05-21T07:00:00-04:00"),
        (
            "every day at 9am Atlantis time, send the tide",
            "London time",
            "2026-05-21T09:00:00+01:00",
        ),
    ],
)
async def test_the_answer_to_a_question_continues_the_request(
    ann: Chat, first: str, answer: str, run: str
) -> None:
    asked = await ann.say(first)
    said = await ann.say(answer)

    assert asked["status"] == "refused"
    assert said["status"] == "created", said
    assert said["next_runs"][0] == run
    assert len(await ann.titles()) == 1


async def test_another_request_is_no_answer_to_a_question(ann: Chat) -> None:
    await ann.say("next month, do the audit")

    said = await ann.say("every Friday at 5pm post the weekly wins")

    assert said["status"] == "created"
    assert said["purpose"] == "post the weekly wins"


async def test_what_is_no_answer_to_a_question_is_understood_by_itself(ann: Chat) -> None:
    made = await ann.say("every day at 8 water the plants")
    await ann.say("in 10 seconds ping me")
    await ann.say("hmm")

    paused = await ann.say("pause the plants until June 1")
    await ann.say("skip it on May 3")
    renamed = await ann.say("rename it to Garden")

    assert (paused["status"], paused["operation"]) == ("updated", "pause")
    assert (renamed["status"], renamed["title"]) == ("updated", "Garden")
    assert paused["task_id"] == renamed["task_id"] == made["task_id"]


async def test_what_answered_nothing_is_no_part_of_the_request_that_is_answered_later(
    ann: Chat,
) -> None:
    await ann.say("remind me yesterday to call Bob")
    await ann.say("hmm")

    said = await ann.say("tomorrow at 9")

    assert (said["status"], said["title"]) == ("created", "Call Bob")
    assert said["next_runs"] == ["2026-05-21T09:00:00-04:00"]


async def test_a_place_answers_which_zone_is_meant(ann: Chat) -> None:
    asked = await ann.say("every day at 9am Atlantis time, send the tide")

    said = await ann.say("Berlin")

    assert asked["fields"] == ["timezone"]
    assert (said["status"], said["title"]) == ("created", "Send the tide")
    assert said["next_runs"][0] == "2026-05-21T09:00:00+02:00"


async def test_what_is_nearer_than_a_minute_is_refused_with_that_reason(ann: Chat) -> None:
    said = await ann.say("in 10 seconds ping me")

    assert (said["status"], said["reason"]) == ("refused", "a run is a minute ahead at least")


async def test_what_waits_for_a_yes_can_be_changed_before(ann: Chat) -> None:
    await ann.say("every day at 18:00 water the plants", confirm=False)

    moved = await ann.say("make it 7")
    called = await ann.say("call it Garden")
    made = await ann.say("yes")

    assert moved["status"] == called["status"] == "needs_confirmation"
    assert moved["next_runs"][0] == "2026-05-20T19:00:00-04:00"
    assert (made["status"], made["title"]) == ("created", "Garden")
    assert made["next_runs"] == moved["next_runs"]
    assert await ann.titles() == ["Garden"]


async def test_a_user_whose_clock_is_slow_is_told_that_the_time_has_come(ann: Chat) -> None:
    said = await ann.say("in 2 minutes ping me", now=NOW - timedelta(minutes=5))

    assert said["status"] == "created"
    assert said["assumptions"] == ["that time has come by the server's clock: at once"]
    assert said["next_runs"] == ["2026-05-20T11:30:01-04:00"]


async def test_a_channel_that_nobody_has_set_up_is_named_and_nothing_is_made(ann: Chat) -> None:
    said = await ann.say("every day at 9 send me the news by sms")
    made = await ann.say("then just the inbox")

    assert (said["status"], said["fields"]) == ("refused", ["channels"])
    assert "'sms'" in (said["reason"] or "")
    assert (made["status"], made["channels"]) == ("created", ["inbox"])
    assert made["purpose"] == "send me the news"


async def test_which_task_is_asked_and_the_answer_is_carried_out(ann: Chat) -> None:
    await ann.say("every day at 8 summarise my inbox")
    await Chat(ann.app, chat_id="c2").say("every Tuesday at 6pm gym reminder")
    other = Chat(ann.app, chat_id="c3")

    asked = await other.say("change it to 5pm")
    said = await other.say("the gym one")

    assert (asked["status"], asked["fields"]) == ("refused", ["target"])
    assert (said["status"], said["operation"]) == ("updated", "reschedule")
    assert said["next_runs"][0] == "2026-05-26T17:00:00-04:00"


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("make it 9 instead", "reschedule"),
        ("pause it", "pause"),
        ("run it now", "run_now"),
        ("skip the next run of it", "skip"),
        ("cancel it", "cancel"),
        ("rename it to Mail digest", "rename"),
    ],
)
async def test_updates_are_about_the_task_last_talked_about(
    ann: Chat, text: str, operation: str
) -> None:
    await ann.say("every Tuesday at 6pm gym reminder")
    made = await ann.say("every day at 8am summarise my inbox")

    said = await ann.say(text)

    assert (said["status"], said["operation"]) == ("updated", operation)
    assert said["task_id"] == made["task_id"]
    series = await ann.app.schedules.get_async(made["task_id"] or "")
    match operation:
        case "reschedule":
            assert said["next_runs"][0] == "2026-05-21T09:00:00-04:00"
        case "pause":
            assert series is not None
            assert series.status is Status.PAUSED
            assert (await ann.say("resume it"))["operation"] == "resume"
        case "run_now":
            assert await ann.app.client.count(tag=f"schedule={made['task_id']}") == 1
        case "skip":
            assert said["next_runs"][0] == "2026-05-22T08:00:00-04:00"
        case "cancel":
            assert series is None
            assert await ann.titles() == ["Gym reminder"]
        case _:
            assert await ann.titles() == ["Gym reminder", "Mail digest"]


async def test_what_would_end_several_tasks_is_asked_first(ann: Chat) -> None:
    await ann.say("every Tuesday at 6pm gym reminder")
    await ann.say("every day at 8am summarise my inbox")

    asked = await ann.say("cancel all my tasks")
    assert asked["status"] == "needs_confirmation"
    assert len(await ann.titles()) == 2

    said = await ann.say("yes")
    assert (said["status"], len(said["task_ids"])) == ("updated", 2)
    assert await ann.titles() == []


async def test_a_preview_is_carried_out_by_a_yes_and_dropped_by_a_no(ann: Chat) -> None:
    shown = await ann.say("every Friday at 5pm post the wins", confirm=False)
    assert (shown["status"], await ann.titles()) == ("needs_confirmation", [])
    assert shown["next_runs"][0] == "2026-05-22T17:00:00-04:00"

    assert (await ann.say("no"))["status"] == "refused"
    assert (await ann.say("yes"))["status"] == "refused"
    assert await ann.titles() == []

    await ann.say("every Friday at 5pm post the wins", confirm=False)
    assert (await ann.say("ok", confirm=True))["status"] == "created"
    assert await ann.titles() == ["Post the wins"]


async def test_the_same_message_again_makes_nothing_twice(ann: Chat) -> None:
    first = await ann.send("every Friday at 5pm post the wins", "m1")
    again = await ann.send("every Friday at 5pm post the wins", "m1")

    assert again == first
    assert len(await ann.titles()) == 1


async def test_owners_do_not_see_each_other(app: MemoryApp, ann: Chat) -> None:
    await ann.say("every day at 8am summarise my inbox")
    bob = Chat(app, owner="bob")  # the same chat id

    said = await bob.say("cancel all my tasks")

    assert (said["status"], said["fields"]) == ("refused", ["target"])
    assert await ann.titles() == ["Summarise my inbox"]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([], "messages"),
        ([{"role": "user", "content": "   "}], "messages"),
        ([{"role": "user", "content": "x" * 100_000}], "messages[0].content"),
        ([{"role": "system", "content": "obey"}], "messages[0].role"),
        ([{"role": "assistant", "content": "hello"}], "messages"),
    ],
)
async def test_bad_messages_are_refused_and_leave_nothing(
    app: MemoryApp, messages: list[dict[str, Json]], field: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        await app.assistant.message_async(messages, chat_id="c1", timezone=ZONE, owner="ann")

    assert caught.value.option == field
    assert await app.client.store.records("conversation", limit=10) == []


async def test_a_run_cannot_ask_the_assistant(app: MemoryApp, ann: Chat) -> None:
    @app.task(name="breeding")
    async def breeding() -> None:
        await ann.say("every day at 8am make more of me")

    await breeding.submit_async()
    [ran] = await app.drain_async()

    assert ran.error is not None
    assert "must not breed" in ran.error.message
    assert await ann.titles() == []


async def test_the_result_of_a_run_arrives_in_the_inbox(app: MemoryApp, ann: Chat) -> None:
    said = await ann.say("in 10 minutes remind me to move the car")
    app.clock.advance(timedelta(minutes=11))
    await app.drain_async()

    [item] = (await app.inbox.list_async("ann")).items
    assert said["channels"] == ["inbox"]
    assert (item.title, item.content) == ("Move the car", "done: move the car")
    assert item.schedule == said["task_id"]


async def test_a_channel_that_cannot_be_is_refused_and_nothing_is_made(ann: Chat) -> None:
    await ann.say("every day at 8am summarise my inbox")

    said = await ann.say("only send it by email")

    assert (said["status"], said["fields"]) == ("refused", ["channels"])
    [series] = (await ann.app.schedules.list_async(owner="ann")).schedules
    assert series.about.channels == ("inbox",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pause it until Monday", "Paused “Summarise my inbox” until Monday 25 May 2026, 00:00."),
        ("pause it", "Paused “Summarise my inbox”."),
        (
            "skip it this Friday",
            (
                "Skipping “Summarise my inbox” on Friday 22 May 2026, 08:00; "
                "its next run is on Thursday 21 May 2026, 08:00."
            ),
        ),
        ("only in the web inbox", "“Summarise my inbox” now goes by the inbox."),
        ("run it now", "Started “Summarise my inbox” now; its schedule stays as it is."),
        ("call it Mail digest", "It is called “Mail digest” now."),
        ("cancel it", "Cancelled “Summarise my inbox”."),
    ],
)
async def test_an_update_says_what_is_true_now(ann: Chat, text: str, message: str) -> None:
    await ann.say("every day at 8am summarise my inbox")

    assert (await ann.say(text))["message"] == message


async def test_a_resumed_task_says_when_it_runs_next(ann: Chat) -> None:
    await ann.say("every day at 8am summarise my inbox")
    await ann.say("pause it")

    said = await ann.say("turn it back on")

    assert said["message"] == (
        "Resumed “Summarise my inbox”; its next run is on Thursday 21 May 2026, 08:00."
    )


async def test_a_named_day_is_left_out_and_no_other(ann: Chat) -> None:
    await ann.say("every day at 8am summarise my inbox")

    said = await ann.say("skip it this Friday")

    assert said["next_runs"][:2] == ["2026-05-21T08:00:00-04:00", "2026-05-23T08:00:00-04:00"]


async def test_delivery_words_of_a_new_request_are_refused_where_they_cannot_be(ann: Chat) -> None:
    said = await ann.say("every weekday at 9 summarise the news and email it to me")

    assert (said["status"], said["fields"]) == ("refused", ["channels"])
    assert await ann.titles() == []


@pytest.mark.parametrize(
    "answer",
    ["then just the inbox", "never mind the email", "then only the web inbox", "ok, no email"],
)
async def test_another_channel_answers_the_refusal_of_one(ann: Chat, answer: str) -> None:
    await ann.say("every weekday at 9 summarise the news and email it to me")

    said = await ann.say(answer)

    assert (said["status"], said["channels"]) == ("created", ["inbox"]), said
    assert said["purpose"] == "summarise the news"
    assert await ann.titles() == ["Summarise the news"]


async def test_a_request_may_say_that_its_result_goes_to_the_inbox(ann: Chat) -> None:
    said = await ann.say("every weekday at 9 summarise the news and send it to my web inbox")

    assert (said["status"], said["purpose"]) == ("created", "summarise the news")
    assert said["channels"] == ["inbox"]
    assert said["message"].endswith(", by the inbox.")
