"""Schedules as an iCalendar (RFC 5545), for people's calendars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from icalendar import Calendar, Event, Timezone, vRecur

from holdfast.recurrence.moments import Moment
from holdfast.schedules.calendar_rules import CalendarRules, calendar_rules
from holdfast.schedules.calendar_zones import timezone_of
from holdfast.schedules.series import Series

PRODUCT: Final = "-//Holdfast//Schedules//EN"
UID_SUFFIX: Final = "@holdfast"
YEARS_TOLD: Final = timedelta(days=10 * 366)
"""How far a calendar says when the clocks of a zone change."""
OLDEST: Final = date(1970, 1, 1)


def calendar_of(schedules: Iterable[Series], now: datetime) -> bytes:
    """A calendar with one entry for each schedule that has a run to come."""
    told = [(series, said) for series in schedules if (said := _said(series, now)) is not None]
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", "Schedules")
    for tz in sorted({said.tz for _, said in told if said.tz != "UTC"}):
        first = min(said.start.date() for _, said in told if said.tz == tz)
        calendar.add_component(_zone(tz, first, now))
    for series, said in told:
        calendar.add_component(_event(series, said))
    return bytes(calendar.to_ical())


def _said(series: Series, now: datetime) -> CalendarRules | None:
    return calendar_rules(series.rule, now, since=series.created_at, skips=series.skips)


def _zone(tz: str, first: date, now: datetime) -> Timezone:
    begin = max(min(first, now.date()) - timedelta(days=366), OLDEST)
    return timezone_of(tz, begin, (now + YEARS_TOLD).date())


def _event(series: Series, said: CalendarRules) -> Event:
    event, about = Event(), series.about
    event.add("uid", f"{series.id}{UID_SUFFIX}")
    event.add("dtstamp", series.updated_at.astimezone(UTC))
    event.add("created", series.created_at.astimezone(UTC))
    event.add("sequence", series.version - 1)
    event.add("summary", about.title or series.id)
    event.add("description", about.description or series.rule.words)
    if about.category is not None:
        event.add("categories", [about.category])
    event.add("transp", "TRANSPARENT")
    event.add("dtstart", _placed(said.start, said.tz))
    for rule in said.rules:
        event.add("rrule", vRecur.from_ical(rule))
    for name, moments in (("rdate", said.rdate), ("exdate", said.exdate)):
        for same in _by_form(moments, said.tz):
            event.add(name, same)
    return event


def _placed(moment: Moment, tz: str) -> Moment:
    """A time as it is written: beside its zone, or in UTC."""
    if not isinstance(moment, datetime) or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC if tz == "UTC" else ZoneInfo(tz))


def _by_form(moments: Sequence[Moment], tz: str) -> list[list[Moment]]:
    """Times in the zone, instants and days each for themselves: a line has one form."""
    forms: dict[str, list[Moment]] = {}
    for moment in moments:
        form = "day" if not isinstance(moment, datetime) else str(moment.tzinfo)
        forms.setdefault(form, []).append(_placed(moment, tz))
    return list(forms.values())
