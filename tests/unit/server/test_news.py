"""What a listener is told, and what it is told again when it comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.task import (
    AttemptEnd,
    Cause,
    Priority,
    Progress,
    State,
    Task,
    TaskError,
    WorkerId,
)
from holdfast.server.news import Snapshot, StreamPosition, news
from holdfast.testing import factories

START = datetime(2026, 3, 1, tzinfo=UTC)
WORKER = WorkerId("w1")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


RUNNING = Snapshot(
    Task(
        id=factories.task_id(),
        name="walk",
        queue="default",
        priority=Priority.NORMAL,
        state=State.RUNNING,
        payload=b"{}",
        created_at=at(0),
        run_at=at(0),
        rank=0,
        attempt=1,
        charged=0,
        max_retries=0,
        crash_count=0,
        cause=Cause.SUBMITTED,
        progress=Progress(done=1, total=4),
    ),
    History(
        attempts=(Attempt(number=1, cause=Cause.SUBMITTED, worker_id=WORKER, started_at=at(1)),),
        events=(
            Event(at=at(0), kind="submitted"),
            Event(at=at(2), kind="log", attempt=1, worker_id=WORKER, detail="on my way"),
        ),
    ),
)
ENDED = Snapshot(
    replace(
        RUNNING.task,
        state=State.DEAD_LETTER,
        progress=Progress(done=2, total=4),
        error=TaskError(type="ValueError", message="no", traceback="secret places"),
    ),
    History(
        attempts=(replace(RUNNING.history.attempts[0], ended=AttemptEnd.ERROR, ended_at=at(4)),),
        events=(
            *RUNNING.history.events,
            Event(at=at(3), kind="log", attempt=1, worker_id=WORKER, detail="there"),
        ),
    ),
)


def kinds(snapshot: Snapshot, place: StreamPosition) -> list[str]:
    return [
        message.data.get("detail") or message.data.get("kind") or message.event
        for message in news(snapshot, place)
    ]


def test_a_new_listener_hears_the_whole_story_in_order() -> None:
    told = kinds(ENDED, StreamPosition())

    expected = ["submitted", "attempt_started", "on my way", "there", "attempt_ended"]
    assert told == [*expected, "progress", "state"]


def test_a_listener_that_was_there_hears_only_what_is_new() -> None:
    *_, last = news(RUNNING, StreamPosition())

    assert kinds(RUNNING, last.place) == []
    assert kinds(ENDED, last.place) == ["there", "attempt_ended", "progress", "state"]


def test_a_listener_goes_on_from_the_id_of_any_message() -> None:
    everything = list(news(ENDED, StreamPosition()))

    for heard, message in enumerate(everything, 1):
        place = StreamPosition.read(str(message.place))
        rest = [(m.event, m.data) for m in news(ENDED, place)]
        assert rest == [(m.event, m.data) for m in everything[heard:]]


def test_an_id_that_is_none_of_ours_means_the_beginning() -> None:
    for text in (None, "", "x", "1.2.3", "1.2.00000000.zzzzzzzz", "-1.0.00000000.00000000"):
        assert StreamPosition.read(text) == StreamPosition()


def test_no_trace_is_told() -> None:
    assert "secret places" not in str(list(news(ENDED, StreamPosition())))
