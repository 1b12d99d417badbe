"""New slots laid over the slots of a task: what is not mentioned stays."""

from __future__ import annotations

from dataclasses import replace

from holdfast.assistant.once import clock_of, shifted
from holdfast.assistant.plan import Refused
from holdfast.assistant.present import Present
from holdfast.assistant.slots import ANY_DAY, Amount, Clock, Day, Half, Line, Nth, Slots

_DAILY = Amount(number=1, unit="day")


def merged(old: Slots, new: Slots, *, deferred: bool = False) -> Slots:
    """The slots of a task after a change; `deferred` says that it is put off until then."""
    new = replace(new, lines=tuple(_in_half(line, _half(old)) for line in new.lines))
    if deferred and old.recurs:
        return _deferred(old, new)
    lines = _lines(old, new) if new.lines else old.lines
    dropped = new.recurs and not old.recurs
    return replace(
        old,
        lines=lines,
        offset=new.offset,
        zone=new.zone if new.zone is not None else old.zone,
        start=new.start,
        until=new.until or (None if dropped else old.until),
        length=new.length,
        count=new.count if new.count is not None else None if new.until else old.count,
        within=new.within,
        except_weekdays=new.except_weekdays,
        except_days=new.except_days,
        except_months=new.except_months,
        except_times=new.except_times,
    )


def _half(old: Slots) -> Half | None:
    """The half of the day in which it runs; None if its runs are in both."""
    hours = {(clock.hour or 0) >= 12 for line in old.lines for clock in line.times}
    return None if len(hours) != 1 else "pm" if hours.pop() else "am"


def _in_half(line: Line, half: Half | None) -> Line:
    if half is None or any(each.written or (each.hour or 0) > 12 for each in line.times):
        return line
    return replace(line, times=tuple(_clock_in_half(each, half) for each in line.times))


def _clock_in_half(clock: Clock, half: Half) -> Clock:
    if clock.hour is None or not 1 <= clock.hour <= 11 or clock.half or clock.part:
        return clock
    return replace(clock, half=half)


def _deferred(old: Slots, new: Slots) -> Slots:
    """A recurrence put off until a day goes on from there."""
    point = new.until
    if point is None or new.lines:
        raise Refused("contradiction", "recurrence", "date")
    return replace(old, start=point)


def _lines(old: Slots, new: Slots) -> tuple[Line, ...]:
    first = old.lines[0]
    times = tuple(dict.fromkeys(clock for line in old.lines for clock in line.times))
    found = [_changed(line, first, old, times) for line in new.lines]
    if len(found) == 1 and _says_times_only(new.lines[0]) and len(old.lines) > 1:
        found = [replace(each, times=found[0].times) for each in old.lines]
    return tuple(dict.fromkeys(found))


def added(old: Slots, new: Slots) -> Slots:
    """The slots of a recurring task with more days or times: "also on Saturdays"."""
    if len(new.lines) != 1 or any(line.sub or line.window for line in (*old.lines, *new.lines)):
        raise Refused("contradiction", "recurrence", "time")
    line, held = _in_half(new.lines[0], _half(old)), old.lines[0]
    if _says_times_only(line):
        clocks = tuple(dict.fromkeys((*held.times, *line.times)))
        if len(old.lines) > 1:
            raise Refused("contradiction", "recurrence", "time")
        return replace(old, lines=(replace(held, times=clocks),))
    weekdays = line.weekdays or tuple(d.weekday for d in line.days if d.weekday is not None)
    if not weekdays or held.every is None or held.every.unit != "week" or not held.weekdays:
        raise Refused("contradiction", "recurrence", "date")
    if line.times:
        return replace(old, lines=(*old.lines, replace(held, weekdays=weekdays, times=line.times)))
    union = tuple(sorted({*held.weekdays, *weekdays}))
    return replace(old, lines=(replace(held, weekdays=union), *old.lines[1:]))


def _says_times_only(line: Line) -> bool:
    return bool(line.times) and line == Line(times=line.times)


def _changed(line: Line, held: Line, old: Slots, times: tuple[Clock, ...]) -> Line:
    if _says_times_only(line):
        if held.sub is not None:
            raise Refused("contradiction", "time", "recurrence")
        return replace(held, times=line.times)
    if line.sub is not None:
        return line
    line = line if line.times else replace(line, times=times)
    if line.every is not None:
        return _with_unit(line, held)
    if not old.recurs and not any(each.sub for each in old.lines):
        return line
    return _days_of_recurrence(line, held)


def _with_unit(line: Line, held: Line) -> Line:
    """A new unit keeps the days of the same unit."""
    assert line.every is not None
    named = line.weekdays or line.nths or line.monthdays or line.yearly or line.months
    if named or held.every is None:
        keeps = held.every is not None and held.every.unit == "week" == line.every.unit
        if keeps and held.every is not None and line.every.number == 1 and line.weekdays:
            return line
        return line
    if held.every.unit == line.every.unit:
        return replace(held, every=line.every, times=line.times)
    return line


def _days_of_recurrence(line: Line, held: Line) -> Line:
    """Single days said of a task that recurs: days of the same kind take the place of the old."""
    days = line.days
    if held.every is None or not days:
        raise Refused("contradiction", "recurrence", "date")
    if held.every.unit == "week" and all(d.kind == "weekday" and d.shift is None for d in days):
        weekdays = tuple(sorted({d.weekday for d in days if d.weekday is not None}))
        return replace(line, days=(), every=held.every, weekdays=weekdays)
    if held.every.unit == "month" or (held.every.unit == "year" and held.monthdays):
        monthdays = tuple(d.day for d in days if d.kind == "monthday" and d.day and d.shift is None)
        if len(monthdays) == len(days):
            return replace(line, days=(), every=held.every, monthdays=monthdays, months=held.months)
    if held.every.unit == "month":
        nths = tuple(_nth(each) for each in days)
        return replace(line, days=(), every=held.every, nths=nths)
    if held.every.unit == "year" and all(d.kind == "date" and d.year is None for d in days):
        return replace(line, days=(), every=held.every, yearly=days)
    raise Refused("contradiction", "recurrence", "date")


def _nth(day: Day) -> Nth:
    if day.kind == "edge" and day.unit == "month":
        return Nth(number=day.number - day.before, weekday=ANY_DAY)
    if day.kind != "nth" or day.weekday is None:
        raise Refused("contradiction", "recurrence", "date")
    return Nth(number=day.number, weekday=day.weekday)


def moved(old: Slots, shift: tuple[Amount, ...], present: Present, at: Present) -> Slots:
    """Every time moved by an amount; days of a single run move along."""
    if any(line.sub is not None for line in old.lines):
        raise Refused("contradiction", "time", "recurrence")
    short = all(each.unit in ("minute", "hour") for each in shift)
    if old.recurs:
        if not short:
            return replace(old, lines=tuple(_on_other_days(line, shift) for line in old.lines))
        return replace(old, lines=tuple(_moved_line(line, shift) for line in old.lines))
    wall = shifted(at.wall, shift, present)
    day = Day(kind="date", year=wall.year, month=wall.month, day=wall.day)
    return replace(old, lines=(Line(days=(day,), times=(clock_of(wall),)),))


def _on_other_days(line: Line, shift: tuple[Amount, ...]) -> Line:
    """The days of a recurrence moved by days or weeks, where that is clear for all of them."""
    sizes = {"day": 1, "week": 7}
    if line.every is None or line.nths or any(each.unit not in sizes for each in shift):
        raise Refused("contradiction", "recurrence", "date")
    by = sum(each.number * sizes[each.unit] for each in shift)
    if line.every.unit == "week" and line.weekdays:
        return replace(line, weekdays=tuple(sorted((each + by) % 7 for each in line.weekdays)))
    days = tuple(each + by for each in line.monthdays)
    if (
        not days
        or line.yearly
        or any(not _is_in_each_month(*each) for each in zip(line.monthdays, days, strict=True))
    ):
        raise Refused("contradiction", "recurrence", "date")
    return replace(line, monthdays=days)


def _is_in_each_month(day: int, moved: int) -> bool:
    """Whether a day of the month and the one that it is moved to are there in every month."""
    return 1 <= moved <= 28 if day > 0 else -28 <= moved <= -1


def _moved_line(line: Line, shift: tuple[Amount, ...]) -> Line:
    minutes = sum(each.number * (60 if each.unit == "hour" else 1) for each in shift)
    found: list[Clock] = []
    for clock in line.times:
        total = (clock.hour or 0) * 60 + clock.minute + minutes
        if not 0 <= total < 24 * 60 and line.every != _DAILY:
            raise Refused("contradiction", "time", "date")
        total %= 24 * 60
        found.append(Clock(hour=total // 60, minute=total % 60, written=True))
    return replace(line, times=tuple(found))
