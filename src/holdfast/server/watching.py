"""Looks at tasks that somebody listens to: one look per task, however many listen.

Stores have no feed of changes, and need none for this: a task is looked at twice a second, and only
while there is a listener.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.client import Client
from holdfast.core.task import TaskId
from holdfast.errors import StoreUnavailable, TaskNotFound
from holdfast.logs import EventLog, trace_of
from holdfast.server.news import Snapshot

log = EventLog("holdfast.server")

LOOK_EVERY = 0.5


async def look(client: Client, task_id: TaskId) -> Snapshot:
    """A task and its history as they are; `TaskNotFound` if there is none."""
    task = await client.get(task_id)
    return Snapshot(task, await client.history(task_id))


class Watch:
    """One task under observation."""

    def __init__(self, client: Client, task_id: TaskId) -> None:
        self._client = client
        self._task_id = task_id
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self.listeners = 0
        self.latest: Snapshot | None = None
        """What was seen last; None once the task is forgotten."""

    async def begin(self) -> None:
        """Look once; `TaskNotFound` if there is nothing to see."""
        self.latest = await look(self._client, self._task_id)
        self._looking = asyncio.create_task(self._keep_looking())

    def end(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    @property
    def change(self) -> asyncio.Event:
        """Set when there is something new. Take it before you look at `latest`."""
        return self._changed

    async def _keep_looking(self) -> None:
        while self.latest is not None and not self.latest.is_final:
            await asyncio.sleep(LOOK_EVERY)
            try:
                seen: Snapshot | None = await look(self._client, self._task_id)
            except TaskNotFound:
                seen = None
            except StoreUnavailable:
                continue  # the stream stays; whoever submits and works says so already
            except Exception as error:  # noqa: BLE001 - said, and looked again
                log.error("watch.failed", task_id=self._task_id, exception=trace_of(error))
                continue
            if seen != self.latest:
                self.latest = seen
                self._changed.set()
                self._changed = asyncio.Event()


class Watches:
    """The tasks under observation in this process."""

    def __init__(self) -> None:
        self._watches: dict[TaskId, Watch] = {}

    def __len__(self) -> int:
        return len(self._watches)

    @asynccontextmanager
    async def on(self, client: Client, task_id: TaskId) -> AsyncIterator[Watch]:
        """Observe a task as long as one is inside; `TaskNotFound` if there is none."""
        watch = self._watches.get(task_id)
        if watch is None or watch.latest is None or watch.latest.is_final:
            # One that has seen the end looks no more; the task may have been started again since.
            fresh = Watch(client, task_id)
            await fresh.begin()
            watch = self._watches[task_id] = fresh
        watch.listeners += 1
        try:
            yield watch
        finally:
            watch.listeners -= 1
            if not watch.listeners:
                watch.end()
                if self._watches.get(task_id) is watch:
                    del self._watches[task_id]
