"""A schedule and its runs as they are told to people, and which run a task is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.core.flow import flow_of
from holdfast.core.task import Cost, Json, Priority, Progress, State, Task, TaskError, TaskId

TAG: Final = "schedule"
"""The name of the tag of the tasks of a schedule; its value is the schedule's name."""


class RunEnd(StrEnum):
    """What became of a run."""

    RUNNING = "running"  # its task has not ended
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # on purpose: somebody asked, or the one before had not ended
    MISSED = "missed"  # nobody could fire it in time
    FORGOTTEN = "forgotten"  # it was fired, and its task is not kept any more


_ENDS = {
    State.COMPLETED: RunEnd.SUCCESS,
    State.FAILED: RunEnd.FAILURE,
    State.DEAD_LETTER: RunEnd.FAILURE,
    State.CANCELLED: RunEnd.CANCELLED,
}


def run_end(task: Task | None) -> RunEnd:
    """What became of a run that was fired, by its task."""
    return RunEnd.FORGOTTEN if task is None else _ENDS.get(task.state, RunEnd.RUNNING)


class TaskSchedule(NamedTuple):
    """Which run of which schedule a task is. `lateness` is in seconds."""

    name: str
    scheduled_for: datetime
    lateness: float
    origin: str


def schedule_tag(name: str) -> str:
    """The tag of the tasks of a schedule."""
    return f"{TAG}={name}"


def schedule_of(task: Task) -> TaskSchedule | None:
    """The schedule that submitted a task, if one did."""
    flow = flow_of(task.payload)
    if flow is None or flow.run is None:
        return None
    name, _, at, origin = flow.run
    meant = datetime.fromisoformat(at)
    return TaskSchedule(name, meant, (task.created_at - meant).total_seconds(), origin)


def scheduled_for(payload: bytes) -> datetime | None:
    """When the run was meant to be that a payload is of."""
    flow = flow_of(payload)
    return None if flow is None or flow.run is None else datetime.fromisoformat(flow.run.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """A schedule as it is told. Times are UTC but for those called local, which are text with the
    offset of its zone. `rule` is its JSON, `words` says it in English. `next_run_at` is the next
    run that is not left out, None unless it is active; `due_at` is when that is fired, with its
    jitter. `runs` counts what was fired, `failures` how many failed one after another, and
    `open_tasks` have not been seen to end.
    """

    id: str
    status: str
    note: str | None
    paused_until: datetime | None
    kind: str
    rule: Json
    words: str
    tz: str
    next_run_at: datetime | None
    next_run_local: str | None
    due_at: datetime | None
    last_run_at: datetime | None
    last_run_local: str | None
    skips: tuple[datetime, ...]
    runs: int
    failures: int
    open_tasks: tuple[str, ...]
    task_name: str
    parameters: Json = field(repr=False)
    queue: str
    priority: Priority
    tags: tuple[str, ...]
    max_retries: int | None
    timeout: float | None
    overlap: str
    catch_up: str
    catch_up_most: int
    catch_up_window: float | None
    jitter: float
    pause_after_failures: int | None
    owner: str | None
    title: str | None
    description: str | None
    purpose: str | None
    category: str | None
    delivery_title: str | None
    channels: tuple[str, ...]
    estimated_units: float | None
    chat_id: str | None
    message_id: str | None
    version: int
    is_declared: bool
    is_edited: bool
    tz_version: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """A run as it is told: when it was meant to be, how late it was, why it was fired, what became
    of it, and its task. `content` is the task's result. `number` runs up to `until` are told of
    together, if they are many.
    """

    scheduled_for: datetime
    local: str
    version: int
    origin: str
    status: RunEnd
    reason: str | None
    number: int
    until: datetime | None
    fired_at: datetime | None
    lateness: float | None
    task_id: TaskId | None
    task_state: State | None
    attempt: int | None
    started_at: datetime | None
    finished_at: datetime | None
    progress: Progress | None
    content: Json = field(repr=False)
    error: TaskError | None
    cost: Cost
