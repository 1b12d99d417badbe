"""Preview rows, stored forms, and which tz database answers."""

from __future__ import annotations

import json
import zoneinfo
from datetime import date, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from holdfast.recurrence import Kind, Schedule, every, forget_zones, rrule, tz_version
from holdfast.recurrence.zones import _system_version

from .dates import LONG_AGO, utc

BERLIN = "Europe/Berlin"


def test_rows_say_what_a_clock_change_did() -> None:
    schedule = Schedule.rrule("FREQ=DAILY", dtstart="2026-03-28T02:30", tz=BERLIN)

    rows = schedule.preview(3)

    assert [row.flags for row in rows] == [(), ("moved_by_gap",), ()]
    assert [row.abbreviation for row in rows] == ["CET", "CEST", "CEST"]
    assert rows[1].meant == datetime(2026, 3, 29, 2, 30)
    assert rows[1].to_json() == {
        "local": "2026-03-29T03:30:00+02:00",
        "utc": "2026-03-29T01:30:00Z",
        "abbreviation": "CEST",
        "flags": ["moved_by_gap"],
        "meant": "2026-03-29T02:30:00",
        "skipped": [],
    }


def test_rows_say_which_of_two_equal_times_it_is() -> None:
    schedule = Schedule.rrule("FREQ=DAILY", dtstart="2026-10-25T02:30", tz=BERLIN, overlap="both")

    rows = schedule.preview(3)

    assert [row.flags for row in rows] == [("first_of_two",), ("second_of_two",), ()]


def test_rows_say_which_months_and_years_were_skipped() -> None:
    monthly = Schedule.rrule("FREQ=MONTHLY", dtstart="2026-01-31T09:00", tz=BERLIN)
    yearly = Schedule.rrule("FREQ=YEARLY", dtstart="2024-02-29T09:00", tz=BERLIN)
    last = Schedule.rrule("FREQ=MONTHLY;BYMONTHDAY=-1", dtstart="2026-01-31T09:00", tz=BERLIN)

    assert [row.skipped for row in monthly.preview(4)] == [
        (),
        ("2026-02",),
        ("2026-04",),
        ("2026-06",),
    ]
    assert monthly.preview(2)[1].flags == ("skipped_months",)
    assert [row.skipped for row in yearly.preview(2)] == [(), ("2025", "2026", "2027")]
    assert yearly.preview(2)[1].flags == ("skipped_years",)
    assert all(row.flags == () for row in last.preview(12))


def test_rows_can_be_shown_in_any_zone() -> None:
    schedule = Schedule.cron("0 9 * * *", tz=BERLIN)

    row = schedule.preview(1, after=utc("2026-01-01"), tz="Asia/Kolkata")[0]

    assert row.local.isoformat() == "2026-01-01T13:30:00+05:30"
    assert row.utc == utc("2026-01-01T08:00")


SCHEDULES = [
    Schedule.once("2026-03-29T02:30", tz=BERLIN),
    Schedule.once(datetime.fromisoformat("2026-10-25T02:30:00+01:00"), tz=BERLIN),
    every("90m"),
    every("90m", start="2026-01-01T09:00", tz=BERLIN, until=date(2027, 1, 1), max_runs=5),
    Schedule.cron("0 9 * * 1-5", tz=BERLIN, gap="skip", overlap="both", exdate=[date(2026, 1, 1)]),
    rrule("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17"),
    rrule(
        "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;UNTIL=20270101\n"
        "RRULE:FREQ=WEEKLY;COUNT=3;WKST=SU\nRDATE:20260105T070000Z\nEXDATE;VALUE=DATE:20260110",
        until="2028-01-01T00:00:00Z",
        max_runs=100,
    ),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.words[:40])
def test_a_stored_schedule_comes_back_the_same(schedule: Schedule) -> None:
    stored = json.loads(json.dumps(schedule.to_json()))

    again = Schedule.from_json(stored)

    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.to_json() == schedule.to_json()
    assert again.next_after(utc("2026-01-03")) == schedule.next_after(utc("2026-01-03"))


def test_the_stored_form_is_plain() -> None:
    schedule = rrule("freq=weekly;byday=fr,mo", dtstart="20260101T090000", tz=BERLIN)

    assert schedule.to_json() == {
        "kind": "rrule",
        "tz": "Europe/Berlin",
        "rules": ["FREQ=WEEKLY;BYDAY=MO,FR"],
        "dtstart": "2026-01-01T09:00:00",
        "second_pass": False,
        "rdate": [],
        "gap": "shift",
        "overlap": "first",
        "exdate": [],
        "until": None,
        "max_runs": None,
    }
    assert schedule.kind is Kind.RRULE


def test_the_zone_may_come_from_the_start() -> None:
    start = datetime.fromisoformat("2026-01-01T09:00:00+00:00")

    assert Schedule.rrule("FREQ=DAILY", dtstart=start).next_after(LONG_AGO) == start
    assert Schedule.rrule("FREQ=DAILY", dtstart=start, tz=BERLIN).start == datetime(2026, 1, 1, 10)


def test_the_tz_database_says_its_version() -> None:
    assert tz_version()[:2] == "20"


def test_a_system_without_a_version_is_unknown() -> None:
    assert _system_version(Path("nowhere")) == "unknown"


def test_an_update_of_the_tz_database_moves_the_runs(
    tmp_path: Path,
) -> None:
    old = rrule("FREQ=DAILY", dtstart="2026-01-01T09:00", tz="Asia/Kolkata")
    (tmp_path / "Asia").mkdir()
    moved = files("tzdata") / "zoneinfo" / "Asia" / "Tokyo"
    (tmp_path / "Asia" / "Kolkata").write_bytes(moved.read_bytes())
    path = zoneinfo.TZPATH
    try:
        zoneinfo.reset_tzpath([str(tmp_path)])
        zoneinfo.ZoneInfo.clear_cache()
        forget_zones()
        new = Schedule.from_json(old.to_json())
    finally:
        zoneinfo.reset_tzpath(path)
        zoneinfo.ZoneInfo.clear_cache()
        forget_zones()

    assert old.next_after(LONG_AGO) == utc("2026-01-01T03:30")
    assert new.next_after(LONG_AGO) == utc("2026-01-01T00:00")
