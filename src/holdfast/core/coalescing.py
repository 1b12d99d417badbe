"""Coalescing: several submits that become one task. Which one runs, and when.

*Debounce*: the last submit wins. A record names the newest task of a key, and is written in one
commit with it; whoever it named before is superseded. *Throttle*: the first submit wins. A record
names it until its time is over, and later submits get that task.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple, Self

from holdfast.core.keys import stored_key
from holdfast.core.lifecycle import CANCELLABLE_AT_ONCE, TERMINAL
from holdfast.core.record import Put, Record
from holdfast.core.task import Task, TaskId

_LONGEST: Final = 500
"""Bytes of a key that is kept as it is; a longer one is kept as its hash."""
LOOK_AFTER: Final = 60.0
"""Seconds after the last task of a key may start (or its time is over) at which its record is
looked at: it may have served.
"""


class CoalescingKind(StrEnum):
    """Who wins; also the kind of the record that says so."""

    DEBOUNCE = "debounce"
    THROTTLE = "throttle"


class Coalescing(NamedTuple):
    """How one call is coalesced: with all of its definition that have this key and owner.
    `most` bounds how long submits can push a debounced task off.
    """

    kind: CoalescingKind
    key: str
    seconds: float
    most: float | None = None

    def record_key(self, name: str, owner: str | None) -> str:
        """What the record is called. Names have no blanks, so no two are the same."""
        key = stored_key(owner, self.key) or ""
        if len(key.encode()) > _LONGEST:
            key = sha256(key.encode()).hexdigest()
        return f"{name} {key}" if key else name


class Newest(NamedTuple):
    """What a debounce record says: the task that may run, since when its start has been pushed off
    (None: it was not), and those before it which may not have been cancelled yet.
    """

    task_id: TaskId
    since: datetime | None = None
    older: tuple[TaskId, ...] = ()

    @classmethod
    def of(cls, record: Record) -> Self:
        said = json.loads(record.document)
        since = said["since"]
        pushed = None if since is None else datetime.fromisoformat(since)
        return cls(TaskId(said["task"]), pushed, tuple(map(TaskId, said["older"])))

    def put(self, key: str, version: int, due_in: float) -> Put:
        """Write it in place of that version."""
        since = None if self.since is None else self.since.isoformat()
        said = {"task": self.task_id, "since": since, "older": list(self.older)}
        return Put(
            CoalescingKind.DEBOUNCE, key, json.dumps(said), version, due_in=due_in + LOOK_AFTER
        )


class Debounced(NamedTuple):
    """What one more submit of a key means: it replaces these, if any of them still waits, and it
    starts after the delay, or at `run_at` if it was pushed off for long enough.
    """

    replaces: bool
    older: tuple[TaskId, ...]
    since: datetime | None
    run_at: datetime | None


def debounced(
    wanted: Coalescing, newest: Newest | None, task: Task | None, now: datetime
) -> Debounced:
    """Decide it. `task` is the one that the record names; None if it is forgotten."""
    if newest is None:
        return Debounced(replaces=False, older=(), since=None, run_at=None)
    older = newest.older
    if task is not None and task.state not in TERMINAL:
        older = (*older, task.id)
    if task is None or task.state not in CANCELLABLE_AT_ONCE:
        # It has started, or ended: from here on another one is pushed off.
        return Debounced(replaces=False, older=older, since=None, run_at=None)
    since = newest.since or task.created_at
    latest = None if wanted.most is None else since + timedelta(seconds=wanted.most)
    if latest is not None and latest >= now + timedelta(seconds=wanted.seconds):
        latest = None
    return Debounced(replaces=True, older=older, since=since, run_at=latest)


class First(NamedTuple):
    """What a throttle record says: the task that won, and until when."""

    task_id: TaskId
    until: datetime

    @classmethod
    def of(cls, record: Record) -> Self:
        said = json.loads(record.document)
        return cls(TaskId(said["task"]), datetime.fromisoformat(said["until"]))

    def put(self, key: str, version: int, due_in: float) -> Put:
        """Write it in place of that version."""
        said = {"task": self.task_id, "until": self.until.isoformat()}
        return Put(
            CoalescingKind.THROTTLE, key, json.dumps(said), version, due_in=due_in + LOOK_AFTER
        )


def winners(keys: Sequence[tuple[CoalescingKind, str] | None]) -> list[int]:
    """For each call of one submit the number of the one that wins its key: the last of those that
    are debounced, the first of those that are throttled. None is a call without a key.
    """
    first: dict[object, int] = {}
    last: dict[object, int] = {}
    for number, key in enumerate(keys):
        first.setdefault(key, number)
        last[key] = number
    return [
        number if key is None else (last if key[0] is CoalescingKind.DEBOUNCE else first)[key]
        for number, key in enumerate(keys)
    ]
