"""Where a new task stands in line, from the depths of its queue."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.core.priority import Aging
from holdfast.core.stats import Depth, place_in_line
from holdfast.core.task import Priority

DEPTHS = [
    Depth(priority=Priority.LOW, ready=4, oldest_seconds=100.0),
    Depth(priority=Priority.NORMAL, ready=3, oldest_seconds=1195.0),
    Depth(priority=Priority.HIGH, ready=2, oldest_seconds=5.0),
]


def place(priority: Priority, since: Mapping[Priority, int]) -> int | None:
    return place_in_line(priority, DEPTHS, since, Aging(), at_most_old=3.0)


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (Priority.LOW, 4 + 3 + 2 + 1),
        (Priority.NORMAL, 3 + 2 + 1),
        (Priority.HIGH, 2 + 1),
        (Priority.CRITICAL, 1),
    ],
)
def test_a_new_task_stands_behind_its_own_and_higher_priorities(
    priority: Priority, expected: int
) -> None:
    assert place(priority, {priority: 1}) == expected


def test_what_was_added_since_counts_by_its_priority() -> None:
    assert place(Priority.HIGH, {Priority.HIGH: 3, Priority.LOW: 50, Priority.CRITICAL: 2}) == 7


def test_the_place_is_not_known_once_a_lower_priority_may_have_grown_as_urgent() -> None:
    old = [Depth(priority=Priority.NORMAL, ready=1, oldest_seconds=1198.0)]

    assert place_in_line(Priority.HIGH, old, {}, Aging(), at_most_old=3.0) is None
