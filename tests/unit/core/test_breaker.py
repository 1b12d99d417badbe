"""Breakers: when they open, half-open and close."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.breaker import (
    BreakerRecord,
    BreakerRule,
    BreakerState,
    Counts,
    counted,
    half_opened,
    is_needless,
    probed,
    went_well,
)
from holdfast.core.gate import UNBOUNDED
from holdfast.core.lifecycle import Failed, Outcome, Released, Succeeded, TimedOut
from holdfast.core.task import TaskError, TaskId

SECOND = 1_000_000
RULE = BreakerRule(failures=0.5, window=60.0, at_least=10, cool_down=30.0)
ERROR = TaskError(type="OSError", message="gone")


def fresh(**given: Any) -> BreakerRecord:
    return BreakerRecord(**{"rule": RULE, "counts": {}, **given})


def after(*ends: tuple[int, Counts]) -> BreakerRecord:
    """What these come to, each told at its own second."""
    record = fresh()
    for second, n in ends:
        record = counted(record, [(second * SECOND, n)], second * SECOND)
    return record


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        ([(100, (0, 10)), (102, (0, 0))], BreakerState.OPEN),
        ([(100, (5, 5)), (102, (0, 0))], BreakerState.OPEN),
        ([(100, (6, 5)), (102, (0, 0))], BreakerState.CLOSED),
        ([(100, (0, 9)), (102, (0, 0))], BreakerState.CLOSED),
        ([(100, (0, 10))], BreakerState.CLOSED),  # others were not heard yet
        ([(100, (0, 10)), (101, (11, 0)), (102, (0, 0))], BreakerState.CLOSED),
        ([(100, (0, 9)), (170, (0, 9)), (172, (0, 0))], BreakerState.CLOSED),  # the first are old
        ([(100, (0, 5)), (150, (0, 5))], BreakerState.OPEN),
    ],
)
def test_it_opens_on_a_share_of_enough_ends_within_the_window(
    ends: list[tuple[int, Counts]], state: BreakerState
) -> None:
    assert after(*ends).state is state


def test_what_it_lets_pass_and_when_to_look_again() -> None:
    opened = after((100, (0, 10)), (102, (0, 0)))
    tried = half_opened(opened, 132 * SECOND)

    assert (opened.capacity, opened.due_in) == (0, 30.0)
    assert (tried.capacity, tried.due_in) == (1, 30.0)
    assert fresh().capacity is None
    assert (fresh(forced=True).capacity, fresh(forced=True).due_in) == (UNBOUNDED, None)


def test_a_probe_closes_it_or_opens_it_again_or_leaves_it_to_another() -> None:
    tried = half_opened(after((100, (0, 10)), (102, (0, 0))), 132 * SECOND)
    tried = tried.trying(TaskId("a"))

    assert tried.trying(TaskId("b")).probe == "a"
    assert is_needless(probed(tried, True, 140 * SECOND))
    assert probed(tried, False, 140 * SECOND).state is BreakerState.OPEN
    assert probed(tried, None, 140 * SECOND).probe is None


def test_ends_while_it_is_open_say_nothing_new() -> None:
    opened = after((100, (0, 10)), (102, (0, 0)))

    assert counted(opened, [(103 * SECOND, (0, 5))], 103 * SECOND) == opened


def test_what_an_operator_said_stays() -> None:
    held = fresh(forced=True)

    assert counted(held, [(0, (0, 99))], 10 * SECOND) == held
    assert fresh().trying(TaskId("a")).probe is None


def test_it_is_needless_once_its_counts_are_old() -> None:
    record = counted(fresh(), [(100 * SECOND, (1, 1))], 100 * SECOND)

    assert not is_needless(record)
    assert is_needless(counted(record, [], 170 * SECOND))


def test_a_record_is_read_as_it_was_written() -> None:
    tried = half_opened(after((100, (0, 10)), (102, (0, 0))), 132 * SECOND).trying(TaskId("a"))
    counting = after((100, (3, 4)))

    assert BreakerRecord.load(tried.dump()) == tried
    assert BreakerRecord.load(counting.dump()) == counting


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (Succeeded(b"1"), True),
        (Failed(ERROR), False),
        (TimedOut(ERROR), False),
        (Failed(TaskError(type="ValueError", message="no", retriable=False)), None),
        (Released(), None),
    ],
)
def test_what_an_end_says_of_what_was_called(outcome: Outcome, says: bool | None) -> None:
    assert went_well(outcome) is says
