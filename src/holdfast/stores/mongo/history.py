"""What happened to a task, embedded in its document: attempts that have ended, and events.

The running attempt is not kept apart: the task's own fields say all of it. An event has a running
number `n`; `noted` on the document counts the events ever written.

A document must not grow for ever (the server stops at 16 MiB): when its embedded history passes
`MOST_ENTRIES` or `MOST_BYTES`, all of it moves to a **chapter** in the collection `history`. The
chapter is written first, and cut off the document with the very write that adds the next entries;
so a crash between leaves entries in both, and readers drop them by number. `entries` and `weight`
on the document say how much is embedded, so that nobody reads it to find out.

A refusal that comes while a handler of a later attempt is inside its transaction goes into a
chapter of its own: a write to the document would make the server abort that transaction.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.task import AttemptEnd, Cause, Json, State, Task, WorkerId
from holdfast.stores.columns import as_time, in_us, maybe_time
from holdfast.stores.mongo.documents import (
    Document,
    error_fields,
    error_of,
    task_of,
    text_in,
    text_out,
)

MOST_ENTRIES: Final = 64
MOST_BYTES: Final = 1 << 20
_ENTRY_BYTES: Final = 200
"""About what an entry takes beside its texts."""


def event_entry(
    number: int,
    at: int,
    kind: str,
    *,
    attempt: int | None = None,
    worker_id: WorkerId | None = None,
    detail: str | None = None,
) -> Document:
    """An event as it is embedded."""
    entry: Document = {"n": number, "at": at, "kind": kind}
    if attempt is not None:
        entry["attempt"] = attempt
    if worker_id is not None:
        entry["worker_id"] = text_in(worker_id)
    if detail is not None:
        entry["detail"] = text_in(detail)
    return entry


def attempt_entry(attempt: Attempt) -> Document:
    """An ended attempt as it is embedded."""
    entry: Document = {
        "number": attempt.number,
        "cause": attempt.cause.value,
        "worker_id": attempt.worker_id,
        "started_at": in_us(attempt.started_at),
        "ended_at": None if attempt.ended_at is None else in_us(attempt.ended_at),
        "ended": None if attempt.ended is None else attempt.ended.value,
        "charged": attempt.charged,
        "error": error_fields(attempt.error),
    }
    return {name: value for name, value in entry.items() if value is not None}


def running_attempt(task: Task) -> Attempt | None:
    """The attempt that a running task is in."""
    if task.state is not State.RUNNING or task.worker_id is None or task.started_at is None:
        return None
    return Attempt(
        number=task.attempt,
        cause=task.cause,
        worker_id=task.worker_id,
        started_at=task.started_at,
    )


def history_of(document: Mapping[str, Json], chapters: Iterable[Mapping[str, Json]]) -> History:
    """The whole history, from a task's document and what was moved out of it, in any order."""
    attempts: dict[int, Document] = {}
    events: dict[int, Document] = {}
    for part in (*chapters, document):
        attempts |= {entry["number"]: entry for entry in part.get("attempts", ())}
        events |= {entry["n"]: entry for entry in part.get("events", ())}
    found = [attempt_of(attempts[number]) for number in sorted(attempts)]
    running = running_attempt(task_of(document))
    return History(
        attempts=tuple(found if running is None else [*found, running]),
        events=tuple(_event_of(events[number]) for number in sorted(events)),
    )


def attempt_of(entry: Mapping[str, Json]) -> Attempt:
    return Attempt(
        number=entry["number"],
        cause=Cause(entry["cause"]),
        worker_id=WorkerId(entry["worker_id"]),
        started_at=as_time(entry["started_at"]),
        ended_at=maybe_time(entry.get("ended_at")),
        ended=AttemptEnd(entry["ended"]) if "ended" in entry else None,
        charged=entry["charged"],
        error=error_of(entry.get("error")),
    )


def _event_of(entry: Mapping[str, Json]) -> Event:
    return Event(
        at=as_time(entry["at"]),
        kind=entry["kind"],
        attempt=entry.get("attempt"),
        worker_id=WorkerId(text_out(entry["worker_id"])) if "worker_id" in entry else None,
        detail=text_out(entry["detail"]) if "detail" in entry else None,
    )


def weight_of(entries: Sequence[Mapping[str, Json]]) -> int:
    """About how many bytes entries take."""
    return sum(_ENTRY_BYTES + sum(_size(value) for value in entry.values()) for entry in entries)


def _size(value: Json) -> int:
    if isinstance(value, str | bytes):
        return len(value) * (1 if isinstance(value, bytes) else 2)
    return sum(map(_size, value.values())) if isinstance(value, dict) else 0


def is_full(document: Mapping[str, Json]) -> bool:
    """Whether the embedded history should move out before more is added."""
    entries, weight = document.get("entries", 0), document.get("weight", 0)
    return bool(entries >= MOST_ENTRIES or weight >= MOST_BYTES)


def aside_of(document: Mapping[str, Json], event: Document) -> Document:
    """An event as a chapter of its own, for a task whose document must not be written now. Its
    number is between that of the last event and the next.
    """
    number = document.get("noted", 0) - random.uniform(0.1, 0.9)  # noqa: S311 - no secret
    task_id = document["_id"]
    name = f"{task_id}/aside/{number}"
    return {"_id": name, "task": task_id, "attempts": [], "events": [event | {"n": number}]}


def chapter_of(document: Mapping[str, Json]) -> Document:
    """The embedded history as a document of its own. Named by where it begins: written twice after
    a crash, the later one has all that the earlier had.
    """
    attempts, events = document.get("attempts", []), document.get("events", [])
    first_attempt = attempts[0]["number"] if attempts else 0
    first_event = events[0]["n"] if events else 0
    task_id = document["_id"]
    name = f"{task_id}/{first_attempt}/{first_event}"
    return {"_id": name, "task": task_id, "attempts": attempts, "events": events}
