"""Occurrences: what became of each run of a series.

One record for each (series, version, instant), written in the commit that fires it or lets it go.
Its key is what makes a run exactly one, whoever tries: the same instant is fired once, even by a
backfill. It is forgotten after `retention`, as tasks are.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

import orjson

from holdfast.core.record import Put, Record
from holdfast.core.task import TaskId

OCCURRENCE: Final = "occurrence"
"""The kind of these records. The group is the series, sorted by instant."""


class Origin(StrEnum):
    """Why a run was fired."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    BACKFILL = "backfill"
    MANUAL = "manual"


class RunStatus(StrEnum):
    """What became of a run. How a fired one ended, its task says."""

    FIRED = "fired"
    SKIPPED = "skipped"  # on purpose: somebody asked, or the one before had not ended
    MISSED = "missed"  # nobody could fire it in time


class Occurrence(NamedTuple):
    """A run. `number` runs up to `until` are told of together, if they are many."""

    series: str
    version: int
    at: datetime
    status: RunStatus
    origin: Origin = Origin.SCHEDULE
    fired_at: datetime | None = None
    task_id: TaskId | None = None
    reason: str | None = None
    number: int = 1
    until: datetime | None = None

    @property
    def lateness(self) -> float | None:
        """Seconds from when it was meant to run until it was fired."""
        return None if self.fired_at is None else (self.fired_at - self.at).total_seconds()


def occurrence_key(series: str, version: int, at: datetime) -> str:
    return f"{series} {version} {at.isoformat()}"


def sort_of(at: datetime) -> str:
    """The place of a run among those of its series."""
    return at.isoformat()


def put_occurrence(one: Occurrence, keep: float, *, version: int = 0) -> Put:
    """Write it over this version of what is known of the run; forget it after so many seconds."""
    key = occurrence_key(one.series, one.version, one.at)
    if one.origin is Origin.MANUAL:  # beside the runs of the rule
        key = f"{key} {one.task_id}"
    said = {
        "version": one.version,
        "at": one.at.isoformat(),
        "status": one.status,
        "origin": one.origin,
        "fired_at": None if one.fired_at is None else one.fired_at.isoformat(),
        "task_id": one.task_id,
        "reason": one.reason,
        "number": one.number,
        "until": None if one.until is None else one.until.isoformat(),
    }
    return Put(
        OCCURRENCE,
        key,
        orjson.dumps(said).decode(),
        version=version,
        group=one.series,
        sort=sort_of(one.at),
        due_in=keep,
    )


def read_occurrence(record: Record) -> Occurrence:
    said = orjson.loads(record.document)
    fired_at, until = said["fired_at"], said["until"]
    return Occurrence(
        record.group,
        said["version"],
        datetime.fromisoformat(said["at"]),
        RunStatus(said["status"]),
        Origin(said["origin"]),
        None if fired_at is None else datetime.fromisoformat(fired_at),
        said["task_id"],
        said["reason"],
        said["number"],
        None if until is None else datetime.fromisoformat(until),
    )
