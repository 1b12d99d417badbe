"""What was noted of each minute, and what happened between two notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

import orjson

from holdfast.core import metrics
from holdfast.core.fleet import ALIVE, WorkerInfo, WorkerStatus, for_tasks
from holdfast.core.metrics import Counts, Spread
from holdfast.core.record import Record
from holdfast.core.stats import Stats
from holdfast.core.task import Priority, State
from holdfast.ports.store import Store

MINUTE: Final = "minute"
"""The kind of the notes. The key is the minute, ISO 8601."""
_NOTED: Final = (
    metrics.TASK_STATES.name, metrics.RETRIES.name, metrics.FAILED.name, metrics.DEAD.name,
    metrics.WAITS.name,
)  # fmt: skip
MOST_QUEUES: Final = 50
"""The deepest queues are noted, so many at most."""
RECENT: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """How it stood at an instant, soon after a minute began if somebody was there; `counts` are
    from the beginning of time. `workers` are active ones, `capacity` and `running` those of live
    ones, `oldest` is in seconds.
    """

    at: datetime
    counts: Counts
    depths: Mapping[str, int]
    oldest: Mapping[Priority, float]
    workers: int
    capacity: int
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What happened from `at` until `seconds` later. Dead letters have failed."""

    at: datetime
    seconds: float
    completed: int
    failed: int
    dead: int
    retried: int
    waits: Mapping[Priority, Spread]


def minute_of(now: datetime) -> str:
    """The key of the note of the minute that `now` is in."""
    return now.astimezone(UTC).replace(second=0, microsecond=0).isoformat()


def note_of(now: datetime, counts: Counts, stats: Stats, workers: Sequence[WorkerInfo]) -> str:
    """The document of a note."""
    alive = [one for one in for_tasks(workers) if one.status in ALIVE]
    active = sum(one.status is WorkerStatus.ACTIVE for one in alive)
    deepest = sorted(stats.queues, key=lambda one: -one.ready)[:MOST_QUEUES]
    noted = Counts(
        {key: number for key, number in counts.numbers.items() if key[0] in _NOTED},
        {key: spread for key, spread in counts.spreads.items() if key[0] in _NOTED},
    )
    oldest: dict[Priority, float] = {}
    for queue in stats.queues:
        for depth in queue.depths:
            age = depth.oldest_seconds or 0.0
            oldest[depth.priority] = max(age, oldest.get(depth.priority, 0.0))
    said = {
        "at": now.isoformat(),
        "counts": noted.to_json(),
        "depths": {one.queue: one.ready for one in deepest if one.ready},
        "oldest": {priority.value: age for priority, age in oldest.items()},
        "workers": active,
        "capacity": sum(one.capacity for one in alive),
        "running": sum(one.load for one in alive),
    }
    return orjson.dumps(said).decode()


def read_note(record: Record) -> Note:
    said = orjson.loads(record.document)
    return Note(
        at=datetime.fromisoformat(said["at"]),
        counts=Counts.from_json(said["counts"]),
        depths=said["depths"],
        oldest={Priority(name): age for name, age in said["oldest"].items()},
        workers=said["workers"],
        capacity=said["capacity"],
        running=said["running"],
    )


async def last_notes(store: Store, number: int) -> Sequence[Note]:
    """The newest notes, oldest first."""
    found = await store.records(MINUTE, limit=number, group="", newest_first=True)
    return [read_note(record) for record in reversed(found)]


def between(notes: Sequence[Note]) -> Sequence[Minute]:
    """What happened from each note to the next."""
    return [_since(before, after.counts, after.at) for before, after in pairwise(notes)]


def lately(notes: Sequence[Note], counts: Counts, now: datetime) -> Minute:
    """What happened in the last five minutes, or since the last note that is as old."""
    old = [note for note in notes if now - note.at >= RECENT]
    if old:
        return _since(old[-1], counts, now)
    return _happened(now - RECENT, RECENT, counts)  # there was nothing before


def _since(before: Note, counts: Counts, now: datetime) -> Minute:
    return _happened(before.at, now - before.at, counts.since(before.counts))


def _happened(at: datetime, span: timedelta, what: Counts) -> Minute:
    failed = what.number(metrics.TASK_STATES, State.FAILED.value)
    dead = what.number(metrics.TASK_STATES, State.DEAD_LETTER.value)
    return Minute(
        at=at,
        seconds=span.total_seconds(),
        completed=int(what.number(metrics.TASK_STATES, State.COMPLETED.value)),
        failed=int(failed + dead),
        dead=int(dead),
        retried=int(what.number(metrics.RETRIES)),
        waits={each: what.spread(metrics.WAITS, each.value) for each in Priority},
    )
