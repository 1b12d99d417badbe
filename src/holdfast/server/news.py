"""What happened to a task since a listener last heard of it, as a list of messages.

Everything is derived from the store, so any server can go on where another stopped. A listener's
place is how many events and attempt edges (starts and ends) of the history it has seen, and a hash
of the last progress and the last state: the first two only ever grow, the others have no history.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import datetime
from heapq import merge
from typing import Final, NamedTuple

import orjson

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.lifecycle import is_terminal
from holdfast.core.task import Json, Task
from holdfast.core.task_answers import ATTEMPT, EVENT, TASK

_PLACE: Final = re.compile(r"(\d{1,9})\.(\d{1,9})\.([0-9a-f]{8})\.([0-9a-f]{8})", re.ASCII)
_UNSEEN: Final = "00000000"
_STATE: Final = (
    *("status", "attempt", "reason", "run_at", "finished_at", "cancel_requested", "error"),
)


class StreamPosition(NamedTuple):
    """How far a listener is. Its text is the id of the last message it got."""

    events: int = 0
    edges: int = 0
    progress: str = _UNSEEN
    state: str = _UNSEEN

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def read(cls, text: str | None) -> StreamPosition:
        """The place that a listener names; anything else is the beginning."""
        match = _PLACE.fullmatch(text or "")
        return cls(int(match[1]), int(match[2]), match[3], match[4]) if match else cls()


class Message(NamedTuple):
    """One thing to tell; `place` is where a listener is that has heard it."""

    place: StreamPosition
    event: str
    data: Json


class Snapshot(NamedTuple):
    """A task and its history, the task read first: its end never comes without its last attempt."""

    task: Task
    history: History

    @property
    def is_final(self) -> bool:
        return is_terminal(self.task.state)


def news(snapshot: Snapshot, place: StreamPosition) -> Iterator[Message]:
    """Everything a listener at this place has not heard of, oldest first."""
    task, history = snapshot
    events = [_of_event(event) for event in history.events[place.events :]]
    edges = list(_edges(history))[place.edges :]
    for told in merge(events, edges, key=lambda told: told.at):
        if told.is_edge:
            place = place._replace(edges=place.edges + 1)
        else:
            place = place._replace(events=place.events + 1)
        yield Message(place, told.event, told.data)
    if task.progress is not None:
        data = {"attempt": task.attempt, **TASK.pick(task, "progress")["progress"]}
        if place.progress != (seen := _hash(data)):
            place = place._replace(progress=seen)
            yield Message(place, "progress", data)
    state = TASK.pick(task, *_STATE)
    if place.state != (seen := _hash(state)):
        place = place._replace(state=seen)
        yield Message(place, "state", state)


class _Told(NamedTuple):
    at: datetime
    event: str
    data: Json
    is_edge: bool = False


def _of_event(event: Event) -> _Told:
    return _Told(event.at, "log" if event.kind == "log" else "history", EVENT.write(event))


def _edges(history: History) -> Iterator[_Told]:
    for attempt in history.attempts:
        yield _edge("attempt_started", attempt, attempt.started_at, "cause")
        if attempt.ended_at is not None:
            yield _edge("attempt_ended", attempt, attempt.ended_at, "ended", "charged", "error")


def _edge(kind: str, attempt: Attempt, at: datetime, *more: str) -> _Told:
    about = ATTEMPT.pick(attempt, "attempt", "worker_id", *more)
    return _Told(at, "history", {"kind": kind, "at": at, **about}, is_edge=True)


def _hash(data: Json) -> str:
    return f"{zlib.crc32(orjson.dumps(data)) or 1:08x}"
