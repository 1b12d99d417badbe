"""The JSON of queues, workers, numbers and tokens; see `task_answers`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from typing_extensions import TypedDict

from holdfast.core.breaker import BreakerState
from holdfast.core.events import Emitted
from holdfast.core.fleet import WorkerInfo, WorkerStatus, shown_capabilities
from holdfast.core.json_form import TOLD, From, JsonForm
from holdfast.core.limit_state import LimitChange, LimitState
from holdfast.core.stats import Depth, EffectiveDepth, QueueStats
from holdfast.core.task import Priority
from holdfast.core.task_answers import Count, exact
from holdfast.core.token import Scope, Token


@exact
class DepthAnswer(TypedDict):
    """How much of one priority is ready, and how long the oldest has waited."""

    priority: Priority
    ready: Count
    oldest_seconds: float | None


DEPTH = JsonForm(DepthAnswer, Depth)


@exact
class QueueAnswer(TypedDict):
    """One queue in numbers."""

    queue: str
    paused: bool
    open: Annotated[bool, TOLD]
    ready: Count
    waiting: Count
    blocked: Count
    running: Count
    priorities: Annotated[list[DepthAnswer], From("depths")]


QUEUE = JsonForm(QueueAnswer, QueueStats)


@exact
class QueueList(TypedDict):
    """The queues that are paused or have tasks, and the open ones."""

    queues: list[QueueAnswer]


@exact
class PauseAnswer(TypedDict):
    """Whether the queue is paused now, whether this call changed that, and whether anything has
    this name: a task in it, a live worker, or `open_queues`.
    """

    queue: str
    paused: bool
    changed: bool
    known: bool


@exact
class LimitAnswer(TypedDict):
    """A limit, rate, share or breaker. `capacity` is how many may pass, null if all may; `set` if
    an operator said so or a breaker is not closed. `held` are ready or running; `waiting` is
    counted up to a thousand. `next_at` is when time lets the next pass; `state` is a breaker's.
    """

    name: str
    kind: Literal["breaker", "limit", "rate", "share"]
    capacity: Count | None
    set: Annotated[bool, From("is_set")]
    held: Count
    waiting: Count
    waiting_is_capped: Annotated[bool, From(lambda limit: limit.waiting_is_capped)]
    next_at: datetime | None
    state: BreakerState | None


LIMIT = JsonForm(LimitAnswer, LimitState)


@exact
class LimitDetailsAnswer(LimitAnswer):
    """A limit, and the oldest tasks that hold it and that wait for it, ten of each at most."""

    holders: Annotated[list[str], TOLD]
    waiters: Annotated[list[str], TOLD]


@exact
class LimitList(TypedDict):
    """The limits that somebody uses or has set, by name. `next` brings more; null: that is all."""

    limits: list[LimitAnswer]
    next: str | None


@exact
class LimitChangeAnswer(TypedDict):
    """What was set, null for what tasks say; whether this call changed that, and whether anything
    has this name: a task that uses it now, or a definition.
    """

    name: str
    capacity: Count | None
    state: BreakerState | None
    changed: bool
    known: bool


LIMIT_CHANGE = JsonForm(LimitChangeAnswer, LimitChange)


@exact
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


@exact
class EffectiveDepthAnswer(TypedDict):
    """How much is worth a priority now; with `depth_is_capped` more may be."""

    depth: Annotated[Count, From("ready")]
    depth_is_capped: Annotated[bool, From("is_capped")]
    oldest_age_seconds: Annotated[float | None, From("oldest_seconds")]


EFFECTIVE_DEPTH = JsonForm(EffectiveDepthAnswer, EffectiveDepth)


@exact
class ThroughputAnswer(TypedDict):
    """What ended within the last minute; dead letters have failed."""

    completed_last_minute: Count
    failed_last_minute: Count


@exact
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


@exact
class WorkerAnswer(TypedDict):
    """A worker, as the store knows it. `load` is how many tasks it runs now, and `current_tasks` is
    another name of that; `beats` counts its heartbeats; `blocked_by` is the task that keeps its
    event loop.
    """

    worker_id: Annotated[str, From("id")]
    kind: str
    status: WorkerStatus
    host: str
    pid: int
    version: str
    queues: list[str] | None
    capabilities: Annotated[list[str], From("capabilities", shown_capabilities)]
    capacity: Count
    load: Count
    current_tasks: Annotated[Count, From(lambda worker: worker.load)]
    drain_requested: bool
    blocked_by: str | None
    beats: Count
    started_at: datetime | None
    beat_at: datetime | None


WORKER = JsonForm(WorkerAnswer, WorkerInfo)


@exact
class WorkerList(TypedDict):
    """All workers, newest first."""

    workers: list[WorkerAnswer]


@exact
class DrainAnswer(TypedDict):
    """The worker was asked to stop taking tasks, finish what it has, and leave."""

    worker_id: str
    drain_requested: Literal[True]


@exact
class EmitAnswer(TypedDict):
    """What became of an emit: whether it is the first of its event and key, which counts, and how
    many tasks waited for it.
    """

    event: str
    key: str
    first: bool
    woken: Count


EMITTED = JsonForm(EmitAnswer, Emitted)


def _in_order(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


@exact
class TokenAnswer(TypedDict):
    """A token, without its secret."""

    token_id: Annotated[str, From("id")]
    name: str
    scopes: Annotated[list[Scope], From("scopes", sorted)]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    owner: Annotated[str | None, From("bounds.owner")]
    queues: Annotated[list[str] | None, From("bounds.queues", _in_order)]
    task_types: Annotated[list[str] | None, From("bounds.names", _in_order)]
    max_priority: Annotated[Priority | None, From("bounds.max_priority")]
    rate: Annotated[str | None, From("bounds.rate", lambda rate: rate and str(rate))]
    created_by: str | None
    last_used_at: datetime | None


TOKEN = JsonForm(TokenAnswer, Token)


@exact
class NewTokenAnswer(TokenAnswer):
    """A new token. `token` is shown this once. `callback_secret` is what callbacks of its tasks are
    signed with, beside the server's own secret; null if the server has none.
    """

    token: str
    callback_secret: str | None


@exact
class TokenList(TypedDict):
    """All tokens, newest first."""

    tokens: list[TokenAnswer]
