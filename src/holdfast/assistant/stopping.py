"""What pauses, skips and changes of delivery come to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from holdfast.assistant.bounds import add_units
from holdfast.assistant.clocks import resolve
from holdfast.assistant.days import period, resolve_day
from holdfast.assistant.language.channel_phrases import changed_channels
from holdfast.assistant.language.stream import Stream
from holdfast.assistant.old_schedules import runs_between
from holdfast.assistant.plan import Refused
from holdfast.assistant.present import DAY, Present, midnight
from holdfast.assistant.slots import Amount, Day, Point
from holdfast.assistant.update_requests import UpdateRequest

Json = Any
_MOST_RUNS = 100


def paused(request: UpdateRequest, task: Mapping[str, Json] | None) -> dict[str, Json]:
    """Until when a task rests, if that was said."""
    present = request.present(task)
    point, length = request.value("until") or request.value("start"), request.value("length")
    day = request.value("day")
    if point is not None:
        end = _pause_end(point, present)
    elif length is not None:
        end = _later(length, present)
    elif isinstance(day, Day) and day.kind == "unclear":
        end = midnight(period(day.unit, day.shift or 0, present.today)[1])
    elif isinstance(day, Day) and _resumes_later(request):
        end = _pause_end(Point(day=day), present)
    elif (within := request.value("within")) is not None:
        end = midnight(period(within.unit, within.number, present.today)[1])
    elif request.timed:
        raise Refused("not_understood", "end", "date")
    else:
        return {}
    if not present.is_ahead(end):
        raise Refused("past", "end", "date")
    return {"until": end.replace(tzinfo=present.zone).isoformat()}


def _resumes_later(request: UpdateRequest) -> bool:
    """ "pause it and resume on Monday"."""
    verbs = [request.s.word(n, "op") for n in request.free]
    return "resume" in verbs or request.has("again", "back_on", "start")


def _pause_end(point: Point, present: Present) -> datetime:
    """A pause until a day ends where that day begins."""
    times = resolve([point.clock]) if point.clock is not None else ()
    if point.day is None:
        at = times[0].on(midnight(present.today))
        return at if present.is_ahead(at) else at + DAY
    day = point.day
    if day.kind == "unclear":
        return midnight(period(day.unit, day.shift or 0, present.today)[0])
    found = midnight(resolve_day(day, present.today, lambda each: each > present.today))
    return times[0].on(found) if times else found


def _later(length: Amount, present: Present) -> datetime:
    if length.unit in ("second", "minute", "hour"):
        size = {"second": 1, "minute": 60, "hour": 3600}[length.unit]
        return present.to_wall(present.instant + timedelta(seconds=size * length.number))
    return add_units(present.wall, length)


def skipped(request: UpdateRequest, task: Mapping[str, Json] | None) -> dict[str, Json]:
    """The runs that are left out: those of the days that were said, or the next ones."""
    if task is None:
        raise Refused("no_target")
    present = request.present(task)
    days = [*request.words.days, *(p.value for p in request.words.phrases if p.kind == "day")]
    for each in request.words.phrases:
        if each.kind == "weekdays":
            wanted = cast("tuple[int, ...]", each.value)
            days += [Day(kind="weekday", weekday=weekday) for weekday in wanted]
        elif each.kind == "months":
            months = cast("tuple[int, ...]", each.value)
            days += [Day(kind="unclear", unit="month", month=month) for month in months]
    runs: list[datetime] = []
    for day in cast("list[Day]", days):
        runs += _runs_on(day, request, task, present)
    if not days and (within := request.value("within")) is not None:
        day = Day(kind="unclear", unit=within.unit, shift=within.number)
        runs = _runs_on(day, request, task, present)
    elif not days:
        if any(p.kind in ("until", "times") for p in request.words.phrases):
            raise Refused("not_understood", "date", "schedule")
        count = _skip_count(request.s)
        runs = runs_between(task, request.tz, request.now + timedelta(seconds=1), None, count)
    if not runs:
        raise Refused("unknown_date", "date", "target")
    return {"exdate": [each.astimezone(present.zone).isoformat() for each in sorted(set(runs))]}


def _runs_on(
    day: Day, request: UpdateRequest, task: Mapping[str, Json], present: Present
) -> list[datetime]:
    if day.kind == "unclear":
        shift = day.shift or 0
        if day.month is not None:
            shift = (day.month - present.today.month) % 12
        first, behind = (midnight(each) for each in period(day.unit, shift, present.today))
    else:
        first = midnight(resolve_day(day, present.today, lambda each: each >= present.today))
        behind = first + DAY
    begin = max(present.to_instant(first), present.instant + timedelta(seconds=1))
    return runs_between(task, request.tz, begin, present.to_instant(behind), _MOST_RUNS)


def _skip_count(s: Stream) -> int:
    """ "the next two runs"."""
    for at in range(1, len(s.items)):
        number = s.number(at)
        if number is not None and s.has(at - 1, "next", "next_run", "the_next"):
            return max(1, min(number, _MOST_RUNS))
    return 1


def changed_delivery(request: UpdateRequest, task: Mapping[str, Json] | None) -> dict[str, Json]:
    """The channels of a task after the change."""
    s, words = request.s, request.words
    if request.has("other_channel"):
        raise Refused("not_understood", "target", "schedule")
    places = [n for n in request.free if not (n == words.verb and s.text(n) == "push")]
    held = [str(each) for each in (task or {}).get("delivery") or []]
    dropping = words.operation in ("cancel", "skip", "pause") and not request.has("only")
    found = changed_channels(s, places, held, dropping=dropping)
    if not found:
        raise Refused("not_understood", "target", "schedule")
    return {"delivery": found}
