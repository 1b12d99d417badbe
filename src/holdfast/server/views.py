"""Our values in the words of the JSON API: one function per noun, keys stable once released."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import orjson

from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.fleet import WorkerInfo, shown_capabilities
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.limits import shown_retries
from holdfast.core.priority import MICROSECONDS, Aging
from holdfast.core.query import Page
from holdfast.core.shown import decoded
from holdfast.core.stats import Depth, QueueStats
from holdfast.core.task import Added, Json, Priority, State, SubmitOutcome, Task, TaskError
from holdfast.core.token import Token
from holdfast.core.why import Why
from holdfast.definitions.registry import Registry
from holdfast.server.masking import parameters_of

EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class TaskView:
    """Shows tasks, as they stand at one instant of the store's clock."""

    def __init__(
        self, registry: Registry, aging: Aging, now: datetime, *, with_traceback: bool = False
    ) -> None:
        self._registry = registry
        self._aging = aging
        self._now = now
        self._with_traceback = with_traceback

    def task(self, task: Task) -> Json:
        """The whole picture of one task. Who ran it and when it started is of the present attempt;
        the history tells of those before.
        """
        is_running = task.state is State.RUNNING
        return {
            "task_id": task.id,
            "task_type": task.name,
            "parameters": parameters_of(task, self._registry),
            "status": task.state.value,
            "reason": task.reason,
            "queue": task.queue,
            "priority": task.priority.value,
            "effective_priority": self._effective(task).value,
            "attempt": task.attempt,
            "retry_count": task.retries_used,
            "max_retries": shown_retries(task.max_retries),
            "assigned_worker_id": task.worker_id if is_running else None,
            "created_at": task.created_at,
            "run_at": task.run_at,
            "started_at": task.started_at if is_running else None,
            "finished_at": task.finished_at,
            "completed_at": task.finished_at,
            "expires_at": task.expires_at,
            "timeout_seconds": task.timeout,
            "progress": _progress(task),
            "result": decoded(task.result, orjson.loads),
            "error": self.error(task.error),
            "cancel_requested": task.cancel_requested,
            "trace_id": task.trace_id,
            "traceparent": task.traceparent,
            "tags": task.tags,
            "owner": task.owner,
            "parent_id": task.parent_id,
            "lock": task.lock,
            "unique_key": task.unique_key,
            "idempotency_key": task.idempotency_key,
            "required_capabilities": shown_capabilities(task.requires),
            "callback_url": task.callback,
            "cost": {
                "units": task.cost.units,
                "tokens_in": task.cost.tokens_in,
                "tokens_out": task.cost.tokens_out,
            },
        }

    def page(self, page: Page) -> Json:
        return {"tasks": [self.task(task) for task in page.tasks], "next": page.next}

    def error(self, error: TaskError | None) -> Json:
        if error is None:
            return None
        shown = {"type": error.type, "message": error.message, "retriable": error.retriable}
        return shown | ({"traceback": error.traceback} if self._with_traceback else {})

    def history(self, task_id: str, history: History) -> Json:
        return {
            "task_id": task_id,
            "attempts": [self._attempt(attempt) for attempt in history.attempts],
            "events": [_event(event) for event in history.events],
        }

    def _attempt(self, attempt: Attempt) -> Json:
        return {
            "attempt": attempt.number,
            "cause": attempt.cause,
            "worker_id": attempt.worker_id,
            "started_at": attempt.started_at,
            "ended_at": attempt.ended_at,
            "ended": attempt.ended,
            "seconds": attempt.seconds,
            "charged": attempt.charged,
            "error": self.error(attempt.error),
        }

    def _effective(self, task: Task) -> Priority:
        """What its rank is worth: now while it waits, else when it last started or ended."""
        if task.state in TERMINAL or task.state is State.RUNNING:
            at = task.started_at or task.finished_at or self._now
        else:
            at = self._now
        if task.run_at > at:  # it has not begun to age
            return task.priority
        elapsed = at - EPOCH
        whole = elapsed.days * 86_400 + elapsed.seconds
        return self._aging.effective(task.rank, whole * MICROSECONDS + elapsed.microseconds)


def brief(task: Task) -> Json:
    """What those are told who may steer a task but not read it."""
    return {
        "task_id": task.id,
        "status": task.state.value,
        "cancel_requested": task.cancel_requested,
    }


def submitted(added: Added, position: int | None) -> dict[str, Json]:
    view: dict[str, Json] = {
        "task_id": added.task_id,
        "status": added.state.value,
        "queue_position": position,
        "existing": not added.created,
    }
    if added.outcome is not SubmitOutcome.CREATED:
        view["existing_by"] = added.outcome.value
    return view


def why(answer: Why) -> Json:
    return {
        "task_id": answer.task_id,
        "status": answer.state,
        "sentence": answer.sentence,
        "reasons": [{"code": code, "message": text} for code, text in answer.reasons],
        "position": None if answer.ahead is None else answer.ahead + 1,
        "position_is_capped": answer.ahead_is_capped,
        "eta_seconds": answer.eta_seconds,
    }


def queue(stats: QueueStats, *, is_open: bool) -> Json:
    return {
        "queue": stats.queue,
        "paused": stats.paused,
        "open": is_open,
        "ready": stats.ready,
        "waiting": stats.waiting,
        "blocked": stats.blocked,
        "running": stats.running,
        "priorities": [depth(each) for each in stats.depths],
    }


def depth(of: Depth) -> Json:
    return {
        "priority": of.priority.value,
        "ready": of.ready,
        "oldest_seconds": of.oldest_seconds,
    }


def worker(info: WorkerInfo) -> Json:
    return {
        "worker_id": info.id,
        "kind": info.kind,
        "status": info.status,
        "host": info.host,
        "pid": info.pid,
        "version": info.version,
        "queues": None if info.queues is None else list(info.queues),
        "capabilities": shown_capabilities(info.capabilities),
        "capacity": info.capacity,
        "load": info.load,
        "current_tasks": info.load,
        "drain_requested": info.drain_requested,
        "blocked_by": info.blocked_by,
        "started_at": info.started_at,
        "beat_at": info.beat_at,
    }


def token(known: Token) -> dict[str, Json]:
    bounds = known.bounds
    return {
        "token_id": known.id,
        "name": known.name,
        "scopes": sorted(known.scopes),
        "created_at": known.created_at,
        "expires_at": known.expires_at,
        "revoked_at": known.revoked_at,
        "owner": bounds.owner,
        "queues": None if bounds.queues is None else sorted(bounds.queues),
        "task_types": None if bounds.names is None else sorted(bounds.names),
        "max_priority": bounds.max_priority,
        "rate": None if bounds.rate is None else str(bounds.rate),
        "created_by": known.created_by,
        "last_used_at": known.last_used_at,
    }


def _progress(task: Task) -> Json:
    if task.progress is None:
        return None
    said = task.progress
    return {"done": said.done, "total": said.total, "message": said.message}


def _event(event: Event) -> Json:
    return {
        "at": event.at,
        "kind": event.kind,
        "attempt": event.attempt,
        "worker_id": event.worker_id,
        "detail": event.detail,
    }
