"""Who the workers over HTTP are, as far as this process knows; the store knows all of them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from holdfast.core.fleet import ALIVE, HTTP, WorkerInfo, WorkerStatus, may_speak_for
from holdfast.core.query import running_on
from holdfast.core.task import TaskId, WorkerId
from holdfast.errors import WorkerGone, WorkerNotFound
from holdfast.ports.store import Store

ASK_AGAIN = 1.0
"""Seconds for which an answer about draining is good."""


@dataclass(slots=True)
class RemoteWorker:
    """A living worker. Times by the monotonic clock."""

    info: WorkerInfo
    beat_at: float = 0.0
    heard_at: float | None = None
    """When its last heartbeat came in here; None if it has sent none."""
    asked_at: float = 0.0
    is_leaving: bool = False
    """An operator wants it to leave, or it said itself that it will. That is not taken back."""
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has handed in results here."""

    @property
    def id(self) -> WorkerId:
        return self.info.id


class Registrations:
    """Takes workers in, and finds them again."""

    def __init__(self, store: Store, *, heartbeat: float) -> None:
        self._store = store
        self._heartbeat = heartbeat
        self._known: dict[WorkerId, RemoteWorker] = {}

    async def add(self, worker: WorkerInfo) -> None:
        """Take in a new worker."""
        await self._store.register(worker)
        self._known[worker.id] = RemoteWorker(worker, beat_at=time.monotonic())

    async def find(self, worker_id: WorkerId) -> WorkerInfo:
        """The worker, dead or alive. `WorkerNotFound` for whoever is none of ours."""
        known = self._known.get(worker_id)
        if known is not None:
            return known.info
        for info in await self._store.workers():
            if info.id == worker_id and info.kind == HTTP:
                return info
        raise WorkerNotFound(worker_id)

    async def refuse_others(self, worker_id: WorkerId, token_id: str) -> None:
        """`WorkerNotFound` unless the worker registered with this token."""
        if not may_speak_for(token_id, (await self.find(worker_id)).capabilities):
            raise WorkerNotFound(worker_id)

    async def alive(self, worker_id: WorkerId) -> RemoteWorker:
        """The living worker. `WorkerGone` if it was buried or has left."""
        known = self._known.get(worker_id)
        if known is None:
            info = await self.find(worker_id)
            if info.status not in ALIVE:
                raise WorkerGone(worker_id)
            leaving = info.drain_requested or info.status is WorkerStatus.DRAINING
            known = self._known.setdefault(worker_id, RemoteWorker(info, is_leaving=leaving))
        return known

    async def beat(self, worker: RemoteWorker) -> None:
        """Say that it is alive. `WorkerGone` if the store has given it up."""
        worker.beat_at = time.monotonic()
        status = WorkerStatus.DRAINING if worker.is_leaving else None
        if not await self._store.beat(worker.id, status=status):
            self.forget(worker.id)
            raise WorkerGone(worker.id)

    async def leave(self, worker: RemoteWorker) -> None:
        """It said that it will leave: every server must know."""
        worker.is_leaving = True
        await self._store.ask_to_drain(worker.id)

    async def saw(self, worker: RemoteWorker) -> None:
        """It asked for something, so it lives: beat for it, unless that has just been done."""
        if time.monotonic() - worker.beat_at >= self._heartbeat / 2:
            await self.beat(worker)

    def heard(self, worker: RemoteWorker) -> None:
        """It sent a heartbeat of its own."""
        worker.heard_at = time.monotonic()

    def longest_wait(self, worker: RemoteWorker) -> float:
        """How long its poll may wait: one that sends no heartbeats lives by its polls alone."""
        if worker.heard_at is not None and (
            time.monotonic() - worker.heard_at < 2 * self._heartbeat
        ):
            return math.inf
        return 0.8 * self._heartbeat

    async def is_leaving(self, worker: RemoteWorker) -> bool:
        """Whether it must not be given more. Asks the store, about once a second at most."""
        if not worker.is_leaving and time.monotonic() - worker.asked_at >= ASK_AGAIN:
            await self.to_stop(worker)
        return worker.is_leaving

    async def to_stop(self, worker: RemoteWorker) -> Sequence[TaskId]:
        """Which of its tasks it should stop. Afterwards it is known whether it is to leave, too."""
        worker.asked_at = time.monotonic()
        asked = await self._store.requests(worker.id)
        worker.is_leaving |= asked.drain
        return asked.cancel

    async def free_capacity(self, worker: RemoteWorker, *, wait: float = 0.0) -> int:
        """How many more tasks it may hold, by what the store has leased to it. While it may hold
        none, its next result is waited for.
        """
        until = time.monotonic() + wait
        capacity = worker.info.capacity
        while True:
            worker.freed.clear()
            free = capacity - await self._store.count(running_on(worker.id), limit=capacity)
            left = until - time.monotonic()
            if free > 0 or left <= 0:
                return free
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.freed.wait(), left)

    def freed(self, worker_id: WorkerId) -> None:
        """It has handed in results."""
        if worker_id in self._known:
            self._known[worker_id].freed.set()

    def forget(self, worker_id: WorkerId) -> None:
        self._known.pop(worker_id, None)

    def keep(self, alive: Collection[WorkerId]) -> None:
        """Forget everybody else. (One that registered a moment ago is found again.)"""
        for worker_id in self._known.keys() - set(alive):
            del self._known[worker_id]
