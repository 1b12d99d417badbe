"""The worker's place in the store: registered, beating, and registered anew when it was given up.

A worker that pauses longer than its lease (a stopped process, a suspended machine) comes back to
find that it was declared lost and its tasks were started elsewhere. Its bodies are stopped, what it
held is forgotten, and it goes on under a new id: an id that was buried never rises.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.core.attempt import Refusal, Settlement
from holdfast.core.fleet import WorkerInfo, WorkerStatus, runs_on_python
from holdfast.core.metrics import BEATS_FAILED
from holdfast.core.task import WorkerId
from holdfast.counting import tally_of
from holdfast.errors import StoreUnavailable
from holdfast.logs import EventLog
from holdfast.ports.store import WorkerStore
from holdfast.settings import Settings
from holdfast.worker.heartbeat import StartHeartbeat, WorkerHeartbeat
from holdfast.worker.outage import Outage
from holdfast.worker.version import version

log = EventLog("holdfast.worker")

_PYTHON = ".".join(map(str, sys.version_info[:3]))


def new_worker_id(settings: Settings) -> WorkerId:
    """An id nobody had before: the worker's name or its host's, process, and something random."""
    name = settings.worker_name or socket.gethostname()
    return WorkerId(f"{name}-{os.getpid()}-{secrets.token_hex(4)}")


class Membership:
    """Registers the worker, keeps its heartbeat going, notices when it was declared lost."""

    def __init__(
        self,
        store: WorkerStore,
        settings: Settings,
        worker_id: WorkerId,
        *,
        kind: str,
        start_heartbeat: StartHeartbeat,
        load: Callable[[], int],
        on_lost: Callable[[WorkerId], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._id = worker_id
        self._kind = kind
        self._start_heartbeat = start_heartbeat
        self._load = load
        self._on_lost = on_lost
        self._status = WorkerStatus.ACTIVE
        self._tally = tally_of(store)
        self._heartbeat: WorkerHeartbeat | None = None
        self._stays = False
        self._renewing = asyncio.Lock()
        self._outage = Outage("register")

    @property
    def id(self) -> WorkerId:
        """The id under which it claims now."""
        return self._id

    async def join(self) -> None:
        """Register, however long the store is away, and start the heartbeat."""
        # Where it has not begun, whoever starts it should know that it is not let in.
        has_begun = self._heartbeat is not None
        await self._outage.outlast(
            lambda: self._store.register(self._info()), or_refused=not has_begun
        )
        if self._heartbeat is None:
            self._heartbeat = self._start_heartbeat(self._id)
        else:
            self._heartbeat.set_worker(self._id)

    async def renew(self, gone: WorkerId) -> None:
        """That id was declared lost: forget what was done under it, and join under another."""
        async with self._renewing:
            if gone != self._id:
                return
            self._id = new_worker_id(self._settings)
            log.warning("worker.lost", worker_id=gone, now=self._id)
            self._on_lost(gone)
            await self.join()

    async def refused(self, refusals: Sequence[Refusal]) -> None:
        """The store refused something of ours: find out whether that was all it refuses."""
        if any(refusal.worker_id == self._id for refusal in refusals):
            # If the store is away just now, the next heartbeat will find out.
            with suppress(StoreUnavailable):
                await self.tick()

    async def confirm(self, worker_id: WorkerId) -> bool:
        """Ask the store whether that id still holds its leases."""
        await self.tick()
        return worker_id == self._id

    async def tick(self) -> float:
        """Say that we are alive and how busy; renew if nobody believes it."""
        worker_id = self._id
        try:
            lives = await self._store.beat(
                worker_id, load=self._load(), status=self._status, blocked_by=""
            )
        except StoreUnavailable:
            self._tally.add(BEATS_FAILED)
            raise
        if not lives:
            await self.renew(worker_id)
        return self._settings.heartbeat

    async def drain(self) -> None:
        """Say that this worker takes no more."""
        self._status = WorkerStatus.DRAINING
        try:
            await self._store.beat(self._id, load=self._load(), status=self._status)
        except StoreUnavailable as error:
            self._outage.delay(error)

    def settle_when_gone(self, settlements: Sequence[Settlement]) -> bool:
        """Leave these to whoever beats for us, to save them and to retire us when this process has
        ended. False if nobody outside it does.
        """
        assert self._heartbeat is not None
        self._stays = self._heartbeat.settle_when_gone(settlements)
        return self._stays

    async def retire(self) -> None:
        """Leave in good order. If the store is away the lease runs out instead."""
        if self._stays:
            return
        if self._heartbeat is not None:
            self._heartbeat.close()
        try:
            await self._store.beat(self._id, status=WorkerStatus.STOPPED)
        except StoreUnavailable as error:
            self._outage.delay(error)

    def _info(self) -> WorkerInfo:
        settings = self._settings
        return WorkerInfo(
            id=self._id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version(),
            queues=settings.served_queues,
            capabilities=settings.capabilities | {runs_on_python(_PYTHON)},
            capacity=settings.concurrency,
            load=self._load(),
            status=self._status,
            kind=self._kind,
        )
