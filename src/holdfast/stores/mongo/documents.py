"""A task as one document: what is in it, and the marks by which indexes find it.

Everything about a task is one document, so that whatever happens to it is one atomic write. Field
names are the product's own words and readers may query them; times are whole microseconds since
1970; what is None or empty is left out.

Beside the task's own fields a document holds its place, its `version` (grows with every write that
decides something: writers name the one they have read), its embedded history (`attempts` that have
ended, `events` with a running number `n`; see `history.py`), and **marks**. A mark is there only
while it applies, so that a sparse index holds nobody else:

==================  ============================================================================
`ready_lane`,       while ready. `ready` is rank, id and version as bytes that sort: who wants
`ready`             to claim names what was read, and gets that or nothing
`due_lane`, `due`   while waiting: `run_at`
`alarm`             when a claim must see to it: `run_at` or `expires_at`, while not running; and
                    at once, after an end inside a handler's transaction, which keeps its gates
`keeps`             after such an end, until a claim lets go of them and counts the end
`unannounced`       after a submit inside a caller's transaction, until it stands before its gates:
                    what it says of their capacities is not known yet
`unique`            name and unique key, while unfinished. Unique index
`idempotent`        the idempotency key, while its window lasts. Unique index
`holds`             the lock key, from passing that gate until it leaves. Unique index: **the
                    mutual exclusion**
`waits_for`         the gate that it stands before, while blocked; with `order`, rank and id, and
                    `passed`, how many gates are behind it
`running_on`        the worker, while running
`stop_on`           the worker, while running with a cancel request
`ended_on`          a date, when ended: for the TTL index; `died_on` instead for dead letters
==================  ============================================================================

`awaited` stays for good, once somebody has come to stand behind the task (`passing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from holdfast.core.gate import GateKind, gates_from, gates_text, to_pass
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.task import (
    Cause,
    Cost,
    Json,
    Priority,
    Progress,
    Reason,
    State,
    Task,
    TaskError,
    TaskId,
    WorkerId,
)
from holdfast.stores.columns import as_time, in_us, maybe_time

Document = dict[str, Json]
"""What the driver reads and writes: BSON, which has no narrower type."""

WITHOUT_HISTORY: Final = {"attempts": 0, "events": 0}
"""The projection for readers."""
LANE_SEPARATOR: Final = "\x1f"
_OFFSET: Final = 1 << 63
_VERSIONS: Final = 1 << 32


class Place(StrEnum):
    """Where a task is, as `ports.store` says."""

    WAITING = "waiting"
    READY = "ready"
    BLOCKED = "blocked"
    RUNNING = "running"
    DONE = "done"


MARKS: Final = (
    "ready_lane", "ready", "due_lane", "due", "alarm", "unique", "holds", "keeps", "waits_for",
    "order", "passed", "unannounced", "running_on", "stop_on", "ended_on", "died_on",
)  # fmt: skip
"""All that `marks` may give: what it does not give must be taken off."""


def place_of(task: Task, now: int) -> Place:
    """Where a task belongs by its state and the time. One with gates is blocked first; who passes
    them is for `passing.py` to say.
    """
    if task.state in TERMINAL:
        return Place.DONE
    if task.state is State.RUNNING:
        return Place.RUNNING
    if in_us(task.run_at) > now:
        return Place.WAITING
    return Place.READY if task.lock is None and not task.gates else Place.BLOCKED


def state_in(place: Place, state: State) -> State:
    """The state that shows, in this place."""
    if place is Place.READY:
        return State.QUEUED
    return State.BLOCKED if place is Place.BLOCKED else state


def lane_of(queue: str, requires: frozenset[str]) -> str:
    """Queue and capabilities as one text: what a worker may or may not serve."""
    return LANE_SEPARATOR.join((queue, *sorted(requires)))


def parted(lane: str) -> tuple[str, frozenset[str]]:
    """The queue and the capabilities of a lane."""
    queue, *requires = lane.split(LANE_SEPARATOR)
    return queue, frozenset(requires)


def first_of(rank: int) -> bytes:
    """A rank as bytes that sort alike, before every task that has it."""
    return (rank + _OFFSET).to_bytes(8, "big")


def order_of(rank: int, task_id: TaskId) -> bytes:
    """(rank, id) as bytes that sort alike."""
    return first_of(rank) + UUID(task_id).bytes


def ready_of(order: bytes, version: int) -> bytes:
    """What stands in line: the order, and which writing of the document it was."""
    return order + (version % _VERSIONS).to_bytes(4, "big")


def marks(task: Task, place: Place, version: int, passed: int = 0) -> Document:
    """What indexes find the task by in this place, with so many gates behind it if it is blocked.
    `idempotent` is not here: it depends on more than the task.
    """
    found: Document = {}
    if task.state not in TERMINAL and task.unique_key is not None:
        found["unique"] = unique_mark(task.name, task.unique_key)
    if place is Place.RUNNING:
        found["running_on"] = task.worker_id
        if task.cancel_requested:
            found["stop_on"] = task.worker_id
    if task.lock is not None and _holds_lock(task, place, passed):
        found["holds"] = task.lock
    if place is Place.DONE and task.finished_at is not None:
        mark = "died_on" if task.state is State.DEAD_LETTER else "ended_on"
        found[mark] = _as_date(task.finished_at)
    return found | _line_marks(task, place, version, passed)


def _holds_lock(task: Task, place: Place, passed: int) -> bool:
    if place is Place.BLOCKED:
        behind = to_pass(task.lock, task.gates)[:passed]
        return any(gate.kind is GateKind.LOCK for gate in behind)
    return place in (Place.READY, Place.RUNNING)


def _as_date(instant: datetime) -> datetime:
    """As BSON keeps it: in milliseconds."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def _line_marks(task: Task, place: Place, version: int, passed: int) -> Document:
    """The marks of a task that stands in line, or will."""
    if place not in (Place.READY, Place.WAITING, Place.BLOCKED):
        return {}
    found: Document = {}
    lane, run_at = lane_of(task.queue, task.requires), in_us(task.run_at)
    expires = [in_us(task.expires_at)] if task.expires_at else []
    if place is Place.READY:
        found["ready"] = ready_of(order_of(task.rank, task.id), version)
        found["ready_lane"] = lane
    elif place is Place.BLOCKED:
        found["waits_for"] = to_pass(task.lock, task.gates)[passed].name
        found["order"] = order_of(task.rank, task.id)
        if passed:
            found["passed"] = passed
    else:
        found["due_lane"], found["due"] = lane, run_at
        expires.append(run_at)
    if expires:
        found["alarm"] = min(expires)
    return found


def unique_mark(name: str, unique_key: str) -> str:
    return f"{name}\x00{unique_key}"


def fields(task: Task) -> Document:
    """The task's own fields."""
    every: Document = {
        "_id": task.id,
        "name": task.name,
        "queue": task.queue,
        "lane": lane_of(task.queue, task.requires),
        "priority": task.priority.value,
        "state": task.state.value,
        "payload": task.payload,
        "created_at": in_us(task.created_at),
        "run_at": in_us(task.run_at),
        "rank": task.rank,
        "attempt": task.attempt,
        "charged": task.charged,
        "max_retries": task.max_retries,
        "crash_count": task.crash_count,
        "cause": task.cause.value,
        "timeout": task.timeout,
        "retry": task.retry,
        "expires_at": None if task.expires_at is None else in_us(task.expires_at),
        "started_at": None if task.started_at is None else in_us(task.started_at),
        "finished_at": None if task.finished_at is None else in_us(task.finished_at),
        "worker_id": task.worker_id,
        "unique_key": task.unique_key,
        "idempotency_key": task.idempotency_key,
        "lock": task.lock,
        "fence": task.fence,
        "requires": sorted(task.requires) or None,
        "tags": list(task.tags) or None,
        "owner": task.owner,
        "trace": task.trace,
        "parent_id": task.parent_id,
        "result": task.result,
        "error": error_fields(task.error),
        "reason": None if task.reason is None else task.reason.value,
        "progress": _progress_fields(task.progress),
        "cost": _cost_fields(task.cost),
        "cancel_requested": task.cancel_requested or None,
        "callback": task.callback,
        "gates": gates_text(task.gates),
        "counts": list(task.counts) or None,
    }
    return {name: value for name, value in every.items() if value is not None}


def task_of(found: Mapping[str, Json]) -> Task:
    """A document as a task. What was not read (`payload`, `result`) is empty."""
    get = found.get
    return Task(
        id=TaskId(found["_id"]),
        name=found["name"],
        queue=found["queue"],
        priority=Priority(found["priority"]),
        state=State(found["state"]),
        payload=get("payload", b""),
        created_at=as_time(found["created_at"]),
        run_at=as_time(found["run_at"]),
        rank=found["rank"],
        attempt=found["attempt"],
        charged=found["charged"],
        max_retries=found["max_retries"],
        crash_count=found["crash_count"],
        cause=Cause(found["cause"]),
        timeout=get("timeout"),
        retry=get("retry"),
        expires_at=maybe_time(get("expires_at")),
        started_at=maybe_time(get("started_at")),
        finished_at=maybe_time(get("finished_at")),
        worker_id=WorkerId(found["worker_id"]) if "worker_id" in found else None,
        unique_key=get("unique_key"),
        idempotency_key=get("idempotency_key"),
        lock=get("lock"),
        fence=get("fence"),
        requires=frozenset(get("requires", ())),
        tags=tuple(get("tags", ())),
        owner=get("owner"),
        trace=get("trace"),
        parent_id=get("parent_id"),
        result=get("result"),
        error=error_of(get("error")),
        reason=Reason(found["reason"]) if "reason" in found else None,
        progress=_progress_of(get("progress")),
        cost=Cost(**get("cost", {})),
        cancel_requested=get("cancel_requested", False),
        callback=get("callback"),
        gates=gates_from(get("gates")),
        counts=tuple(get("counts", ())),
    )


def text_in(text: str) -> str | bytes:
    """A text as BSON can hold it. Messages of exceptions and log lines may hold anything, lone
    surrogates included, and must come back as they were: those go in as bytes.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text_out(kept: str | bytes) -> str:
    return kept if isinstance(kept, str) else kept.decode("utf-8", "surrogatepass")


def error_fields(error: TaskError | None) -> Document | None:
    if error is None:
        return None
    kept: Document = {
        "type": text_in(error.type),
        "message": text_in(error.message),
        "retriable": error.retriable,
    }
    if error.traceback is not None:
        kept["traceback"] = text_in(error.traceback)
    return kept


def error_of(found: Mapping[str, Json] | None) -> TaskError | None:
    if found is None:
        return None
    return TaskError(
        type=text_out(found["type"]),
        message=text_out(found["message"]),
        traceback=text_out(found["traceback"]) if "traceback" in found else None,
        retriable=found["retriable"],
    )


def _progress_fields(progress: Progress | None) -> Document | None:
    if progress is None:
        return None
    kept: Document = {"done": progress.done}
    if progress.total is not None:
        kept["total"] = progress.total
    if progress.message is not None:
        kept["message"] = text_in(progress.message)
    return kept


def _progress_of(found: Mapping[str, Json] | None) -> Progress | None:
    if found is None:
        return None
    message = text_out(found["message"]) if "message" in found else None
    return Progress(done=found["done"], total=found.get("total"), message=message)


def _cost_fields(cost: Cost) -> Document | None:
    every = {"units": cost.units, "tokens_in": cost.tokens_in, "tokens_out": cost.tokens_out}
    return {name: value for name, value in every.items() if value} or None
