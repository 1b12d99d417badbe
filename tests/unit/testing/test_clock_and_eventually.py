"""The tools that tests stand on: a clock that waits for them, and waiting with a deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.testing.clock import FakeClock
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import HEAD_STARTS, new_task, new_tasks, task_id


def test_a_fake_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))

    assert clock.now_us() == clock.now_us() == 1_767_225_600_000_000
    clock.advance(1.5)
    clock.advance(timedelta(microseconds=1))
    assert clock.now == datetime(2026, 1, 1, 0, 0, 1, 500_001, tzinfo=UTC)


def test_a_fake_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="expected a time >= 0"):
        FakeClock().advance(-1)


async def test_eventually_returns_the_first_true_answer() -> None:
    answers = iter([0, None, "", "yes", "later"])

    assert await eventually(lambda: next(answers), every=0) == "yes"


async def test_eventually_waits_for_coroutines_and_through_failed_assertions() -> None:
    asked = 0

    async def probe() -> bool:
        nonlocal asked
        asked += 1
        assert asked > 2
        return True

    assert await eventually(probe, every=0)
    assert asked == 3


async def test_eventually_gives_up_with_the_last_answer() -> None:
    with pytest.raises(AssertionError, match=r"not true within 0.01 s; last answer: \[\]"):
        await eventually(list, within=0.01, every=0.001)


async def test_eventually_gives_up_with_the_last_assertion() -> None:
    def probe() -> bool:
        raise AssertionError("three tasks are missing")

    with pytest.raises(AssertionError, match="three tasks are missing"):
        await eventually(probe, within=0.01, every=0.001)


async def test_eventually_does_not_swallow_other_errors() -> None:
    def probe() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await eventually(probe)


def test_made_ids_grow() -> None:
    ids = [task_id() for _ in range(1000)]

    assert ids == sorted(set(ids))


def test_made_tasks_are_ranked_by_their_priority_unless_told() -> None:
    assert new_task().head_start == HEAD_STARTS["normal"]
    assert new_task(head_start=7).head_start == 7
    assert len({task.id for task in new_tasks(5)}) == 5
