"""A series: a schedule as it is kept, with what it submits, how it behaves and how far it has come.

It is one record, due at its next run. Whoever takes it writes the runs and the advanced series in
one commit (`firing`), so any number of processes may try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from holdfast.core.record import Put, Record
from holdfast.core.task import Json, NewTask, TaskId
from holdfast.errors import InvalidOption
from holdfast.recurrence import Schedule, tz_version
from holdfast.schedules.jitter import jittered
from holdfast.schedules.template import dump_template, load_template

SERIES: Final = "schedule"
"""The kind of these records. The group is the owner."""


class Status(StrEnum):
    """Whether a series goes on."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"  # its rule has no more runs
    FAILED = "failed"  # its rule cannot be read any more: its zone is gone, say


class Overlap(StrEnum):
    """What becomes of a run while the one before has not ended."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"  # one waits, more are skipped
    QUEUE_ALL = "queue_all"
    CANCEL_RUNNING = "cancel_running"
    ALLOW = "allow"


class CatchUpMode(StrEnum):
    """Which of the runs are made up for that came due while nobody could fire them."""

    ONE = "one"  # the last of them
    ALL = "all"
    SKIP = "skip"


class CatchUp(NamedTuple):
    """How runs are made up for: at most so many, none older than `window` seconds. None: the time
    between two runs, 12 hours at most; a day for the last one.
    """

    mode: CatchUpMode = CatchUpMode.ONE
    most: int = 100
    window: float | None = None


DEFAULT_CATCH_UP: Final = CatchUp()


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What people want to know of a series, and who reads its results."""

    owner: str | None = None
    title: str | None = None
    description: str | None = None
    purpose: str | None = None
    category: str | None = None
    delivery_title: str | None = None
    channels: tuple[str, ...] = ()
    estimated_units: float | None = None
    chat_id: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """`version` counts its edits. `skips` are runs to leave out, `open` the tasks whose ends it has
    not seen yet, `failures` how many failed one after another. `next_wall` is when the next run is
    by the clock on the wall: if the tz database moves that, it is still the same run. `declared` is
    the fingerprint of the declaration in code, `declared_in` the module that it stands in, and
    `edited` whether people have changed it since.
    """

    id: str
    rule: Schedule
    template: NewTask
    version: int = 1
    status: Status = Status.ACTIVE
    note: str | None = None
    paused_until: datetime | None = None
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = DEFAULT_CATCH_UP
    jitter: float = 0.0
    pause_after_failures: int | None = None
    next_at: datetime | None = None
    next_wall: str | None = None
    last_at: datetime | None = None
    skips: tuple[datetime, ...] = ()
    runs: int = 0
    failures: int = 0
    open: tuple[TaskId, ...] = ()
    about: About = field(default_factory=About)
    declared: str | None = None
    declared_in: str | None = None
    edited: bool = False
    tz_version: str = field(default_factory=tz_version)
    created_at: datetime
    updated_at: datetime

    @property
    def due_at(self) -> datetime | None:
        """When somebody must look at it."""
        match self.status:
            case Status.ACTIVE if self.next_at is not None:
                return jittered(self.id, self.rule, self.next_at, self.jitter)
            case Status.PAUSED:
                return self.paused_until
            case _:
                return None

    def going_on(self, next_at: datetime | None) -> Series:
        """The same with this next run, or over if there is none."""
        return replace(
            self,
            next_at=next_at,
            next_wall=None if next_at is None else wall_time(self.rule, next_at),
            status=Status.COMPLETED if next_at is None else Status.ACTIVE,
            tz_version=tz_version(),
        )

    def edit(self, now: datetime, **changes: Any) -> Series:
        """The next version of it."""
        return replace(self, version=self.version + 1, updated_at=now, **changes)

    def put(self, version: int | None) -> Put:
        """Write it over this version of its record; 0 if it is new."""
        return Put(
            SERIES,
            self.id,
            dump_series(self),
            version=version,
            group=self.about.owner or "",
            sort=self.id,
            due_at=self.due_at,
        )


_FIELDS: Final = tuple(each.name for each in fields(Series))


def dump_series(series: Series) -> str:
    said = {name: getattr(series, name) for name in _FIELDS}
    said["rule"] = series.rule.to_json()
    said["template"] = dump_template(series.template)
    said["catch_up"] = list(series.catch_up)
    return orjson.dumps(said).decode()


def load_series(record: Record) -> Series:
    """What `dump_series` wrote. If its zone is not known any more it has failed: then the rule is
    that of UTC, for people to look at and to mend.
    """
    said: dict[str, Json] = orjson.loads(record.document)
    mode, most, window = said["catch_up"]
    try:
        rule = _rule(orjson.dumps(said["rule"]))
    except InvalidOption as error:
        rule = Schedule.from_json({**said["rule"], "tz": "UTC"})
        said |= {"status": Status.FAILED, "note": str(error)}
    said |= {
        "rule": rule,
        "template": load_template(said["template"]),
        "status": Status(said["status"]),
        "overlap": Overlap(said["overlap"]),
        "catch_up": CatchUp(CatchUpMode(mode), most, window),
        "skips": tuple(map(datetime.fromisoformat, said["skips"])),
        "open": tuple(said["open"]),
        "about": About(**said["about"] | {"channels": tuple(said["about"]["channels"])}),
    }
    for name in ("paused_until", "next_at", "last_at", "created_at", "updated_at"):
        said[name] = None if said[name] is None else datetime.fromisoformat(said[name])
    return Series(**said)


def wall_time(rule: Schedule, at: datetime) -> str:
    """The time that a run is meant for on the wall, in the zone of its rule."""
    zone = ZoneInfo(rule.tz)
    local = at.astimezone(zone)
    if local.utcoffset() != (at - timedelta(days=1)).astimezone(zone).utcoffset():
        [row] = rule.preview(1, after=at - timedelta(seconds=1))
        local = row.meant or local
    return local.replace(tzinfo=None).isoformat()


@lru_cache(maxsize=4096)
def _rule(said: bytes) -> Schedule:
    """To work out when a rule runs takes a while, and many series have the same."""
    return Schedule.from_json(orjson.loads(said))


def failed_document(record: Record, note: str) -> str:
    """The document of a series whose rule cannot be read, with the reason."""
    said: Mapping[str, Json] = orjson.loads(record.document)
    return orjson.dumps({**said, "status": Status.FAILED, "note": note}).decode()
