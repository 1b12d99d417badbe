"""A slow second opinion: every day, or every minute, is held against the words of RFC 5545.

Written apart from the library on purpose: it shares no code with it, reads the rule by itself, and
knows nothing of intervals to leap over or kinds of years.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
ELAPSED = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3600}


def read(text: str) -> dict[str, str]:
    return dict(part.split("=") for part in text.split(";"))


def numbers(parts: dict[str, str], name: str) -> list[int]:
    return [int(each) for each in parts[name].split(",")] if name in parts else []


def instants(local: datetime, zone: ZoneInfo, gap: str, overlap: str) -> list[datetime]:
    """The instants of a wall time, by trying whether it comes back unchanged."""
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    exists = first.astimezone(zone).replace(tzinfo=None) == local
    if not exists:
        return [max(first, second)] if gap == "shift" else []
    return {"first": [first], "second": [second], "both": sorted({first, second})}[overlap]


def expand(
    text: str,
    dtstart: datetime,
    tz: str,
    days: int,
    *,
    gap: str = "shift",
    overlap: str = "first",
) -> list[datetime]:
    """The runs of a rule within so many days of its start, in order, without doubles."""
    parts, zone = read(text), ZoneInfo(tz)
    count = int(parts.get("COUNT", "0"))
    until = until_of(parts, zone)
    found: set[datetime] = set()
    matches = 0
    for group in matching(parts, dtstart, zone, days, gap, overlap):
        if count and matches == count:
            break
        matches += bool(group)
        found.update(each for each in group if until is None or each <= until)
    return sorted(found)


def until_of(parts: dict[str, str], zone: ZoneInfo) -> datetime | None:
    text = parts.get("UNTIL")
    if text is None:
        return None
    if text.endswith("Z"):
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if "T" in text:
        local = datetime.strptime(text, "%Y%m%dT%H%M%S")
        return instants(local, zone, "shift", "first")[0]
    local = datetime.strptime(text, "%Y%m%d") + timedelta(hours=23, minutes=59, seconds=59)
    return max(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def matching(
    parts: dict[str, str], dtstart: datetime, zone: ZoneInfo, days: int, gap: str, overlap: str
) -> Iterator[list[datetime]]:
    """The instants of each match, match by match."""
    if parts["FREQ"] in ELAPSED:
        for each in elapsed(parts, dtstart, zone, days):
            yield [each]
        return
    for local in wall(parts, dtstart, days):
        yield instants(local, zone, gap, overlap)


# ------------------------------------------------------------------ days and longer


def wall(parts: dict[str, str], dtstart: datetime, days: int) -> Iterator[datetime]:
    periods: dict[object, list[date]] = defaultdict(list)
    first = dtstart.date() - timedelta(days=400)
    for n in range(days + 800):
        day = first + timedelta(days=n)
        periods[period(parts, day)].append(day)
    complete = list(periods.values())[1:-1]
    origin = next(i for i, p in enumerate(complete) if dtstart.date() in p)
    clocks = [
        time(hour, minute, second)
        for hour in numbers(parts, "BYHOUR") or [dtstart.hour]
        for minute in numbers(parts, "BYMINUTE") or [dtstart.minute]
        for second in numbers(parts, "BYSECOND") or [dtstart.second]
    ]
    for each in complete[origin :: int(parts.get("INTERVAL", "1"))]:
        chosen = [day for day in each if matches_day(parts, dtstart, day)]
        candidates = sorted(datetime.combine(day, clock) for day in chosen for clock in clocks)
        if positions := numbers(parts, "BYSETPOS"):
            picked = {p - 1 if p > 0 else len(candidates) + p for p in positions}
            candidates = [c for i, c in enumerate(candidates) if i in picked]
        end = dtstart + timedelta(days=days)
        yield from (c for c in candidates if dtstart <= c <= end)


def period(parts: dict[str, str], day: date) -> object:
    match parts["FREQ"]:
        case "YEARLY":
            return day.year
        case "MONTHLY":
            return day.year, day.month
        case "WEEKLY":
            return week_of(parts, day)
        case _:
            return day


def week_of(parts: dict[str, str], day: date) -> date:
    """The first day of a day's week."""
    start = DAYS.index(parts.get("WKST", "MO"))
    while day.weekday() != start:
        day -= timedelta(days=1)
    return day


def matches_day(parts: dict[str, str], dtstart: datetime, day: date) -> bool:
    freq = parts["FREQ"]
    says_day = {"BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"} & parts.keys()
    only_weeks = says_day == {"BYWEEKNO"}
    if "BYMONTH" in parts and day.month not in numbers(parts, "BYMONTH"):
        return False
    if (not says_day and freq == "WEEKLY") or only_weeks:
        if day.weekday() != dtstart.weekday():
            return False
    elif not says_day and freq in ("MONTHLY", "YEARLY"):
        if day.day != dtstart.day:
            return False
        if freq == "YEARLY" and "BYMONTH" not in parts and day.month != dtstart.month:
            return False
    month, year = month_of(day.year, day.month), year_of(day.year)
    if not counted(numbers(parts, "BYMONTHDAY"), month, day):
        return False
    if not counted(numbers(parts, "BYYEARDAY"), year, day):
        return False
    if "BYWEEKNO" in parts and not matches_week(parts, day):
        return False
    if "BYDAY" not in parts:
        return True
    within = year if freq == "YEARLY" and "BYMONTH" not in parts else month
    return any(matches_weekday(each, within, day) for each in parts["BYDAY"].split(","))


@cache
def year_of(year: int) -> list[date]:
    days = [date(year, 1, 1) + timedelta(days=n) for n in range(366)]
    return [day for day in days if day.year == year]


@cache
def month_of(year: int, month: int) -> list[date]:
    return [day for day in year_of(year) if day.month == month]


def counted(wanted: list[int], days: list[date], day: date) -> bool:
    """Whether a day is at one of these places of a list, counted from 1, or from the end from -1."""
    if not wanted:
        return True
    place = days.index(day)
    return place + 1 in wanted or place - len(days) in wanted


def matches_weekday(text: str, within: list[date], day: date) -> bool:
    if DAYS[day.weekday()] != text[-2:]:
        return False
    if not text[:-2]:
        return True
    return counted([int(text[:-2])], [d for d in within if d.weekday() == day.weekday()], day)


def matches_week(parts: dict[str, str], day: date) -> bool:
    """A week belongs to the year that has at least four of its days."""
    start = week_of(parts, day)
    weeks = weeks_of((start + timedelta(days=3)).year, parts.get("WKST", "MO"))
    return counted(numbers(parts, "BYWEEKNO"), weeks, start)


@cache
def weeks_of(year: int, week_start: str) -> list[date]:
    weeks: list[date] = []
    each = week_of({"WKST": week_start}, date(year, 1, 4))
    while (each + timedelta(days=3)).year == year:
        weeks.append(each)
        each += timedelta(days=7)
    return weeks


# ------------------------------------------------------------------ hours and shorter


def elapsed(
    parts: dict[str, str], dtstart: datetime, zone: ZoneInfo, days: int
) -> Iterator[datetime]:
    """Every minute (every second for SECONDLY) of the span; without BYSECOND, from a whole minute."""
    start = instants(dtstart, zone, "shift", "first")[0]
    unit, step = ELAPSED[parts["FREQ"]], int(parts.get("INTERVAL", "1"))
    local = start.astimezone(zone)
    begin = start - timedelta(minutes=local.minute if unit == 3600 else 0)
    tick = 1 if unit == 1 else 60
    groups: dict[int, list[datetime]] = defaultdict(list)
    total = days * 86_400 if unit > 1 else days * 3600
    for seconds in range(0, total, tick):
        number = seconds // unit
        instant = begin + timedelta(seconds=seconds)
        if number % step == 0 and passes(parts, dtstart, instant, start, zone):
            groups[number].append(instant)
    for number in sorted(groups):
        group = groups[number]
        if positions := numbers(parts, "BYSETPOS"):
            picked = {p - 1 if p > 0 else len(group) + p for p in positions}
            group = [each for i, each in enumerate(group) if i in picked]
        yield from (each for each in group if each >= start)


def passes(
    parts: dict[str, str], dtstart: datetime, instant: datetime, start: datetime, zone: ZoneInfo
) -> bool:
    local = instant.astimezone(zone)
    pinned = parts["FREQ"] == "HOURLY" and "BYMINUTE" not in parts
    if pinned and (instant - start) % timedelta(hours=1):
        return False
    for name, value in (
        ("BYMONTH", local.month),
        ("BYHOUR", local.hour),
        ("BYMINUTE", local.minute),
        ("BYSECOND", local.second),
    ):
        if name in parts and value not in numbers(parts, name):
            return False
    kept = {k: v for k, v in parts.items() if k in ("BYDAY", "BYMONTHDAY", "BYYEARDAY")}
    return matches_day({"FREQ": "DAILY", **kept}, dtstart, local.date())
