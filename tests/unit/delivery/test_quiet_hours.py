"""Quiet hours, by the wall clock of the recipient."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from holdfast.core.recipient import QuietHours, Recipient


def recipient(begin: str, end: str, zone: str | None = "Europe/Berlin") -> Recipient:
    hours = QuietHours(time.fromisoformat(begin), time.fromisoformat(end))
    return Recipient(owner="ann", quiet_hours=hours, timezone=zone)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("begin", "end", "now", "until"),
    [
        ("22:00", "07:00", "2026-01-10T21:59:59+01:00", None),
        ("22:00", "07:00", "2026-01-10T22:00:00+01:00", "2026-01-11T07:00:00+01:00"),
        ("22:00", "07:00", "2026-01-11T00:30:00+01:00", "2026-01-11T07:00:00+01:00"),
        ("22:00", "07:00", "2026-01-11T06:59:59+01:00", "2026-01-11T07:00:00+01:00"),
        ("22:00", "07:00", "2026-01-11T07:00:00+01:00", None),
        ("13:00", "15:00", "2026-01-11T14:00:00+01:00", "2026-01-11T15:00:00+01:00"),
        ("13:00", "15:00", "2026-01-11T12:59:00+01:00", None),
        # The clock goes forward: the night is an hour shorter.
        ("22:00", "07:00", "2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"),
        # The end is in the hour that is skipped: over when the clock jumps.
        ("22:00", "02:30", "2026-03-29T01:59:00+01:00", "2026-03-29T03:00:00+02:00"),
        ("22:00", "02:30", "2026-03-29T03:00:00+02:00", None),
        # It begins in the hour that is skipped.
        ("02:30", "05:00", "2026-03-29T03:10:00+02:00", "2026-03-29T05:00:00+02:00"),
        # The clock goes back: the hour that comes twice is quiet both times.
        ("22:00", "02:30", "2026-10-25T02:10:00+02:00", "2026-10-25T02:30:00+01:00"),
        ("22:00", "02:30", "2026-10-25T02:40:00+02:00", "2026-10-25T02:30:00+01:00"),
        ("22:00", "02:30", "2026-10-25T02:30:00+01:00", None),
        ("22:00", "07:00", "2026-10-25T01:00:00+02:00", "2026-10-25T07:00:00+01:00"),
    ],
)
def test_quiet_hours_end_by_the_wall_clock(
    begin: str, end: str, now: str, until: str | None
) -> None:
    found = recipient(begin, end).quiet_until(at(now))

    assert found == (None if until is None else at(until))


def test_without_a_zone_the_hours_are_those_of_utc() -> None:
    found = recipient("22:00", "07:00", None).quiet_until(at("2026-01-10T23:00:00+00:00"))

    assert found == at("2026-01-11T07:00:00+00:00")


@pytest.mark.parametrize(
    "zone",
    [
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
        "America/St_Johns",
    ],
)
def test_whoever_waits_for_the_end_is_awake_then(zone: str) -> None:
    """At every hour of two years: the end is to come, less than a day and a bit away, and loud."""
    someone = recipient("21:15", "08:45", zone)
    for hour in range(0, 2 * 366 * 24, 7):
        now = datetime(2010, 12, 1, tzinfo=UTC) + timedelta(hours=hour)
        end = someone.quiet_until(now)
        if end is not None:
            assert timedelta() < end - now <= timedelta(hours=14)
            assert someone.quiet_until(end) is None
