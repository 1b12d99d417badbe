"""Single days: from "the Friday of next week" or "two days before the end of the month" to a date.

Convention: weeks start on Monday; a bare weekday, day of the month or date is the first one ahead;
what is said with a year, "today" or "yesterday" is never moved.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import date, timedelta

from holdfast.assistant.holidays import in_year, is_known, nth_weekday
from holdfast.assistant.plan import Refused
from holdfast.assistant.slots import ANY_DAY, WEEKEND_DAY, WORKDAY, Day, Unit

Ahead = Callable[[date], bool]
"""Whether the run on that day would still be ahead."""


def resolve_day(day: Day, today: date, ahead: Ahead) -> date:
    """The date of a day as said; refused if it does not exist or contradicts its weekday."""
    found = _resolve(day, today, lambda each: ahead(each - timedelta(days=day.before)))
    found -= timedelta(days=day.before)
    if day.check is not None and found.weekday() != day.check:
        raise Refused("contradiction", "date")
    return found


def is_fixed(day: Day) -> bool:
    """Whether it was said so that it cannot be moved when it is past."""
    return day.kind == "relative" or day.year is not None


def _resolve(day: Day, today: date, ahead: Ahead) -> date:
    match day.kind:
        case "relative":
            return today + timedelta(days=day.number)
        case "offset":
            return _offset(day.number, day.unit, today)
        case "weekday":
            return _weekday(day, today, ahead)
        case "date":
            return _date(day, today, ahead)
        case "monthday":
            return _monthday(day, today, ahead)
        case "nth" | "edge":
            return _in_period(day, today, ahead)
        case "holiday":
            return _holiday(day, today, ahead)
        case "unclear":
            raise Refused("no_day")


def _offset(number: int, unit: Unit, today: date) -> date:
    try:
        match unit:
            case "day":
                return today + timedelta(days=number)
            case "week":
                return today + timedelta(weeks=number)
            case "month":
                return add_months(today, number)
            case "quarter":
                return add_months(today, 3 * number)
            case "year":
                return add_months(today, 12 * number)
            case "workday":
                return _workdays(number, today)
            case _:
                raise Refused("not_understood")
    except (OverflowError, ValueError):
        raise Refused("impossible_date") from None


def _workdays(number: int, today: date) -> date:
    if abs(number) > 10_000:
        raise Refused("impossible_date")
    step, found = timedelta(days=1 if number >= 0 else -1), today
    for _ in range(abs(number)):
        found += step
        while found.weekday() > 4:
            found += step
    return found


def add_months(day: date, number: int) -> date:
    """The same day `number` months on; a day that the month lacks becomes its last one."""
    index = day.year * 12 + day.month - 1 + number
    year, month = divmod(index, 12)
    if not 1 <= year <= 9998:
        raise Refused("impossible_date")
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _weekday(day: Day, today: date, ahead: Ahead) -> date:
    assert day.weekday is not None
    if day.shift is not None:
        monday = today - timedelta(days=today.weekday())
        return monday + timedelta(days=7 * day.shift + day.weekday)
    found = today + timedelta(days=(day.weekday - today.weekday()) % 7)
    return found if ahead(found) else found + timedelta(days=7)


def _date(day: Day, today: date, ahead: Ahead) -> date:
    assert day.month is not None
    assert day.day is not None
    years = [day.year] if day.year is not None else range(today.year, today.year + 9)
    if day.year is None and day.shift is not None:
        years = [today.year + day.shift]
    for year in years:
        try:
            found = date(year, day.month, day.day)
        except ValueError:
            continue
        if day.year is not None or day.shift is not None or ahead(found):
            return found
    raise Refused("impossible_date")


def _monthday(day: Day, today: date, ahead: Ahead) -> date:
    assert day.day is not None
    shifts = range(13) if day.shift is None else [day.shift]
    for shift in shifts:
        found = _of_month(add_months(today.replace(day=1), shift), day.day)
        if found is not None and (day.shift is not None or ahead(found)):
            return found
    raise Refused("impossible_date")


def _of_month(first: date, number: int) -> date | None:
    length = calendar.monthrange(first.year, first.month)[1]
    day = number if number > 0 else length + 1 + number
    return first.replace(day=day) if 1 <= day <= length else None


def period(unit: Unit, shift: int, today: date) -> tuple[date, date]:
    """The first day of a calendar period, and the first one behind it."""
    match unit:
        case "week":
            first = today - timedelta(days=today.weekday() - 7 * shift)
            return first, first + timedelta(days=7)
        case "weekend":
            first = today - timedelta(days=today.weekday() - 7 * shift - 5)
            return first, first + timedelta(days=2)
        case "month":
            first = add_months(today.replace(day=1), shift)
            return first, add_months(first, 1)
        case "quarter":
            first = add_months(
                today.replace(day=1, month=(today.month - 1) // 3 * 3 + 1), 3 * shift
            )
            return first, add_months(first, 3)
        case "year":
            first = add_months(today.replace(day=1, month=1), 12 * shift)
            return first, add_months(first, 12)
        case "day":
            first = today + timedelta(days=shift)
            return first, first + timedelta(days=1)
        case _:
            raise Refused("not_understood")


def _in_period(day: Day, today: date, ahead: Ahead) -> date:
    if day.month is not None:
        return _in_named_month(day, today, ahead)
    shifts = range(14) if day.shift is None else [day.shift]
    for shift in shifts:
        first, behind = period(day.unit, shift, today)
        found = _pick(day, first, behind)
        if found is not None and (day.shift is not None or ahead(found)):
            return found
    raise Refused("impossible_date")


def _in_named_month(day: Day, today: date, ahead: Ahead) -> date:
    assert day.month is not None
    years = [day.year] if day.year is not None else range(today.year, today.year + 9)
    for year in years:
        first = date(year, day.month, 1)
        found = _pick(day, first, add_months(first, 1))
        if found is not None and (day.year is not None or ahead(found)):
            return found
    raise Refused("impossible_date")


def _pick(day: Day, first: date, behind: date) -> date | None:
    last = behind - timedelta(days=1)
    weekday = ANY_DAY if day.kind == "edge" or day.weekday is None else day.weekday
    number = day.number or 1
    if weekday == ANY_DAY:
        found = first + timedelta(days=number - 1) if number > 0 else last + timedelta(number + 1)
        return found if first <= found <= last else None
    if weekday < WORKDAY and (behind - first).days <= 31:
        return nth_weekday(first.year, first.month, number, weekday)
    wanted = {WORKDAY: range(5), WEEKEND_DAY: range(5, 7)}.get(weekday, range(weekday, weekday + 1))
    step = timedelta(days=1 if number > 0 else -1)
    found, left = (first if number > 0 else last), abs(number)
    while first <= found <= last:
        left -= found.weekday() in wanted
        if not left:
            return found
        found += step
    return None


def _holiday(day: Day, today: date, ahead: Ahead) -> date:
    if day.name is None or not is_known(day.name):
        raise Refused("unknown_date")
    if day.year is not None or day.shift is not None:
        found = in_year(
            day.name, day.year if day.year is not None else today.year + (day.shift or 0)
        )
        if found is None:
            raise Refused("impossible_date")
        return found
    for year in range(today.year, today.year + 9):
        found = in_year(day.name, year)
        if found is not None and ahead(found):
            return found
    raise Refused("impossible_date")
