"""What the server's answers become: the same values as locally where they are all there, and
values with the same names for what only the server tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from holdfast.core.schedule_state import ScheduleRun, ScheduleState, TaskSchedule
from holdfast.core.task import Json, Priority, State, SubmitOutcome, TaskFields, TaskId
from holdfast.core.token import Bounds, Scope


class Submitted(NamedTuple):
    """The answer to one submitted task: `task_id` is the existing task's if it was not created.

    `queue_position` goes by rank; None where it is not known. `trace_id` is that of a new task.
    """

    task_id: TaskId
    outcome: SubmitOutcome
    state: State
    queue_position: int | None
    trace_id: str | None

    @property
    def created(self) -> bool:
        return self.outcome.is_new


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTask(TaskFields):
    """A task as the server shows it: `holdfast.Task` with its arguments and its result as JSON
    values, secrets masked.
    """

    effective_priority: Priority
    max_retries: int | None
    parameters: Json = field(repr=False)
    result: Json = field(repr=False)
    trace_id: str
    traceparent: str
    schedule: TaskSchedule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefTask:
    """A task that was steered with a token that may not read it."""

    id: TaskId
    state: State
    cancel_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePage:
    """One page of tasks. Pass `next` as `after` to get the one after; None means the end."""

    tasks: tuple[RemoteTask, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteToken:
    """A token, without its secret."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    bounds: Bounds
    created_by: str | None
    last_used_at: datetime | None


class RemoteEvent(NamedTuple):
    """One message of a task's event stream: `log`, `history`, `progress`, `state` or `end`. `id` is
    the place to go on from.
    """

    event: str
    data: Json
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefSchedule:
    """A schedule that was made or steered with a token that may not read it."""

    id: str
    status: str
    next_run_at: datetime | None
    next_run_local: str | None


class RemoteSchedulePage(NamedTuple):
    """Schedules by name; `next`, passed as `after`, brings those after."""

    schedules: Sequence[ScheduleState]
    next: str | None


class RemoteRunPage(NamedTuple):
    """Runs, newest first; `next`, passed as `after`, brings those before."""

    runs: Sequence[ScheduleRun]
    next: str | None


class UnreadEvent(NamedTuple):
    """An entry of a calendar that made no schedule, and why."""

    event: int
    uid: str | None
    summary: str | None
    field: str
    reason: str


class ImportedCalendar(NamedTuple):
    """The schedules that a calendar made, and its entries that made none."""

    schedules: Sequence[BriefSchedule]
    unread: Sequence[UnreadEvent]
