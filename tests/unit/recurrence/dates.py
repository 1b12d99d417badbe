"""Dates the way the RFC prints them: `1997 Sep 2-11,30; Oct 2 | 1998 Jan 4`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from holdfast.recurrence import Schedule

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905
LONG_AGO = datetime(1, 2, 1, tzinfo=UTC)


def days(text: str, clock: str = "09:00") -> list[str]:
    """The days of a list, each as `1997-09-02T09:00`."""
    found: list[str] = []
    for year_text in text.split("|"):
        year, _, rest = year_text.strip().partition(" ")
        for month_text in rest.split(";"):
            month, _, listed = month_text.strip().partition(" ")
            for part in listed.split(","):
                first, _, last = part.partition("-")
                found += [
                    f"{year}-{MONTHS.index(month) + 1:02}-{day:02}T{clock}"
                    for day in range(int(first), int(last or first) + 1)
                ]
    return found


def local_runs(
    schedule: Schedule, number: int = 1000, after: datetime | None = None, offsets: bool = False
) -> list[str]:
    """The first runs as local times, with their UTC offset if wanted."""
    found: list[str] = []
    instant = LONG_AGO if after is None else after
    while len(found) < number and (following := schedule.next_after(instant)) is not None:
        local = following.astimezone(ZoneInfo(schedule.tz))
        shown = local.isoformat(timespec="minutes" if not local.second else "seconds")
        found.append(shown if offsets else shown[: 16 if not local.second else 19])
        instant = following
    return found


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def later(instant: datetime, **more: float) -> datetime:
    return instant + timedelta(**more)
