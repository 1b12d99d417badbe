"""Lines and bars go where they should."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast.core.attempt import Attempt, History
from holdfast.core.task import AttemptEnd, Cause, Priority, State, Task, TaskId, WorkerId
from holdfast.dashboard.drawing import HEIGHT, MOST_POINTS, WIDTH, bars, line
from holdfast.dashboard.timeline import timeline

MADE = datetime(2026, 3, 2, 9, tzinfo=UTC)
TASK = Task(
    id=TaskId("0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60"), name="a", queue="q", state=State.RUNNING,
    priority=Priority.NORMAL, created_at=MADE, run_at=MADE, attempt=2, charged=1, crash_count=0,
    cause=Cause.RETRY, payload=b"{}", rank=0, max_retries=3,
)  # fmt: skip


def after(seconds: float) -> datetime:
    return MADE + timedelta(seconds=seconds)


def attempt(number: int, begin: float, end: float | None = None) -> Attempt:
    return Attempt(
        number=number, cause=Cause.SUBMITTED, worker_id=WorkerId("w"), started_at=after(begin),
        ended_at=None if end is None else after(end),
        ended=None if end is None else AttemptEnd.ERROR,
    )  # fmt: skip


def test_a_line_goes_from_edge_to_edge_and_its_highest_to_the_top() -> None:
    drawn = line([0, 10, 5])

    assert drawn is not None
    assert drawn.points == f"0.0,{HEIGHT - 2:.1f} {WIDTH / 2:.1f},2.0 {WIDTH:.1f},24.0"
    assert (drawn.highest, drawn.latest) == (10, 5)


def test_one_value_is_no_line_and_nothing_is_a_flat_one() -> None:
    flat = line([0, 0])

    assert line([7]) is None
    assert flat is not None
    assert flat.highest == 0


def test_many_values_are_drawn_as_few_without_losing_the_peak() -> None:
    drawn = line([0] * 200 + [9] + [0] * 159)

    assert drawn is not None
    assert len(drawn.points.split()) <= MOST_POINTS
    assert ",2.0" in drawn.points


def test_bars_are_to_scale_and_the_shortest_can_still_be_seen() -> None:
    drawn = bars(
        [("wait", "", 0.0, 90.0), ("error", "", 90.0, 90.001), ("wait", "", 90.001, 100.0)]
    )

    assert [bar.x for bar in drawn] == [0.0, 900.0, 900.0]
    assert drawn[0].width == 900.0
    assert drawn[1].width == 4.0


def test_a_timeline_shows_waits_and_attempts_in_turn() -> None:
    history = History(attempts=(attempt(1, 2, 3), attempt(2, 6)), events=())

    drawn = timeline(TASK, history, after(10))

    assert [bar.kind for bar in drawn.bars] == ["wait", "error", "wait", "running"]
    assert [bar.width for bar in drawn.bars] == [200.0, 100.0, 300.0, 400.0]
    assert drawn.says == "waited 5.0 s, ran 5.0 s in 2 attempts"


def test_a_task_that_was_just_made_has_a_timeline_too() -> None:
    drawn = timeline(replace(TASK, state=State.QUEUED), History(attempts=(), events=()), MADE)

    assert len(drawn.bars) == 1
