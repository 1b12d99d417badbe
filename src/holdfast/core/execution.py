"""An execution as it is told: a task that a schedule fired, with what it was for, what came of it,
what it used, and where its result went.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from holdfast.core.attempt import History
from holdfast.core.flow import ScheduledRun
from holdfast.core.schedule_state import RunEnd, run_end
from holdfast.core.shown import decoded, masked
from holdfast.core.task import Json, Progress, State, Task, TaskError, TaskId
from holdfast.core.usage import Usage, used_by

DELIVER: Final = "holdfast.deliver"
"""The name of the tasks that deliver results; a delivery's parent is its execution."""
SAYS: Final = "> "
"""How log lines begin that are steps of a run's progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryState:
    """The delivery of a result by one channel: a task of its own."""

    task_id: TaskId
    channel: str
    status: State
    attempts: int
    error: str | None
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """`content` is what its handler made: the `content` of its result, or else all of that. `steps`
    are what the handler said that it was doing, the last one being `progress`. `deliveries` are
    told of one execution only, and not in lists.
    """

    id: TaskId
    schedule: str
    scheduled_for: datetime
    origin: str
    status: RunEnd
    task_state: State
    task_name: str
    owner: str | None
    title: str | None
    purpose: str | None
    chat_id: str | None
    message_id: str | None
    content: Json = field(repr=False)
    steps: tuple[str, ...]
    progress: Progress | None
    error: TaskError | None
    estimated_units: float | None
    usage: Usage
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deliveries: tuple[DeliveryState, ...] = ()


def execution_of(
    task: Task,
    run: ScheduledRun,
    about: Mapping[str, Json],
    *,
    said: Sequence[str] = (),
    deliveries: Sequence[Task] = (),
) -> Execution:
    """A task as an execution. `about` is what its schedule says of itself now; what the task was
    submitted with comes first. `said` are the steps of its progress, if its result has none.
    """
    arguments, result = masked(task.payload), decoded(task.result)
    words = arguments if isinstance(arguments, dict) else {}
    told = result if isinstance(result, dict) else {}
    steps = told.get("steps")

    def word(name: str) -> str | None:
        value = words.get(name) or told.get(name) or about.get(name)
        return value if isinstance(value, str) else None

    return Execution(
        id=task.id,
        schedule=run.schedule,
        scheduled_for=datetime.fromisoformat(run.at),
        origin=run.origin,
        status=run_end(task),
        task_state=task.state,
        task_name=task.name,
        owner=task.owner,
        title=word("title"),
        purpose=word("purpose"),
        chat_id=word("chat_id"),
        message_id=word("message_id"),
        content=told.get("content") if "content" in told else result,
        steps=tuple(map(str, steps)) if isinstance(steps, list) else _said(said, task),
        progress=task.progress,
        error=task.error,
        estimated_units=about.get("estimated_units"),
        usage=used_by(task),
        attempt=task.attempt,
        created_at=task.created_at,
        started_at=task.started_at,
        finished_at=task.finished_at,
        deliveries=tuple(map(_delivery, deliveries)),
    )


def steps_said(history: History) -> list[str]:
    """The steps that the last attempt told of while it ran."""
    lines = [each for each in history.events if each.kind == "log" and each.detail]
    last = max((each.attempt or 0 for each in lines), default=0)
    return [
        each.detail.removeprefix(SAYS)
        for each in lines
        if each.attempt == last and each.detail is not None and each.detail.startswith(SAYS)
    ]


def _said(said: Sequence[str], task: Task) -> tuple[str, ...]:
    if said or task.progress is None or task.progress.message is None:
        return tuple(said)
    return (task.progress.message,)


def _delivery(task: Task) -> DeliveryState:
    try:
        said = json.loads(task.payload)
    except ValueError:
        said = {}
    channel = said.get("channel") if isinstance(said, dict) else None
    return DeliveryState(
        task_id=task.id,
        channel=str(channel or ""),
        status=task.state,
        attempts=task.attempt,
        error=None if task.error is None else task.error.message,
        delivered_at=task.finished_at if task.state is State.COMPLETED else None,
    )
