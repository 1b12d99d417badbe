"""The worker that runs what Holdfast brings along: callbacks, deliveries and the like.

It is apart from the one that runs an app's tasks, in the same process: those who wait for a slow
receiver never take a place from the app's own work, nor the other way round. Every server has one.
A worker process has one as soon as there is something for it: when a channel is set up, or when
the store has a delivery that it can make.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from holdfast.asyncio_tools.cancel import end
from holdfast.builtin.callbacks import callback_task, send_owed
from holdfast.client import Client
from holdfast.core.fleet import SERVER
from holdfast.core.task import Priority
from holdfast.definitions.built_in import BuiltIn
from holdfast.definitions.define import define
from holdfast.definitions.registry import Registry
from holdfast.delivery.delivering import delivery_tasks_of
from holdfast.delivery.keeping import DeliveryKeeper
from holdfast.delivery.setup import DeliverySetup
from holdfast.mirror.task import mirror_task_of
from holdfast.ports.mirror import Documents
from holdfast.settings import Settings
from holdfast.wiring import open_mirror
from holdfast.worker.heartbeat import ThreadHeartbeat
from holdfast.worker.maintenance.loop import keep_ticking
from holdfast.worker.worker import Worker

AT_A_TIME: Final = 256
"""Each waits for somebody else's answer, and costs little meanwhile."""
LOOK_EVERY: Final = 5.0
"""Seconds between looks for the first delivery, where no channel is set up."""

T = TypeVar("T")


class AppWithDeliveries(Protocol):
    """What such a worker needs of an app."""

    @property
    def settings(self) -> Settings: ...

    @property
    def delivery(self) -> DeliverySetup: ...

    async def verbs(self) -> Client: ...

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T: ...


class _Home:
    """The app as the tasks that it does not define itself see it."""

    def __init__(self, app: AppWithDeliveries) -> None:
        self.settings = app.settings
        self.registry = Registry()
        self.verbs = app.verbs
        self.wait_for = app.wait_for


async def built_ins(
    app: AppWithDeliveries, *, is_server: bool, documents: Documents | None = None
) -> list[BuiltIn]:
    """All that there is for this process to run; `documents` are those of the mirror."""
    client = await app.verbs()
    tasks = [delivery_tasks_of(client, app.delivery)]  # one line for each kind
    if documents is not None:
        tasks.append(mirror_task_of(client.store, documents))
    return [*tasks, callback_task(client)] if is_server else tasks


def registry_of(app: AppWithDeliveries, tasks: Sequence[BuiltIn]) -> Registry:
    """The definitions of these."""
    home = _Home(app)
    for task in tasks:
        define(task.handler, home, {"name": task.name, "queue": task.queue, **task.options})
    return home.registry


async def built_in_worker(
    app: AppWithDeliveries, tasks: Sequence[BuiltIn], *, burst: bool = False
) -> Worker:
    """A worker that runs these, and nothing else."""
    client = await app.verbs()
    settings = replace(
        app.settings,
        queues=tuple(sorted({task.queue for task in tasks})),
        capabilities=frozenset().union(*(task.capabilities for task in tasks)),
        concurrency=AT_A_TIME,
    )
    return Worker(
        client.store,
        client.dispatcher,
        registry_of(app, tasks),
        settings,
        kind=SERVER,
        burst=burst,
        # What it runs is no user's code: it cannot starve a thread.
        start_heartbeat=lambda id_: ThreadHeartbeat(client.store, id_, settings.heartbeat),
    )


class BuiltInKeeper:
    """Keeps such a worker at work, whatever ends it. An agent."""

    def __init__(self, app: AppWithDeliveries, *, is_server: bool) -> None:
        self._app = app
        self._is_server = is_server
        self._is_needed = is_server

    async def tick(self) -> float:
        """One worker's life; another follows a second later."""
        if not await self._needed():
            return LOOK_EVERY
        if self._is_server:
            head_start = self._app.settings.aging.head_start(Priority.NORMAL)
            await send_owed((await self._app.verbs()).store, head_start)
        store = (await self._app.verbs()).store
        tidying = asyncio.ensure_future(keep_ticking(DeliveryKeeper(store)))
        try:
            await self._work(burst=False)
        finally:
            await end([tidying])
        return 1.0

    async def drain(self) -> None:
        """Run what is there to run now, and return: the end of a burst."""
        if await self._is_asked_for():
            await self._work(burst=True)

    async def _work(self, *, burst: bool) -> None:
        documents = open_mirror(self._app.settings)
        try:
            tasks = await built_ins(self._app, is_server=self._is_server, documents=documents)
            await _run(await built_in_worker(self._app, tasks, burst=burst))
        finally:
            if documents is not None:
                await documents.close()

    async def _needed(self) -> bool:
        if not self._is_needed:
            is_mirrored = self._app.settings.firestore_url is not None
            is_set_up = self._app.delivery.is_set_up or is_mirrored
            self._is_needed = is_set_up or await self._is_asked_for()
        return self._is_needed

    async def _is_asked_for(self) -> bool:
        """Whether there is something that this process can run: a look that costs little, however
        much there is to do for others.
        """
        documents = open_mirror(self._app.settings)  # it does not connect before it is used
        tasks = await built_ins(self._app, is_server=self._is_server, documents=documents)
        wanted = await (await self._app.verbs()).store.demand()
        return any(requires <= task.capabilities for requires in wanted for task in tasks)


async def _run(worker: Worker) -> None:
    running = asyncio.ensure_future(worker.run())
    try:
        await asyncio.shield(running)
    finally:
        worker.stop()
        worker.stop()  # at once: who is not told now is told by the next one
        while not running.done():  # however often we are told to leave: the store closes next
            with suppress(asyncio.CancelledError):
                await asyncio.wait({running})
