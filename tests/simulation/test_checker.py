"""The checker of histories sees each kind of breach, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.kit.checker import Picture, Start, StartLog, check

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.task import AttemptEnd, Cause, Priority, Reason, State, Task, TaskId, WorkerId

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def attempt(number: int, cause: Cause, ended: AttemptEnd | None, **changes: object) -> Attempt:
    """The n-th attempt runs from n to n + 0.5."""
    whole = Attempt(
        number=number,
        cause=cause,
        worker_id=WorkerId(f"w{number}"),
        started_at=at(number),
        ended_at=at(number + 0.5),
        ended=ended,
        charged=ended in (AttemptEnd.ERROR, AttemptEnd.TIMEOUT),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]  # whatever the test changes


def picture(*attempts: Attempt, events: tuple[Event, ...] = (), **changes: object) -> Picture:
    """A completed task after an error and the death of a worker, unless told otherwise."""
    attempts = attempts or (
        attempt(1, Cause.SUBMITTED, AttemptEnd.ERROR),
        attempt(2, Cause.RETRY, AttemptEnd.WORKER_LOST),
        attempt(3, Cause.WORKER_LOST, AttemptEnd.COMPLETED),
    )
    task = Task(
        id=TaskId("a"),
        name="work",
        queue="default",
        priority=Priority.NORMAL,
        state=State.COMPLETED,
        payload=b"{}",
        created_at=NOON,
        run_at=NOON,
        rank=0,
        attempt=len(attempts),
        charged=sum(a.charged for a in attempts),
        max_retries=3,
        crash_count=sum(a.ended is AttemptEnd.WORKER_LOST for a in attempts),
        cause=attempts[-1].cause,
        finished_at=at(100),
    )
    task = replace(task, **changes)  # type: ignore[arg-type]  # whatever the test changes
    return Picture(task, History(attempts=attempts, events=events))


def start(number: int, **changes: object) -> Start:
    whole = Start(task_id="a", attempt=number, began=float(number), worker_id=f"w{number}")
    return replace(whole, **changes)  # type: ignore[arg-type]  # whatever the test changes


DONE = AttemptEnd.COMPLETED
ERROR = AttemptEnd.ERROR
LOST = AttemptEnd.WORKER_LOST
REQUEUED = (Event(at=at(1.7), kind="requeued"),)

BREACHES: dict[str, tuple[str, Callable[[], Picture]]] = {
    "a gap in the numbers": (
        "attempt_numbers",
        lambda: picture(attempt(1, Cause.SUBMITTED, ERROR), attempt(3, Cause.RETRY, DONE)),
    ),
    "an attempt not in the history": ("attempt_numbers", lambda: picture(attempt=4)),
    "an attempt without end": (
        "open_attempt",
        lambda: picture(attempt(1, Cause.SUBMITTED, None, ended_at=None)),
    ),
    "completed after an error": (
        "terminal",
        lambda: picture(attempt(1, Cause.SUBMITTED, ERROR)),
    ),
    "ended without a time": ("terminal", lambda: picture(finished_at=None)),
    "completed twice": (
        "recorded_twice",
        lambda: picture(attempt(1, Cause.SUBMITTED, DONE), attempt(2, Cause.RETRY, DONE)),
    ),
    "a second start without cause": (
        "cause",
        lambda: picture(attempt(1, Cause.SUBMITTED, ERROR), attempt(2, Cause.SUBMITTED, DONE)),
    ),
    "a cause that does not follow": (
        "cause",
        lambda: picture(attempt(1, Cause.SUBMITTED, ERROR), attempt(2, Cause.TIMEOUT, DONE)),
    ),
    "an operator nobody saw": (
        "cause",
        lambda: picture(attempt(1, Cause.SUBMITTED, ERROR), attempt(2, Cause.OPERATOR, DONE)),
    ),
    "one retry too many": ("retry_limit", lambda: picture(max_retries=-1)),
    "one crash too many": (
        "crash_limit",
        lambda: picture(
            attempt(1, Cause.SUBMITTED, LOST),
            *(attempt(n, Cause.WORKER_LOST, LOST) for n in (2, 3, 4)),
            attempt(5, Cause.WORKER_LOST, DONE),
        ),
    ),
    "a deploy that charges": (
        "charge",
        lambda: picture(
            attempt(1, Cause.SUBMITTED, AttemptEnd.RELEASED, charged=True),
            attempt(2, Cause.RELEASED, DONE),
        ),
    ),
    "a crash that was not counted": ("counts", lambda: picture(crash_count=0)),
    "an end before its start": (
        "times",
        lambda: picture(attempt(1, Cause.SUBMITTED, DONE, ended_at=at(0))),
    ),
    "two attempts at once": (
        "times",
        lambda: picture(
            attempt(1, Cause.SUBMITTED, ERROR, ended_at=at(9)), attempt(2, Cause.RETRY, DONE)
        ),
    ),
    "not ended": (
        "stuck",
        lambda: picture(attempt(1, Cause.SUBMITTED, ERROR), state=State.RETRYING, finished_at=None),
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_in_one_history_is_seen(name: str) -> None:
    rule, broken_picture = BREACHES[name]

    found = {broken.rule for broken in check([broken_picture()])}

    assert rule in found


def test_what_is_well_is_left_alone() -> None:
    starts = [start(number) for number in (1, 2, 3)]

    assert check([picture()], acknowledged=["a"], starts=starts) == []


def test_a_requeued_task_begins_its_counts_anew() -> None:
    again = picture(
        attempt(1, Cause.SUBMITTED, ERROR),
        attempt(2, Cause.OPERATOR, DONE),
        events=REQUEUED,
        max_retries=0,
        charged=0,
    )

    assert check([again]) == []


def test_a_cancelled_task_needs_no_attempt() -> None:
    never = Picture(
        replace(
            picture().task,
            state=State.CANCELLED,
            reason=Reason.CANCELLED,
            attempt=0,
            charged=0,
            crash_count=0,
        ),
        History(attempts=(), events=()),
    )

    assert check([never]) == []


def test_an_acknowledged_task_that_is_not_there_is_lost() -> None:
    assert [broken.rule for broken in check([], acknowledged=["a"])] == ["lost"]


@pytest.mark.parametrize(
    ("starts", "rule"),
    [
        ([start(1), start(1)], "double_start"),
        ([start(4)], "unrecorded_start"),
        ([start(1, worker_id="another")], "unrecorded_start"),
        ([start(1, lock="k", fence=7), start(2, lock="k", fence=7)], "fence"),
        ([start(1, lock="k")], "fence"),
    ],
    ids=["twice", "not recorded", "on another worker", "same fence", "no fence"],
)
def test_a_breach_seen_from_outside_is_found(starts: list[Start], rule: str) -> None:
    assert rule in [broken.rule for broken in check([picture()], starts=starts)]


def test_two_unfinished_tasks_with_one_unique_key_are_found() -> None:
    one = picture(attempt(1, Cause.SUBMITTED, ERROR), state=State.RETRYING, unique_key="u",
                  finished_at=None)  # fmt: skip
    other = one._replace(task=replace(one.task, id=TaskId("b")))

    assert "unique_key" in [broken.rule for broken in check([one, other], finished=False)]


def test_overlapping_holders_of_one_lock_are_found() -> None:
    one = picture(attempt(1, Cause.SUBMITTED, DONE), lock="k")
    other = one._replace(task=replace(one.task, id=TaskId("b")))

    assert [broken.rule for broken in check([one, other])] == ["lock_overlap"]


def test_instants_are_not_compared_when_the_clock_was_set_back() -> None:
    early = picture(attempt(1, Cause.SUBMITTED, DONE, ended_at=at(0)), lock="k")

    assert check([early], steady_clock=False) == []


def test_the_start_log_keeps_what_was_begun_and_what_ended(tmp_path: Path) -> None:
    log = StartLog(tmp_path / "starts.log")
    assert log.starts() == []
    log.path.write_text(
        '{"id": "a", "n": 1, "pid": 7, "lock": "k", "fence": 3, "t": 1.5}\n'
        '{"id": "b", "n": 1, "pid": 8, "lock": null, "fence": null, "t": 2.0}\n'
        '{"id": "a", "n": 1, "end": true, "t": 2.5}\n'
    )

    first, second = log.starts()

    assert (first.began, first.ended, first.fence, first.pid) == (1.5, 2.5, 3, 7)
    assert second.ended is None
