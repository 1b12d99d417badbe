"""What a worker over HTTP says and is told, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.core.task import Json, NewTask, TaskError, TaskId, WorkerId

UNSAID = 0
"""The attempt of a result whose worker does not say which: the only one that it ever had."""


class ResultStatus(StrEnum):
    """How an attempt ended, in the worker's words. `released`: handed back, nothing is charged."""

    COMPLETED = "completed"
    FAILED = "failed"
    RELEASED = "released"


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
    after which the task ends.
    """

    task_id: TaskId
    attempt: int
    status: ResultStatus
    result: Json = field(default=None, repr=False)
    error: TaskError | None = None
    retry_after: float | None = None
    follow_ups: Sequence[NewTask] = ()
    children: Sequence[NewTask] = ()


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
