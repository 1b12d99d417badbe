"""Reads an iCalendar (RFC 5545): each VEVENT is a rule, or the reason why it is none.

The library takes the lines apart, and no more than that: what it makes of zones it keeps for ever,
and a stranger's file may name any number of them. Zones are looked up in the tz database, by their
names there or by those that others use for them; what a file says itself of a zone is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from icalendar.parser import Contentline, Contentlines
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from holdfast.errors import InvalidOption
from holdfast.recurrence import Schedule
from holdfast.recurrence.zones import find_zone

MOST_EVENTS: Final = 1000
_TIMES: Final = ("DTSTART", "RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID")
_TEXTS: Final = ("UID", "SUMMARY", "DESCRIPTION", "CATEGORIES", "STATUS")
_PASSED_OVER: Final = ("VTIMEZONE", "VFREEBUSY", "VALARM")


class Entry(NamedTuple):
    """An entry of a calendar that can be a schedule."""

    number: int
    uid: str | None
    summary: str | None
    description: str | None
    category: str | None
    rule: Schedule


class Unread(NamedTuple):
    """An entry that is none, and why. `is_fine`: nobody would expect a schedule of it."""

    number: int
    uid: str | None
    summary: str | None
    field: str
    reason: str
    is_fine: bool = False


class _Line(NamedTuple):
    name: str
    parameters: Mapping[str, str]
    value: str


@dataclass(slots=True)
class _Component:
    """What stands between BEGIN and END."""

    name: str
    number: int
    lines: list[_Line] = field(default_factory=list)
    problem: str | None = None

    def text(self, name: str) -> str | None:
        return next((line.value.strip() or None for line in self.lines if line.name == name), None)

    def named(self, *names: str) -> list[_Line]:
        return [line for line in self.lines if line.name in names]


def read_calendar(text: str, tz: str | None = None) -> list[Entry | Unread]:
    """Every entry of a calendar. `tz` is of those that name no zone. `InvalidOption` if it is no
    calendar at all.
    """
    default = find_zone(tz or "UTC").name
    components = list(_components(text))
    if not components:
        raise InvalidOption("calendar", "expected at least one VEVENT, got none")
    overrides: dict[str, list[_Component]] = {}
    for each in components:
        uid = each.text("UID")
        if uid is not None and each.named("RECURRENCE-ID"):
            overrides.setdefault(uid, []).append(each)
    masters = {each.text("UID") for each in components if not each.named("RECURRENCE-ID")}
    found: list[Entry | Unread] = []
    for each in components:
        uid = each.text("UID")
        if each.named("RECURRENCE-ID") and uid is not None and uid in masters:
            continue  # it says of one run of another entry that it is moved
        found.append(_entry(each, overrides.get(uid or "", ()), default))
    return found


def _entry(component: _Component, overrides: Iterable[_Component], default: str) -> Entry | Unread:
    uid, summary = component.text("UID"), component.text("SUMMARY")
    if component.name != "VEVENT":
        reason = f"expected a VEVENT, got a {component.name}"
        return Unread(component.number, uid, summary, "calendar", reason, is_fine=True)
    if (component.text("STATUS") or "").upper() == "CANCELLED":
        return Unread(component.number, uid, summary, "status", "it is cancelled", is_fine=True)
    try:
        rule = _rule(component, overrides, default)
    except InvalidOption as error:
        reason = str(error).removeprefix(f"{error.option}: ")
        return Unread(component.number, uid, summary, error.option, reason)
    description, category = component.text("DESCRIPTION"), component.text("CATEGORIES")
    return Entry(component.number, uid, summary, description, category, rule)


def _rule(component: _Component, overrides: Iterable[_Component], default: str) -> Schedule:
    if component.problem is not None:
        raise InvalidOption("calendar", component.problem)
    starts = component.named("DTSTART")
    if len(starts) != 1:
        raise InvalidOption("dtstart", f"expected DTSTART once, got it {len(starts)} times")
    start, tz = starts[0], _zone(starts[0], default)
    rest = component.named("RRULE", "RDATE", "EXDATE", "EXRULE")
    moved = [line for each in overrides for line in _override(each)]
    if not any(line.name != "EXDATE" for line in [*rest, *moved]):
        return Schedule.once(start.value.strip(), tz=tz)
    lines = [_written(line, tz) for line in [start, *rest, *moved]]
    return Schedule.rrule("\n".join(lines), tz=tz)


def _override(component: _Component) -> Iterator[_Line]:
    """A run that is moved or cancelled: out at its own time, and in at another."""
    (meant, *_), starts = component.named("RECURRENCE-ID"), component.named("DTSTART")
    is_cancelled = (component.text("STATUS") or "").upper() == "CANCELLED"
    if not is_cancelled and starts and starts[0][1:] == meant[1:]:
        return
    yield meant._replace(name="EXDATE")
    if not is_cancelled and starts:
        yield starts[0]._replace(name="RDATE")


def _written(line: _Line, tz: str) -> str:
    """A line as the engine reads it; `tz` is the zone of the entry, which need not be said."""
    if line.name in ("RRULE", "EXRULE"):
        return f"{line.name}:{line.value}"
    kind = line.parameters.get("VALUE", "").upper()
    value = line.value
    if kind == "PERIOD":
        value, kind = ",".join(each.partition("/")[0] for each in value.split(",")), ""
    own = _zone(line, tz) if "TZID" in line.parameters else tz
    parameters = (f";VALUE={kind}" if kind else "") + (f";TZID={own}" if own != tz else "")
    return f"{line.name}{parameters}:{value}"


def _zone(line: _Line, default: str) -> str:
    """The IANA name of the zone of a line."""
    named = line.parameters.get("TZID")
    if named is None:
        return "UTC" if line.value.strip().upper().endswith("Z") else default
    parts = named.strip().strip("/").split("/")
    known = [named, WINDOWS_TO_OLSON.get(named, ""), *("/".join(parts[-n:]) for n in (3, 2, 1))]
    for each in known:
        try:
            return find_zone(each).name
        except InvalidOption:
            continue
    return find_zone(named).name  # which says what is wrong


def _components(text: str) -> Iterator[_Component]:
    """The entries of all calendars in a text; what is inside of entries is passed over."""
    open_now: list[_Component] = []
    number = 0
    lines: Iterable[Contentline] = Contentlines.from_ical(text)  # type: ignore[no-untyped-call] # theirs
    for raw in lines:
        if not raw:
            continue
        line = _line(raw)
        if not open_now and (line is None or (line.name, line.value) != ("BEGIN", "VCALENDAR")):
            raise InvalidOption(
                "calendar", f"expected it to begin with BEGIN:VCALENDAR, got {str(raw)[:60]!r}"
            )
        if line is None:
            open_now[-1].problem = f"expected lines such as SUMMARY:…, got {str(raw)[:60]!r}"
        elif line.name == "BEGIN":
            open_now.append(_Component(line.value, number))
        elif line.name == "END":
            ended = open_now.pop()
            if line.value != ended.name:
                raise InvalidOption(
                    "calendar", f"expected END:{ended.name}, got END:{line.value[:60]}"
                )
            if len(open_now) == 1 and ended.name not in _PASSED_OVER:
                yield ended
                number += 1
                if number > MOST_EVENTS:
                    raise InvalidOption(
                        "calendar", f"expected at most {MOST_EVENTS:,} entries, got more"
                    )
        elif line.name in (*_TIMES, *_TEXTS):
            open_now[-1].lines.append(line)
    if open_now:
        raise InvalidOption("calendar", f"expected END:{open_now[-1].name} at its end")


def _line(raw: Contentline) -> _Line | None:
    try:
        name, parameters, value = raw.parts()
    except ValueError:
        return None
    known = {str(key).upper(): _first(each) for key, each in parameters.items()}
    name = str(name).upper()
    is_name = name in ("BEGIN", "END")
    return _Line(name, known, str(value).strip().upper() if is_name else str(value))


def _first(value: object) -> str:
    return str(value[0] if isinstance(value, list) and value else value)
