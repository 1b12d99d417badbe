"""The JSON of tasks and of what happened to them: every member once, its type and where it comes
from.

REST answers this, the command line prints it (`--json`), `Task.to_dict` returns it, event streams
and callbacks tell parts of it, the HTTP client reads it, and the OpenAPI page describes it. Members
are stable once released.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeVar

from annotated_types import Ge
from typing_extensions import TypedDict

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.fleet import shown_capabilities
from holdfast.core.json_form import TOLD, From, JsonForm
from holdfast.core.limits import shown_retries
from holdfast.core.schedule_state import TaskSchedule
from holdfast.core.task import (
    AttemptEnd,
    Cause,
    Cost,
    Priority,
    Progress,
    Reason,
    State,
    SubmitOutcome,
    Task,
    TaskError,
)
from holdfast.core.tree import TaskTree
from holdfast.core.why import Why

Count = Annotated[int, Ge(0)]
Place = Annotated[int, Ge(1)]
Kind = TypeVar("Kind", bound=type[Any])


def exact(words: Kind) -> Kind:
    """For answers that have these members and no other."""
    words.__pydantic_config__ = {"extra": "forbid"}
    return words


@exact
class Submitted(TypedDict):
    """The answer to a submit. `queue_position` goes by rank, null where it is not known; with
    `existing` the key that `existing_by` names belonged to this task already, or (`throttled`) it
    was submitted not long ago, and its `trace_id` is left to be asked for. `debounced`: it took the
    place of one that was waiting.
    """

    task_id: str
    status: State
    queue_position: Place | None
    outcome: SubmitOutcome
    existing: bool
    existing_by: NotRequired[Literal["idempotency_key", "unique_key"]]
    trace_id: str | None


@exact
class SubmittedMany(TypedDict):
    """The answers to an array, in its order."""

    tasks: list[Submitted]


@exact
class Accepted(TypedDict):
    """The answer to a stream of lines: how many tasks were created, and how many existed."""

    accepted: Count
    existing: Count
    task_ids: NotRequired[list[str]]


@exact
class ProgressAnswer(TypedDict):
    """How far the task says it is."""

    done: float
    total: float | None
    message: str | None


@exact
class ErrorAnswer(TypedDict):
    """What went wrong in an attempt. The traceback is for admins who ask for it."""

    type: str
    message: str
    retriable: bool
    traceback: NotRequired[str | None]


@exact
class CostAnswer(TypedDict):
    """What a task used, over all attempts."""

    units: float
    tokens_in: int
    tokens_out: int


@exact
class TaskScheduleAnswer(TypedDict):
    """The run of a schedule that a task is: when it was meant to be, how many seconds later it was
    submitted, and why.
    """

    name: str
    scheduled_for: datetime
    lateness_seconds: Annotated[float, From("lateness")]
    origin: Literal["schedule", "catch_up", "backfill", "manual"]


JsonForm(TaskScheduleAnswer, TaskSchedule)
JsonForm(ProgressAnswer, Progress)
JsonForm(ErrorAnswer, TaskError)
JsonForm(CostAnswer, Cost)


def _worker_now(task: Task) -> str | None:
    return task.worker_id if task.state is State.RUNNING else None


def _start_of_this(task: Task) -> datetime | None:
    return task.started_at if task.state is State.RUNNING else None


@exact
class TaskAnswer(TypedDict):
    """The whole picture of a task. Secret parameters are masked. `assigned_worker_id` and
    `started_at` are null unless it is running; `last_worker_id` and `last_started_at` are those of
    its last attempt, and the history has them for every one. `retry_count` is how many retries it
    has used up, `charged` how many attempts counted, `crash_count` how often its worker died;
    `cause` is why its last or next attempt starts, `fence` the number of its hold of the lock,
    `completed_at` another name of `finished_at`. `schedule` is of tasks that a schedule submitted.
    """

    task_id: Annotated[str, From("id")]
    task_type: Annotated[str, From("name")]
    parameters: Annotated[Any, TOLD]
    status: Annotated[State, From("state")]
    reason: Reason | None
    queue: str
    priority: Priority
    effective_priority: Annotated[Priority, TOLD]
    attempt: Count
    cause: Cause
    charged: Count
    crash_count: Count
    retry_count: Annotated[Count, From(lambda task: task.retries_used)]
    max_retries: Annotated[Count | None, From("max_retries", shown_retries)]
    assigned_worker_id: Annotated[str | None, From(_worker_now)]
    last_worker_id: Annotated[str | None, From("worker_id")]
    created_at: datetime
    run_at: datetime
    started_at: Annotated[datetime | None, From(_start_of_this)]
    last_started_at: Annotated[datetime | None, From("started_at")]
    finished_at: datetime | None
    completed_at: Annotated[datetime | None, From(lambda task: task.finished_at)]
    expires_at: datetime | None
    timeout_seconds: Annotated[float | None, From("timeout")]
    progress: ProgressAnswer | None
    result: Annotated[Any, TOLD]
    error: ErrorAnswer | None
    cancel_requested: bool
    trace_id: str
    traceparent: str
    tags: list[str]
    owner: str | None
    parent_id: str | None
    lock: str | None
    fence: int | None
    unique_key: str | None
    idempotency_key: str | None
    required_capabilities: Annotated[list[str], From("requires", shown_capabilities)]
    callback_url: Annotated[str | None, From("callback")]
    cost: CostAnswer
    schedule: TaskScheduleAnswer | None


TASK = JsonForm(TaskAnswer, Task)


@exact
class BriefTask(TypedDict):
    """A task, for tokens without the scope `read`."""

    task_id: Annotated[str, From("id")]
    status: Annotated[State, From("state")]
    cancel_requested: bool


@exact
class TaskPage(TypedDict):
    """A page of tasks. `next`, sent as `cursor`, brings the next one; null at the end."""

    tasks: list[TaskAnswer]
    next: str | None


@exact
class AttemptAnswer(TypedDict):
    """One start of a task."""

    attempt: Annotated[Count, From("number")]
    cause: Cause
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    ended: AttemptEnd | None
    seconds: Annotated[float | None, From(lambda attempt: attempt.seconds)]
    charged: bool
    error: ErrorAnswer | None


@exact
class EventAnswer(TypedDict):
    """Something that happened to a task beside its attempts."""

    at: datetime
    kind: str
    attempt: int | None
    worker_id: str | None
    detail: str | None


ATTEMPT = JsonForm(AttemptAnswer, Attempt)
EVENT = JsonForm(EventAnswer, Event)


@exact
class HistoryAnswer(TypedDict):
    """Every attempt and event of a task, each oldest first."""

    task_id: Annotated[str, TOLD]
    attempts: list[AttemptAnswer]
    events: list[EventAnswer]


HISTORY = JsonForm(HistoryAnswer, History)


@exact
class TreeNode(TypedDict):
    """A task and what is below it. `ended` of `total` are its own children that have ended;
    `left_out` are those that are not shown, because the tree is large: `…/children` has them all.
    """

    task_id: Annotated[str, From("id")]
    task_type: Annotated[str, From("name")]
    status: Annotated[State, From("state")]
    reason: Reason | None
    error: ErrorAnswer | None
    started_at: datetime | None
    finished_at: datetime | None
    ended: Count
    total: Count
    left_out: Count
    children: list[TreeNode]


TREE = JsonForm(TreeNode, TaskTree)


@exact
class WhyReason(TypedDict):
    """A reason: a stable code, and a sentence that names what to do."""

    code: str
    message: str


def _reasons(why: Why) -> list[WhyReason]:
    return [{"code": code, "message": text} for code, text in why.reasons]


@exact
class WhyAnswer(TypedDict):
    """Why a task is not running. `position` counts from 1; with `position_is_capped` it is at least
    that.
    """

    task_id: str
    status: Annotated[State, From("state")]
    sentence: str
    reasons: Annotated[list[WhyReason], From(_reasons)]
    position: Annotated[
        Place | None, From(lambda why: None if why.ahead is None else why.ahead + 1)
    ]
    position_is_capped: Annotated[bool, From("ahead_is_capped")]
    eta_seconds: float | None


WHY = JsonForm(WhyAnswer, Why)


@exact
class ActionAnswer(TypedDict):
    """How many tasks an action changed, or with `dry_run` would change."""

    action: Literal["cancel", "retry", "replay", "discard"]
    dry_run: bool
    tasks: Count
