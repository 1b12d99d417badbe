"""Records: small versioned documents for everything that is no task.

A record is found by (kind, key), listed by (group, sort), and may be *due* at an instant. Every
write names the version that it replaces, so of racing writers one wins each version. `Changes` are
what a store writes together or not at all: new tasks and records, alone (`commit`) or with the end
of an attempt (`Settlement.also`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.core.gate import Capacity, Count
from holdfast.core.shown import without
from holdfast.core.task import NewTask, TaskId
from holdfast.errors import RecordConflict

Name = tuple[str, str]
"""Kind and key."""

PAUSE = "pause"
"""A queue that is paused: the queue is the key. The one kind that stores read: for claims."""


class Record(NamedTuple):
    """A record as it is kept. `document` is JSON; `version` counts its writes, from 1."""

    kind: str
    key: str
    version: int
    document: str
    group: str = ""
    sort: str = ""
    due_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Record({without(self._asdict().items(), 'document')})"


class Put(NamedTuple):
    """Write a record, whole. `version` is the one that it replaces: 0 if there must be none, None
    whichever there is. It is due at `due_at`, or `due_in` seconds from now, or not at all.
    """

    kind: str
    key: str
    document: str
    version: int | None = None
    group: str = ""
    sort: str = ""
    due_in: float | None = None
    due_at: datetime | None = None

    def __repr__(self) -> str:
        return f"Put({without(self._asdict().items(), 'document')})"


class Delete(NamedTuple):
    """Forget a record of this version, or of whichever (None: also if there is none)."""

    kind: str
    key: str
    version: int | None = None


class Changes(NamedTuple):
    """What is written together or not at all.

    `id` is of this commit alone: by it a repeat after an unknown outcome is known again, if it has
    tasks or records; counts alone may count twice. A record is named at most once. Latches are
    counted up before everything else and down after it, so whoever stands behind one finds it.
    """

    id: str
    tasks: Sequence[NewTask] = ()
    records: Sequence[Put | Delete] = ()
    idempotency_window: float = 0.0
    counts: Sequence[Count] = ()
    capacities: Sequence[Capacity] = ()

    @property
    def ups(self) -> list[Count]:
        return [count for count in self.counts if count.by > 0]

    @property
    def downs(self) -> list[Count]:
        return [count for count in self.counts if count.by <= 0]

    @property
    def names(self) -> list[Name]:
        """The records that it touches, in the order in which they are locked."""
        return sorted((change.kind, change.key) for change in self.records)


class Due(NamedTuple):
    """Records that were taken because they are due, and the seconds until the next one is."""

    records: Sequence[Record]
    next_due: float | None


class Kept(NamedTuple):
    """What a store finds of a record before it writes: its version, and which commit wrote it."""

    version: int
    written_by: str


def in_order(
    found: Iterable[Record],
    *,
    limit: int,
    group: str | None,
    after: Record | None,
    newest_first: bool,
) -> list[Record]:
    """The page of these records that was asked for (`RecordStore.records`)."""

    def place(record: Record) -> tuple[str, str]:
        return ("" if group is None else record.sort, record.key)

    line = sorted((r for r in found if group in (None, r.group)), key=place, reverse=newest_first)
    if after is not None:
        edge = place(after)
        line = [r for r in line if (place(r) < edge if newest_first else place(r) > edge)]
    return line[: max(0, limit)]


def decided(changes: Changes, found: Mapping[Name, Kept], known: Collection[TaskId]) -> Changes:
    """What to write of these. `known` are those of the new tasks that exist already.

    Nothing but those tasks if this very commit was written before. `RecordConflict` if a record is
    not of the version that it must be of: then nothing of the commit is written.
    """
    written = any(kept.written_by == changes.id for kept in found.values())
    if written or any(new.id in known for new in changes.tasks):
        return changes._replace(records=(), counts=(), capacities=())
    for change in changes.records:
        kept = found.get((change.kind, change.key))
        version = 0 if kept is None else kept.version
        if change.version not in (None, version):
            raise RecordConflict(change.kind, change.key, change.version or 0, version)
    return changes
