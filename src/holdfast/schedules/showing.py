"""Series and occurrences as they are told: to REST, to `--json` and to the HTTP client."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import orjson

from holdfast.core.limits import shown_retries
from holdfast.core.schedule_state import RunEnd, ScheduleRun, ScheduleState, run_end
from holdfast.core.shown import decoded, masked
from holdfast.core.task import Cost, Json, NewTask, Task
from holdfast.schedules.jitter import jittered
from holdfast.schedules.occurrence import Occurrence, RunStatus
from holdfast.schedules.series import About, Series, Status

if TYPE_CHECKING:
    from holdfast.definitions.registry import Registry

_LET_GO = {RunStatus.SKIPPED: RunEnd.SKIPPED, RunStatus.MISSED: RunEnd.MISSED}


def schedule_state(series: Series, registry: Registry) -> ScheduleState:
    """A series as it is told; its secret arguments are stars."""
    template, next_at = series.template, next_run(series)
    return ScheduleState(
        id=series.id,
        status=series.status.value,
        note=series.note,
        paused_until=series.paused_until,
        kind=series.rule.kind.value,
        rule=series.rule.to_json(),
        words=series.rule.words,
        tz=series.rule.tz,
        next_run_at=next_at,
        next_run_local=local_text(series, next_at),
        due_at=next_at and jittered(series.id, series.rule, next_at, series.jitter),
        last_run_at=series.last_at,
        last_run_local=local_text(series, series.last_at),
        skips=series.skips,
        runs=series.runs,
        failures=series.failures,
        open_tasks=series.open,
        task_name=template.name,
        parameters=_parameters(template, registry),
        queue=template.queue,
        priority=template.priority,
        tags=template.tags,
        max_retries=shown_retries(template.max_retries),
        timeout=template.timeout,
        overlap=series.overlap.value,
        catch_up=series.catch_up.mode.value,
        catch_up_most=series.catch_up.most,
        catch_up_window=series.catch_up.window,
        jitter=series.jitter,
        pause_after_failures=series.pause_after_failures,
        version=series.version,
        is_declared=series.declared is not None,
        is_edited=series.edited,
        tz_version=series.tz_version,
        created_at=series.created_at,
        updated_at=series.updated_at,
        **{each.name: getattr(series.about, each.name) for each in fields(About)},
    )


def next_run(series: Series) -> datetime | None:
    """The next run that is not left out; None if none is to come, or it is paused."""
    at = series.next_at if series.status is Status.ACTIVE else None
    while at is not None and at in series.skips:
        at = series.rule.next_after(at)
    return at


def schedule_run(series: Series, one: Occurrence, task: Task | None) -> ScheduleRun:
    """An occurrence as it is told, with its task if that is kept and may be seen."""
    return ScheduleRun(
        scheduled_for=one.at,
        local=local_text(series, one.at) or "",
        version=one.version,
        origin=one.origin.value,
        status=_LET_GO.get(one.status) or run_end(task),
        reason=one.reason,
        number=one.number,
        until=one.until,
        fired_at=one.fired_at,
        lateness=one.lateness,
        task_id=one.task_id,
        task_state=None if task is None else task.state,
        attempt=None if task is None else task.attempt,
        started_at=None if task is None else task.started_at,
        finished_at=None if task is None else task.finished_at,
        progress=None if task is None else task.progress,
        content=None if task is None else decoded(task.result, orjson.loads),
        error=None if task is None else task.error,
        cost=Cost() if task is None else task.cost,
    )


def local_text(series: Series, at: datetime | None) -> str | None:
    """An instant in the zone of a series, with its offset."""
    return None if at is None else at.astimezone(ZoneInfo(series.rule.tz)).isoformat()


def _parameters(template: NewTask, registry: Registry) -> Json:
    definition = registry.get(template.name)
    if definition is None:
        return masked(template.payload, orjson.loads)
    return definition.masked(template.payload)
