"""Tells URLs of ended tasks (`core.callback`)."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final
from uuid import uuid4

from holdfast.client import Client
from holdfast.core.callback import (
    NAME,
    OWED,
    QUEUE,
    RETRIES,
    TIMEOUT,
    owed_notice,
)
from holdfast.core.fleet import CALLBACKS
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.record import Changes, Delete
from holdfast.core.retry import exponential
from holdfast.core.task import Json, Task
from holdfast.core.task_answers import TASK
from holdfast.definitions.built_in import BuiltIn
from holdfast.errors import Fatal, HoldfastError, RecordConflict, Snooze, TaskNotFound
from holdfast.ports.store import Store
from holdfast.views import to_json
from holdfast.webhooks.posting import NotCalled, post
from holdfast.webhooks.signing import HEADER, secrets_for, sign
from holdfast.worker.version import version

RETRY: Final = exponential("5s", 2, cap="1h")
GONE: Final = 410
TOLD: Final = (
    *("task_id", "task_type", "queue", "status", "reason", "attempt", "created_at"),
    *("last_started_at", "finished_at", "error", "trace_id", "tags", "owner"),
)


class NotAccepted(HoldfastError):
    """The receiver did not answer with a 2xx."""


async def send_owed(store: Store, head_start: int) -> None:
    """Make tasks of what a store of an older release owes."""
    while owed := await store.records(OWED, limit=100):
        for record in owed:
            paid = Delete(OWED, record.key, record.version)
            with suppress(RecordConflict):  # another server was faster
                notice = owed_notice(record, head_start)
                await store.commit(Changes(uuid4().hex, [notice], [paid]))


def callback_task(client: Client) -> BuiltIn:
    """What tells of ended tasks. Only servers have it: they know the secret of callbacks."""

    async def tell(task_id: str, url: str, signer: str | None = None) -> str:
        return await deliver(client, task_id, url, signer)

    return BuiltIn(
        name=NAME,
        queue=QUEUE,
        capabilities=frozenset({CALLBACKS}),
        handler=tell,
        options={"max_retries": RETRIES, "timeout": TIMEOUT, "retry": RETRY},
    )


async def deliver(client: Client, task_id: str, url: str, signer: str | None) -> str:
    """Tell the URL of the task's end, once."""
    try:
        task = await client.get(task_id)
    except TaskNotFound:
        return "nothing to tell: there is no such task, or its submit was a repeat of another"
    if task.state not in TERMINAL or task.finished_at is None:
        raise Snooze("it was started again: behind its next end", after=0.0)
    settings = client.settings
    body = to_json(told(task))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"holdfast/{version()}",
        "traceparent": task.traceparent,
        "Holdfast-Delivery": f"{task.id}.{task.finished_at.timestamp():.6f}",
        HEADER: sign(secrets_for(settings, signer), body, int(time.time())),
    }
    try:
        status = await post(url, body, headers, allowed_hosts=settings.callback_hosts)
    except NotCalled as problem:
        raise Fatal(str(problem)) from None
    if status == GONE:
        raise Fatal(f"the receiver answered with status {status}")
    if not 200 <= status < 300:
        raise NotAccepted(f"the receiver answered with status {status}")
    return f"status {status}"


def told(task: Task) -> Json:
    """What a receiver is told. Neither arguments nor result: who may see those can ask for them."""
    return TASK.pick(task, *TOLD)
