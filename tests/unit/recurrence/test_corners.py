"""Corners of the rules: ends, positions, leap days, weeks, dates added and left out, far years."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from holdfast.recurrence import Schedule

from .dates import LONG_AGO, days, local_runs, utc

BERLIN = "Europe/Berlin"
FIRST_RUNS = [
    # literal days are skipped where a month lacks them
    ("FREQ=MONTHLY", "2026-01-31T09:00", "2026 Jan 31; Mar 31; May 31; Jul 31; Aug 31"),
    ("FREQ=MONTHLY;BYMONTHDAY=30", "2026-01-01T09:00", "2026 Jan 30; Mar 30; Apr 30"),
    ("FREQ=MONTHLY;BYMONTHDAY=-1", "2026-01-01T09:00", "2026 Jan 31; Feb 28; Mar 31"),
    (
        "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1",
        "2028-01-01T09:00",
        "2028 Jan 31; Feb 29; Mar 31",
    ),
    ("FREQ=MONTHLY;BYMONTHDAY=-31", "2026-01-01T09:00", "2026 Jan 1; Mar 1; May 1"),
    ("FREQ=MONTHLY;BYDAY=5MO", "2026-01-01T09:00", "2026 Mar 30; Jun 29; Aug 31; Nov 30"),
    ("FREQ=MONTHLY;BYDAY=-5SU", "2026-01-01T09:00", "2026 Mar 1; May 3; Aug 2; Nov 1"),
    # leap days
    ("FREQ=YEARLY", "2024-02-29T09:00", "2024 Feb 29 | 2028 Feb 29 | 2032 Feb 29"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "2097-01-01T09:00", "2104 Feb 29 | 2108 Feb 29"),
    ("FREQ=YEARLY;BYYEARDAY=366", "2025-01-01T09:00", "2028 Dec 31 | 2032 Dec 31"),
    ("FREQ=YEARLY;BYYEARDAY=-366", "2025-01-01T09:00", "2028 Jan 1 | 2032 Jan 1"),
    ("FREQ=YEARLY;BYYEARDAY=60", "2027-01-01T09:00", "2027 Mar 1 | 2028 Feb 29 | 2029 Mar 1"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1", "2027-01-01T09:00", "2027 Feb 28 | 2028 Feb 29"),
    (
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "2000-01-01T09:00",
        "2016 Feb 29 | 2044 Feb 29 | 2072 Feb 29 | 2112 Feb 29",
    ),
    ("FREQ=YEARLY;INTERVAL=3", "2024-02-29T09:00", "2024 Feb 29 | 2036 Feb 29 | 2048 Feb 29"),
    ("FREQ=DAILY;INTERVAL=1461", "2024-02-29T09:00", "2024 Feb 29 | 2028 Feb 29 | 2032 Feb 29"),
    ("FREQ=MONTHLY;INTERVAL=12", "2024-02-29T09:00", "2024 Feb 29 | 2028 Feb 29"),
    # the start is a run only if it matches
    ("FREQ=WEEKLY;BYDAY=MO", "2026-01-07T09:00", "2026 Jan 12,19"),
    ("FREQ=MONTHLY;BYMONTHDAY=1", "2026-01-15T09:00", "2026 Feb 1; Mar 1"),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2026-01-07T09:00", "2026 Jan 19; Feb 2"),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "2026-01-07T09:00", "2026 Jan 9,19,23"),
    # positions look at the whole period, also at the first one
    ("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1", "2026-01-07T09:00", "2026 Jan 12,19"),
    ("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", "2026-01-07T09:00", "2026 Jan 7,14"),
    ("FREQ=WEEKLY;BYDAY=SU,MO;BYSETPOS=1;WKST=SU", "2026-01-07T09:00", "2026 Jan 11,18"),
    ("FREQ=WEEKLY;BYDAY=SU,MO;BYSETPOS=1;WKST=MO", "2026-01-07T09:00", "2026 Jan 12,19"),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1", "2026-01-15T09:00", "2026 Feb 2; Mar 2"),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "2026-01-15T09:00", "2026 Jan 30; Feb 27"),
    ("FREQ=YEARLY;BYDAY=MO;BYSETPOS=-1", "2026-01-01T09:00", "2026 Dec 28 | 2027 Dec 27"),
    ("FREQ=YEARLY;BYMONTH=1,12;BYDAY=FR;BYSETPOS=1,-1", "2026-06-01T09:00", "2026 Dec 25 | 2027 Jan 1"),
    ("FREQ=MONTHLY;BYDAY=TU,TH;BYSETPOS=3,3,-1", "2026-01-01T09:00", "2026 Jan 8,29; Feb 10,26"),
    # week numbers, also over the end of the year
    ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", "2024-06-01T09:00", "2024 Dec 30 | 2025 Dec 29 | 2027 Jan 4"),
    ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=TH", "2015-01-01T09:00", "2015 Dec 31 | 2020 Dec 31"),
    ("FREQ=YEARLY;BYWEEKNO=-1;BYDAY=SU", "2020-01-02T09:00", "2021 Jan 3 | 2022 Jan 2 | 2023 Jan 1"),
    ("FREQ=YEARLY;BYWEEKNO=1;WKST=SU;BYDAY=SU", "2026-01-02T09:00", "2026 Jan 4 | 2027 Jan 3"),
    ("FREQ=YEARLY;BYWEEKNO=10", "2026-01-07T09:00", "2026 Mar 4 | 2027 Mar 10"),
    # numbered weekdays, in the year and in the month
    ("FREQ=YEARLY;BYDAY=1MO,-1FR", "2026-01-01T09:00", "2026 Jan 5; Dec 25 | 2027 Jan 4; Dec 31"),
    ("FREQ=YEARLY;BYDAY=53TH", "2025-01-01T09:00", "2026 Dec 31 | 2032 Dec 30"),
    ("FREQ=YEARLY;BYMONTH=3,10;BYDAY=-1SU", "2026-01-01T09:00", "2026 Mar 29; Oct 25 | 2027 Mar 28"),
    ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "2026-01-01T09:00", "2026 Nov 26 | 2027 Nov 25"),
    ("FREQ=MONTHLY;BYMONTH=1,7;BYDAY=2TU", "2026-01-01T09:00", "2026 Jan 13; Jul 14 | 2027 Jan 12"),
    ("FREQ=MONTHLY;BYDAY=MO,1TU", "2026-01-01T09:00", "2026 Jan 5,6,12,19,26; Feb 2,3"),
    ("FREQ=YEARLY;BYMONTHDAY=15", "2026-01-01T09:00", "2026 Jan 15; Feb 15; Mar 15"),
    ("FREQ=YEARLY;BYMONTHDAY=1;BYDAY=MO", "2026-01-01T09:00", "2026 Jun 1 | 2027 Feb 1; Mar 1"),
    ("FREQ=YEARLY;BYYEARDAY=1,100;BYDAY=WE,TH", "2026-01-01T09:00", "2026 Jan 1 | 2030 Apr 10"),
    # narrowed days
    ("FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR", "2026-01-02T09:00", "2026 Jan 2,5,6"),
    ("FREQ=DAILY;INTERVAL=3;BYDAY=MO", "2026-01-01T09:00", "2026 Jan 19; Feb 9; Mar 2"),
    ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29", "2026-01-01T09:00", "2028 Feb 29 | 2032 Feb 29"),
    ("FREQ=WEEKLY;BYDAY=MO;BYMONTH=1", "2026-01-20T09:00", "2026 Jan 26 | 2027 Jan 4"),
    ("FREQ=WEEKLY;INTERVAL=52;BYMONTH=6", "2026-01-05T09:00", "2177 Jun 30 | 2178 Jun 29"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "start", "expected"), FIRST_RUNS)
def test_first_runs(rule: str, start: str, expected: str) -> None:
    wanted = days(expected)

    assert local_runs(Schedule.rrule(rule, dtstart=start, tz=BERLIN), len(wanted)) == wanted


@pytest.mark.parametrize(
    ("rule", "start", "expected"),
    [
        ("FREQ=HOURLY;BYMINUTE=0,30", "2026-01-01T09:10", ["09:30", "10:00", "10:30"]),
        ("FREQ=HOURLY;INTERVAL=3;BYMINUTE=5", "2026-01-01T09:10", ["12:05", "15:05", "18:05"]),
        ("FREQ=HOURLY;BYMINUTE=0,15,30;BYSETPOS=-1", "2026-01-01T09:00", ["09:30", "10:30"]),
        ("FREQ=MINUTELY;BYSECOND=0,30", "2026-01-01T09:00", ["09:00", "09:00:30", "09:01"]),
        ("FREQ=HOURLY;BYSECOND=15", "2026-01-01T09:10", ["09:10:15", "10:10:15"]),
        ("FREQ=SECONDLY;INTERVAL=45", "2026-01-01T09:00", ["09:00", "09:00:45", "09:01:30"]),
        ("FREQ=SECONDLY;BYSECOND=59;BYMINUTE=59", "2026-01-01T09:00", ["09:59:59", "10:59:59"]),
        ("FREQ=MINUTELY;INTERVAL=7;BYMINUTE=0", "2026-01-01T09:00", ["09:00", "16:00", "23:00"]),
        ("FREQ=DAILY;BYHOUR=9,17;BYMINUTE=0,30", "2026-01-01T09:15", ["09:30", "17:00", "17:30"]),
        ("FREQ=DAILY;BYHOUR=9,12,17;BYSETPOS=2", "2026-01-01T09:00", ["12:00"]),
    ],
)
def test_times_of_one_day(rule: str, start: str, expected: list[str]) -> None:
    schedule = Schedule.rrule(rule, dtstart=start, tz=BERLIN)

    found = [run.removeprefix("2026-01-01T") for run in local_runs(schedule, len(expected))]

    assert found == expected


@pytest.mark.parametrize(
    ("until", "last"),
    [
        ("20260105T080000Z", "2026-01-05T09:00"),
        ("20260105T075959Z", "2026-01-04T09:00"),
        ("20260105T090000", "2026-01-05T09:00"),
        ("20260105T085959", "2026-01-04T09:00"),
        ("20260105", "2026-01-05T09:00"),
    ],
)
def test_until_is_inclusive(until: str, last: str) -> None:
    schedule = Schedule.rrule(f"FREQ=DAILY;UNTIL={until}", dtstart="2026-01-01T09:00", tz=BERLIN)

    assert local_runs(schedule)[-1] == last


def test_until_as_a_date_lasts_to_the_local_end_of_that_day() -> None:
    rule = "FREQ=DAILY;BYHOUR=23;BYMINUTE=30;UNTIL=20260105"
    west = Schedule.rrule(rule, dtstart="2026-01-01T00:00", tz="America/Los_Angeles")
    east = Schedule.rrule(rule, dtstart="2026-01-01T00:00", tz="Pacific/Kiritimati")

    assert local_runs(west)[-1] == local_runs(east)[-1] == "2026-01-05T23:30"


def test_count_counts_matches_before_exclusions() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;COUNT=5",
        dtstart="2026-01-01T09:00",
        tz=BERLIN,
        exdate=["2026-01-02T09:00", "2026-01-04T08:00:00Z", "2026-01-09T09:00"],
    )

    assert local_runs(schedule) == days("2026 Jan 1,3,5")


def test_a_rule_that_ended_has_no_next_run() -> None:
    schedule = Schedule.rrule("FREQ=DAILY;COUNT=2", dtstart="2026-01-01T09:00")

    assert schedule.next_after(utc("2026-01-02T09:00")) is None
    assert schedule.next_after(utc("2500-01-01")) is None


def test_skipping_the_only_run_leaves_none() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;COUNT=1", dtstart="2026-01-01T09:00", exdate=["2026-01-01"]
    )

    assert schedule.next_after(LONG_AGO) is None


def test_several_rules_are_a_union_and_meet_once() -> None:
    schedule = Schedule.rrule(
        "RRULE:FREQ=WEEKLY;BYDAY=MO\nRRULE:FREQ=MONTHLY;BYMONTHDAY=5;COUNT=2",
        dtstart="2026-01-01T09:00",
        tz=BERLIN,
    )

    assert local_runs(schedule, 7) == days("2026 Jan 5,12,19,26; Feb 2,5,9")


def test_exdate_wins_over_rdate_and_takes_instants_wall_times_and_days() -> None:
    schedule = Schedule.rrule(
        "FREQ=DAILY;BYHOUR=9,17;COUNT=8",
        dtstart="2026-01-01T09:00",
        tz=BERLIN,
        rdate=[
            "2026-01-02T12:00",
            "2026-01-03T12:00",
            datetime(2026, 1, 10, 12),
            date(2026, 1, 20),
        ],
        exdate=[date(2026, 1, 2), "2026-01-01T16:00:00Z", "20260103T120000"],
    )

    assert local_runs(schedule) == [
        "2026-01-01T09:00",
        "2026-01-03T09:00",
        "2026-01-03T17:00",
        "2026-01-04T09:00",
        "2026-01-04T17:00",
        "2026-01-10T12:00",
        "2026-01-20T09:00",
    ]


def test_a_block_may_have_everything() -> None:
    schedule = Schedule.rrule(
        "DTSTART;TZID=Europe/Berlin:20260101T090000\r\n"
        "RRULE:FREQ=WEEKLY;BYDAY=TH;\r\n COUNT=3\r\n"
        "RDATE;TZID=America/New_York:20260102T030000\r\n"
        "RDATE;VALUE=DATE:20260103\r\n"
        "EXDATE:20260108T080000Z\r\n"
    )

    assert local_runs(schedule) == days("2026 Jan 1,2,3,15")


def test_dates_alone_run_with_the_start() -> None:
    schedule = Schedule.rrule("DTSTART:20260101T090000Z\nRDATE:20260105T090000Z")

    assert local_runs(schedule) == days("2026 Jan 1,5")
    assert Schedule.from_json(schedule.to_json()) == schedule


def test_excluded_days_of_a_rule_of_seconds_cost_no_walk() -> None:
    schedule = Schedule.rrule(
        "FREQ=SECONDLY",
        dtstart="2026-01-01T00:00",
        tz=BERLIN,
        exdate=[date(2026, 1, day) for day in range(1, 32)],
    )

    assert local_runs(schedule, 1) == ["2026-02-01T00:00"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=MINUTELY", "2034-03-20T10:01"),
        ("FREQ=SECONDLY;INTERVAL=7", "2034-03-20T10:00:02"),
        ("FREQ=DAILY", "2034-03-21T09:00"),
        ("FREQ=MONTHLY;BYDAY=-1FR", "2034-03-31T09:00"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "2036-02-29T09:00"),
    ],
)
def test_far_from_the_start(rule: str, expected: str) -> None:
    schedule = Schedule.rrule(rule, dtstart="2026-01-01T09:00", tz=BERLIN)

    assert local_runs(schedule, 1, after=utc("2034-03-20T09:00")) == [expected]


@pytest.mark.parametrize("start", ["0002-01-01T00:00", "1582-10-10T12:00", "1883-11-18T12:00"])
@pytest.mark.parametrize("freq", ["SECONDLY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
@pytest.mark.parametrize("tz", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_the_ends_of_the_calendar_are_no_crash(start: str, freq: str, tz: str) -> None:
    schedule = Schedule.rrule(f"FREQ={freq}", dtstart=start, tz=tz)

    assert schedule.next_after(LONG_AGO) is not None
    late = schedule.next_after(utc("9999-06-01"))
    assert late is None or late.year == 9999
    assert schedule.next_after(utc("9999-12-31T23:59:59")) is None


def test_max_runs_and_until_bound_the_whole_schedule() -> None:
    rules = "RRULE:FREQ=WEEKLY;BYDAY=MO\nRRULE:FREQ=WEEKLY;BYDAY=TH"
    counted = Schedule.rrule(
        rules, dtstart="2026-01-01T09:00", max_runs=4, exdate=[date(2026, 1, 5)]
    )
    ended = Schedule.rrule(rules, dtstart="2026-01-01T09:00", until=date(2026, 1, 8))

    assert local_runs(counted) == days("2026 Jan 1,8,12")
    assert local_runs(ended) == days("2026 Jan 1,5,8")


def test_every_counts_from_its_start_and_once_runs_once() -> None:
    every = Schedule.every("90m", start="2026-03-29T00:00", tz=BERLIN, max_runs=3)
    once = Schedule.once("2026-03-29T02:30", tz=BERLIN)

    assert local_runs(every) == ["2026-03-29T00:00", "2026-03-29T01:30", "2026-03-29T04:00"]
    assert local_runs(once) == ["2026-03-29T03:30"]


def test_without_a_start_intervals_are_on_the_clock() -> None:
    assert Schedule.every("15m").next_after(utc("2026-01-01T10:07")) == utc("2026-01-01T10:15")
    assert Schedule.rrule("FREQ=WEEKLY;BYHOUR=9").next_after(utc("2026-01-01")) == utc(
        "2026-01-05T09:00"
    )


def test_between_includes_its_begin_and_not_its_end() -> None:
    schedule = Schedule.rrule("FREQ=DAILY", dtstart="2026-01-01T09:00")

    assert schedule.between(utc("2026-01-02T09:00"), utc("2026-01-04T09:00")) == [
        utc("2026-01-02T09:00"),
        utc("2026-01-03T09:00"),
    ]


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        (Schedule.every("90m"), 5400),
        (Schedule.rrule("FREQ=SECONDLY;INTERVAL=5"), 5),
        (Schedule.rrule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,1"), 60),
        (Schedule.rrule("FREQ=DAILY;BYHOUR=9", tz=BERLIN), 23 * 3600),
        (Schedule.rrule("FREQ=DAILY;BYHOUR=9", rdate=["2026-05-01T09:00:10"]), 10),
        (Schedule.cron("*/5 * * * *"), 300),
        (Schedule.rrule("FREQ=DAILY;COUNT=1", dtstart="2026-01-01T09:00"), None),
        (Schedule.once("2026-01-01T09:00"), None),
    ],
)
def test_the_shortest_gap(schedule: Schedule, seconds: int | None) -> None:
    assert schedule.shortest_gap() == seconds
