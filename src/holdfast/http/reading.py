"""From the server's JSON to values: one function per noun."""

from __future__ import annotations

from datetime import datetime

from holdfast.bounds import read_bounds
from holdfast.core.attempt import Attempt, Event, History
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.stats import Depth, QueueStats, Stats
from holdfast.core.task import (
    AttemptEnd,
    Cause,
    Cost,
    Json,
    Priority,
    Progress,
    Reason,
    State,
    SubmitOutcome,
    TaskError,
    TaskId,
)
from holdfast.core.token import Scope
from holdfast.core.why import Why
from holdfast.http.values import BriefTask, RemotePage, RemoteTask, RemoteToken, Submitted


def submitted(data: Json) -> Submitted:
    outcome = SubmitOutcome(data["existing_by"] if data["existing"] else SubmitOutcome.CREATED)
    return Submitted(data["task_id"], outcome, State(data["status"]), data["queue_position"])


def task(data: Json) -> RemoteTask:
    return RemoteTask(
        id=data["task_id"],
        name=data["task_type"],
        queue=data["queue"],
        priority=Priority(data["priority"]),
        effective_priority=Priority(data["effective_priority"]),
        state=State(data["status"]),
        parameters=data["parameters"],
        created_at=datetime.fromisoformat(data["created_at"]),
        run_at=datetime.fromisoformat(data["run_at"]),
        attempt=data["attempt"],
        max_retries=data["max_retries"],
        timeout=data["timeout_seconds"],
        expires_at=_instant(data["expires_at"]),
        started_at=_instant(data["started_at"]),
        finished_at=_instant(data["finished_at"]),
        worker_id=data["assigned_worker_id"],
        unique_key=data["unique_key"],
        idempotency_key=data["idempotency_key"],
        lock=data["lock"],
        requires=frozenset(data["required_capabilities"]),
        tags=tuple(data["tags"]),
        owner=data["owner"],
        trace_id=data["trace_id"],
        traceparent=data["traceparent"],
        parent_id=data["parent_id"],
        callback=data.get("callback_url"),
        result=data["result"],
        error=_error(data["error"]),
        reason=None if data["reason"] is None else Reason(data["reason"]),
        progress=None if data["progress"] is None else Progress(**data["progress"]),
        cost=Cost(**data["cost"]),
        cancel_requested=data["cancel_requested"],
    )


def steered(data: Json) -> RemoteTask | BriefTask:
    if "parameters" in data:
        return task(data)
    return BriefTask(
        id=TaskId(data["task_id"]),
        state=State(data["status"]),
        cancel_requested=data["cancel_requested"],
    )


def page(data: Json) -> RemotePage:
    return RemotePage(tasks=tuple(map(task, data["tasks"])), next=data["next"])


def history(data: Json) -> History:
    return History(
        attempts=tuple(map(_attempt, data["attempts"])), events=tuple(map(_event, data["events"]))
    )


def why(data: Json) -> Why:
    position = data["position"]
    return Why(
        task_id=data["task_id"],
        state=State(data["status"]),
        reasons=tuple((each["code"], each["message"]) for each in data["reasons"]),
        ahead=None if position is None else position - 1,
        ahead_is_capped=data["position_is_capped"],
        eta_seconds=data["eta_seconds"],
    )


def queue(data: Json) -> QueueStats:
    return QueueStats(
        queue=data["queue"],
        paused=data["paused"],
        ready=data["ready"],
        waiting=data["waiting"],
        blocked=data["blocked"],
        running=data["running"],
        depths=tuple(
            Depth(
                priority=Priority(depth["priority"]),
                ready=depth["ready"],
                oldest_seconds=depth["oldest_seconds"],
            )
            for depth in data["priorities"]
        ),
    )


def stats(data: Json) -> Stats:
    return Stats(
        queues=tuple(map(queue, data["named_queues"])),
        states={State(word): count for word, count in data["statuses"].items()},
        last_minute={State(word): count for word, count in data["last_minute"].items()},
        refused=data["refused"],
    )


def worker(data: Json) -> WorkerInfo:
    return WorkerInfo(
        id=data["worker_id"],
        kind=data["kind"],
        status=WorkerStatus(data["status"]),
        host=data["host"],
        pid=data["pid"],
        version=data["version"],
        queues=None if data["queues"] is None else tuple(data["queues"]),
        capabilities=frozenset(data["capabilities"]),
        capacity=data["capacity"],
        load=data["load"],
        drain_requested=data["drain_requested"],
        blocked_by=data["blocked_by"],
        started_at=_instant(data["started_at"]),
        beat_at=_instant(data["beat_at"]),
    )


def token(data: Json) -> RemoteToken:
    return RemoteToken(
        id=data["token_id"],
        name=data["name"],
        scopes=frozenset(map(Scope, data["scopes"])),
        created_at=datetime.fromisoformat(data["created_at"]),
        expires_at=_instant(data["expires_at"]),
        revoked_at=_instant(data["revoked_at"]),
        bounds=read_bounds(
            owner=data["owner"],
            queues=data["queues"],
            names=data["task_types"],
            max_priority=data["max_priority"],
            rate=data["rate"],
        ),
        created_by=data["created_by"],
        last_used_at=_instant(data["last_used_at"]),
    )


def _attempt(data: Json) -> Attempt:
    return Attempt(
        number=data["attempt"],
        cause=Cause(data["cause"]),
        worker_id=data["worker_id"],
        started_at=datetime.fromisoformat(data["started_at"]),
        ended_at=_instant(data["ended_at"]),
        ended=None if data["ended"] is None else AttemptEnd(data["ended"]),
        charged=data["charged"],
        error=_error(data["error"]),
    )


def _event(data: Json) -> Event:
    return Event(
        at=datetime.fromisoformat(data["at"]),
        kind=data["kind"],
        attempt=data["attempt"],
        worker_id=data["worker_id"],
        detail=data["detail"],
    )


def _error(data: Json) -> TaskError | None:
    if data is None:
        return None
    return TaskError(
        type=data["type"],
        message=data["message"],
        retriable=data["retriable"],
        traceback=data.get("traceback"),
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
