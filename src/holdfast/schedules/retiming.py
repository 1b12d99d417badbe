"""What another tz database makes of a series: its next run may be at another instant. Pure.

A run on the wall clock is known by its wall time: nine o'clock stays the same run, wherever it is
in UTC now, so it is neither lost nor run twice. A run of elapsed time is known by its instant,
which another database hardly ever moves; if it does, the nearest one takes its place.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.recurrence import Kind, Schedule, tz_version
from holdfast.recurrence.cron import parse_cron
from holdfast.recurrence.rules import parse_rule
from holdfast.schedules.series import Series, wall_time

FARTHEST: Final = timedelta(days=2)
"""No zone has ever moved by more than a day."""


def retimed(series: Series) -> Series:
    """The series under the tz database of this process, with the same run to come."""
    if series.next_at is None:
        return replace(series, tz_version=tz_version())
    if _is_elapsed(series.rule):
        following = _nearest(series, series.next_at)
    else:
        following = series.rule.next_after(series.next_at - FARTHEST)
        while following is not None and _is_done(series, following):
            following = series.rule.next_after(following)
    return series.going_on(following)


def _is_done(series: Series, at: datetime) -> bool:
    return at == series.last_at or wall_time(series.rule, at) < (series.next_wall or "")


def _nearest(series: Series, at: datetime) -> datetime | None:
    following = series.rule.next_after(at)
    half = timedelta(0) if following is None else (following - at) / 2
    since = at - max(half, timedelta(seconds=1))
    return series.rule.next_after(max(since, series.last_at or since))


def _is_elapsed(rule: Schedule) -> bool:
    """Whether it steps in elapsed time; the others follow the clock on the wall."""
    match rule.kind:
        case Kind.INTERVAL:
            return True
        case Kind.CRON:
            return parse_cron(rule.line).is_elapsed
        case Kind.RRULE:
            return bool(rule.rules) and all(parse_rule(text).freq.is_elapsed for text in rule.rules)
        case Kind.ONCE:
            return False
