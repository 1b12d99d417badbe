"""The words of the product as values: what a task is, and what happens to it.

Everything here is frozen. `NewTask` is what a caller submits, `Claim` what a worker holds,
`Settlement` what a store must write when an attempt ends, `Task` the whole picture for readers.
The hot path uses tuples (`Claim`, `Settlement`): they are made by the thousand every second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple, NewType

TaskId = NewType("TaskId", str)
"""A UUIDv7 in its canonical text form: ids sort by the time they were made."""

WorkerId = NewType("WorkerId", str)
"""One incarnation of a worker process. A restarted worker has another id."""

Json = Any
"""A JSON value. The only `Any` in the code base."""


class State(StrEnum):
    """Where a task is. `core.lifecycle` holds the map of legal moves."""

    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD_LETTER = "dead_letter"


class AttemptEnd(StrEnum):
    """How one attempt ended."""

    COMPLETED = "completed"
    ERROR = "error"
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    CANCELLED = "cancelled"
    RELEASED = "released"


class Cause(StrEnum):
    """Why an attempt was started. Every attempt after the first has one that is not `submitted`."""

    SUBMITTED = "submitted"
    RETRY = "retry"
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    RELEASED = "released"
    OPERATOR = "operator"


class Reason(StrEnum):
    """Why a task ended as it did, where the state alone does not say."""

    NOT_RETRIABLE = "not_retriable"
    RETRIES_EXHAUSTED = "retries_exhausted"
    TIMEOUT = "timeout"
    POISON = "poison"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Priority(StrEnum):
    """How urgent a task is. `core.priority` turns it into a rank that ages by itself."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class SubmitOutcome(StrEnum):
    """What a submit did."""

    CREATED = "created"
    UNIQUE_KEY = "unique_key"
    IDEMPOTENCY_KEY = "idempotency_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    """What went wrong, as text. Never a pickled or re-created exception."""

    type: str
    message: str
    traceback: str | None = None
    retriable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a handler says it is."""

    done: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a task used. Reports add up over all attempts."""

    units: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task as its submitter describes it: validated, encoded, not yet stored.

    Times are durations by the store's clock (`delay`, `expires_in`: seconds) unless the caller
    named an instant (`run_at`, `expires_at`). `head_start` is the microseconds its priority is
    worth in line; the store writes `rank = eligible instant in µs - head_start`.
    """

    id: TaskId
    name: str
    payload: bytes
    queue: str = "default"
    priority: Priority = Priority.NORMAL
    head_start: int = 0
    delay: float | None = None
    run_at: datetime | None = None
    expires_in: float | None = None
    expires_at: datetime | None = None
    max_retries: int = 3
    timeout: float | None = None
    retry: str | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    fingerprint: str | None = None
    lock: str | None = None
    requires: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    owner: str | None = None
    trace: str | None = None
    parent_id: TaskId | None = None


class Added(NamedTuple):
    """The answer to one submitted task: `task_id` is the existing task's if it was not created."""

    task_id: TaskId
    outcome: SubmitOutcome
    state: State

    @property
    def created(self) -> bool:
        return self.outcome is SubmitOutcome.CREATED


class Claim(NamedTuple):
    """One started attempt in a worker's hands. (task_id, attempt, worker_id) is the fence.

    `charged` counts the earlier attempts that used up a retry; `fence` grows with every holder
    of the task's lock.
    """

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    name: str
    queue: str
    priority: Priority
    payload: bytes
    charged: int
    max_retries: int
    crash_count: int
    timeout: float | None
    retry: str | None
    lock: str | None
    fence: int | None
    cause: Cause
    trace: str | None
    owner: str | None
    cancel_requested: bool

    @classmethod
    def of(cls, task: Task) -> Claim:
        """A running task as its worker holds it: a claim's fields are a task's, but for the id."""
        return cls._make(_CLAIM_FIELDS(task))


_CLAIM_FIELDS = attrgetter("id", *Claim._fields[1:])


class Claimed(NamedTuple):
    """What a claim brought. `next_due` is the seconds until the earliest waiting task, if any."""

    claims: Sequence[Claim]
    next_due: float | None


class Settlement(NamedTuple):
    """How an attempt ended and what the task becomes: written by the store, decided by `core`.

    `delay` (seconds) is set when the task waits for another attempt; `cause` is that attempt's
    cause. `charged` and `crash_count` are the task's new totals.
    """

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    state: State
    ended: AttemptEnd
    charged: int
    crash_count: int
    result: bytes | None = None
    error: TaskError | None = None
    delay: float = 0.0
    cause: Cause | None = None
    reason: Reason | None = None


class Report(NamedTuple):
    """What a running attempt wants stored before it ends; fenced like a settlement."""

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    progress: Progress | None = None
    cost: Cost | None = None
    logs: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """A fenced write that came too late. `holder` has the task now, if anyone has."""

    task_id: TaskId
    attempt: int
    worker_id: WorkerId
    holder: WorkerId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One start of a task, for the history. An attempt still running has no `ended`."""

    number: int
    cause: Cause
    worker_id: WorkerId
    started_at: datetime
    ended_at: datetime | None = None
    ended: AttemptEnd | None = None
    charged: bool = False
    error: TaskError | None = None

    @property
    def seconds(self) -> float | None:
        """How long it ran."""
        return None if self.ended_at is None else (self.ended_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a task beside its attempts.

    Kinds: `submitted`, `cancel_requested`, `cancelled` (while it was not running; an attempt that
    was stopped tells so itself), `expired`, `requeued`, `late_result_refused`, `log`. The last two
    name their attempt and worker; a log line is the `detail`.
    """

    at: datetime
    kind: str
    attempt: int | None = None
    worker_id: WorkerId | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that is known of what happened to one task, each part oldest first."""

    attempts: tuple[Attempt, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The whole picture of a task, for people and APIs. All times are aware UTC.

    `started_at`, `worker_id`, `fence` and `progress` are those of the last attempt that set them,
    and stay when it ends; `error` and `result` are those of the last attempt that ended.
    """

    id: TaskId
    name: str
    queue: str
    priority: Priority
    state: State
    payload: bytes
    created_at: datetime
    run_at: datetime
    rank: int
    attempt: int
    charged: int
    max_retries: int
    crash_count: int
    cause: Cause
    timeout: float | None = None
    retry: str | None = None
    expires_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    worker_id: WorkerId | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    lock: str | None = None
    fence: int | None = None
    requires: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    owner: str | None = None
    trace: str | None = None
    parent_id: TaskId | None = None
    result: bytes | None = None
    error: TaskError | None = None
    reason: Reason | None = None
    progress: Progress | None = None
    cost: Cost = field(default_factory=Cost)
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks; every given field must match. An empty filter matches all, an empty collection
    none. Created at or after `created_after` and before `created_before`; `worker_id` is the worker
    that runs a task or ran it last; `error_type` is that of the task's present error.
    """

    ids: tuple[TaskId, ...] | None = None
    states: frozenset[State] | None = None
    name: str | None = None
    queue: str | None = None
    priority: Priority | None = None
    tag: str | None = None
    owner: str | None = None
    worker_id: WorkerId | None = None
    lock: str | None = None
    unique_key: str | None = None
    parent_id: TaskId | None = None
    error_type: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of tasks, newest first. Pass `next` to get the one after; None means the end."""

    tasks: tuple[Task, ...]
    next: str | None = None


class WorkerStatus(StrEnum):
    """What a worker says of itself, or what the rescuer found."""

    ACTIVE = "active"
    DRAINING = "draining"
    STOPPED = "stopped"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A registered worker. `beats` counts its heartbeats: it is judged by whether it grows, never
    by a clock.

    `queues` is None for a worker that serves every queue.
    """

    id: WorkerId
    host: str
    pid: int
    version: str
    queues: tuple[str, ...] | None
    capabilities: frozenset[str]
    capacity: int
    load: int = 0
    status: WorkerStatus = WorkerStatus.ACTIVE
    beats: int = 0
    started_at: datetime | None = None
    beat_at: datetime | None = None

    def serves(self, queue: str, requires: frozenset[str]) -> bool:
        """Whether this worker would take such a task."""
        return (self.queues is None or queue in self.queues) and requires <= self.capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much of one priority waits in a queue, and how long the oldest ready task has waited."""

    priority: Priority
    ready: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """One queue in numbers. `ready` may start now; `waiting` has a future `run_at`; `blocked` waits
    for a lock.
    """

    queue: str
    paused: bool
    ready: int
    waiting: int
    blocked: int
    running: int
    depths: tuple[Depth, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The store in numbers, cheap to get however deep the backlog is.

    `states` counts the tasks kept now, every state a key; `last_minute` how many of those kept
    ended in each terminal state (every one a key) within the last 60 s; `refused` the stale writes
    refused since the store was created.
    """

    queues: tuple[QueueStats, ...]
    states: Mapping[State, int]
    last_minute: Mapping[State, int]
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The facts behind "why is my task not running?", read at one instant of the store's clock.

    `ahead` counts the ready tasks of its queue with a smaller (rank, id), up to `ahead_cap`; None
    when the task is not ready. `lock_holder` is the task that keeps it blocked.
    """

    now: datetime
    task: Task
    queue_paused: bool
    ahead: int | None
    ahead_cap: int
    lock_holder: TaskId | None
    workers: tuple[WorkerInfo, ...]
