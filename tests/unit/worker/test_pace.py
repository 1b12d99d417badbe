"""How much work a worker holds ahead: bounded by time."""

from __future__ import annotations

import pytest

from holdfast.worker.pace import MOST, MOST_BYTES, Pace


def paced(slots: int, occupied: float, computing: float) -> Pace:
    pace = Pace(slots)
    for _ in range(1000):
        pace.ended(occupied, computing)
    return pace


def test_nothing_is_held_ahead_before_anything_was_measured() -> None:
    assert Pace(10).ahead([]) == 0


def test_no_ops_are_held_up_to_the_cap() -> None:
    assert paced(10, 5e-6, 5e-6).ahead([]) == MOST


@pytest.mark.parametrize(
    ("slots", "seconds", "expected"),
    [(10, 0.01, 100), (10, 0.1, 10), (10, 1.0, 1), (10, 10.0, 0), (1, 60.0, 0)],
)
def test_waiting_bodies_are_limited_by_the_slots(slots: int, seconds: float, expected: int) -> None:
    assert paced(slots, seconds, 0.0).ahead([]) == pytest.approx(expected, abs=1)


def test_computing_bodies_are_limited_by_the_one_loop_however_many_slots() -> None:
    assert paced(100, 0.005, 0.005).ahead([]) == pytest.approx(20, abs=1)


def test_a_slot_held_by_a_long_task_is_not_counted_on() -> None:
    pace = paced(2, 0.01, 0.0)

    assert pace.ahead([]) == pytest.approx(20, abs=1)
    assert pace.ahead([30.0]) == pytest.approx(10, abs=1)
    assert pace.ahead([30.0, 30.0]) == 0


def test_large_payloads_are_held_up_to_a_number_of_bytes() -> None:
    pace = paced(10, 5e-6, 5e-6)
    for _ in range(50):
        pace.received(10, 10 * 1024 * 1024)

    assert pace.ahead([]) == pytest.approx(MOST_BYTES / (1024 * 1024), rel=0.1)


def test_the_guess_follows_when_short_tasks_become_long() -> None:
    pace = paced(4, 1e-5, 1e-5)
    assert pace.ahead([]) == MOST

    for _ in range(20):
        pace.ended(10.0, 0.0)
        guess = pace.ahead([])

    assert guess == 0
