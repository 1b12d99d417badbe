"""Clock changes: gaps, overlaps, and zones with odd ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from holdfast.recurrence import Schedule

from .dates import LONG_AGO, local_runs, utc
from .reference import expand

BERLIN = "Europe/Berlin"


def test_a_time_in_the_gap_moves_behind_it_and_back_the_next_day() -> None:
    schedule = Schedule.rrule("FREQ=DAILY;COUNT=3", dtstart="2026-03-28T02:30", tz=BERLIN)

    assert local_runs(schedule, offsets=True) == [
        "2026-03-28T02:30+01:00",
        "2026-03-29T03:30+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_a_first_run_in_the_gap_keeps_the_time_that_was_meant() -> None:
    schedule = Schedule.rrule("FREQ=DAILY;COUNT=2", dtstart="2026-03-29T02:30", tz=BERLIN)

    assert local_runs(schedule) == ["2026-03-29T03:30", "2026-03-30T02:30"]


def test_gap_skip_leaves_the_run_out_and_count_does_not_count_it() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;COUNT=3", dtstart="2026-03-28T02:30", tz=BERLIN, gap="skip"
    )

    assert local_runs(schedule) == ["2026-03-28T02:30", "2026-03-30T02:30", "2026-03-31T02:30"]


@pytest.mark.parametrize(
    ("overlap", "offsets"),
    [("first", ["+02:00"]), ("second", ["+01:00"]), ("both", ["+02:00", "+01:00"])],
)
def test_a_time_that_comes_twice(overlap: str, offsets: list[str]) -> None:
    schedule = Schedule.rrule("FREQ=DAILY", dtstart="2026-10-24T02:30", tz=BERLIN, overlap=overlap)

    runs = local_runs(schedule, 4, offsets=True)

    assert [run for run in runs if run.startswith("2026-10-25")] == [
        f"2026-10-25T02:30{offset}" for offset in offsets
    ]


def test_both_passes_of_several_times_come_in_order() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;BYHOUR=2;BYMINUTE=10,30,50;COUNT=3",
        dtstart="2026-10-25T00:00",
        tz=BERLIN,
        overlap="both",
    )

    assert local_runs(schedule, offsets=True) == [
        *(f"2026-10-25T02:{minute}+02:00" for minute in (10, 30, 50)),
        *(f"2026-10-25T02:{minute}+01:00" for minute in (10, 30, 50)),
    ]


def test_two_runs_that_fall_together_are_one() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30", dtstart="2026-03-29T00:00", tz=BERLIN
    )

    assert local_runs(schedule, 3) == [
        "2026-03-29T03:30",
        "2026-03-30T02:30",
        "2026-03-30T03:30",
    ]


def test_a_moved_run_may_come_after_a_later_wall_time() -> None:
    schedule = Schedule.rrule(
        "RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30\nRRULE:FREQ=DAILY;BYHOUR=3;BYMINUTE=10",
        dtstart="2026-03-29T00:00",
        tz=BERLIN,
    )

    assert local_runs(schedule, 3) == [
        "2026-03-29T03:10",
        "2026-03-29T03:30",
        "2026-03-30T02:30",
    ]
    assert schedule.next_after(utc("2026-03-29T01:15")) == utc("2026-03-29T01:30")


def test_hours_are_elapsed_and_days_are_not() -> None:
    hours = Schedule.rrule("FREQ=HOURLY;INTERVAL=24", dtstart="2026-03-28T10:00", tz=BERLIN)
    days = Schedule.rrule("FREQ=DAILY", dtstart="2026-03-28T10:00", tz=BERLIN)

    assert local_runs(hours, 3) == ["2026-03-28T10:00", "2026-03-29T11:00", "2026-03-30T11:00"]
    assert local_runs(days, 3) == ["2026-03-28T10:00", "2026-03-29T10:00", "2026-03-30T10:00"]


@pytest.mark.parametrize("start", ["2026-03-28T22:00", "2026-10-24T22:00"])
@pytest.mark.parametrize(
    ("rule", "minutes"),
    [("FREQ=HOURLY", 60), ("FREQ=MINUTELY;INTERVAL=30", 30), ("FREQ=HOURLY;INTERVAL=6", 360)],
)
def test_short_steps_stay_equal_over_a_clock_change(start: str, rule: str, minutes: int) -> None:
    schedule = Schedule.rrule(rule, dtstart=start, tz=BERLIN)

    runs = schedule.between(LONG_AGO, utc("2027-01-01"), limit=40)

    assert {late - early for early, late in pairwise(runs)} == {timedelta(minutes=minutes)}


def test_a_filter_on_the_hour_passes_both_passes_and_no_gap() -> None:
    rule = "FREQ=MINUTELY;INTERVAL=30;BYHOUR=2"
    autumn = Schedule.rrule(rule, dtstart="2026-10-25T00:00", tz=BERLIN)
    spring = Schedule.rrule(rule, dtstart="2026-03-29T00:00", tz=BERLIN)

    assert local_runs(autumn, 5, offsets=True) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
        "2026-10-26T02:00+01:00",
    ]
    assert local_runs(spring, 1) == ["2026-03-30T02:00"]


def test_steps_of_24_hours_meet_a_summer_hour_only_in_summer() -> None:
    schedule = Schedule.rrule(
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=10", dtstart="2026-01-01T09:00", tz=BERLIN
    )

    assert local_runs(schedule, 1) == ["2026-03-29T10:00"]


def test_weekdays_are_those_of_the_local_date() -> None:
    schedule = Schedule.rrule(
        "FREQ=WEEKLY;BYDAY=MO", dtstart="2026-01-05T20:00", tz="America/Los_Angeles"
    )

    assert schedule.next_after(LONG_AGO) == utc("2026-01-06T04:00")


def test_a_missing_day_moves_to_the_next_and_meets_its_run() -> None:
    # Samoa had no 30 December 2011.
    schedule = Schedule.rrule("FREQ=DAILY;COUNT=5", dtstart="2011-12-28T09:00", tz="Pacific/Apia")
    skipping = Schedule.rrule(
        "FREQ=DAILY;COUNT=4", dtstart="2011-12-28T09:00", tz="Pacific/Apia", gap="skip"
    )
    dates = ["2011-12-28T09:00", "2011-12-29T09:00", "2011-12-31T09:00", "2012-01-01T09:00"]

    assert local_runs(schedule) == dates
    assert local_runs(skipping) == dates


def test_a_gap_of_half_an_hour() -> None:
    # Lord Howe moves by 30 minutes, at 02:00 on 5 October 2025.
    schedule = Schedule.rrule(
        "FREQ=DAILY;COUNT=3", dtstart="2025-10-04T02:15", tz="Australia/Lord_Howe"
    )

    assert local_runs(schedule, offsets=True) == [
        "2025-10-04T02:15+10:30",
        "2025-10-05T02:45+11:00",
        "2025-10-06T02:15+11:00",
    ]


def test_a_gap_of_two_hours() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;COUNT=2", dtstart="2025-03-29T02:30", tz="Antarctica/Troll"
    )

    assert local_runs(schedule) == ["2025-03-29T02:30", "2025-03-30T04:30"]


@pytest.mark.parametrize(
    ("tz", "day", "expected"),
    [
        ("America/Sao_Paulo", "2018-11-03", "2018-11-04T01:00"),
        ("Asia/Beirut", "2024-03-30", "2024-03-31T01:00"),
        ("Africa/Cairo", "2024-04-25", "2024-04-26T01:00"),
    ],
)
def test_a_midnight_that_is_missing(tz: str, day: str, expected: str) -> None:
    schedule = Schedule.rrule("FREQ=DAILY;COUNT=2", dtstart=f"{day}T00:00", tz=tz)

    assert local_runs(schedule) == [f"{day}T00:00", expected]


@pytest.mark.parametrize(
    ("tz", "first"),
    [
        ("Australia/Lord_Howe", datetime(2024, 1, 1)),
        ("America/Sao_Paulo", datetime(2017, 6, 1)),
        ("Asia/Beirut", datetime(2023, 1, 1)),
        ("Africa/Cairo", datetime(2023, 1, 1)),
        ("Europe/Dublin", datetime(2024, 1, 1)),
        ("Pacific/Apia", datetime(2010, 9, 1)),
        ("Africa/Casablanca", datetime(2024, 1, 1)),
        ("Antarctica/Troll", datetime(2024, 1, 1)),
        ("America/Nuuk", datetime(2023, 1, 1)),
    ],
)
@pytest.mark.parametrize(
    ("rule", "hours"),
    [("FREQ=DAILY", (0, 2, 23)), ("FREQ=DAILY;BYHOUR=0,1,2,3,22,23;BYMINUTE=0,45", (0,))],
)
def test_two_years_in_zones_with_odd_clocks(
    tz: str, first: datetime, rule: str, hours: tuple[int, ...]
) -> None:
    for hour in hours:
        start = first.replace(hour=hour, minute=30)
        for gap, overlap in (("shift", "first"), ("skip", "both"), ("shift", "second")):
            schedule = Schedule.rrule(rule, dtstart=start, tz=tz, gap=gap, overlap=overlap)
            expected = expand(rule, start, tz, 730, gap=gap, overlap=overlap)
            end = (start + timedelta(days=728)).replace(tzinfo=ZoneInfo(tz))

            assert schedule.between(LONG_AGO, end, limit=20_000) == [
                each for each in expected if each < end
            ]


def test_a_start_in_the_second_pass_is_where_elapsed_time_begins() -> None:
    start = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo(BERLIN))
    schedule = Schedule.rrule("FREQ=HOURLY;INTERVAL=2", dtstart=start)

    assert schedule.next_after(LONG_AGO) == utc("2026-10-25T01:30")
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert Schedule.from_json(schedule.to_json()).next_after(LONG_AGO) == utc("2026-10-25T01:30")
