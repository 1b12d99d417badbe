"""Callbacks: a URL is told of a task's end by another task, which stands behind that end.

So a notice is retried, dies, is seen and is started again like any task. Only servers run notices
(`CALLBACKS`), and of one host no more than `PER_HOST` at a time, so that a slow receiver delays
nobody's notices but its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final
from urllib.parse import urlsplit

from holdfast.core.attempt import Event, History
from holdfast.core.fleet import CALLBACKS
from holdfast.core.gate import Gate, GateKind
from holdfast.core.keys import stored_key
from holdfast.core.record import Record
from holdfast.core.task import NewTask, State, Task, TaskId
from holdfast.core.trace import traceparent_of

NAME: Final = "holdfast.callback"
QUEUE: Final = "callbacks"
PER_HOST: Final = 4
RETRIES: Final = 9
"""With a backoff that doubles from five seconds, ten tries take about an hour and a half."""
TIMEOUT: Final = 30.0


def notice(
    task_id: TaskId,
    url: str,
    *,
    head_start: int,
    owner: str | None = None,
    trace: str | None = None,
    signer: str | None = None,
    end: int = 0,
) -> NewTask:
    """The task that tells this URL of the task's end. `signer` is the token whose own secret signs
    it; `end` tells the notices of one task apart, if it was started again.
    """
    about = {"task_id": task_id, "url": url, "signer": signer}
    latch = Gate(GateKind.LATCH, task_id)
    host = Gate(GateKind.LIMIT, f"callback {urlsplit(url).hostname}", PER_HOST)
    return NewTask(
        id=notice_id(task_id, end),
        name=NAME,
        payload=json.dumps(about).encode(),
        queue=QUEUE,
        head_start=head_start,
        max_retries=RETRIES,
        timeout=TIMEOUT,
        requires=frozenset({CALLBACKS}),
        unique_key=stored_key(owner, task_id),
        owner=owner,
        trace=traceparent_of(task_id, trace),
        parent_id=task_id,
        gates=(latch, host),
    )


OWED: Final = "owed_callback"
"""The kind of records that say what a store of an older release owes. The key is the task."""


def owed_notice(record: Record, head_start: int) -> NewTask:
    """The task that tells what such a record owes."""
    said = json.loads(record.document)
    return notice(
        TaskId(record.key),
        said["url"],
        head_start=head_start,
        owner=said["owner"],
        trace=said["trace"],
    )


def notice_id(task_id: TaskId, end: int = 0) -> TaskId:
    """The id of a task's notice, made from its own: whoever has the one can find the other."""
    head = task_id[:19]
    tail = blake2b(f"{task_id} {end}".encode(), digest_size=8).hexdigest()
    return TaskId(f"{head}{tail[:4]}-{tail[4:]}")


def requeues(history: History) -> int:
    """How often its task was started again."""
    return sum(event.kind == "requeued" for event in history.events)


def with_notices(history: History, notices: Sequence[Task]) -> History:
    """A task's history with what became of its notices."""
    if not notices:
        return history
    told = [event for notice in notices if (event := _event_of(notice))]
    events = sorted((*history.events, *told), key=lambda event: event.at)
    return replace(history, events=tuple(events))


def _event_of(notice: Task) -> Event | None:
    if notice.finished_at is None or notice.state is State.CANCELLED:
        return None
    if notice.state is State.COMPLETED:
        return Event(at=notice.finished_at, kind="callback_delivered")
    why = notice.error.message if notice.error else None
    return Event(at=notice.finished_at, kind="callback_failed", detail=why)
