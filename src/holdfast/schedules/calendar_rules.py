"""A schedule in the words of a calendar: DTSTART, RRULE, RDATE and EXDATE. Pure.

Cron lines and intervals are said as rules where rules can say them. Whether they do is not believed
but looked at: the rule is read again, and must give the same runs, around the next changes of the
clock too. What no rule says is told run by run, as far as `MOST_TOLD` of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, TypeGuard
from zoneinfo import ZoneInfo

from holdfast.errors import InvalidOption
from holdfast.recurrence import Kind, Schedule
from holdfast.recurrence.cron import Cron, parse_cron
from holdfast.recurrence.moments import Moment, last_instant
from holdfast.recurrence.rules import DAY_NAMES, Rule, parse_rule
from holdfast.recurrence.zones import find_zone, to_datetime

MOST_TOLD: Final = 100
"""Runs that are told one by one."""
COMPARED: Final = 50
NEAR: Final = timedelta(hours=30)
AHEAD: Final = timedelta(days=800)
MOST_NEAR: Final = 200
LONG_AGO: Final = datetime(2, 1, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)


class CalendarRules(NamedTuple):
    """When an entry of a calendar happens. `start` is on the wall of `tz`, or an instant where that
    alone would be another one. The last two hold instants, wall times and days.
    """

    tz: str
    start: datetime
    rules: tuple[str, ...] = ()
    rdate: tuple[Moment, ...] = ()
    exdate: tuple[Moment, ...] = ()


def calendar_rules(
    rule: Schedule, now: datetime, *, since: datetime, skips: Sequence[datetime] = ()
) -> CalendarRules | None:
    """How a calendar says a schedule that was made at `since`; None if it has no run to come."""
    following = rule.next_after(now)
    if following is None:
        return None
    if rule.kind is Kind.ONCE:
        return CalendarRules(rule.tz, _wall(rule.tz, following))
    for rules in _candidates(rule):
        said = _said(rule, rules, since, skips)
        if said is not None and _is_same(rule, said, now, skips):
            return said
    return _one_by_one(rule, now, skips)


def read_again(said: CalendarRules) -> Schedule:
    """The schedule that a calendar's words mean."""
    lines = "\n".join(f"RRULE:{text}" for text in said.rules)
    start: datetime | None = said.start
    if not lines:
        lines, start = f"DTSTART:{said.start:%Y%m%dT%H%M%S}", None
    return Schedule.rrule(
        lines, dtstart=start, tz=said.tz, rdate=said.rdate, exdate=said.exdate
    )  # fmt: skip


def _said(
    rule: Schedule, rules: Sequence[str], since: datetime, skips: Sequence[datetime]
) -> CalendarRules | None:
    """The rules with a start that is a run, and with the bounds of the schedule."""
    plain = replace(rule, exdate=(), rdate=())
    after = LONG_AGO if rule.dtstart is not None else since - _DAY
    rows = plain.preview(1, after=after)
    bounded = _bounded(rule, rules)
    if not rows or bounded is None:
        return None
    start = rows[0].meant or _wall(rule.tz, rows[0].utc)
    exdate, rdate = (
        tuple(_wall(rule.tz, each) if _is_instant(each) else each for each in moments)
        for moments in ((*_days_as_runs(rule), *skips), rule.rdate)
    )
    return CalendarRules(rule.tz, start, bounded, rdate, exdate)


def _is_same(rule: Schedule, said: CalendarRules, now: datetime, skips: Sequence[datetime]) -> bool:
    try:
        other = read_again(said)
    except InvalidOption:
        return False
    ours = replace(rule, exdate=(*rule.exdate, *skips))
    if _next(ours, now, COMPARED) != _next(other, now, COMPARED):
        return False
    for change in _clock_changes(rule.tz, now.date()):
        begin, end = max(change - NEAR, now), change + NEAR
        if ours.between(begin, end, limit=MOST_NEAR) != other.between(begin, end, limit=MOST_NEAR):
            return False
    return True


def _one_by_one(rule: Schedule, now: datetime, skips: Sequence[datetime]) -> CalendarRules | None:
    runs = [at for at in _next(rule, now, MOST_TOLD + len(skips)) if at not in skips][:MOST_TOLD]
    if not runs:
        return None
    walls = [_wall(rule.tz, at) for at in runs]
    return CalendarRules(rule.tz, walls[0], rdate=tuple(walls[1:]))


def _next(rule: Schedule, after: datetime, number: int) -> list[datetime]:
    found: list[datetime] = []
    at = rule.next_after(after)
    while at is not None and len(found) < number:
        found.append(at)
        at = rule.next_after(at)
    return found


def _is_instant(moment: Moment) -> TypeGuard[datetime]:
    return isinstance(moment, datetime) and moment.tzinfo is not None


def _wall(tz: str, at: datetime) -> datetime:
    """The time on the wall at an instant; the instant itself where the wall shows that twice, and
    this is the second time.
    """
    local = at.astimezone(ZoneInfo(tz))
    return at if local.fold else local.replace(tzinfo=None)


def _days_as_runs(rule: Schedule) -> tuple[Moment, ...]:
    """What is excluded, whole days as the runs of those days: calendars expect times."""
    if not any(not isinstance(each, datetime) for each in rule.exdate):
        return rule.exdate
    plain, zone = replace(rule, exdate=()), ZoneInfo(rule.tz)
    found: list[Moment] = []
    for moment in rule.exdate:
        if isinstance(moment, datetime):
            found.append(moment)
            continue
        begin = datetime.combine(moment, time(), tzinfo=zone).astimezone(UTC)
        runs = plain.between(begin - _DAY, begin + 2 * _DAY, limit=MOST_NEAR)
        inside = [at for at in runs if at.astimezone(zone).date() == moment]
        found += [moment] if len(runs) == MOST_NEAR else inside
    return tuple(found)


@lru_cache(maxsize=256)
def _clock_changes(tz: str, today: date) -> tuple[datetime, ...]:
    """The days to come on which the clocks of a zone change."""
    zone, at = ZoneInfo(tz), datetime.combine(today, time(), tzinfo=UTC)
    found, offset, end = list[datetime](), at.astimezone(zone).utcoffset(), at + AHEAD
    while at < end:
        at += _DAY
        if at.astimezone(zone).utcoffset() != offset:
            offset = at.astimezone(zone).utcoffset()
            found.append(at)
    return tuple(found)


def _bounded(rule: Schedule, rules: Sequence[str]) -> tuple[str, ...] | None:
    """The rules with the end of the schedule in them, and every UNTIL as the instant that RFC 5545
    wants beside a zone. None if they cannot say it.
    """
    parsed = [parse_rule(text) for text in rules]
    if rule.max_runs is not None:
        if len(parsed) != 1 or rule.rdate or rule.until or parsed[0].until or parsed[0].count:
            return None
        parsed = [replace(parsed[0], count=rule.max_runs)]
    ended = [_until(rule, each) for each in parsed]
    return None if None in ended else tuple(each.text for each in ended if each is not None)


def _until(rule: Schedule, one: Rule) -> Rule | None:
    zone = find_zone(rule.tz)
    ends = [
        to_datetime(last_instant(moment, zone, rule.overlap))
        for moment in (one.until, rule.until)
        if moment is not None
    ]
    if not ends:
        return one
    return None if one.count is not None else replace(one, until=min(ends))


def _candidates(rule: Schedule) -> Iterator[tuple[str, ...]]:
    """Rules that may say the same, the best first."""
    match rule.kind:
        case Kind.RRULE:
            yield rule.rules
            # What a rule takes from its start is spelled out: that has become its first run.
            parsed = [parse_rule(text) for text in rule.rules]
            yield tuple(each.explicit(rule.start).text for each in parsed)
        case Kind.INTERVAL:
            assert rule.step is not None
            for freq, seconds in _FREQUENCIES:
                if rule.step % seconds == 0:
                    yield (f"FREQ={freq};INTERVAL={rule.step // seconds}",)
        case Kind.CRON:
            assert rule.line is not None
            yield from _cron_candidates(parse_cron(rule.line))
        case Kind.ONCE:
            return


_FREQUENCIES: Final = (("DAILY", 86_400), ("HOURLY", 3600), ("MINUTELY", 60), ("SECONDLY", 1))


def _cron_candidates(cron: Cron) -> Iterator[tuple[str, ...]]:
    if cron.nearest:
        return
    days = _days(cron)
    minutes = "" if len(cron.minutes) == 60 else _numbers("BYMINUTE", cron.minutes)
    hours = "" if len(cron.hours) == 24 else _numbers("BYHOUR", cron.hours)
    months = "" if len(cron.months) == 12 else _numbers("BYMONTH", sorted(cron.months))
    if cron.is_elapsed:
        # In elapsed time, so that it runs through both passes of an hour that comes twice.
        freq = "HOURLY" if minutes else "MINUTELY"
        limits = [limit for _, limit in days]
        for each in dict.fromkeys((freq, "MINUTELY")):
            yield tuple(
                f"FREQ={each}{months}{limit}{hours}{minutes};BYSECOND=0" for limit in limits
            )
    clock = _numbers("BYHOUR", cron.hours) + _numbers("BYMINUTE", cron.minutes) + ";BYSECOND=0"
    yield tuple(f"FREQ={freq}{months}{limit}{clock}" for freq, limit in days)


def _days(cron: Cron) -> list[tuple[str, str]]:
    """The frequency and the days of each rule: two, if one matching day field is enough."""
    numbers = sorted(cron.month_days) + ([-1] if cron.last_month_day else [])
    by_number = "" if len(cron.month_days) == 31 else _numbers("BYMONTHDAY", numbers)
    names = [
        *(DAY_NAMES[day] for day in sorted(cron.weekdays)),
        *(f"{n}{DAY_NAMES[day]}" for n, day in sorted(cron.special_weekdays)),
    ]
    by_name = "" if len(cron.weekdays) == 7 else f";BYDAY={','.join(names)}"
    weekly = "MONTHLY" if cron.special_weekdays else "WEEKLY"
    if cron.either_day and by_number and by_name:
        return [("MONTHLY", by_number), (weekly, by_name)]
    if by_number:
        return [("MONTHLY", by_number + by_name)]
    return [(weekly, by_name) if by_name else ("DAILY", "")]


def _numbers(name: str, values: Sequence[int]) -> str:
    return f";{name}={','.join(map(str, values))}"
