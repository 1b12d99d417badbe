"""What is answered, for the description of the API. Nothing is validated with these: the tests do
that, with every answer that they get.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import AttemptEnd, Cause, Priority, Reason, State
from holdfast.core.token import Scope

EXACT = ConfigDict(extra="forbid")
Count = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="allow"))
class Problem(TypedDict):
    """What went wrong (RFC 9457). `code` is stable; `id` finds it in the server's log."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    id: str
    field: NotRequired[str]
    errors: NotRequired[list[FieldProblem]]


class FieldProblem(TypedDict):
    """One of several things that are wrong with a request."""

    field: str
    message: str


@with_config(EXACT)
class Submitted(TypedDict):
    """The answer to a submit. `queue_position` goes by rank, null where it is not known; with
    `existing` the key that `existing_by` names belonged to this task already.
    """

    task_id: str
    status: State
    queue_position: Annotated[int, Field(ge=1)] | None
    existing: bool
    existing_by: NotRequired[Literal["idempotency_key", "unique_key"]]


@with_config(EXACT)
class SubmittedMany(TypedDict):
    """The answers to an array, in its order."""

    tasks: list[Submitted]


@with_config(EXACT)
class Accepted(TypedDict):
    """The answer to a stream of lines: how many tasks were created, and how many existed."""

    accepted: Count
    existing: Count
    task_ids: NotRequired[list[str]]


@with_config(EXACT)
class ProgressAnswer(TypedDict):
    """How far the task says it is."""

    done: float
    total: float | None
    message: str | None


@with_config(EXACT)
class ErrorAnswer(TypedDict):
    """What went wrong in an attempt. The traceback is for admins who ask for it."""

    type: str
    message: str
    retriable: bool
    traceback: NotRequired[str | None]


@with_config(EXACT)
class CostAnswer(TypedDict):
    """What a task used, over all attempts."""

    units: float
    tokens_in: int
    tokens_out: int


@with_config(EXACT)
class TaskAnswer(TypedDict):
    """The whole picture of a task. Secret parameters are masked. `assigned_worker_id` and
    `started_at` are null unless it is running: the history has them for every attempt.
    `retry_count` is how many retries it has used up, `completed_at` another name of `finished_at`.
    """

    task_id: str
    task_type: str
    parameters: Any
    status: State
    reason: Reason | None
    queue: str
    priority: Priority
    effective_priority: Priority
    attempt: Count
    retry_count: Count
    max_retries: Count | None
    assigned_worker_id: str | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    completed_at: datetime | None
    expires_at: datetime | None
    timeout_seconds: float | None
    progress: ProgressAnswer | None
    result: Any
    error: ErrorAnswer | None
    cancel_requested: bool
    trace_id: str
    traceparent: str
    tags: list[str]
    owner: str | None
    parent_id: str | None
    lock: str | None
    unique_key: str | None
    idempotency_key: str | None
    required_capabilities: list[str]
    callback_url: str | None
    cost: CostAnswer


@with_config(EXACT)
class BriefTask(TypedDict):
    """A task, for tokens without the scope `read`."""

    task_id: str
    status: State
    cancel_requested: bool


@with_config(EXACT)
class TaskPage(TypedDict):
    """A page of tasks. `next`, sent as `cursor`, brings the next one; null at the end."""

    tasks: list[TaskAnswer]
    next: str | None


@with_config(EXACT)
class AttemptAnswer(TypedDict):
    """One start of a task."""

    attempt: Count
    cause: Cause
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    ended: AttemptEnd | None
    seconds: float | None
    charged: bool
    error: ErrorAnswer | None


@with_config(EXACT)
class EventAnswer(TypedDict):
    """Something that happened to a task beside its attempts."""

    at: datetime
    kind: str
    attempt: int | None
    worker_id: str | None
    detail: str | None


@with_config(EXACT)
class HistoryAnswer(TypedDict):
    """Every attempt and event of a task, each oldest first."""

    task_id: str
    attempts: list[AttemptAnswer]
    events: list[EventAnswer]


@with_config(EXACT)
class WhyReason(TypedDict):
    """A reason: a stable code, and a sentence that names what to do."""

    code: str
    message: str


@with_config(EXACT)
class WhyAnswer(TypedDict):
    """Why a task is not running. `position` counts from 1; with `position_is_capped` it is at least
    that.
    """

    task_id: str
    status: State
    sentence: str
    reasons: list[WhyReason]
    position: Annotated[int, Field(ge=1)] | None
    position_is_capped: bool
    eta_seconds: float | None


@with_config(EXACT)
class ActionAnswer(TypedDict):
    """How many tasks an action changed, or with `dry_run` would change."""

    action: Literal["cancel", "retry", "replay", "discard"]
    dry_run: bool
    tasks: Count


@with_config(EXACT)
class DepthAnswer(TypedDict):
    """How much of one priority is ready, and how long the oldest has waited."""

    priority: Priority
    ready: Count
    oldest_seconds: float | None


@with_config(EXACT)
class QueueAnswer(TypedDict):
    """One queue in numbers."""

    queue: str
    paused: bool
    open: bool
    ready: Count
    waiting: Count
    blocked: Count
    running: Count
    priorities: list[DepthAnswer]


@with_config(EXACT)
class QueueList(TypedDict):
    """The queues that are paused or have tasks, and the open ones."""

    queues: list[QueueAnswer]


@with_config(EXACT)
class PauseAnswer(TypedDict):
    """Whether the queue is paused now, whether this call changed that, and whether anything has
    this name: a task in it, a live worker, or `open_queues`.
    """

    queue: str
    paused: bool
    changed: bool
    known: bool


@with_config(EXACT)
class WorkerNumbers(TypedDict):
    """How many workers there are of each status, stopped and dead ones until they are pruned; how
    many tasks the live ones run at a time, and run now.
    """

    active: Count
    draining: Count
    silent: Count
    stopped: Count
    dead: Count
    total_capacity: Count
    used_capacity: Count


@with_config(EXACT)
class EffectiveDepthAnswer(TypedDict):
    """How much is worth a priority now; with `depth_is_capped` more may be."""

    depth: Count
    depth_is_capped: bool
    oldest_age_seconds: float | None


@with_config(EXACT)
class ThroughputAnswer(TypedDict):
    """What ended within the last minute; dead letters have failed."""

    completed_last_minute: Count
    failed_last_minute: Count


@with_config(EXACT)
class StatsAnswer(TypedDict):
    """The store in numbers, at most a second old. `queues` is all that is ready, by what waiting
    has made of its priority; `priorities` the same by the priority it was submitted with.
    """

    queues: dict[Literal["critical", "high", "normal", "medium", "low"], EffectiveDepthAnswer]
    named_queues: list[QueueAnswer]
    priorities: list[DepthAnswer]
    workers: WorkerNumbers
    throughput: ThroughputAnswer
    statuses: dict[str, int]
    last_minute: dict[str, int]
    refused: Count


@with_config(EXACT)
class WorkerAnswer(TypedDict):
    """A worker, as the store knows it. `load` is how many tasks it runs now; `current_tasks` is
    another name of that.
    """

    worker_id: str
    kind: str
    status: WorkerStatus
    host: str
    pid: int
    version: str
    queues: list[str] | None
    capabilities: list[str]
    capacity: Count
    load: Count
    current_tasks: Count
    drain_requested: bool
    blocked_by: Annotated[str | None, Field(description="The task that keeps its event loop.")]
    started_at: datetime | None
    beat_at: datetime | None


@with_config(EXACT)
class WorkerList(TypedDict):
    """All workers, newest first."""

    workers: list[WorkerAnswer]


@with_config(EXACT)
class DrainAnswer(TypedDict):
    """The worker was asked to stop taking tasks, finish what it has, and leave."""

    worker_id: str
    drain_requested: Literal[True]


@with_config(EXACT)
class TokenAnswer(TypedDict):
    """A token, without its secret."""

    token_id: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    owner: str | None
    queues: list[str] | None
    task_types: list[str] | None
    max_priority: Priority | None
    rate: str | None
    created_by: str | None
    last_used_at: datetime | None


@with_config(EXACT)
class NewTokenAnswer(TokenAnswer):
    """A new token. `token` is shown this once."""

    token: str


@with_config(EXACT)
class TokenList(TypedDict):
    """All tokens, newest first."""

    tokens: list[TokenAnswer]


@with_config(EXACT)
class Health(TypedDict):
    """The process answers."""

    status: Literal["ok"]


@with_config(EXACT)
class Readiness(TypedDict):
    """Whether requests can be served (`ready`), and all that is missing from a whole service."""

    ready: bool
    missing: list[str]
    store: Literal["ok", "unavailable", "schema_mismatch"]
    schema_version: int | None
    dispatcher: str | None
    workers_alive: Count
