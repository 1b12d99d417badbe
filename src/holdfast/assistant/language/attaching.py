"""From chosen phrases to slots: which times belong to which days, and what recurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from holdfast.assistant.language.groups import Group, Unclear, groups_of
from holdfast.assistant.language.own_times import own_times
from holdfast.assistant.language.repeating import (
    check_ntimes,
    give_own_times,
    make_recurring,
    share_unit,
)
from holdfast.assistant.language.stream import Phrase, Stream
from holdfast.assistant.slots import (
    WEEKEND_DAY,
    WORKDAY,
    Amount,
    Clock,
    Day,
    Evidence,
    Line,
    Nth,
    Part,
    Point,
    Slots,
    Trouble,
)


def attach(s: Stream, phrases: Sequence[Phrase]) -> Slots:
    """The slots of phrases; trouble instead of slots where they do not fit together."""
    trouble = next((p.value for p in phrases if p.kind == "trouble"), None)
    if trouble is not None:
        return Slots(trouble=cast("Trouble", trouble))
    if any(p.kind == "past" for p in phrases):
        return Slots(trouble="past")
    try:
        return _attach(s, phrases)
    except Unclear as unclear:
        return Slots(trouble=unclear.trouble)


def _attach(s: Stream, phrases: Sequence[Phrase]) -> Slots:
    shared, owned = own_times(s, phrases)
    groups = groups_of(s, _placed(shared))
    values = _single_values(shared)
    recurs = any(each.recurs for each in groups) or _has_kind(phrases, "ntimes", "until", "length")
    recurs = recurs or (any(g.nths or g.monthdays for g in groups))
    ntimes = values.pop("ntimes", None)
    if recurs:
        share_unit(groups)
        for each in groups:
            make_recurring(each, values)
        for own in owned:
            give_own_times(groups, own)
        if ntimes is not None:
            check_ntimes(cast("int", ntimes), groups)
    elif any(each.months for each in groups):
        raise Unclear("no_day")
    for each in groups:
        _place_start(each, values)
    if recurs:
        _place_until(groups, values)
    lines = tuple(
        _line(each)
        for each in groups
        if each.has_days or each.has_times or each.recurs or each.part
    )
    if values.get("shift") and not any(line.times or line.days for line in lines):
        raise Unclear("event")
    evidence = tuple(
        Evidence(slot=p.kind, start=s.items[p.start].start, end=s.items[p.end - 1].end)
        for p in phrases
        if p.end > p.start
    )
    return Slots(lines=lines, evidence=evidence, **values)


def _placed(phrases: Sequence[Phrase]) -> Sequence[Phrase]:
    """Places among the weekdays of a month become numbered days: the first working day."""
    number = next((p.value for p in phrases if p.kind == "position"), None)
    if not isinstance(number, int):
        return phrases
    groups = {(0, 1, 2, 3, 4): WORKDAY, (5, 6): WEEKEND_DAY}
    found: list[Phrase] = []
    for each in phrases:
        weekday = (
            groups.get(cast("tuple[int, ...]", each.value)) if each.kind == "weekdays" else None
        )
        if each.kind == "weekdays" and weekday is None:
            raise Unclear("not_understood")
        if weekday is not None:
            nth = (Nth(number=number, weekday=weekday),)
            found.append(Phrase("nths", nth, each.start, each.end))
        elif not (each.kind == "every" and cast("Amount", each.value).unit == "week"):
            found.append(each)
    return found


def _has_kind(phrases: Sequence[Phrase], *kinds: str) -> bool:
    return any(p.kind in kinds for p in phrases)


def _single_values(phrases: Sequence[Phrase]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for phrase in phrases:
        value: Any = phrase.value
        kind = "shift" if phrase.kind == "shift_back" else phrase.kind
        match kind:
            case "offset" | "shift" | "start" | "until" | "length" | "count" | "within" | "ntimes":
                if kind in values and values[kind] != value:
                    raise Unclear("contradiction")
                values[kind] = value
            case "zone":
                if values.setdefault("zone", value) != value:
                    raise Unclear("unknown_zone")
            case "except_weekdays" | "except_months":
                values[phrase.kind] = (*values.get(phrase.kind, ()), *value)
            case "except_day":
                values["except_days"] = (*values.get("except_days", ()), value)
            case "except_time":
                values["except_times"] = (*values.get("except_times", ()), value)
            case "except_range":
                values["except_days"] = (*values.get("except_days", ()), *_range_days(*value))
            case _:
                pass
    return values


def _range_days(first: Day, last: Day) -> list[Day]:
    if first.kind == last.kind == "date" and first.month == last.month and first.year == last.year:
        assert first.day is not None
        assert last.day is not None
        return [replace(first, day=each) for each in range(first.day, last.day + 1)]
    raise Unclear("not_understood")


def _place_start(group: Group, values: dict[str, Any]) -> None:
    """A time beside a start belongs to the start where the recurrence has no times of its own."""
    start: Point | None = values.get("start")
    if start is None or group.sub is None or group.window is not None or not group.times:
        return
    if start.clock is None and len(group.times) == 1:
        values["start"] = replace(start, clock=group.times[0])
        group.times = []


def _place_until(groups: list[Group], values: dict[str, Any]) -> None:
    """ "every weekday until June 30 at 8am": the time is that of the runs."""
    until: Point | None = values.get("until")
    if until is None or until.day is None or until.clock is None or until.zone is not None:
        return
    if any(each.has_times or each.part or each.sub for each in groups):
        return
    values["until"] = replace(until, clock=None)
    for each in groups:
        each.times = [until.clock]


def _line(group: Group) -> Line:
    if group.minutes and group.sub is None:
        raise Unclear("not_understood")
    return Line(
        every=group.every,
        sub=group.sub,
        days=tuple(group.days),
        weekdays=_weekdays(group.weekdays),
        nths=tuple(group.nths),
        monthdays=tuple(dict.fromkeys(group.monthdays)),
        months=group.months,
        yearly=tuple(group.yearly),
        times=tuple(_times(group)),
        window=group.window,
        minutes=tuple(dict.fromkeys(group.minutes)),
    )


def _weekdays(sets: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Two sets of weekdays that are not one list: the smaller inside the larger, or nonsense."""
    if not sets:
        return ()
    found = set(sets[0])
    for each in sets[1:]:
        both = found & set(each)
        if not both or (both != found and both != set(each)):
            raise Unclear("contradiction")
        found = both
    return tuple(sorted(found))


def _times(group: Group) -> list[Clock]:
    if group.part is None:
        return group.times
    if not group.times:
        return [] if group.window is not None else [Clock(part=group.part)]
    return [_with_part(each, group.part) for each in group.times]


def _with_part(clock: Clock, part: Part) -> Clock:
    if clock.hour is None:
        if clock.part == "midnight" and part == "night":
            return Clock(hour=12, part="night")
        return clock
    if clock.part is not None:
        return clock
    return replace(clock, part=part)
