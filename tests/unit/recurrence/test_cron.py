"""Cron lines: fields, names, the day rule, and clock changes."""

from __future__ import annotations

import pytest

from holdfast.recurrence import Schedule

from .dates import days, local_runs, utc

BERLIN = "Europe/Berlin"
MORNING = [
    ("0 9 * * *", "2026 Jan 1,2,3"),
    ("0 9 * * 1-5", "2026 Jan 1,2,5"),
    ("0 9 * * MON-FRI", "2026 Jan 1,2,5"),
    ("0 9 * * 0", "2026 Jan 4,11"),
    ("0 9 * * 7", "2026 Jan 4,11"),
    ("0 9 * * FRI-SUN", "2026 Jan 2,3,4,9"),
    ("0 9 * * 5-7", "2026 Jan 2,3,4,9"),
    ("0 9 1,15 * *", "2026 Jan 1,15; Feb 1"),
    ("0 9 */10 * *", "2026 Jan 1,11,21,31; Feb 1"),
    ("0 9 L * *", "2026 Jan 31; Feb 28; Mar 31"),
    ("0 9 L,15 * *", "2026 Jan 15,31; Feb 15,28"),
    ("0 9 * * 5L", "2026 Jan 30; Feb 27"),
    ("0 9 * * FRIL", "2026 Jan 30; Feb 27"),
    ("0 9 * * 5#3", "2026 Jan 16; Feb 20"),
    ("0 9 * * 5#5", "2026 Jan 30; May 29"),
    ("0 9 * * MON#1,5L", "2026 Jan 5,30; Feb 2,27"),
    ("0 9 15W * *", "2026 Jan 15; Feb 16; Mar 16; Apr 15"),
    ("0 9 1W * *", "2026 Jan 1; Feb 2; Mar 2"),
    ("0 9 31W * *", "2026 Jan 30; Mar 31; May 29"),
    ("0 9 LW * *", "2026 Jan 30; Feb 27; Mar 31"),
    ("0 9 13 * 5", "2026 Jan 2,9,13,16"),
    ("0 9 */2 * 5", "2026 Jan 9,23; Feb 13"),
    ("0 9 13 * *", "2026 Jan 13; Feb 13"),
    ("0 9 ? * 1", "2026 Jan 5,12"),
    ("0 9 29 2 *", "2028 Feb 29 | 2032 Feb 29"),
    ("0 9 29 2 1", "2026 Feb 2,9,16,23 | 2027 Feb 1"),
    ("0 9 1 JAN,JUL *", "2026 Jan 1; Jul 1"),
    ("0 9 1 */4 *", "2026 Jan 1; May 1; Sep 1"),
]


@pytest.mark.parametrize(("line", "expected"), MORNING)
def test_the_days_of_a_line(line: str, expected: str) -> None:
    wanted = days(expected)

    found = local_runs(Schedule.cron(line, tz=BERLIN), len(wanted), after=utc("2025-12-31T22:00"))

    assert found == wanted


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("*/20 * * * *", ["00:00", "00:20", "00:40", "01:00"]),
        ("5/20 * * * *", ["00:05", "00:25", "00:45", "01:05"]),
        ("10-30/10 1 * * *", ["01:10", "01:20", "01:30"]),
        ("0 9-17/4 * * *", ["09:00", "13:00", "17:00"]),
        ("0 */6 * * *", ["00:00", "06:00", "12:00", "18:00"]),
        ("0,30 8,20 * * *", ["08:00", "08:30", "20:00", "20:30"]),
        ("@hourly", ["00:00", "01:00", "02:00"]),
        ("@daily", ["00:00"]),
        ("@Midnight", ["00:00"]),
    ],
)
def test_the_times_of_a_line(line: str, expected: list[str]) -> None:
    schedule = Schedule.cron(line, tz=BERLIN)

    found = local_runs(schedule, len(expected), after=utc("2026-01-01T22:59:59"))

    assert found == [f"2026-01-02T{clock}" for clock in expected]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("@weekly", "2026-01-04T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@annually", "2027-01-01T00:00"),
    ],
)
def test_names_for_rare_lines(name: str, expected: str) -> None:
    assert local_runs(Schedule.cron(name), 1, after=utc("2026-01-01T12:00")) == [expected]


def test_a_fixed_time_is_run_once_in_gap_and_overlap() -> None:
    schedule = Schedule.cron("30 2 * * *", tz=BERLIN)

    assert local_runs(schedule, 2, after=utc("2026-03-28T12:00")) == [
        "2026-03-29T03:30",
        "2026-03-30T02:30",
    ]
    assert local_runs(schedule, 2, after=utc("2026-10-24T12:00"), offsets=True) == [
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_a_wildcard_runs_through_both_passes() -> None:
    after = utc("2026-10-24T23:30")
    hourly = Schedule.cron("30 * * * *", tz=BERLIN)
    halves = Schedule.cron("*/30 2 * * *", tz=BERLIN)

    assert local_runs(hourly, 4, after=after, offsets=True) == [
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:30+01:00",
        "2026-10-25T03:30+01:00",
        "2026-10-25T04:30+01:00",
    ]
    assert local_runs(halves, 4, after=after, offsets=True) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
    ]


def test_bounds_count_from_the_start() -> None:
    schedule = Schedule.cron("0 9 * * 1", tz=BERLIN, start="2026-01-05T09:00", max_runs=3)

    assert local_runs(schedule) == days("2026 Jan 5,12,19")


def test_a_line_round_trips_in_one_spelling() -> None:
    schedule = Schedule.cron("  0 9  * * mon-fri ", tz=BERLIN, until="2027-01-01")

    assert schedule.line == "0 9 * * MON-FRI"
    assert Schedule.from_json(schedule.to_json()) == schedule
