"""The next days of some schedules, as a strip: what runs on each, in somebody's zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from holdfast.schedules.series import Series, Status

DAYS: Final = 14
OFTEN: Final = 3
"""Runs of one schedule on one day that are told one by one; more are told together."""
MOST_A_DAY: Final = 24
MOST_ENTRIES: Final = 6


class Entry(NamedTuple):
    """A run; or several of one schedule on that day, from `at` on. With `is_capped` there are more
    than `number`.
    """

    at: datetime
    name: str
    title: str
    number: int = 1
    is_capped: bool = False


class Day(NamedTuple):
    """One day; `left_out` entries are not told."""

    day: date
    entries: Sequence[Entry]
    left_out: int


@dataclass(frozen=True)
class _Known:
    """Schedules as they stand: equal ones have the same runs."""

    key: tuple[Any, ...]
    many: Sequence[Series] = field(compare=False)


def days_of(many: Sequence[Series], now: datetime, zone: str) -> Sequence[Day]:
    """Today, from this minute on, and the days after it. Kept for those who look again."""
    key = tuple((each.id, each.version, each.next_at, each.status, each.skips) for each in many)
    return _days(_Known(key, many), now.replace(second=0, microsecond=0), zone)


@lru_cache(maxsize=64)
def _days(known: _Known, now: datetime, zone_name: str) -> Sequence[Day]:
    many, zone = known.many, ZoneInfo(zone_name)
    today = now.astimezone(zone).date()
    active = [series for series in many if series.status is Status.ACTIVE]
    return [_day(active, today + timedelta(days=number), now, zone) for number in range(DAYS)]


def _day(many: Sequence[Series], day: date, now: datetime, zone: ZoneInfo) -> Day:
    begin = max(datetime.combine(day, time(), zone), now)
    end = datetime.combine(day + timedelta(days=1), time(), zone)
    entries = sorted(entry for each in many for entry in _entries(each, begin, end, zone))
    return Day(day, entries[:MOST_ENTRIES], max(0, len(entries) - MOST_ENTRIES))


def _entries(series: Series, begin: datetime, end: datetime, zone: ZoneInfo) -> list[Entry]:
    if series.next_at is None or series.next_at >= end:
        return []
    found = series.rule.between(max(begin, series.next_at), end, limit=MOST_A_DAY + 1)
    runs = [at.astimezone(zone) for at in found if at not in series.skips]
    title = series.about.title or series.id
    if len(runs) <= OFTEN:
        return [Entry(at, series.id, title) for at in runs]
    number = min(len(runs), MOST_A_DAY)
    return [Entry(runs[0], series.id, title, number, is_capped=len(runs) > MOST_A_DAY)]
