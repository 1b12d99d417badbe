"""What recurs: days beside "every" become its days, or bound it."""

from __future__ import annotations

from calendar import monthrange
from typing import Any

from holdfast.assistant.language.groups import Group, Unclear
from holdfast.assistant.language.own_times import OwnTimes
from holdfast.assistant.slots import Amount, Day, Nth, Point


def share_unit(groups: list[Group]) -> None:
    """A unit said once counts for all groups."""
    every = next((each.every for each in groups if each.every is not None), None)
    for each in groups:
        if each.every is None and each.sub is None:
            each.every = every


def make_recurring(group: Group, values: dict[str, Any]) -> None:
    """Days beside "every" name what recurs, or bound it."""
    for day in group.days:
        _turn(group, day, values)
    group.days = []
    if group.every is None and group.sub is None:
        if group.weekdays:
            group.every = Amount(number=1, unit="week")
        elif group.nths or group.monthdays:
            group.every = Amount(number=1, unit="month")
        elif group.yearly:
            group.every = Amount(number=1, unit="year")
        elif _lasts_days(values) and group.has_times and "until" not in values:
            group.every = Amount(number=1, unit="day")
        elif "until" in values or "length" in values:
            raise Unclear("vague_recurrence")
    if group.nths and group.every and group.every.unit in ("day", "week"):
        raise Unclear("contradiction")


def give_own_times(groups: list[Group], own: OwnTimes) -> None:
    """Take the days with times of their own out of the others."""
    unit = next((each.every for each in groups if each.every is not None), None)
    if own.unclear or unit is None or unit.number != 1 or unit.unit not in ("day", "week"):
        raise Unclear("contradiction")
    for each in [] if own.also else groups:
        held = each.weekdays[0] if each.weekdays else tuple(range(7))
        each.weekdays = [tuple(n for n in held if n not in own.weekdays)]
        each.every = Amount(number=1, unit="week")
        if not each.weekdays[0]:
            raise Unclear("contradiction")
    week = Amount(number=1, unit="week")
    groups.append(Group(every=week, weekdays=[own.weekdays], times=list(own.times)))


def _lasts_days(values: dict[str, Any]) -> bool:
    """ "for the next ten days … at 9pm" means each of them."""
    length = values.get("length")
    return isinstance(length, Amount) and length.unit in ("day", "week", "month")


def _turn(group: Group, day: Day, values: dict[str, Any]) -> None:
    match day.kind:
        case "weekday" if day.shift is None and not day.before:
            assert day.weekday is not None
            group.weekdays.append((day.weekday,))
        case "monthday" if day.shift is None and day.day is not None and not day.before:
            group.monthdays.append(day.day)
        case "date" if day.year is None and not day.before:
            group.yearly.append(day)
        case "holiday" if day.year is None:
            group.yearly.append(day)
        case "nth" if day.month is not None and day.year is None and day.weekday is not None:
            _turn_nth(group, day, day.month, day.weekday)
        case "edge" if day.month is not None and day.year is None:
            group.yearly.append(day)
        case "edge" if day.shift == 0 and day.unit in ("month", "quarter"):
            group.monthdays.append(day.number - day.before)
        case "nth" if day.shift == 0 and day.unit == "month" and day.weekday is not None:
            group.nths.append(Nth(number=day.number, weekday=day.weekday))
        case "unclear" if day.unit != "weekend" or day.shift is not None:
            _bound(day, values)
        case "relative" if group.sub is not None:
            values.setdefault("within", Amount(number=day.number, unit="day"))
        case _:
            if group.sub is not None or "start" in values:
                raise Unclear("contradiction")
            raise Unclear("contradiction")


def _bound(day: Day, values: dict[str, Any]) -> None:
    """ "every weekday next month"; "every weekday in January 2027": its first day to its last."""
    month, year = day.month, day.year
    if month is None or year is None:
        values.setdefault("within", Amount(number=day.shift or 0, unit=day.unit))
        return
    last = monthrange(year, month)[1]
    for end, number in (("start", 1), ("until", last)):
        values.setdefault(end, Point(day=Day(kind="date", day=number, month=month, year=year)))


def _turn_nth(group: Group, day: Day, month: int, weekday: int) -> None:
    """ "the second Sunday of March": with others in other months each is a rule of its own."""
    if _in_months(group) > 1:
        group.yearly.append(day)
        return
    group.nths.append(Nth(number=day.number, weekday=weekday))
    group.months = (month,)


def _in_months(group: Group) -> int:
    """How many months the days of a group are named in."""
    return len({each.month for each in group.days if each.kind == "nth"})


def check_ntimes(number: int, groups: list[Group]) -> None:
    """ "twice a day" needs its two times, "twice a week" its two days."""
    group = groups[0]
    unit = group.every.unit if group.every is not None else None
    held = sum(len(each.times) for each in groups)
    if unit == "week":
        held = sum(len(each) for group_ in groups for each in group_.weekdays)
        if group.weekdays == [(0, 1, 2, 3, 4)] and held != number:
            held = sum(len(each.times) for each in groups)
    elif unit in ("month", "quarter"):
        held = sum(len(each.monthdays) + len(each.nths) for each in groups)
    elif unit == "year":
        held = sum(len(each.yearly) for each in groups)
    if held != number:
        raise Unclear("vague_recurrence")
