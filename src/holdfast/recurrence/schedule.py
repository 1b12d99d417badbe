"""A schedule: when something runs, in somebody's own time.

It is wall time, a zone and rules; instants are worked out when they are asked for, so that an
update of the tz database moves the runs to where people expect them. Everything here is pure: no
clock is read, the same schedule gives the same runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, Self
from zoneinfo import ZoneInfo

from holdfast.core.duration import Duration, parse_duration
from holdfast.errors import InvalidOption
from holdfast.recurrence.block import MOST_DATES, parse_block
from holdfast.recurrence.compiling import compile_cron, compile_rule, compile_steps, start_instant
from holdfast.recurrence.cron import parse_cron
from holdfast.recurrence.moments import Moment, read_local, read_moment, write_moment
from holdfast.recurrence.preview import PreviewRow, preview_rows
from holdfast.recurrence.rules import MOST_RUNS, parse_rule
from holdfast.recurrence.runs import Runs
from holdfast.recurrence.words import schedule_words
from holdfast.recurrence.zones import (
    DAY,
    FIRST_INSTANT,
    LAST_INSTANT,
    Gap,
    Overlap,
    find_zone,
    read_gap,
    read_overlap,
    to_datetime,
    to_instant,
    to_wall,
)

DEFAULT_START: Final = datetime(2001, 1, 1)  # noqa: DTZ001 - a wall time
"""Where a rule without a start begins: midnight, on a Monday, the first of a month and of a year. A
fixed day, because a rule declared in code must mean the same on every deploy."""

MOST_ROWS: Final = 100_000


class Kind(StrEnum):
    """How a schedule was written."""

    ONCE = "once"
    INTERVAL = "interval"
    CRON = "cron"
    RRULE = "rrule"


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When something runs. Make one with `rrule`, `cron`, `every` or `once`.

    `dtstart` is a wall time in `tz`; `second_pass` says that it is the second of two equal ones.
    """

    kind: Kind
    tz: str
    dtstart: datetime | None = None
    second_pass: bool = False
    rules: tuple[str, ...] = ()
    rdate: tuple[Moment, ...] = ()
    exdate: tuple[Moment, ...] = ()
    line: str | None = None
    step: int | None = None
    gap: Gap = "shift"
    overlap: Overlap = "first"
    until: Moment | None = None
    max_runs: int | None = None
    _runs: Runs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_runs", _compiled(self))

    @classmethod
    def rrule(
        cls,
        text: str,
        *,
        dtstart: object = None,
        tz: object = None,
        rdate: Iterable[object] = (),
        exdate: Iterable[object] = (),
        gap: object = "shift",
        overlap: object = "first",
        until: object = None,
        max_runs: object = None,
    ) -> Self:
        """A schedule of RFC 5545: one rule, or the lines DTSTART, RRULE, RDATE and EXDATE of a
        calendar entry.

        Args:
            text: `FREQ=MONTHLY;BYDAY=-1FR`, with or without `RRULE:`; or several lines.
            dtstart: where it begins, as wall time in `tz` or as an instant; the parts that the rule
                leaves open (time of day, weekday …) come from it. It runs then only if the rule
                says so.
            tz: an IANA name; UTC unless `dtstart` or the text says otherwise.
            rdate: more runs: wall times, instants, or dates (at the time of day of `dtstart`).
            exdate: what is left out: wall times, instants, or dates (the whole day).
            gap: what becomes of wall times that do not exist: `shift` moves them behind, `skip`.
            overlap: which of two equal wall times runs: `first`, `second`, `both`.
            until: no run after it; a date includes its whole day.
            max_runs: no more runs than this, excluded ones counted.
        """
        block = parse_block(text)
        if dtstart is not None and block.dtstart is not None:
            raise InvalidOption("dtstart", "expected it once, got it in the text and as an option")
        start = block.dtstart if dtstart is None else dtstart
        zone = find_zone(_zone_name(tz, block.tz, start))
        extra, left_out = (
            [*block.rdate, *_list("rdate", rdate)],
            [*block.exdate, *_list("exdate", exdate)],
        )
        for name, given in (("rdate", extra), ("exdate", left_out)):
            if len(given) > MOST_DATES:
                raise InvalidOption(
                    name, f"expected at most {MOST_DATES:,} dates, got {len(given):,}"
                )
        counted = any(rule.count for rule in block.rules) or max_runs is not None
        if start is None and (counted or not block.rules):
            raise InvalidOption(
                "dtstart", "expected a start, from which runs are counted, got none"
            )
        local, second = (None, False) if start is None else read_local("dtstart", start, zone)
        return cls(
            kind=Kind.RRULE,
            tz=zone.name,
            dtstart=local,
            second_pass=second,
            rules=tuple(dict.fromkeys(rule.text for rule in block.rules)),
            rdate=_dates("rdate", extra),
            exdate=_dates("exdate", left_out),
            gap=read_gap(gap),
            overlap=read_overlap(overlap),
            until=None if until is None else read_moment("until", until),
            max_runs=_max_runs(max_runs),
        )

    @classmethod
    def cron(
        cls,
        text: str,
        *,
        tz: object = "UTC",
        start: object = None,
        gap: object = "shift",
        overlap: object = "first",
        until: object = None,
        max_runs: object = None,
        exdate: Iterable[object] = (),
    ) -> Self:
        """A cron line of five fields, or a name such as `@daily`, on the wall clock of `tz`."""
        zone = find_zone(tz)
        line = parse_cron(text).text
        if max_runs is not None and start is None:
            raise InvalidOption("start", "expected a start, from which runs are counted, got none")
        local, second = (None, False) if start is None else read_local("start", start, zone)
        return cls(
            kind=Kind.CRON,
            tz=zone.name,
            line=line,
            dtstart=local,
            second_pass=second,
            exdate=_dates("exdate", exdate),
            gap=read_gap(gap),
            overlap=read_overlap(overlap),
            until=None if until is None else read_moment("until", until),
            max_runs=_max_runs(max_runs),
        )

    @classmethod
    def every(
        cls,
        duration: Duration,
        *,
        start: object = None,
        tz: object = None,
        until: object = None,
        max_runs: object = None,
        exdate: Iterable[object] = (),
    ) -> Self:
        """Again and again after the same elapsed time, first at `start`.

        Without a start the runs are those of a fixed day: every 15 minutes means on the quarter
        hour.
        """
        zone = find_zone(_zone_name(tz, None, start))
        if max_runs is not None and start is None:
            raise InvalidOption("start", "expected a start, from which runs are counted, got none")
        local, second = (None, False) if start is None else read_local("start", start, zone)
        return cls(
            kind=Kind.INTERVAL,
            tz=zone.name,
            step=_whole_seconds(duration),
            dtstart=local,
            second_pass=second,
            exdate=_dates("exdate", exdate),
            until=None if until is None else read_moment("until", until),
            max_runs=_max_runs(max_runs),
        )

    @classmethod
    def once(
        cls, at: object, *, tz: object = None, gap: object = "shift", overlap: object = "first"
    ) -> Self:
        """One run, at a wall time in `tz` or at an instant."""
        zone = find_zone(_zone_name(tz, None, at), recurring=False)
        local, second = read_local("at", at, zone)
        return cls(
            kind=Kind.ONCE,
            tz=zone.name,
            dtstart=local,
            gap=read_gap(gap),
            overlap="second" if second else read_overlap(overlap),
        )

    @property
    def start(self) -> datetime:
        """The wall time where it begins; see `DEFAULT_START`."""
        return DEFAULT_START if self.dtstart is None else self.dtstart

    def next_after(self, instant: datetime) -> datetime | None:
        """The first run strictly later than an instant, in UTC; None when there are no more."""
        run = self._runs.next_after(_instant("after", instant))
        return None if run is None else to_datetime(run.instant)

    def between(self, begin: datetime, end: datetime, *, limit: int = 1000) -> list[datetime]:
        """The runs from `begin` up to `end`, which is not inside, the first `limit` of them: ranges
        that follow each other share no run.
        """
        after, stop = _instant("begin", begin, up=True) - 1, _instant("end", end, up=True)
        found: list[datetime] = []
        for _ in range(_limit("limit", limit)):
            run = self._runs.next_after(after)
            if run is None or run.instant >= stop:
                break
            found.append(to_datetime(run.instant))
            after = run.instant
        return found

    def preview(
        self, n: int = 5, *, after: datetime | None = None, tz: object = None
    ) -> list[PreviewRow]:
        """The next `n` runs for people to look at, from the first one unless `after` is given.

        Local times are those of `tz`, the schedule's own unless given; flags speak of the
        schedule's.
        """
        if after is None and self.dtstart is None:
            raise InvalidOption("after", "expected a time, as the schedule has no start, got none")
        begin = FIRST_INSTANT if after is None else _instant("after", after)
        shown = self._runs.zone if tz is None else find_zone(tz, recurring=False)
        rules = [parse_rule(text) for text in self.rules]
        rule = rules[0].explicit(self.start) if len(rules) == 1 and not self.rdate else None
        return preview_rows(self._runs, begin, _limit("n", n), shown, rule, self.start)

    def shortest_gap(self) -> int | None:
        """The seconds between the two closest runs, None if there is one run at most.

        Exact for plain intervals; of other rules the first 600 runs are looked at, which is more
        than a year of daily ones.
        """
        return self._runs.shortest_gap()

    def describe(self) -> str:
        """The schedule in plain English."""
        return schedule_words(self)

    @property
    def words(self) -> str:
        """The schedule in plain English."""
        return self.describe()

    def to_json(self) -> dict[str, Any]:
        """Everything that makes the schedule, as plain JSON; `from_json` gives an equal one
        back.
        """
        values: dict[str, Any] = {
            "tz": self.tz,
            "dtstart": None if self.dtstart is None else write_moment(self.dtstart),
            "second_pass": self.second_pass,
            "rules": list(self.rules),
            "cron": self.line,
            "every": self.step,
            "rdate": [write_moment(each) for each in self.rdate],
            "exdate": [write_moment(each) for each in self.exdate],
            "gap": self.gap,
            "overlap": self.overlap,
            "until": None if self.until is None else write_moment(self.until),
            "max_runs": self.max_runs,
        }
        return {"kind": self.kind.value, **{key: values[key] for key in _KEYS[self.kind]}}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The schedule that `to_json` wrote; everything is checked again, unknown keys are
        refused.
        """
        given = _checked_keys(value)
        kind, tz = Kind(given["kind"]), given.get("tz", "UTC")
        start = given.get("dtstart")
        if given.get("second_pass"):
            zone = find_zone(tz)
            local, _ = read_local("dtstart", start, zone)
            start = to_datetime(start_instant(local, True, zone))
        options = {
            key: given[key]
            for key in ("gap", "overlap", "until", "max_runs", "rdate", "exdate")
            if key in given
        }
        match kind:
            case Kind.ONCE:
                return cls.once(start, tz=tz, **options)
            case Kind.INTERVAL:
                return cls.every(_known(given, "every"), start=start, tz=tz, **options)
            case Kind.CRON:
                return cls.cron(_known(given, "cron"), start=start, tz=tz, **options)
            case Kind.RRULE:
                rules = "\n".join(given.get("rules", ()))
                if not rules and start is not None:
                    rules = f"DTSTART:{start}"
                    start = None
                return cls.rrule(rules, dtstart=start, tz=tz, **options)


_BOUNDS: Final = ("exdate", "until", "max_runs")
_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.ONCE: ("tz", "dtstart", "gap", "overlap"),
    Kind.INTERVAL: ("tz", "every", "dtstart", "second_pass", *_BOUNDS),
    Kind.CRON: ("tz", "cron", "dtstart", "second_pass", "gap", "overlap", *_BOUNDS),
    Kind.RRULE: ("tz", "rules", "dtstart", "second_pass", "rdate", "gap", "overlap", *_BOUNDS),
}


def every(duration: Duration, **options: Any) -> Schedule:
    """`Schedule.every` for declarations: `every("90m")`."""
    return Schedule.every(duration, **options)


def rrule(text: str, **options: Any) -> Schedule:
    """`Schedule.rrule` for declarations: `rrule("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17")`."""
    return Schedule.rrule(text, **options)


def _compiled(schedule: Schedule) -> Runs:
    zone = find_zone(schedule.tz, recurring=schedule.kind is not Kind.ONCE)
    local, clock = schedule.start, to_wall(schedule.start) % DAY
    start = start_instant(local, schedule.second_pass, zone)
    gap, overlap = schedule.gap, schedule.overlap
    match schedule.kind:
        case Kind.RRULE:
            sources = [
                compile_rule(parse_rule(text), local, schedule.second_pass, zone, gap, overlap)
                for text in schedule.rules
            ]
            runs = Runs(sources, zone, gap, overlap)
            runs.add_dates(schedule.rdate if sources else [*schedule.rdate, local], clock)
        case Kind.CRON:
            begin = None if schedule.dtstart is None else start
            cron = parse_cron(schedule.line)
            runs = Runs([compile_cron(cron, begin, zone, gap, overlap)], zone, gap, overlap)
        case Kind.INTERVAL:
            assert schedule.step is not None
            runs = Runs([compile_steps(start, schedule.step, zone)], zone, gap, overlap)
        case Kind.ONCE:
            runs = Runs([], zone, gap, overlap)
            runs.add_dates([local], clock)
            if runs.next_after(FIRST_INSTANT) is None:
                raise InvalidOption(
                    "at", f"expected a time that exists in {zone.name}, got {write_moment(local)}"
                )
    runs.end(schedule.until, schedule.max_runs)
    runs.exclude(schedule.exdate)
    return runs


def _zone_name(tz: object, tzid: str | None, start: object) -> object:
    if tz is not None:
        if tzid is not None and find_zone(tz).name != tzid:
            raise InvalidOption("tz", f"expected one zone, got {tz!r} and TZID={tzid[:40]}")
        return tz
    if tzid is not None:
        return tzid
    if isinstance(start, datetime) and isinstance(start.tzinfo, ZoneInfo):
        return start.tzinfo.key
    return "UTC"


def _list(name: str, values: object) -> list[object]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidOption(name, f"expected a list of times, got {values!r:.40}")
    return list(values)


def _dates(name: str, values: Iterable[object]) -> tuple[Moment, ...]:
    if isinstance(values, str):
        raise InvalidOption(name, f"expected a list of times, got {values[:40]!r}")
    found = {
        write_moment(moment): moment for moment in (read_moment(name, each) for each in values)
    }
    return tuple(found[key] for key in sorted(found))


def _whole_seconds(duration: object) -> int:
    try:
        seconds = parse_duration(duration)
    except ValueError as error:
        raise InvalidOption("every", str(error)) from None
    if seconds < 1 or seconds != int(seconds):
        raise InvalidOption(
            "every", f"expected a whole number of seconds, at least 1, got {duration!r}"
        )
    return int(seconds)


def _max_runs(value: object) -> int | None:
    if value is None:
        return None
    return _limit("max_runs", value, MOST_RUNS)


def _limit(name: str, value: object, most: int = MOST_ROWS) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidOption(name, f"expected a whole number from 1 to {most:,}, got {value!r}")
    return value


def _instant(name: str, value: object, *, up: bool = False) -> int:
    """The second of an instant, rounded down, or up so that nothing before it is meant."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidOption(name, f"expected a datetime with a zone, got {value!r}")
    instant = to_instant(value) + (1 if up and value.microsecond else 0)
    return min(max(instant, FIRST_INSTANT), LAST_INSTANT)


def _checked_keys(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidOption(
            "schedule", f"expected a mapping with a kind, got {type(value).__name__}"
        )
    kind = value.get("kind")
    if kind not in list(Kind):
        raise InvalidOption("kind", f"expected one of {', '.join(Kind)}, got {kind!r}")
    known = ("kind", *_KEYS[Kind(kind)])
    for key in value:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise InvalidOption(
                "schedule", f"expected {', '.join(known)}, got {str(key)[:40]!r}{hint}"
            )
    for key in ("rules", "rdate", "exdate"):
        listed = value.get(key, [])
        if not isinstance(listed, list | tuple) or not all(isinstance(e, str) for e in listed):
            raise InvalidOption(key, f"expected a list of texts, got {listed!r:.60}")
    return value


def _known(given: Mapping[str, Any], key: str) -> Any:
    if key not in given:
        raise InvalidOption(key, "expected a value, got none")
    return given[key]
