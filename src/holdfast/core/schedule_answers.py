"""The JSON of schedules and their runs; see `task_answers`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from holdfast.core.json_form import From, JsonForm
from holdfast.core.schedule_state import RunEnd, ScheduleRun, ScheduleState
from holdfast.core.task import Priority, State
from holdfast.core.task_answers import CostAnswer, Count, ErrorAnswer, ProgressAnswer, exact

StatusWord = Literal["active", "paused", "completed", "failed"]
OverlapWord = Literal["skip", "queue_one", "queue_all", "cancel_running", "allow"]
CatchUpWord = Literal["one", "all", "skip"]
OriginWord = Literal["schedule", "catch_up", "backfill", "manual"]
KindWord = Literal["once", "interval", "cron", "rrule"]


@exact
class ScheduleAnswer(TypedDict):
    """A schedule. `name` is another name of `id`. `words` is its rule in English. `next_run_at` is
    the next run that is not among the `skips`, null unless it is active, and `next_run_local` the
    same in its zone; `due_at` is when that is fired, with its jitter. `runs` counts what was fired,
    `failures` how many failed one after another; `open_tasks` have not been seen to end.
    `is_declared`: code says that it is there; `is_edited`: people have changed that since.
    """

    id: str
    name: Annotated[str, From(lambda one: one.id)]
    status: StatusWord
    note: str | None
    paused_until: datetime | None
    kind: KindWord
    rule: dict[str, Any]
    words: str
    tz: str
    next_run_at: datetime | None
    next_run_local: str | None
    due_at: datetime | None
    last_run_at: datetime | None
    last_run_local: str | None
    skips: list[datetime]
    runs: Count
    failures: Count
    open_tasks: list[str]
    task_type: Annotated[str, From("task_name")]
    parameters: Any
    queue: str
    priority: Priority
    tags: list[str]
    max_retries: Count | None
    timeout_seconds: Annotated[float | None, From("timeout")]
    overlap: OverlapWord
    catch_up: CatchUpWord
    catch_up_most: Count
    catch_up_window_seconds: Annotated[float | None, From("catch_up_window")]
    jitter_seconds: Annotated[float, From("jitter")]
    pause_after_failures: Count | None
    owner: str | None
    title: str | None
    description: str | None
    purpose: str | None
    category: str | None
    delivery_title: str | None
    channels: list[str]
    estimated_units: float | None
    chat_id: str | None
    message_id: str | None
    version: Count
    is_declared: bool
    is_edited: bool
    tz_version: str
    created_at: datetime
    updated_at: datetime


SCHEDULE = JsonForm(ScheduleAnswer, ScheduleState)


@exact
class BriefSchedule(TypedDict):
    """A schedule, for tokens without the scope `read`."""

    id: str
    name: str
    status: StatusWord
    next_run_at: datetime | None
    next_run_local: str | None


@exact
class ScheduleList(TypedDict):
    """Schedules by name. `next`, sent as `after`, brings more; null: that is all."""

    schedules: list[ScheduleAnswer]
    next: str | None


@exact
class ScheduleDeleted(TypedDict):
    """The schedule is gone. Its tasks stay."""

    id: str
    deleted: Literal[True]


@exact
class ScheduleRunAnswer(TypedDict):
    """A run. `status` is `running` until its task has ended, then `success`, `failure` or
    `cancelled`; `skipped` and `missed` runs have a `reason` and no task, and of a `forgotten` one
    the task is not kept any more. `content` is the task's result; `units`, `tokens_in` and
    `tokens_out` are those of `cost`. `number` runs up to `until` are told of together.
    """

    scheduled_for: datetime
    local: str
    version: Count
    origin: OriginWord
    status: RunEnd
    reason: str | None
    number: Count
    until: datetime | None
    fired_at: datetime | None
    lateness_seconds: Annotated[float | None, From("lateness")]
    task_id: str | None
    task_status: Annotated[State | None, From("task_state")]
    attempt: Count | None
    started_at: datetime | None
    finished_at: datetime | None
    progress: ProgressAnswer | None
    content: Any
    error: ErrorAnswer | None
    units: Annotated[float, From(lambda run: run.cost.units)]
    tokens_in: Annotated[int, From(lambda run: run.cost.tokens_in)]
    tokens_out: Annotated[int, From(lambda run: run.cost.tokens_out)]
    cost: CostAnswer


SCHEDULE_RUN = JsonForm(ScheduleRunAnswer, ScheduleRun)


@exact
class ScheduleRunList(TypedDict):
    """Runs, newest first. `next`, sent as `after`, brings those before; null: that is all."""

    runs: list[ScheduleRunAnswer]
    next: str | None


@exact
class PreviewRowAnswer(TypedDict):
    """A run to come. `local` is in the zone that was asked for; `flags` say what is odd about it:
    `moved_by_gap` (`meant` is the time that the clock skips), `first_of_two`, `second_of_two`,
    `skipped_months`, `skipped_years` (`skipped` lists them).
    """

    local: str
    utc: datetime
    abbreviation: str
    flags: list[str]
    meant: str | None
    skipped: list[str]


@exact
class PreviewAnswer(TypedDict):
    """The runs of a rule, and the rule in words. `shown_tz` is the zone of the local times.
    `is_complete`: there are no more in this range.
    """

    kind: KindWord
    words: str
    tz: str
    shown_tz: str
    rule: dict[str, Any]
    runs: list[PreviewRowAnswer]
    is_complete: bool


@exact
class FiredAnswer(TypedDict):
    """The task of a run that was asked for."""

    task_id: str


@exact
class BackfillAnswer(TypedDict):
    """The tasks of the runs that were made up for, the earliest first."""

    task_ids: list[str]


@exact
class UnreadEvent(TypedDict):
    """An entry of a calendar that made no schedule, and why; `event` counts from 0."""

    event: Count
    uid: str | None
    summary: str | None
    field: str
    reason: str


@exact
class ImportAnswer(TypedDict):
    """The schedules that a calendar made, and its entries that made none."""

    schedules: list[BriefSchedule]
    unread: list[UnreadEvent]
