"""Recurrences on the wall clock: which days, which times, from when to when.

An interval counts from the first slot that is ahead, so the rule is built without its interval, its
first slot is searched, and the interval is put in then.
"""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from holdfast.assistant.bounds import Bounds, end_of_length
from holdfast.assistant.clocks import NINE, Time, from_minutes, resolve
from holdfast.assistant.days import resolve_day
from holdfast.assistant.holidays import HOLIDAYS, in_year, is_known
from holdfast.assistant.plan import Refused
from holdfast.assistant.present import Present, midnight
from holdfast.assistant.rule_text import (
    Parts,
    first_slot,
    numbers,
    slots_between,
    text_of,
    wall_slots,
    weekday_codes,
    with_times,
)
from holdfast.assistant.slots import ANY_DAY, WEEKEND_DAY, WORKDAY, Amount, Day, Line, Nth, Slots

_WORKDAYS: Final = (0, 1, 2, 3, 4)
_WEEKEND: Final = (5, 6)
_QUARTERS: Final = {1: (1, 4, 7, 10), -1: (3, 6, 9, 12)}
_MOST_RUNS: Final = 5000
_MOST_INTERVAL: Final = 1000
STEPS: Final = {"second": 1, "minute": 60, "hour": 3600}
_FREQ: Final = {"day": "DAILY", "week": "WEEKLY", "weekend": "WEEKLY", "workday": "WEEKLY",
                "month": "MONTHLY", "quarter": "MONTHLY", "year": "YEARLY"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """A recurrence before it has a zone: rules, first run, left-out runs (wall times)."""

    rules: tuple[str, ...]
    start: datetime
    exdate: tuple[datetime, ...] = ()


def wall_recurrence(slots: Slots, present: Present, bounds: Bounds) -> Recurrence:
    """The schedule of lines that recur by days or longer, or within windows of the day."""
    anchor = bounds.start if bounds.anchored and bounds.start is not None else present.wall
    rules: list[Parts] = []
    for line in slots.lines:
        rules += _line_rules(line, slots, anchor)
    interval = _interval(slots)
    first = first_slot(rules, present, bounds.start)
    if first is None:
        raise Refused("impossible_date")
    if interval > 1:
        rules = [_spaced(each, interval, slots) for each in rules]
    rules = _ended(rules, slots, present, bounds, first)
    left_out = excluded(slots, present, rules, first)
    if left_out:
        first = _first_kept(rules, first, left_out)
    return Recurrence(
        rules=tuple(map(text_of, rules)),
        start=first,
        exdate=tuple(each for each in left_out if each >= first),
    )


def _first_kept(rules: Sequence[Parts], first: datetime, left_out: Sequence[datetime]) -> datetime:
    """The first run itself may be left out; it stays the start where an interval counts from it."""
    if first not in left_out or any("INTERVAL" in each or "COUNT" in each for each in rules):
        return first
    return next((each for each in wall_slots(rules, first) if each not in left_out), first)


def _interval(slots: Slots) -> int:
    found = {line.every.number for line in slots.lines if line.every is not None}
    if len(found) > 1:
        raise Refused("contradiction", "recurrence")
    interval = found.pop() if found else 1
    if not 1 <= interval <= _MOST_INTERVAL:
        raise Refused("vague_recurrence", "recurrence")
    return interval


def _spaced(rule: Parts, interval: int, slots: Slots) -> Parts:
    unit = next(line.every.unit for line in slots.lines if line.every is not None)
    if unit == "workday":
        raise Refused("not_understood", "recurrence")
    if unit == "quarter":
        rest = {name: value for name, value in rule.items() if name != "BYMONTH"}
        return {**rest, "FREQ": "MONTHLY", "INTERVAL": str(3 * interval)}
    if unit == "day" and rule["FREQ"] == "WEEKLY":
        return {**rule, "FREQ": "DAILY", "INTERVAL": str(interval)}
    if unit == "month" and rule["FREQ"] == "YEARLY":
        rest = {name: value for name, value in rule.items() if name != "BYMONTH"}
        return {**rest, "FREQ": "MONTHLY", "INTERVAL": str(interval)}
    if rule["FREQ"] != _FREQ.get(unit):
        raise Refused("contradiction", "recurrence")
    return {**rule, "INTERVAL": str(interval)}


def _line_rules(line: Line, slots: Slots, anchor: datetime) -> list[Parts]:
    times = line_times(line, slots)
    rules: list[Parts] = []
    for moved in (0, 1):
        shown = [each for each in times if each.days == moved]
        if shown:
            for days in _day_parts(line, slots, anchor):
                rules += with_times(_moved(days, moved), shown)
    return rules


def _moved(days: Parts, by: int) -> Parts:
    """Times after midnight belong to the next day: weekdays move on by one, others cannot."""
    if not by or days == {"FREQ": "DAILY"}:
        return days
    if days["FREQ"] == "WEEKLY" and "BYMONTH" not in days:
        codes = [
            ("MO", "TU", "WE", "TH", "FR", "SA", "SU").index(c) for c in days["BYDAY"].split(",")
        ]
        return {**days, "BYDAY": weekday_codes((each + 1) % 7 for each in codes)}
    if days["FREQ"] == "DAILY":
        return days
    raise Refused("not_understood", "recurrence", "time")


def line_times(line: Line, slots: Slots) -> list[Time]:
    """The times of day of a line, sorted; 09:00 if none is said."""
    if line.sub is not None:
        return _window_times(line, slots)
    clocks = line.times or ((slots.start.clock,) if slots.start and slots.start.clock else ())
    times = sorted(resolve(clocks)) if clocks else [NINE]
    left_out = {each.minutes for each in _except_times(slots)}
    return [each for each in times if each.minutes not in left_out]


def _except_times(slots: Slots) -> tuple[Time, ...]:
    return resolve(slots.except_times) if slots.except_times else ()


def _window_times(line: Line, slots: Slots) -> list[Time]:
    """A grid from the window's start; its end is inside when it is hit."""
    assert line.sub is not None
    assert line.window is not None
    first, last = resolve((line.window.start, line.window.end)) * (
        2 if line.window.start == line.window.end else 1
    )
    begin, end = first.minutes, last.minutes
    if end <= begin:
        end += 24 * 60
    step = line.sub.number * STEPS[line.sub.unit]
    if step < 60:
        raise Refused("vague_recurrence", "recurrence")
    if step % 60:
        raise Refused("not_understood", "recurrence")
    found = list(range(begin, end + 1, step // 60))
    if line.minutes:
        found = [each for each in range(begin, end + 1) if each % 60 in line.minutes]
    left_out = {each.minutes % 1440 for each in _except_times(slots)}
    return [from_minutes(each) for each in found if each % 1440 not in left_out]


def _day_parts(line: Line, slots: Slots, anchor: datetime) -> list[Parts]:
    """The day parts of a line's rules, without interval and times."""
    every = line.every or Amount(number=1, unit="day")
    months = _months(line, slots)
    found: list[Parts] = []
    if line.yearly:
        found += [_yearly(each) for each in line.yearly]
    if line.nths:
        found += [part for each in _by_kind(line.nths) for part in _nth_parts(each, every, months)]
    if line.monthdays:
        found += _monthday_parts(line, every, months)
    if line.weekdays and not found:
        found.append(_weekly(line.weekdays, months, every))
    elif line.weekdays:
        if line.nths or line.yearly:
            raise Refused("contradiction", "recurrence", "date")
        found = [{**each, "BYDAY": weekday_codes(line.weekdays)} for each in found]
    if not found:
        found.append(_open_parts(every, months, anchor))
    return [_without_weekdays(each, slots.except_weekdays) for each in found]


def _months(line: Line, slots: Slots) -> tuple[int, ...]:
    if not slots.except_months:
        return line.months
    return tuple(m for m in line.months or range(1, 13) if m not in slots.except_months)


def _weekly(weekdays: Sequence[int], months: Sequence[int], every: Amount) -> Parts:
    if every.unit in ("month", "quarter", "year"):
        raise Refused("contradiction", "recurrence", "date")
    found = {"FREQ": "WEEKLY", "BYDAY": weekday_codes(weekdays)}
    return {**found, "BYMONTH": numbers(months)} if months else found


def _yearly(day: Day) -> Parts:
    if day.before:
        raise Refused("not_understood", "recurrence", "date")
    if day.kind == "holiday":
        rule = HOLIDAYS.get(day.name or "")
        if rule is None or day.name == "black_friday":
            raise Refused("unknown_date")
        if len(rule) == 3:
            return _month_rule(rule[0], BYDAY=f"{rule[1]}{weekday_codes([rule[2]])}")
        return _month_rule(rule[0], BYMONTHDAY=str(rule[1]))
    if day.kind == "date" and day.month and day.day:
        if day.day > calendar.monthrange(2024, day.month)[1]:
            raise Refused("impossible_date")
        return _month_rule(day.month, BYMONTHDAY=str(day.day))
    if day.kind == "nth" and day.month and day.weekday is not None:
        nth, year = Nth(number=day.number, weekday=day.weekday), Amount(number=1, unit="year")
        return _nth_parts([nth], year, (day.month,))[0]
    if day.kind == "edge" and day.month:
        return _month_rule(day.month, BYMONTHDAY=str(day.number))
    raise Refused("not_understood", "recurrence", "date")


def _month_rule(month: int, **parts: str) -> Parts:
    return {"FREQ": "YEARLY", "BYMONTH": str(month), **parts}


def _by_kind(nths: Sequence[Nth]) -> list[list[Nth]]:
    """Numbered weekdays share a rule; days and working days need one each."""
    plain = [each for each in nths if each.weekday < WORKDAY]
    return [*([plain] if plain else []), *([each] for each in nths if each.weekday >= WORKDAY)]


def _nth_parts(nths: Sequence[Nth], every: Amount, months: Sequence[int]) -> list[Parts]:
    first = nths[0]
    if every.unit == "quarter" and not months:
        months = _QUARTERS[1 if first.number > 0 else -1]
    if every.unit == "week":
        raise Refused("contradiction", "recurrence")
    yearly = bool(months) or every.unit == "year"
    found = {"FREQ": "YEARLY" if yearly else "MONTHLY"}
    if months:
        found["BYMONTH"] = numbers(months)
    match first.weekday:
        case n if n == ANY_DAY:
            if not -31 <= first.number <= 31 or first.number == 0:
                raise Refused("impossible_date")
            if yearly and not months:
                found["BYMONTH"] = "1" if first.number > 0 else "12"
            found["BYMONTHDAY"] = str(first.number)
        case n if n in (WORKDAY, WEEKEND_DAY):
            if len(months) > 1:  # positions count in each month, not in the year
                found["FREQ"] = "MONTHLY"
            found["BYDAY"] = weekday_codes(_WORKDAYS if n == WORKDAY else _WEEKEND)
            found["BYSETPOS"] = str(first.number)
        case _:
            if yearly and not months and any(abs(each.number) > 53 for each in nths):
                raise Refused("impossible_date")
            if (months or not yearly) and any(abs(each.number) > 5 for each in nths):
                raise Refused("impossible_date")
            found["BYDAY"] = ",".join(f"{e.number}{weekday_codes([e.weekday])}" for e in nths)
    return [found]


def _monthday_parts(line: Line, every: Amount, months: Sequence[int]) -> list[Parts]:
    longest = max((calendar.monthrange(2024, each)[1] for each in months), default=31)
    if any(each == 0 or abs(each) > longest for each in line.monthdays):
        raise Refused("impossible_date")
    if every.unit == "week" and not (line.weekdays and every.number == 1):
        raise Refused("contradiction", "recurrence")
    if every.unit == "quarter":
        months = _QUARTERS[1 if line.monthdays[0] > 0 else -1]
    days = {"BYMONTHDAY": numbers(line.monthdays)}
    if months:
        return [{"FREQ": "YEARLY", "BYMONTH": numbers(months), **days}]
    return [{"FREQ": "MONTHLY", **days}]


def _open_parts(every: Amount, months: Sequence[int], anchor: datetime) -> Parts:
    """A unit without a day takes that of its start, or of today."""
    limits = {"BYMONTH": numbers(months)} if months else {}
    match every.unit:
        case "workday":
            return {"FREQ": "WEEKLY", "BYDAY": weekday_codes(_WORKDAYS), **limits}
        case "weekend":
            return {"FREQ": "WEEKLY", "BYDAY": weekday_codes(_WEEKEND), **limits}
        case "week":
            return {"FREQ": "WEEKLY", "BYDAY": weekday_codes([anchor.weekday()]), **limits}
        case "month":
            return {"FREQ": "MONTHLY", "BYMONTHDAY": str(anchor.day), **limits}
        case "quarter":
            return {"FREQ": "YEARLY", "BYMONTH": numbers(_QUARTERS[1]), "BYMONTHDAY": "1"}
        case "year":
            if months:
                raise Refused("no_day", "date", "recurrence")
            return _month_rule(anchor.month, BYMONTHDAY=str(anchor.day))
        case "day":
            return {"FREQ": "DAILY", **limits}
        case _:
            raise Refused("not_understood", "recurrence")


def _without_weekdays(days: Parts, left_out: Sequence[int]) -> Parts:
    if not left_out:
        return days
    if any(mark in days.get("BYDAY", "") for mark in "-123456789") or "BYSETPOS" in days:
        raise Refused("contradiction", "recurrence")
    codes = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
    held = [codes.index(each) for each in days["BYDAY"].split(",")] if "BYDAY" in days else range(7)
    kept = [each for each in held if each not in left_out]
    if not kept:
        raise Refused("contradiction", "recurrence", "date")
    freq = "WEEKLY" if days["FREQ"] == "DAILY" else days["FREQ"]
    return {**days, "FREQ": freq, "BYDAY": weekday_codes(kept)}


def _ended(
    rules: Sequence[Parts], slots: Slots, present: Present, bounds: Bounds, first: datetime
) -> list[Parts]:
    end = bounds.end
    if slots.length is not None:
        last = end_of_length(slots.length, first, present)
        end = last if end is None else min(end, last)
    if slots.count is not None:
        if slots.count < 1:
            raise Refused("no_end", "end", "recurrence")
        if len(rules) == 1 and end is None:
            return [{**rules[0], "COUNT": str(slots.count)}]
        last = _nth_run(rules, first, slots.count, present)
        end = last if end is None else min(end, last)
    if end is None:
        return list(rules)
    if present.to_instant(first) > end:
        raise Refused("no_end")
    return [{**each, "UNTIL": f"{end.astimezone(UTC):%Y%m%dT%H%M%SZ}"} for each in rules]


def _nth_run(rules: Sequence[Parts], first: datetime, count: int, present: Present) -> datetime:
    if count > _MOST_RUNS:
        raise Refused("not_understood", "end")
    for place, found in enumerate(wall_slots(rules, first), 1):
        if place == count:
            return present.to_instant(found)
    raise Refused("no_end")


def excluded(
    slots: Slots, present: Present, rules: Sequence[Parts], first: datetime
) -> list[datetime]:
    """The runs on excluded dates, as wall times."""
    if not slots.except_days:
        return []
    open_ended = [{k: v for k, v in each.items() if k not in ("UNTIL", "COUNT")} for each in rules]
    days = [midnight(each) for day in slots.except_days for each in _dates(day, present)]
    return sorted({slot for each in days for slot in slots_between(open_ended, first, each)})


def _dates(day: Day, present: Present) -> list[date]:
    first = resolve_day(day, present.today, lambda each: each >= present.today)
    if first < present.today:  # "except the 1st of the month": of which one?
        raise Refused("not_understood", "recurrence", "date")
    dates = [first]
    if day.kind == "holiday" and day.name and is_known(day.name) and not day.before:
        more = (in_year(day.name, first.year + ahead) for ahead in range(1, 5))
        dates += [each for each in more if each is not None]
    return dates
