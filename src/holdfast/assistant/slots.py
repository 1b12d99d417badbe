"""What a request says about its time, before anybody works out a date.

A planner, be it the grammar or a model, fills these slots with what the words say: "next Friday",
"half past four", "every two weeks". It never writes a date that was not said, nor rule text:
`compiler.py` turns slots, the present time and the zone into a schedule or a refusal, so that both
planners make the same schedule from the same reading.

Weekdays count from 0 (Monday) to 6 (Sunday). Every value is frozen and has a JSON form, see
`slots_json.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Half = Literal["am", "pm"]
Part = Literal[
    "morning", "noon", "afternoon", "evening", "night", "midnight", "end_of_day", "business_hours"
]
Unit = Literal[
    "second", "minute", "hour", "day", "workday", "week", "weekend", "month", "quarter", "year"
]
DayKind = Literal[
    "relative", "offset", "weekday", "date", "monthday", "nth", "edge", "holiday", "unclear"
]
Operation = Literal[
    "reschedule", "pause", "resume", "cancel", "run_now", "skip", "deliver", "rename"
]
Channel = Literal["EMAIL", "WEB", "MOBILE"]
Trouble = Literal[
    "sun", "moon", "feast", "event", "vague_time", "vague_recurrence", "unknown_date", "no_day",
    "bimonthly", "contradiction", "unknown_zone", "impossible_time", "impossible_date",
    "small_talk", "not_understood", "too_long", "past", "too_soon", "no_target", "no_end",
    "no_purpose", "question",
]  # fmt: skip
"""What makes a request impossible to schedule; `refusals.py` says which fields each one names."""

WORKDAY: Final = 7
"""In place of a weekday: any day from Monday to Friday."""
ANY_DAY: Final = 8
"""In place of a weekday: any day at all."""
WEEKEND_DAY: Final = 9
"""In place of a weekday: Saturday or Sunday."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A time of day as it was written.

    `hour` None means that only a part of the day was named. `written` says that the hour is of a
    24-hour clock: a leading zero, an hour above 12, or a language that writes it so.
    """

    hour: int | None = None
    minute: int = 0
    second: int = 0
    half: Half | None = None
    part: Part | None = None
    written: bool = False


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A number of units: the `two hours` of "in two hours"."""

    number: int
    unit: Unit


@dataclass(frozen=True, kw_only=True)
class Day:
    """One day as it was said. Which fields count depends on `kind`:

    relative  `number` days from today: 0 today, 1 tomorrow, -1 yesterday
    offset    `number` of `unit` from today, calendar time
    weekday   `weekday`, the first one ahead; in the week `shift` weeks from this one if given
    date      `month`, `day`, and `year` if it was said
    monthday  `day` of the month `shift` months ahead; the first one ahead if shift is None
    nth       the `number`-th `weekday` of a period: the `unit` that is `shift` ahead, or `month`
    edge      the last (`number` -1) or first (1) day of the `unit` `shift` ahead, or of `month`
    holiday   a holiday by its `name`
    unclear   a period without a day: "next month"; `unit` and `shift` say which

    `before` counts days back from it; `check` is a weekday that was said beside it.
    """

    kind: DayKind
    number: int = 0
    unit: Unit = "day"
    weekday: int | None = None
    day: int | None = None
    month: int | None = None
    year: int | None = None
    shift: int | None = None
    name: str | None = None
    before: int = 0
    check: int | None = None


@dataclass(frozen=True, kw_only=True)
class Nth:
    """The `number`-th such day of a period; negative numbers count from its end."""

    number: int
    weekday: int


@dataclass(frozen=True, kw_only=True)
class Window:
    """From a time of day to another, both included; it may pass midnight."""

    start: Clock
    end: Clock


@dataclass(frozen=True, kw_only=True)
class Line:
    """Days with their times. A request has several lines when its days have times of their own.

    `every` makes it recur; without it `days` are single days. The other fields narrow or name the
    days of a recurrence. `minutes` are minutes past the hour. `sparse` says that the days were
    named singly ("Friday", not "Fridays" or "every Friday"), which matters to updates only.
    """

    every: Amount | None = None
    days: tuple[Day, ...] = ()
    weekdays: tuple[int, ...] = ()
    monthdays: tuple[int, ...] = ()
    nths: tuple[Nth, ...] = ()
    months: tuple[int, ...] = ()
    yearly: tuple[Day, ...] = ()
    times: tuple[Clock, ...] = ()
    window: Window | None = None
    minutes: tuple[int, ...] = ()
    sub: Amount | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """A day, a time of day, or both; in the zone of the request unless it has its own."""

    day: Day | None = None
    clock: Clock | None = None
    zone: str | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Which characters of the request a slot was read from."""

    slot: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Slots:
    """Everything that a request says.

    Attributes:
        purpose: what is to be done, in the user's words, without the time.
        lines: when; empty when the request names no time at all.
        offset: elapsed time and days from now: "in two days and three hours".
        shift: amounts by which the stated time is moved; negative is earlier. "15 minutes before
            the 2pm demo", or in an update "an hour later".
        start, until: where a recurrence begins and ends, the day of `until` included.
        length: for how long, counted from the first run.
        count: how many runs.
        within: the calendar period that bounds it; `number` periods ahead, 0 is the present one.
        except_weekdays, except_days, except_months, except_times: what is left out.
        zone: the place or zone as it was said; "user" is the user's own.
        trouble: why it cannot be scheduled, found while reading.
        operation, target, title, channels, channel_change, pause_until, skip_runs: of an update;
            `target` is the words that name a task.
    """

    purpose: str = ""
    lines: tuple[Line, ...] = ()
    offset: tuple[Amount, ...] = ()
    shift: tuple[Amount, ...] = ()
    start: Point | None = None
    until: Point | None = None
    length: Amount | None = None
    count: int | None = None
    within: Amount | None = None
    except_weekdays: tuple[int, ...] = ()
    except_days: tuple[Day, ...] = ()
    except_months: tuple[int, ...] = ()
    except_times: tuple[Clock, ...] = ()
    zone: str | None = None
    trouble: Trouble | None = None
    operation: Operation | None = None
    target: str | None = None
    title: str | None = None
    channels: tuple[Channel, ...] = ()
    channel_change: Literal["set", "add", "remove"] = "set"
    skip_runs: int = 1
    evidence: tuple[Evidence, ...] = ()

    @property
    def has_schedule(self) -> bool:
        """Whether anything at all was said about when."""
        return bool(self.lines or self.offset or self.trouble)

    @property
    def recurs(self) -> bool:
        """Whether it is to run more than once."""
        return any(line.every is not None for line in self.lines)
