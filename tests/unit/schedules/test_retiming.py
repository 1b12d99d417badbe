"""Another tz database: no run is lost, and none is run twice.

What the other database made of a series is written into it here: the instants are its own, the wall
times are those of the rule.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.schedules.series import series_of, utc

from holdfast.recurrence import tz_version
from holdfast.schedules.deciding import decide
from holdfast.schedules.occurrence import Origin
from holdfast.schedules.retiming import retimed
from holdfast.schedules.series import Overlap, Series, Status

OTHER = "another database"


def made_elsewhere(
    rule: str, next_at: str, wall: str, last_at: str | None, *, tz: str = "Europe/Berlin"
) -> Series:
    return series_of(
        rule,
        next_at,
        tz=tz,
        next_wall=wall.replace(" ", "T") + ":00",
        last_at=None if last_at is None else utc(last_at),
        tz_version=OTHER,
        overlap=Overlap.ALLOW,
    )


# Berlin is at UTC+1 on these days of January 2026.
MOVED = {
    "the zone was an hour ahead": (
        made_elsewhere("0 9 * * *", "2026-01-13 07:00", "2026-01-13 09:00", "2026-01-12 07:00"),
        "2026-01-13 08:00",
    ),
    "the zone was an hour behind": (
        made_elsewhere("0 9 * * *", "2026-01-13 09:00", "2026-01-13 09:00", "2026-01-12 09:00"),
        "2026-01-13 08:00",
    ),
    "several a day, two hours ahead: 10:00 was fired, 9:00 comes not again": (
        made_elsewhere(
            "0 8,9,10 * * *", "2026-01-13 06:00", "2026-01-13 08:00", "2026-01-12 08:00"
        ),
        "2026-01-13 07:00",
    ),
    "several a day, in the middle of them": (
        made_elsewhere(
            "0 8,9,10 * * *", "2026-01-12 08:00", "2026-01-12 10:00", "2026-01-12 07:00"
        ),
        "2026-01-12 09:00",
    ),
    "several a day, behind: those before the last one by this database are not lost": (
        made_elsewhere(
            "0 8,9,10 * * *", "2026-01-12 10:00", "2026-01-12 09:00", "2026-01-12 09:00"
        ),
        "2026-01-12 08:00",
    ),
    "never run, resumed or edited lately": (
        made_elsewhere("0 9 * * *", "2026-01-13 07:00", "2026-01-13 09:00", None),
        "2026-01-13 08:00",
    ),
    "nothing moved": (
        made_elsewhere("0 9 * * *", "2026-01-13 08:00", "2026-01-13 09:00", "2026-01-12 08:00"),
        "2026-01-13 08:00",
    ),
    "once": (
        made_elsewhere("2026-01-13T09:00", "2026-01-13 07:00", "2026-01-13 09:00", None),
        "2026-01-13 08:00",
    ),
    "a day that the other database left out of the calendar": (
        made_elsewhere("0 9 * * *", "2026-01-14 08:00", "2026-01-13 09:00", "2026-01-12 08:00"),
        "2026-01-13 08:00",
    ),
    "hourly: elapsed time is known by its instant": (
        made_elsewhere("0 * * * *", "2026-01-12 09:00", "2026-01-12 11:00", "2026-01-12 08:00"),
        "2026-01-12 09:00",
    ),
    "hourly, the wall clock behind": (
        made_elsewhere("0 * * * *", "2026-01-12 09:00", "2026-01-12 09:00", "2026-01-12 08:00"),
        "2026-01-12 09:00",
    ),
    "every 90 minutes from a start that moved": (
        made_elsewhere("every 90m", "2026-01-12 09:10", "2026-01-12 10:10", "2026-01-12 07:40"),
        "2026-01-12 09:30",
    ),
}


@pytest.mark.parametrize("case", MOVED)
def test_the_same_run_comes_next_at_its_instant_of_this_database(case: str) -> None:
    series, expected = MOVED[case]

    moved = retimed(series)

    assert moved.next_at == utc(expected)
    assert moved.tz_version == tz_version()
    assert moved.status is Status.ACTIVE


def test_a_run_that_this_database_puts_into_the_past_is_fired_at_once_and_only_once() -> None:
    series, _ = MOVED["the zone was an hour behind"]
    now = utc("2026-01-13 08:30")

    first = decide(series, now, {})
    second = decide(first.series, now, {})

    assert [(fire.at, fire.origin) for fire in first.fires] == [
        (utc("2026-01-13 08:00"), Origin.CATCH_UP)
    ]
    assert first.series.next_at == utc("2026-01-14 08:00")
    assert second.fires == ()


def test_who_takes_a_series_of_another_database_too_early_puts_it_back() -> None:
    series, _ = MOVED["the zone was an hour ahead"]

    decision = decide(series, utc("2026-01-13 07:00"), {})

    assert decision.fires == ()
    assert decision.series.next_at == utc("2026-01-13 08:00")


def test_two_databases_in_one_fleet_fire_every_day_once() -> None:
    """They take turns; the other one is an hour ahead."""
    series, _ = MOVED["the zone was an hour ahead"]
    days = list[str]()

    for day in range(13, 20):
        if day % 2:  # as the other database left it
            at = utc(f"2026-01-{day} 07:00")
            wall = f"2026-01-{day}T09:00:00"
            series = replace(series, next_at=at, next_wall=wall, tz_version=OTHER)
        decision = decide(series, utc(f"2026-01-{day} 08:00"), {})
        days += [f"{fire.at:%d}" for fire in decision.fires]
        series = decision.series

    assert days == [str(day) for day in range(13, 20)]


def test_a_time_that_the_clock_skips_is_known_by_the_time_that_was_meant() -> None:
    nightly = series_of("30 2 * * *", "2026-03-29 01:30", tz="Europe/Berlin")

    assert nightly.next_wall == "2026-03-29T02:30:00"


def test_of_two_equal_wall_times_the_second_is_not_the_first() -> None:
    rule = {"kind": "cron", "cron": "30 2 * * *", "tz": "Europe/Berlin", "overlap": "both"}
    first, second = "2026-10-25 00:30", "2026-10-25 01:30"
    series = series_of(rule, second, last_at=utc(first), tz_version=OTHER)

    assert retimed(series).next_at == utc(second)


def test_what_is_over_stays_over() -> None:
    series = replace(series_of("0 9 * * *", "2026-01-13 08:00"), next_at=None)

    assert retimed(replace(series, tz_version=OTHER)) == series
