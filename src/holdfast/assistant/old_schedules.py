"""The schedule that a task has now: its next runs, and its rules read back into slots."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from holdfast.assistant.plan import Refused
from holdfast.assistant.present import Present
from holdfast.assistant.rule_text import CODES
from holdfast.assistant.slots import (
    WEEKEND_DAY,
    WORKDAY,
    Amount,
    Clock,
    Day,
    Line,
    Nth,
    Point,
    Slots,
    Unit,
)
from holdfast.recurrence import Schedule

Json = Any
_UNITS: Final[Mapping[str, Unit]] = {
    "SECONDLY": "second", "MINUTELY": "minute", "HOURLY": "hour", "DAILY": "day",
    "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year",
}  # fmt: skip
_FAR: Final = timedelta(days=366 * 20)


def rules_of(task: Mapping[str, Json]) -> list[str]:
    """Its rules as a list, empty for a single run."""
    rules = task.get("rrule") or []
    return [rules] if isinstance(rules, str) else [str(each) for each in rules]


def zone_of_task(task: Mapping[str, Json], tz: str) -> str:
    """Its zone, or the user's."""
    return str(task.get("tz") or tz)


def runs_between(
    task: Mapping[str, Json], tz: str, begin: datetime, end: datetime | None, limit: int
) -> list[datetime]:
    """Its runs from an instant on, excluded ones left out."""
    zone = zone_of_task(task, tz)
    rules = rules_of(task)
    start = str(task["dtstart"])
    if rules:
        text = "\n".join(each if each.startswith("RRULE:") else f"RRULE:{each}" for each in rules)
        schedule = Schedule.rrule(text, dtstart=start, tz=zone, exdate=task.get("exdate") or ())
    else:
        schedule = Schedule.once(start, tz=zone)
    return schedule.between(begin, end or begin + _FAR, limit=limit)


def slots_of_task(task: Mapping[str, Json], tz: str) -> Slots:
    """Its schedule as slots, for an update to change; refused where slots cannot say it."""
    zone = zone_of_task(task, tz)
    start = datetime.fromisoformat(str(task["dtstart"]))
    if start.tzinfo is not None:
        start = start.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    rules = [_split(each) for each in rules_of(task)]
    if not rules:
        day = Day(kind="date", year=start.year, month=start.month, day=start.day)
        return Slots(
            lines=(Line(days=(day,), times=(_clock(start.hour, start.minute),)),), zone=zone
        )
    lines = tuple(_line(each, start) for each in rules)
    return Slots(lines=lines, until=_until(rules[0], zone), count=_count(rules), zone=zone)


def _split(rule: str) -> dict[str, str]:
    pairs = (part.split("=", 1) for part in rule.removeprefix("RRULE:").split(";") if part)
    return {name.upper(): value.upper() for name, value in pairs}


def _clock(hour: int, minute: int) -> Clock:
    return Clock(hour=hour, minute=minute, written=True)


def _numbers(rule: Mapping[str, str], name: str) -> tuple[int, ...]:
    return tuple(int(each) for each in rule[name].split(",")) if name in rule else ()


def _line(rule: Mapping[str, str], start: datetime) -> Line:
    unit = _UNITS[rule["FREQ"]]
    every = Amount(number=int(rule.get("INTERVAL", 1)), unit=unit)
    weekdays, nths = _days(rule, start)
    if unit in ("second", "minute", "hour"):
        return Line(sub=every, weekdays=weekdays, months=_numbers(rule, "BYMONTH"))
    hours = _numbers(rule, "BYHOUR") or (start.hour,)
    minutes = _numbers(rule, "BYMINUTE") or (start.minute,)
    monthdays, months = _numbers(rule, "BYMONTHDAY"), _numbers(rule, "BYMONTH")
    if unit == "week" and not weekdays:
        weekdays = (start.weekday(),)
    if unit in ("month", "year") and not monthdays and not nths and not weekdays:
        monthdays = (start.day,)
        months = months or ((start.month,) if unit == "year" else ())
    return Line(
        every=every,
        weekdays=weekdays,
        nths=nths,
        monthdays=monthdays,
        months=months,
        times=tuple(_clock(h, m) for h in hours for m in minutes),
    )


def _days(rule: Mapping[str, str], start: datetime) -> tuple[tuple[int, ...], tuple[Nth, ...]]:
    codes = rule["BYDAY"].split(",") if "BYDAY" in rule else []
    position = _numbers(rule, "BYSETPOS")
    if position:
        kinds = {("MO", "TU", "WE", "TH", "FR"): WORKDAY, ("SA", "SU"): WEEKEND_DAY}
        kind = kinds.get(tuple(codes))
        if kind is None:
            raise Refused("not_understood", "recurrence")
        return (), tuple(Nth(number=each, weekday=kind) for each in position)
    nths = tuple(
        Nth(number=int(each[:-2]), weekday=CODES.index(each[-2:]))
        for each in codes
        if len(each) > 2
    )
    return tuple(CODES.index(each) for each in codes if len(each) == 2), nths


def _until(rule: Mapping[str, str], zone: str) -> Point | None:
    text = rule.get("UNTIL")
    if text is None:
        return None
    if len(text) == 8:
        end = datetime.strptime(text, "%Y%m%d")  # noqa: DTZ007 - a wall time
        return Point(day=Day(kind="date", year=end.year, month=end.month, day=end.day))
    end = datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - see below
    if text.endswith("Z"):
        end = Present(instant=end.replace(tzinfo=UTC), zone=ZoneInfo(zone)).wall
    day = Day(kind="date", year=end.year, month=end.month, day=end.day)
    return Point(
        day=day, clock=Clock(hour=end.hour, minute=end.minute, second=end.second, written=True)
    )


def _count(rules: list[dict[str, str]]) -> int | None:
    held = [int(each["COUNT"]) for each in rules if "COUNT" in each]
    return sum(held) if held else None
