"""What a worker over HTTP says and is told, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from holdfast.core.task import Json, NewTask, TaskError, TaskId, WorkerId

UNSAID = 0
"""The attempt of a result whose worker does not say which: the only one that it ever had."""


class ResultStatus(StrEnum):
    """How an attempt ended, in the worker's words. `released`: handed back, nothing is charged;
    `deferred`: the same, to go on when a sleep is over or an event has come.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    RELEASED = "released"
    DEFERRED = "deferred"


class StepKind(StrEnum):
    """What was recorded: what a step came to, that a sleep is over, that an event came or did not
    come in time.
    """

    STEP = "step"
    SLEEP = "sleep"
    EVENT = "event"


class RemoteStep(NamedTuple):
    """What an earlier attempt recorded. `key` and `timed_out` are an event's."""

    name: str
    kind: StepKind
    key: str | None = None
    result: Json = None
    timed_out: bool = False


class Sleep(NamedTuple):
    """A sleep of an attempt, by a name that is unique in its task."""

    name: str
    seconds: float


class EventWait(NamedTuple):
    """A wait for an event; without a timeout (seconds) for as long as it takes."""

    event: str
    key: str
    timeout: float | None = None


class Verdict(StrEnum):
    """What became of a result. Only the first two mean that it counts."""

    SAVED = "saved"
    REPEATED = "repeated"
    STALE = "lease_lost"
    UNKNOWN = "task_not_found"
    INVALID = "payload_refused"
    AMBIGUOUS = "attempt_needed"
    CONFLICT = "idempotency_conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The answer to a new worker: who it is, and how often to beat and to ask."""

    worker_id: WorkerId
    poll_interval_ms: int
    heartbeat_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteResult:
    """How one attempt ended. `result` is for `completed`, `error` for `failed`; `retry_after`
    (seconds) wins over the task's backoff. `attempt` may be `UNSAID`. `follow_ups` are stored if
    and only if a success is; those without a trace belong to that of the task. So are `children`,
    after which the task ends. `until` is for `deferred`.
    """

    task_id: TaskId
    attempt: int
    status: ResultStatus
    result: Json = field(default=None, repr=False)
    error: TaskError | None = None
    retry_after: float | None = None
    follow_ups: Sequence[NewTask] = ()
    children: Sequence[NewTask] = ()
    until: Sleep | EventWait | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenResult:
    """What became of one result; `detail` says why it does not count."""

    task_id: TaskId
    attempt: int
    verdict: Verdict
    detail: str | None = None

    @property
    def is_accepted(self) -> bool:
        return self.verdict in (Verdict.SAVED, Verdict.REPEATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The answer to a beat: which tasks to stop (cancelled, or no longer this worker's), and
    whether to finish and leave.
    """

    cancel: tuple[TaskId, ...] = ()
    drain: bool = False
