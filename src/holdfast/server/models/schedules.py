"""Requests about schedules."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Required

from pydantic import Field, StringConstraints, WithJsonSchema, with_config
from typing_extensions import TypedDict

from holdfast.core.schedule_answers import CatchUpWord, OverlapWord
from holdfast.definitions.readers import LONGEST_NAME
from holdfast.filters import MOST_PER_PAGE
from holdfast.recurrence.rules import MOST_RUNS
from holdfast.schedules.book import MOST_BACKFILLED
from holdfast.schedules.reading import LONGEST_TEXT, MOST_CAUGHT_UP
from holdfast.server.models import words
from holdfast.server.models.tasks import Backoff
from holdfast.server.shape import CLOSED, SPELLED

MOST_DATES: Final = 10_000
MOST_PREVIEWED: Final = 1000
LONGEST_CALENDAR: Final = 1024 * 1024
_DAY: Final = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
_OFFSET: Final = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"


def _text(longest: int, description: str, *examples: str, pattern: str | None = None) -> Any:
    """Text that the engine of schedules reads, and says better than a pattern what is wrong."""
    schema: dict[str, Any] = {
        "type": "string",
        "minLength": 1,
        "maxLength": longest,
        "pattern": pattern or words.NO_NUL,
        "description": description,
        "examples": list(examples),
    }
    return WithJsonSchema(schema)


_Plain = Annotated[str, StringConstraints(max_length=200_000, strict=True)]
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_TEXT, pattern=words.NO_NUL, strict=True)
]
Label = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=words.NO_NUL, strict=True)
]
ScheduleName = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=LONGEST_NAME, pattern=f"^[{words.LETTERS}]+$", strict=True
    ),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_NAME,
            "pattern": "^[A-Za-z0-9_:-][A-Za-z0-9_:.-]*$",
            "not": {"enum": ["preview", "import", "calendar.ics"]},
        }
    ),
]
Zone = Annotated[
    _Plain,
    _text(100, "An IANA name. UTC unless given.", "Europe/Berlin", pattern="^[A-Za-z0-9_+/-]+$"),
]
Moment = Annotated[
    _Plain,
    _text(
        40,
        "A time on the wall of the zone; with an offset or Z an instant; or a day.",
        "2026-12-24T18:00",
        pattern=f"^{_DAY}(T{_CLOCK}{_OFFSET}?)?$",
    ),
]
At = Annotated[
    _Plain,
    _text(
        40,
        "A time on the wall of the zone, to come; with an offset or Z an instant.",
        "2030-12-24T18:00",
        pattern=f"^{_DAY}T{_CLOCK}{_OFFSET}?$",
    ),
]
CronLine = Annotated[
    _Plain,
    _text(
        1000,
        "Five fields (minute, hour, day of month, month, day of week), or a name.",
        "0 9 * * 1-5",
        pattern=r"^\s*(@[A-Za-z]+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s*$",
    ),
]
RuleText = Annotated[
    _Plain,
    _text(
        200_000,
        "A rule of RFC 5545, or the lines DTSTART, RRULE, RDATE and EXDATE of an entry.",
        "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17",
    ),
]
AnyRule = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200_000,
                    "pattern": words.NO_NUL,
                    "description": "A cron line, an RRULE, `every 90m`, or a time.",
                    "examples": ["0 9 * * 1-5"],
                },
                {"type": "object", "description": "As answers have it.", "minProperties": 1},
            ]
        }
    ),
]
Interval = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 3_000_000_000},
                {
                    "type": "string",
                    "pattern": "^[1-9][0-9]{0,6}[smhd]$",
                    "examples": ["90m"],
                },
            ],
            "description": "Seconds, or a duration. Elapsed time, whatever clocks do.",
        }
    ),
]
MaxRuns = Annotated[int, Field(ge=1, le=MOST_RUNS)]
Dates = Annotated[list[Moment], Field(max_length=MOST_DATES)]
Most = Annotated[int, Field(ge=1, le=MOST_CAUGHT_UP)]
Failures = Annotated[int, Field(ge=1, le=1_000_000)]
Units = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


class TaskWords(TypedDict, total=False):
    """What a run submits, but for its type."""

    parameters: dict[str, Any]
    queue: words.Name
    priority: words.PriorityWord
    required_capabilities: words.Names
    timeout_seconds: words.TimeLimit
    max_retries: words.Retries
    retry: Backoff
    unique_key: words.Key
    lock: words.Key
    tags: words.Tags
    callback_url: words.Url


class RuleWords(TypedDict, total=False):
    """When it runs: one of `cron`, `rrule`, `every`, `at` and `rule`, in the zone `tz`. The other
    words bound it: from `dtstart` on, not after `until`, no more than `max_runs`, also at `rdate`,
    not at `exdate`. `gap` says what becomes of times that the clock skips.
    """

    cron: CronLine
    rrule: RuleText
    every: Interval
    at: At
    rule: AnyRule
    tz: Zone
    dtstart: Moment
    until: Moment
    max_runs: MaxRuns
    rdate: Dates
    exdate: Dates
    gap: Literal["shift", "skip"]


class BehaviourWords(TypedDict, total=False):
    """What becomes of a run while the one before has not ended (`overlap`), of runs that nobody
    could fire in time (`catch_up`: at most so many, within a window), by how much runs are spread,
    and after how many failures it is paused.
    """

    overlap: OverlapWord
    catch_up: CatchUpWord
    catch_up_most: Most
    catch_up_window_seconds: words.Seconds
    jitter_seconds: words.Seconds
    pause_after_failures: Failures


class AboutWords(TypedDict, total=False):
    """What people want to know of it, and who reads its results."""

    owner: words.Name
    title: Text
    description: Text
    purpose: Text
    category: Text
    delivery_title: Text
    channels: Annotated[list[Label], Field(max_length=1000)]
    estimated_units: Units
    chat_id: Text
    message_id: Text


@with_config(CLOSED)
class NewSchedule(TaskWords, RuleWords, BehaviourWords, AboutWords, total=False):
    """A schedule to be: the task that it submits, and when (one of `cron`, `rrule`, `every`, `at`
    and `rule`). Without a `name` it is given one.
    """

    task_type: Required[words.Name]
    name: ScheduleName


@with_config(CLOSED)
class ChangedSchedule(TaskWords, total=False):
    """What changes; the rest stays, the zone of another rule too. Null takes back what may be
    missing. With `task_type` all that it submits is replaced.
    """

    task_type: words.Name
    cron: CronLine
    rrule: RuleText
    every: Interval
    at: At
    rule: AnyRule
    tz: Zone
    dtstart: Moment | None
    until: Moment | None
    max_runs: MaxRuns | None
    rdate: Dates
    exdate: Dates
    gap: Literal["shift", "skip"]
    overlap: OverlapWord
    catch_up: CatchUpWord
    catch_up_most: Most
    catch_up_window_seconds: words.Seconds | None
    jitter_seconds: words.Seconds
    pause_after_failures: Failures | None
    owner: words.Name | None
    title: Text | None
    description: Text | None
    purpose: Text | None
    category: Text | None
    delivery_title: Text | None
    channels: Annotated[list[Label], Field(max_length=1000)]
    estimated_units: Units | None
    chat_id: Text | None
    message_id: Text | None


@with_config(CLOSED)
class PreviewWords(RuleWords, total=False):
    """A rule to try, in any zone over any range: the next `n` runs `after` an instant (now, unless
    given), or those `between` two, the second not inside. Local times are in `show_tz`, the rule's
    own zone unless given. Nothing is stored.
    """

    n: Annotated[int, Field(ge=1, le=MOST_PREVIEWED)]
    after: words.Instant
    between: Annotated[list[words.Instant], Field(min_length=2, max_length=2)]
    show_tz: Zone


@with_config(SPELLED)
class PreviewQuery(TypedDict, total=False):
    """The query of a preview: the next `n` runs `after` an instant, in any zone."""

    n: Annotated[int, Field(ge=1, le=MOST_PREVIEWED)]
    after: words.Instant
    tz: Zone


@with_config(SPELLED)
class ScheduleSearch(TypedDict, total=False):
    """The query of a list of schedules."""

    owner: words.Name
    after: words.Key
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)]


@with_config(SPELLED)
class RunSearch(TypedDict, total=False):
    """The query of the runs of a schedule."""

    after: words.Key
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)]


@with_config(CLOSED)
class Pausing(TypedDict, total=False):
    """For how long, and why."""

    until: words.Instant
    note: Text


@with_config(CLOSED)
class Backfilling(TypedDict, total=False):
    """Which range, its end not inside, and how many runs at most."""

    begin: Required[words.Instant]
    end: Required[words.Instant]
    most: Annotated[int, Field(ge=1, le=MOST_BACKFILLED)]


@with_config(SPELLED)
class CalendarQuery(TypedDict, total=False):
    """The query of a calendar."""

    owner: words.Name


class ImportOptions(TypedDict, total=False):
    """What the schedules of a calendar have in common. `tz` is of entries that name no zone. With
    `unread=skip` what cannot be read is left out; else nothing is made then.
    """

    task_type: Required[words.Name]
    queue: words.Name
    tz: Zone
    owner: words.Name
    unread: Literal["refuse", "skip"]


@with_config(SPELLED)
class ImportQuery(ImportOptions, total=False):
    """The query of an import, beside a calendar as the body."""


@with_config(CLOSED)
class Import(ImportOptions, total=False):
    """A calendar, and what its schedules have in common."""

    calendar: Required[Annotated[str, StringConstraints(max_length=LONGEST_CALENDAR, strict=True)]]
    parameters: dict[str, Any]
