"""The words of the product as values: what a task is, as submitted and as it stands.

Everything here is frozen. `NewTask` is what a caller submits, `Task` the whole picture for readers.
Beside it: `attempt` (one start of a task), `query` (asking for tasks), `fleet` (workers), `stats`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NewType

from holdfast.core.shown import decoded, masked, without
from holdfast.core.trace import trace_id_of, traceparent_of

if TYPE_CHECKING:
    from holdfast.core.gate import Gate
    from holdfast.core.schedule_state import TaskSchedule

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
    RESUMED = "resumed"
    OPERATOR = "operator"


class Reason(StrEnum):
    """Why a task ended as it did, where the state alone does not say."""

    NOT_RETRIABLE = "not_retriable"
    RETRIES_EXHAUSTED = "retries_exhausted"
    TIMEOUT = "timeout"
    POISON = "poison"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    UNKNOWN_TASK = "unknown_task"
    UNFIT_ARGUMENTS = "unfit_arguments"
    DEPENDENCY_FAILED = "dependency_failed"
    NOT_NEEDED = "not_needed"
    SUPERSEDED = "superseded"


class Priority(StrEnum):
    """How urgent a task is. `core.priority` turns it into a rank that ages by itself."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class SubmitOutcome(StrEnum):
    """What a submit did."""

    CREATED = "created"
    DEBOUNCED = "debounced"  # a new task took the place of one that was waiting
    THROTTLED = "throttled"
    UNIQUE_KEY = "unique_key"
    IDEMPOTENCY_KEY = "idempotency_key"

    @property
    def is_new(self) -> bool:
        """Whether it made a task; otherwise it led to one that was there."""
        return self in (SubmitOutcome.CREATED, SubmitOutcome.DEBOUNCED)


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


class NewTask(NamedTuple):
    """A task as its submitter describes it: validated, encoded, not yet stored. A tuple, because
    bulk submits make them by the thousand, and a frozen dataclass takes three times as long.

    Times are durations by the store's clock (`delay`, `expires_in`: seconds) unless the caller
    named an instant (`run_at`, `expires_at`). `head_start` is the microseconds its priority is
    worth in line; the store writes `rank = eligible instant in µs - head_start`. `callback` is the
    URL to be told of its end. `gates` are those that it must pass beside its `lock` (a stored
    task has them in the order of passing), and `counts`
    the latches that its end counts down.
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
    callback: str | None = None
    gates: tuple[Gate, ...] = ()
    counts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"NewTask({without(self._asdict().items(), 'payload')})"


class Added(NamedTuple):
    """The answer to one submitted task: `task_id` is the existing task's if it was not created."""

    task_id: TaskId
    outcome: SubmitOutcome
    state: State

    @property
    def created(self) -> bool:
        return self.outcome.is_new


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFields:
    """What is known of a task to whoever looks at it, here or through a server. All times are aware
    UTC.

    `started_at`, `worker_id`, `fence` and `progress` are those of the last attempt that set them,
    and stay when it ends; `error` is that of the last attempt that ended.
    """

    id: TaskId
    name: str
    queue: str
    priority: Priority
    state: State
    created_at: datetime
    run_at: datetime
    attempt: int
    charged: int
    crash_count: int
    cause: Cause
    timeout: float | None = None
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
    parent_id: TaskId | None = None
    error: TaskError | None = None
    reason: Reason | None = None
    progress: Progress | None = None
    cost: Cost = field(default_factory=Cost)
    cancel_requested: bool = False
    callback: str | None = None

    @property
    def retries_used(self) -> int:
        """How many charged attempts were followed by another, or will be."""
        was_last = self.reason in _LAST_CHARGED and self.state in _GIVEN_UP
        return self.charged - 1 if was_last else self.charged


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(TaskFields):
    """The whole picture of a task, for people and APIs. All times are aware UTC.

    `payload` and `result` (that of the last attempt that ended) are as they are stored, secrets in
    place, and no part of the `repr`; `arguments` and `value` are for showing.
    """

    payload: bytes = field(repr=False)
    rank: int
    max_retries: int
    retry: str | None = None
    trace: str | None = None
    gates: tuple[Gate, ...] = ()
    counts: tuple[str, ...] = ()
    result: bytes | None = field(default=None, repr=False)

    @property
    def arguments(self) -> Json:
        """The arguments by name, as JSON values: what the payload marks as secret is stars."""
        return masked(self.payload)

    @property
    def value(self) -> Json:
        """The result as a JSON value; None if there is none."""
        return decoded(self.result)

    def to_dict(self) -> dict[str, Json]:
        """The whole picture as plain data, in the words of REST and `holdfast task get --json`, but
        for `effective_priority`, which only a store's clock can tell. Secret arguments are stars.
        """
        from holdfast.core.json_form import plain  # noqa: PLC0415 - it is made of tasks
        from holdfast.core.task_answers import TASK  # noqa: PLC0415

        written = TASK.write(self, whole=True, parameters=self.arguments, result=self.value)
        return dict(plain(written))

    @property
    def schedule(self) -> TaskSchedule | None:
        """Which run of which schedule it is; None if it was submitted otherwise."""
        from holdfast.core.schedule_state import schedule_of  # noqa: PLC0415 - it is made of tasks

        return schedule_of(self)

    @property
    def trace_id(self) -> str:
        """The trace that it belongs to: its submitter's, its parent's, or one of its own."""
        return trace_id_of(self.id, self.trace)

    @property
    def traceparent(self) -> str:
        """The W3C header for requests and tasks that are part of its trace, with it as parent."""
        return traceparent_of(self.id, self.trace, self.attempt)


_GIVEN_UP = frozenset({State.FAILED, State.DEAD_LETTER})
_LAST_CHARGED = frozenset({Reason.NOT_RETRIABLE, Reason.RETRIES_EXHAUSTED, Reason.TIMEOUT})
