"""Events: something that happens once, outside of tasks, and that tasks may wait for.

An event is known by its name and a key ("approved", order 17). It is a record (kind `event`), and a
task that waits for it has one too (kind `wait`, in the group of the event).

**Why none is missed.** Whoever waits writes its `wait` record, looks for the event after that, and
hands its attempt back only if nobody has touched the record since: the version is checked in the
same commit. Whoever emits writes the event, and then touches every `wait` record that it finds.
So of the two one comes second, and sees the other: a waiter that looked too early is not let go to
sleep, and one that sleeps already is hurried.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from holdfast.core.duration import LONGEST
from holdfast.core.record import Put, Record
from holdfast.core.task import Json, TaskId

EVENT: Final = "event"
WAITING: Final = "wait"


class Emitted(NamedTuple):
    """What became of an emit. `first`: it is the one that counts; an earlier one was not replaced.
    `woken` is how many tasks waited for it.
    """

    event: str
    key: str
    first: bool
    woken: int = 0


class Came(NamedTuple):
    """The event is there. `was_waiting`: there is a `wait` record to forget."""

    payload: Json
    was_waiting: bool = False


class TooLate(NamedTuple):
    """The time to wait is over."""


class NotYet(NamedTuple):
    """It may still come. The attempt goes to sleep for `delay` seconds, if `put` can be written."""

    delay: float
    put: Put


Looked = Came | TooLate | NotYet


def event_id(event: str, key: str) -> str:
    """The key of an event's record. No event's name has a blank in it."""
    return f"{event} {key}"


def named(event: str) -> tuple[str, str]:
    """The event's name and key again."""
    name, _, key = event.partition(" ")
    return name, key


def emitted(event: str, payload: Json, *, due_in: float, version: int = 0, told: bool) -> Put:
    """The record of an event. `told`: all who waited have been told."""
    document = json.dumps({"payload": payload, "told": told})
    return Put(EVENT, event, document, version, due_in=due_in)


def payload_of(record: Record) -> Json:
    return json.loads(record.document)["payload"]


def is_told(record: Record) -> bool:
    return bool(json.loads(record.document)["told"])


def waits_key(task_id: TaskId, event: str) -> str:
    """The key of the record of a task that waits: all of a task stand together."""
    return f"{task_id} {event}"


def waiter_of(record: Record) -> tuple[TaskId, str]:
    """Which task waits, and for what."""
    task_id, _, event = record.key.partition(" ")
    return TaskId(task_id), event


def waiting(
    task_id: TaskId, event: str, until: datetime | None, version: int, *, due_in: float
) -> Put:
    """The record of a task that waits until then. It is due when somebody should look whether the
    task still does.
    """
    document = json.dumps({"until": None if until is None else until.isoformat()})
    key = waits_key(task_id, event)
    return Put(WAITING, key, document, version, group=event, due_in=due_in)


def waits_until(record: Record) -> datetime | None:
    until = json.loads(record.document)["until"]
    return None if until is None else datetime.fromisoformat(until)


def deadline(now: datetime, timeout: float | None) -> datetime | None:
    return None if timeout is None else now + timedelta(seconds=timeout)


def left(now: datetime, until: datetime | None) -> float:
    """Seconds to wait; a lifetime if there is no end to it."""
    return LONGEST if until is None else (until - now).total_seconds()
