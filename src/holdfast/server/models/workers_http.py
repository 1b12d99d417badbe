"""What workers over HTTP send, and what they are told."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal, NotRequired, Required

import orjson
from pydantic import ConfigDict, Field, StringConstraints, with_config
from typing_extensions import TypedDict

from holdfast.codec.secrets import revealed
from holdfast.core.attempt import Claim
from holdfast.core.json_form import TOLD, From, JsonForm
from holdfast.core.report import MOST_PROGRESS, MOST_TOKENS, MOST_UNITS
from holdfast.core.schedule_state import scheduled_for
from holdfast.core.task import Json
from holdfast.core.trace import trace_id_of, traceparent_of
from holdfast.remote import RemoteStep, ResultStatus, TakenResult, Verdict
from holdfast.remote.values import StepKind
from holdfast.remote.workers import LONGEST_WAIT
from holdfast.server.models import words
from holdfast.server.models.answers import EXACT
from holdfast.server.shape import CLOSED
from holdfast.server.spelling import NULL

MOST_RESULTS = 1000
MOST_FOLLOW_UPS = 100
MOST_SLOTS = 10_000
MOST_LINES = 1000
LONGEST_LINE = 8 * 1024
LARGEST_FENCE = 2**31 - 1

Text = Annotated[str, StringConstraints(strict=True)]
"""However long: what is too long to keep is shortened."""
Attempt = Annotated[int, Field(ge=1, le=LARGEST_FENCE)]
Finite = Annotated[float, Field(ge=-MOST_PROGRESS, le=MOST_PROGRESS, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=MOST_UNITS, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Line = Annotated[str, StringConstraints(max_length=LONGEST_LINE, pattern=words.NO_NUL, strict=True)]
StepName = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^$\x00][^\x00]*$", strict=True)
]
Queue = words.Name | Literal["*"]
BELONGS: Final = {
    "result": ResultStatus.COMPLETED,
    "error": ResultStatus.FAILED,
    "follow_ups": ResultStatus.COMPLETED,
    "children": ResultStatus.COMPLETED,
    "sleep": ResultStatus.DEFERRED,
    "wait_for": ResultStatus.DEFERRED,
}
"""Which status of a result a member goes with."""
DEFERRED_UNTIL: Final = {"sleep", "wait_for"}
"""One of them says until when a task is deferred."""


def _fitting(status: ResultStatus, needed: str | None = None) -> Json:
    properties: dict[str, Json] = {
        member: NULL for member, belongs in BELONGS.items() if belongs is not status
    }
    properties["status"] = {"const": status.value}
    if needed is None:
        return {"properties": properties}
    properties |= dict.fromkeys(DEFERRED_UNTIL, NULL) | {needed: {"type": "object"}}
    return {"properties": properties, "required": [needed]}


FITTING: Final[list[Json]] = [
    *(_fitting(status) for status in ResultStatus if status is not ResultStatus.DEFERRED),
    *(_fitting(ResultStatus.DEFERRED, needed) for needed in sorted(DEFERRED_UNTIL)),
]
"""The same as a schema."""
STATUSES: Final = {
    Verdict.SAVED: 200,
    Verdict.REPEATED: 200,
    Verdict.STALE: 409,
    Verdict.UNKNOWN: 404,
    Verdict.INVALID: 422,
    Verdict.AMBIGUOUS: 422,
    Verdict.CONFLICT: 409,
}


@with_config(CLOSED)
class Register(TypedDict, total=False):
    """A worker that is about to work: one slot on the queue `default`, unless it says more.
    The queue `*` stands for all of them.
    """

    capabilities: words.Names
    capacity: Annotated[int, Field(ge=1, le=MOST_SLOTS)]
    queues: Annotated[list[Queue], Field(min_length=1, max_length=words.MOST_TAGS)]
    version: Annotated[str, StringConstraints(max_length=200, pattern=words.NO_NUL, strict=True)]


@with_config(CLOSED)
class Poll(TypedDict, total=False):
    """A worker with free slots. It waits for at most `wait_seconds` (30 unless it says less).
    Of its `capabilities` it may name those that it has at the moment.
    """

    capabilities: words.Names
    available_capacity: Required[Annotated[int, Field(ge=1, le=MOST_SLOTS)]]
    wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT, allow_inf_nan=False)]


@with_config(CLOSED)
class ResultError(TypedDict, total=False):
    """What went wrong. `retry_after` (seconds) wins over the task's backoff."""

    message: Required[Text]
    type: Annotated[str, StringConstraints(min_length=1, max_length=200, strict=True)]
    retriable: bool
    retry_after: words.Seconds | None
    traceback: Text | None


@with_config(CLOSED)
class SleepUntil(TypedDict):
    """A sleep, by a name that is unique in its task. It is counted from when it was first asked
    for, and comes with the task as a step of the kind `sleep` when it is over.
    """

    name: StepName
    seconds: words.Seconds


@with_config(CLOSED)
class WaitFor(TypedDict, total=False):
    """A wait for an event; it comes with the task as a step of the kind `event`. Without a timeout
    it lasts for as long as it takes.
    """

    event: Required[words.Name]
    key: Required[words.Tag]
    timeout_seconds: words.Seconds | None


@with_config(ConfigDict({**CLOSED, "json_schema_extra": {"anyOf": FITTING}}))
class Result(TypedDict, total=False):
    """How an attempt ended. `released` hands the task back, and nothing is charged; of a task that
    was cancelled it means that it has stopped. `deferred` hands it back until a `sleep` is over or
    an event has come (`wait_for`). The `attempt` may be left out by a worker that had
    the task only once. An `error` that is text is its message. `follow_ups` are tasks to submit,
    as `POST /api/v1/tasks` takes them: they exist if and only if the attempt is recorded as
    completed. So are `children`, and the task itself ends after the last of them, with this result.
    """

    task_id: Required[words.Uuid]
    attempt: Attempt
    status: Required[Literal["completed", "failed", "released", "deferred"]]
    result: Any
    error: ResultError | Text | None
    follow_ups: Annotated[list[dict[str, Any]], Field(max_length=MOST_FOLLOW_UPS)]
    children: Annotated[list[dict[str, Any]], Field(max_length=MOST_FOLLOW_UPS)]
    sleep: SleepUntil
    wait_for: WaitFor


@with_config(CLOSED)
class ProgressReport(TypedDict, total=False):
    """How far an attempt is."""

    done: Required[Finite]
    total: Finite | None
    message: Annotated[str, StringConstraints(max_length=1000, pattern=words.NO_NUL, strict=True)]


@with_config(CLOSED)
class CostReport(TypedDict, total=False):
    """What an attempt has used since its last report."""

    units: Amount
    tokens_in: Tokens
    tokens_out: Tokens


@with_config(CLOSED)
class StepReport(TypedDict, total=False):
    """What a step came to. It is recorded once: what is there already stays."""

    name: Required[StepName]
    result: Any


@with_config(CLOSED)
class AttemptReport(TypedDict, total=False):
    """What a running attempt has to say: progress replaces what it said before, cost adds up, steps
    are recorded for later attempts.
    """

    task_id: Required[words.Uuid]
    attempt: Required[Attempt]
    progress: ProgressReport
    cost: CostReport
    log: Annotated[list[Line], Field(max_length=MOST_LINES)]
    steps: Annotated[list[StepReport], Field(max_length=MOST_FOLLOW_UPS)]


@with_config(CLOSED)
class Beat(TypedDict, total=False):
    """A sign of life. `running` is every task that the worker knows that it has: what it was given
    and never names has been lost on its way, and is handed back.
    """

    current_load: Annotated[int, Field(ge=0, le=MOST_SLOTS)]
    status: Literal["active", "draining"]
    running: Annotated[list[words.Uuid], Field(max_length=MOST_SLOTS)]
    reports: Annotated[list[AttemptReport], Field(max_length=MOST_RESULTS)]


@with_config(EXACT)
class RegisterAnswer(TypedDict):
    """Who the worker is, how often it must beat, and how long it waits before it asks again after
    an error.
    """

    worker_id: str
    poll_interval_ms: int
    heartbeat_seconds: float


def _parameters(payload: bytes) -> Json:
    return orjson.Fragment(revealed(payload))


@with_config(EXACT)
class StepAnswer(TypedDict):
    """What an earlier attempt recorded: do not do it again. `key` is an event's, and `timed_out` if
    it did not come in time.
    """

    name: str
    kind: StepKind
    key: str | None
    result: Any
    timed_out: bool


STEP = JsonForm(StepAnswer, RemoteStep)


@with_config(EXACT)
class WorkAnswer(TypedDict):
    """A task to run. `attempt` is the fence: it must come back with the result. `lock_fence` grows
    with every holder of the task's `lock`. `scheduled_for` is when a run of a schedule was meant
    to be. `steps` is what earlier attempts recorded.
    """

    task_id: str
    task_type: Annotated[str, From("name")]
    parameters: Annotated[Any, From("payload", _parameters)]
    attempt: int
    queue: str
    priority: str
    timeout_seconds: Annotated[float | None, TOLD]
    trace_id: Annotated[str, From(lambda claim: trace_id_of(claim.task_id, claim.trace))]
    traceparent: Annotated[
        str, From(lambda claim: traceparent_of(claim.task_id, claim.trace, claim.attempt))
    ]
    owner: str | None
    lock: str | None
    lock_fence: Annotated[int | None, From("fence")]
    scheduled_for: Annotated[datetime | None, From("payload", scheduled_for)]
    steps: Annotated[list[StepAnswer], TOLD]


WORK = JsonForm(WorkAnswer, Claim)


@with_config(EXACT)
class PollAnswer(TypedDict):
    """The tasks handed out; none if there was no work in time."""

    tasks: list[WorkAnswer]


@with_config(EXACT)
class ResultAnswer(TypedDict):
    """What became of a result. In a batch each has the `status` that it would have got alone.
    `repeated`: it was known already, as far as this server noticed.
    """

    task_id: str
    attempt: int
    accepted: Annotated[bool, From("is_accepted")]
    repeated: Annotated[bool, From(lambda told: told.verdict is Verdict.REPEATED)]
    status: Annotated[int, From("verdict", STATUSES.__getitem__)]
    code: NotRequired[Annotated[str, From("verdict")]]
    detail: NotRequired[str]


RESULT_ANSWER = JsonForm(ResultAnswer, TakenResult)


@with_config(EXACT)
class ResultAnswers(TypedDict):
    """The answers to a batch, in its order."""

    results: list[ResultAnswer]


@with_config(EXACT)
class BeatAnswer(TypedDict):
    """The tasks to stop (cancelled, or no longer this worker's); whether to finish and leave."""

    acknowledged: Literal[True]
    cancel: list[str]
    drain: bool


@with_config(EXACT)
class WorkerDrainAnswer(TypedDict):
    """How many tasks the worker still has. With none it has left: its id is used up."""

    running: int
    stopped: bool
