"""Deliveries: tasks that bring a run's result to somebody, each by one channel.

A delivery stands behind the end of its run, so it is retried, dies, is seen and is started again
like any task. Its id is made from the run and the channel: however often it is asked for, there is
one. Of one owner and channel few are under way at a time, so a slow receiver delays nobody else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Final

from holdfast.core.fleet import delivers
from holdfast.core.gate import Gate, GateKind
from holdfast.core.keys import stored_key
from holdfast.core.task import NewTask, State, Task, TaskError, TaskId
from holdfast.core.trace import traceparent_of

NAME: Final = "holdfast.deliver"
QUEUE: Final = "deliveries"
RETRIES: Final = 9
"""With a backoff that doubles from five seconds, ten tries take about an hour and a half."""
TIMEOUT: Final = 60.0
PER_OWNER: Final = 2
PER_CHANNEL: Final = 64
"""So that a channel which hangs leaves room for the others: there are 256 places in a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of a delivery. `execution` is its run; `next_try_at` is when it may be tried, if
    it waits for that.
    """

    id: TaskId
    channel: str
    execution: TaskId | None
    schedule: str | None
    owner: str | None
    status: State
    attempt: int
    error: TaskError | None
    created_at: datetime
    next_try_at: datetime | None
    finished_at: datetime | None


def as_delivery(task: Task) -> Delivery:
    """A delivery, by its task."""
    waits = task.state in (State.RETRYING, State.QUEUED)
    return Delivery(
        id=task.id,
        channel=channel_of(task.tags),
        execution=task.parent_id,
        schedule=schedule_of(task.tags),
        owner=task.owner,
        status=task.state,
        attempt=task.attempt,
        error=task.error,
        created_at=task.created_at,
        next_try_at=task.run_at if waits else None,
        finished_at=task.finished_at,
    )


def delivery_task(
    run: NewTask | Task,
    channel: str,
    *,
    title: str,
    schedule: str | None,
    owner: str | None,
    head_start: int,
    end: int = 0,
) -> NewTask:
    """The task that delivers this run's result by this channel; `end` tells those of one run apart,
    if it was started again.
    """
    said = {"channel": channel, "title": title, "task_id": run.id, "schedule": schedule, "end": end}
    return NewTask(
        id=delivery_id(run.id, channel, end),
        name=NAME,
        payload=json.dumps(said).encode(),
        queue=QUEUE,
        head_start=head_start,
        max_retries=RETRIES,
        timeout=TIMEOUT,
        requires=frozenset({delivers(channel)}),
        tags=tags_of(channel, schedule),
        owner=owner,
        trace=traceparent_of(run.id, run.trace),
        parent_id=run.id,
        gates=(Gate(GateKind.LATCH, run.id), *_limits(channel, owner)),
    )


def delivered_again(delivery: Task, run: Task, *, head_start: int, end: int) -> NewTask:
    """The delivery of the next end of a run, as this one was of an earlier one."""
    said = json.loads(delivery.payload)
    return delivery_task(
        run,
        said["channel"],
        title=said["title"],
        schedule=said["schedule"],
        owner=delivery.owner,
        head_start=head_start,
        end=end,
    )


def notice_task(
    task_id: TaskId,
    channel: str,
    *,
    key: str,
    title: str,
    content: str,
    owner: str,
    schedule: str | None,
    head_start: int,
) -> NewTask:
    """A delivery that belongs to no run: what it says is in it. Of one `key` and channel there is
    one within the idempotency window, whatever its id.
    """
    said = {"channel": channel, "title": title, "content": content, "schedule": schedule}
    return NewTask(
        id=task_id,
        name=NAME,
        payload=json.dumps(said).encode(),
        queue=QUEUE,
        head_start=head_start,
        max_retries=RETRIES,
        timeout=TIMEOUT,
        idempotency_key=stored_key(owner, f"notice {channel} {key}"),
        fingerprint=f"{NAME} {channel} {key}",
        requires=frozenset({delivers(channel)}),
        tags=tags_of(channel, schedule),
        owner=owner,
        gates=_limits(channel, owner),
    )


def delivery_id(run_id: TaskId, channel: str, end: int = 0) -> TaskId:
    """The id of a run's delivery by this channel: whoever knows the run can find it."""
    tail = blake2b(f"{run_id} deliver {channel} {end}".encode(), digest_size=8).hexdigest()
    return TaskId(f"{run_id[:19]}{tail[:4]}-{tail[4:]}")


def schedule_tag(schedule: str) -> str:
    """The tag of the deliveries of a schedule's runs. Not that of the runs: they are none."""
    return f"delivers={schedule}"


def channel_tag(channel: str) -> str:
    return f"channel={channel}"


def tags_of(channel: str, schedule: str | None) -> tuple[str, ...]:
    return (channel_tag(channel), *(() if schedule is None else (schedule_tag(schedule),)))


def channel_of(tags: Sequence[str]) -> str:
    """The channel of a delivery, by its tags."""
    return next((tag.partition("=")[2] for tag in tags if tag.startswith("channel=")), "")


def schedule_of(tags: Sequence[str]) -> str | None:
    """The schedule whose run a delivery is of, by its tags."""
    return next((tag.partition("=")[2] for tag in tags if tag.startswith("delivers=")), None)


def _limits(channel: str, owner: str | None) -> tuple[Gate, ...]:
    return (
        Gate(GateKind.LIMIT, f"deliver {channel}", PER_CHANNEL),
        Gate(GateKind.LIMIT, f"deliver {channel} {owner or ''}", PER_OWNER),
    )
