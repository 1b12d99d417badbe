"""A task's next value, from the one before and what happened. Pure; times in microseconds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast.core.attempt import Report, Settlement
from holdfast.core.gate import standing_behind, to_pass
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Edge, Order, TaskFilter
from holdfast.core.task import Cause, Cost, NewTask, State, Task, WorkerId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def in_us(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND


def as_time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def span_us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def created(new: NewTask, now: int) -> Task:
    run_at = in_us(new.run_at) if new.run_at else now + span_us(new.delay or 0.0)
    expires = in_us(new.expires_at) if new.expires_at else None
    if expires is None and new.expires_in is not None:
        expires = now + span_us(new.expires_in)
    return Task(
        id=new.id,
        name=new.name,
        queue=new.queue,
        priority=new.priority,
        state=State.QUEUED,
        payload=new.payload,
        created_at=as_time(now),
        run_at=as_time(run_at),
        rank=run_at - new.head_start,
        attempt=0,
        charged=0,
        max_retries=new.max_retries,
        crash_count=0,
        cause=Cause.SUBMITTED,
        timeout=new.timeout,
        retry=new.retry,
        expires_at=None if expires is None else as_time(expires),
        unique_key=new.unique_key,
        idempotency_key=new.idempotency_key,
        lock=new.lock,
        requires=new.requires,
        tags=new.tags,
        owner=new.owner,
        trace=new.trace,
        parent_id=new.parent_id,
        callback=new.callback,
        gates=to_pass(None, new.gates),
        counts=new.counts,
    )


def started(task: Task, worker_id: WorkerId, fence: int | None, now: int) -> Task:
    return replace(
        task,
        state=State.RUNNING,
        attempt=task.attempt + 1,
        worker_id=worker_id,
        started_at=as_time(now),
        fence=fence,
    )


def settled(task: Task, settlement: Settlement, now: int) -> Task:
    ended = settlement.state in TERMINAL
    gates = task.gates
    if settlement.behind is not None and not ended:
        gates = standing_behind(gates, settlement.behind)
    return replace(
        task,
        state=settlement.state,
        charged=settlement.charged,
        crash_count=settlement.crash_count,
        result=settlement.result,
        error=settlement.error,
        reason=settlement.reason,
        cause=settlement.cause or task.cause,
        run_at=task.run_at if ended else as_time(now + span_us(settlement.delay)),
        finished_at=as_time(now) if ended else None,
        requires=task.requires | ({settlement.needs} if settlement.needs else frozenset()),
        gates=gates,
    )


def reported(task: Task, report: Report) -> Task:
    more = report.cost or Cost()
    return replace(
        task,
        progress=report.progress or task.progress,
        cost=Cost(
            units=task.cost.units + more.units,
            tokens_in=task.cost.tokens_in + more.tokens_in,
            tokens_out=task.cost.tokens_out + more.tokens_out,
        ),
    )


def renewed(task: Task, due: int, head_start: int) -> Task:
    """An ended task as an operator starts it again."""
    return replace(
        task,
        state=State.QUEUED,
        run_at=as_time(due),
        rank=due - head_start,
        charged=0,
        crash_count=0,
        cause=Cause.OPERATOR,
        expires_at=None,
        finished_at=None,
        result=None,
        error=None,
        reason=None,
        progress=None,
        cancel_requested=False,
    )


def hurried(task: Task, due: int, head_start: int) -> Task:
    """A task that waits, as an operator hurries it: it need not stand in line as from its time."""
    return replace(task, run_at=as_time(due), rank=min(task.rank, due - head_start))


def holds_lease(task: Task, by: Settlement | Report) -> bool:
    fence = (by.attempt, by.worker_id)
    return task.state is State.RUNNING and (task.attempt, task.worker_id) == fence


def is_between(at: datetime | None, first: datetime | None, end: datetime | None) -> bool:
    """Whether that was at or after `first` and before `end`, as far as these are given."""
    if at is None:
        return first is None and end is None
    return (first is None or first <= at) and (end is None or at < end)


def is_behind(task: Task, edge: Edge | None, order: Order) -> bool:
    """Whether a list in this order has the task behind that place."""
    if order.is_by_end:
        if task.finished_at is None:
            return False
        if edge is None or edge.ended_at is None:
            return True
        here, there = (task.finished_at, task.id), (edge.ended_at, edge.task_id)
        return here > there if order.is_ascending else here < there
    if edge is None:
        return True
    return task.id > edge.task_id if order.is_ascending else task.id < edge.task_id


def matches(task: Task, where: TaskFilter) -> bool:
    equal = (
        (where.name, task.name),
        (where.queue, task.queue),
        (where.priority, task.priority),
        (where.owner, task.owner),
        (where.worker_id, task.worker_id),
        (where.lock, task.lock),
        (where.unique_key, task.unique_key),
        (where.idempotency_key, task.idempotency_key),
        (where.parent_id, task.parent_id),
        (where.error_type, task.error.type if task.error else None),
    )
    return (
        all(wanted is None or wanted == found for wanted, found in equal)
        and (where.states is None or task.state in where.states)
        and (where.names is None or task.name in where.names)
        and (where.queues is None or task.queue in where.queues)
        and (where.name_prefix is None or task.name.startswith(where.name_prefix))
        and (where.tag is None or where.tag in task.tags)
        and (where.requires is None or where.requires in task.requires)
        and (where.run_before is None or task.run_at < where.run_before)
        and is_between(task.created_at, where.created_after, where.created_before)
        and is_between(task.finished_at, where.finished_after, where.finished_before)
    )
