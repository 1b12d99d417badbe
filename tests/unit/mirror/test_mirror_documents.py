"""Schedules and executions as documents: every field, whatever their state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from tests.unit.schedules.series import MADE, series_of, utc

from holdfast.core.task import (
    Cause,
    Cost,
    NewTask,
    Priority,
    Progress,
    State,
    Task,
    TaskId,
)
from holdfast.mirror.documents import (
    CUT,
    LONGEST_CONTENT,
    LONGEST_PAYLOAD,
    execution_document,
    rrule_lines,
    schedule_document,
)
from holdfast.recurrence import Schedule
from holdfast.schedules.series import About, Series, Status

RUN = TaskId("01900000-0000-7000-8000-000000000001")
ABOUT = About(
    owner="ann",
    title="Inbox",
    description="A summary of the inbox",
    purpose="summarise my inbox",
    category="REPORT",
    delivery_title="Your inbox",
    channels=("email", "web"),
    estimated_units=2.0,
    chat_id="chat-1",
    message_id="message-7",
)


def weekdays(**changes: Any) -> Series:
    return series_of(
        "0 9 * * 1-5", "2026-03-02 08:00", tz="Europe/Berlin", **{"about": ABOUT, **changes}
    )


def execution(**changes: Any) -> Task:
    made = Task(
        id=RUN, name="shop.report", queue="default", priority=Priority.NORMAL, state=State.QUEUED,
        created_at=MADE, run_at=MADE, attempt=0, charged=0, crash_count=0, cause=Cause.SUBMITTED,
        payload=b"{}", rank=0, max_retries=3, owner="ann",
    )  # fmt: skip
    return replace(made, **changes)


def completed(result: object, **changes: Any) -> Task:
    return execution(state=State.COMPLETED, result=orjson.dumps(result), **changes)


def shown(task: Task, series: Series | None = None, *, is_delivered: bool = False) -> Any:
    return execution_document(series or weekdays(), task, is_delivered=is_delivered)


def test_a_schedule_has_every_field_that_clients_know() -> None:
    template = NewTask(TaskId(""), "shop.report", b'{"user": 7}')
    series = weekdays(template=template, open=(RUN,), updated_at=utc("2026-02-01 10:00"))

    assert schedule_document(series) == {
        "id": "daily",
        "title": "Inbox",
        "description": "A summary of the inbox",
        "purposeOfTask": "summarise my inbox",
        "isOneTimeExecution": False,
        "rruleExpression": (
            "DTSTART;TZID=Europe/Berlin:20251231T090000\n"
            "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
        ),
        "nextExecutionTime": utc("2026-03-02 08:00"),
        "timezone": "Europe/Berlin",
        "status": "active",
        "category": "REPORT",
        "delivery": ["email", "web"],
        "deliveryTitle": "Your inbox",
        "queryPerExecution": 2.0,
        "createdByUserId": "ann",
        "createdByChatId": "chat-1",
        "currentChatMessageId": "message-7",
        "currentCloudTaskId": RUN,
        "currentPayload": '{"user":7}',
        "createdAt": MADE,
        "updatedAt": utc("2026-02-01 10:00"),
    }


def test_a_single_run_has_no_rule() -> None:
    once = series_of("2026-03-02T09:00", "2026-03-02 08:00", tz="Europe/Berlin", about=ABOUT)

    document = schedule_document(once)

    assert document["isOneTimeExecution"] is True
    assert document["rruleExpression"] is None
    assert document["nextExecutionTime"] == utc("2026-03-02 08:00")
    assert document["currentCloudTaskId"] is None


@pytest.mark.parametrize("status", [Status.PAUSED, Status.COMPLETED, Status.FAILED])
def test_a_schedule_that_does_not_go_on_has_no_next_run(status: Status) -> None:
    document = schedule_document(weekdays(status=status))

    assert document["status"] == status.value
    assert document["nextExecutionTime"] is None
    assert document["rruleExpression"].startswith("DTSTART;TZID=Europe/Berlin:")


def test_a_run_that_is_left_out_is_neither_next_nor_in_the_rule() -> None:
    series = weekdays(skips=(utc("2026-03-02 08:00"),))

    document = schedule_document(series)

    assert document["nextExecutionTime"] == utc("2026-03-03 08:00")
    assert "EXDATE;TZID=Europe/Berlin:20260302T090000" in document["rruleExpression"].split("\n")


@pytest.mark.parametrize(
    ("rule", "tz", "first"),
    [
        ("0 9 * * 1-5", "Europe/Berlin", "2026-03-02 08:00"),
        ("30 2 * * *", "America/New_York", "2026-03-02 07:30"),
        ("every 90m", None, "2026-03-02 09:00"),
        ("0 0 L * *", "Asia/Kolkata", "2026-03-30 18:30"),
        ("0 12 15W * *", "UTC", "2026-03-16 12:00"),  # no rule says this: told run by run
        ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0", "UTC", "2026-03-27 17:00"),
    ],
)
def test_the_rule_gives_the_same_runs_when_it_is_read_again(
    rule: str, tz: str | None, first: str
) -> None:
    series = series_of(rule, first, tz=tz)

    again = Schedule.rrule(rrule_lines(series) or "", tz=series.rule.tz)

    assert _next(again, utc(first), 30) == _next(series.rule, utc(first), 30)


def _next(rule: Schedule, after: datetime, number: int) -> list[datetime]:
    found, at = list[datetime](), rule.next_after(after - timedelta(seconds=1))
    while at is not None and len(found) < number:
        found.append(at)
        at = rule.next_after(at)
    return found


def test_secrets_of_what_is_submitted_are_stars() -> None:
    payload = b'{"user": 7, "password": "hunter2", "$secret": [["password"]], "$flow": {}}'
    series = weekdays(template=NewTask(TaskId(""), "shop.report", payload))

    text = schedule_document(series)["currentPayload"]

    assert orjson.loads(text) == {"user": 7, "password": "**********"}


def test_what_is_too_large_for_a_document_is_left_out() -> None:
    payload = orjson.dumps({"text": "x" * LONGEST_PAYLOAD})
    series = weekdays(template=NewTask(TaskId(""), "shop.report", payload))

    assert schedule_document(series)["currentPayload"] is None


def test_an_execution_has_every_field_that_clients_know() -> None:
    result = {"content": "Three mails.", "usage": {"units": 1}}
    cost = Cost(units=2.5, tokens_in=100, tokens_out=20)
    progress = Progress(done=2, total=3, message="reading")
    task = completed(result, cost=cost, progress=progress)

    assert shown(task, is_delivered=True) == {
        "id": RUN,
        "taskId": "daily",
        "createdAt": MADE,
        "content": "Three mails.",
        "chatId": "chat-1",
        "messageId": "message-7",
        "createdByUserId": "ann",
        "queries": 2.5,
        "tokens": 120,
        "status": "completed",
        "progress": {"done": 2, "total": 3, "message": "reading"},
        "isDelivered": True,
    }


@pytest.mark.parametrize("state", [state for state in State if state is not State.COMPLETED])
def test_what_has_not_completed_has_no_content(state: State) -> None:
    document = shown(execution(state=state, result=b'"from an attempt before"'))

    assert document["status"] == state.value
    assert (document["content"], document["progress"], document["tokens"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("done", "done"),
        ({"content": "said"}, "said"),
        ({"content": ["a", [1]]}, '["a",[1]]'),
        ({"total": 7}, '{"total":7}'),
        ([[1], [2]], "[[1],[2]]"),  # Firestore takes no list in a list
        (17, "17"),
        (None, None),
    ],
)
def test_the_content_is_text_whatever_a_task_returns(result: object, content: str | None) -> None:
    assert shown(completed(result))["content"] == content


def test_of_a_result_that_is_too_long_the_beginning_is_told() -> None:
    content = shown(completed("ä" * LONGEST_CONTENT))["content"]

    assert content == "ä" * (LONGEST_CONTENT // 2) + CUT


def test_a_task_that_reported_no_cost_may_say_it_in_its_result() -> None:
    usage = {"units": 3, "tokens_in": 10, "tokens_out": 5, "cost": 0.01}
    document = shown(completed({"content": "x", "usage": usage}))

    assert (document["queries"], document["tokens"]) == (3.0, 15)


@pytest.mark.parametrize("usage", ["much", {"units": "many"}, {"tokens_in": None}, []])
def test_a_result_that_says_nonsense_of_its_usage_counts_as_nothing(usage: object) -> None:
    document = shown(completed({"content": "x", "usage": usage}))

    assert (document["queries"], document["tokens"]) == (0.0, 0)


def test_an_agent_may_answer_in_another_chat() -> None:
    result = {"content": "x", "chat_id": "chat-2", "message_id": "message-9"}
    document = shown(completed(result))

    assert (document["chatId"], document["messageId"]) == ("chat-2", "message-9")


def test_times_are_instants_with_a_zone() -> None:
    document = schedule_document(weekdays())

    for name in ("createdAt", "updatedAt", "nextExecutionTime"):
        assert document[name].tzinfo is UTC
