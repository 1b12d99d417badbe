"""Runs the notices of ended tasks (`core.callback`): a worker of the server's own."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import Final
from uuid import uuid4

from holdfast.app import Holdfast
from holdfast.client import Client
from holdfast.core.callback import (
    NAME,
    OWED,
    QUEUE,
    RETRIES,
    TIMEOUT,
    owed_notice,
)
from holdfast.core.fleet import CALLBACKS, SERVER
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.record import Changes, Delete
from holdfast.core.retry import exponential
from holdfast.core.task import Json, Priority, Task
from holdfast.core.task_answers import TASK
from holdfast.definitions.define import define
from holdfast.definitions.registry import Registry
from holdfast.errors import Fatal, HoldfastError, RecordConflict, Snooze, TaskNotFound
from holdfast.ports.store import Store
from holdfast.server.callbacks.posting import NotCalled, post
from holdfast.server.callbacks.signing import HEADER, secrets_for, sign
from holdfast.views import to_json
from holdfast.worker.heartbeat import ThreadHeartbeat
from holdfast.worker.version import version
from holdfast.worker.worker import Worker

AT_A_TIME: Final = 256
"""Each waits for somebody else's answer, and costs little meanwhile."""
RETRY: Final = exponential("5s", 2, cap="1h")
GONE: Final = 410
TOLD: Final = (
    *("task_id", "task_type", "queue", "status", "reason", "attempt", "created_at"),
    *("last_started_at", "finished_at", "error", "trace_id", "tags", "owner"),
)


class NotAccepted(HoldfastError):
    """The receiver did not answer with a 2xx."""


class DeliveryHome:
    """The app as the one task that it does not define itself sees it."""

    def __init__(self, app: Holdfast) -> None:
        self.settings = app.settings
        self.registry = Registry()
        self.verbs = app.verbs
        self.wait_for = app.wait_for


class Delivery:
    """Keeps such a worker at work, whatever ends it."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app

    async def tick(self) -> float:
        """One worker's life; another follows a second later."""
        head_start = self._app.settings.aging.head_start(Priority.NORMAL)
        await send_owed((await self._app.verbs()).store, head_start)
        worker = await delivering(self._app)
        running = asyncio.ensure_future(worker.run())
        try:
            await asyncio.shield(running)
        finally:
            worker.stop()
            worker.stop()  # at once: who is not told now is told by the next server
            while not running.done():  # however often we are told to leave: the store closes next
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({running})
        return 1.0


async def send_owed(store: Store, head_start: int) -> None:
    """Make tasks of what a store of an older release owes."""
    while owed := await store.records(OWED, limit=100):
        for record in owed:
            paid = Delete(OWED, record.key, record.version)
            with suppress(RecordConflict):  # another server was faster
                notice = owed_notice(record, head_start)
                await store.commit(Changes(uuid4().hex, [notice], [paid]))


async def delivering(app: Holdfast) -> Worker:
    """The worker that runs notices, and nothing else."""
    client, home = await app.verbs(), DeliveryHome(app)

    async def tell(task_id: str, url: str, signer: str | None = None) -> str:
        return await deliver(client, task_id, url, signer)

    define(
        tell,
        home,
        {
            "name": NAME,
            "queue": QUEUE,
            "max_retries": RETRIES,
            "timeout": TIMEOUT,
            "retry": RETRY,
        },
    )
    settings = replace(
        app.settings,
        queues=(QUEUE,),
        capabilities=frozenset({CALLBACKS}),
        concurrency=AT_A_TIME,
    )
    return Worker(
        client.store,
        client.dispatcher,
        home.registry,
        settings,
        kind=SERVER,
        # What it runs is no user's code: it cannot starve a thread.
        start_heartbeat=lambda id_: ThreadHeartbeat(client.store, id_, settings.heartbeat),
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
