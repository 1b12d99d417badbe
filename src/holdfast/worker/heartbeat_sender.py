"""Beats for a worker from outside it, and buries it when it is gone.

Used by the heartbeat process of a lone worker and by the supervisor of many. It beats only while
the watched process can run: one that is stopped (SIGSTOP, Ctrl-Z, a debugger) could not notice that
its tasks were given away, so it must count as silent.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.core.attempt import Settlement
from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import Json
from holdfast.errors import StoreError
from holdfast.logs import EventLog
from holdfast.worker.groups import kill_groups
from holdfast.worker.liveness import Liveness, liveness
from holdfast.worker.supervisor_channel import Lease, unpack_settlements

if TYPE_CHECKING:
    from holdfast.ports.store import Store

log = EventLog("holdfast.heartbeat")

OPENER = "holdfast.wiring:open_store"
"""Who turns a URL into a store. By name: a worker does not know which stores there are."""

RETRY = 0.5
SILENT_AFTER = 2.5
"""Beats that may be late before a process counts as silent: a lease is usually three."""
PATIENCE = 5.0
"""Seconds that the store always has to answer in. A connection may fall silent without an end, and
a beat that waits for it for as long as the driver does would cost the lease of a living worker.
"""
LAST_TRIES = 30.0
"""Seconds to keep trying to bury a worker; after that its lease has run out anyway."""


def open_store(url: str) -> Store:
    """The store at this URL, not yet opened."""
    module, _, name = OPENER.partition(":")
    store: Store = getattr(importlib.import_module(module), name)(url)
    return store


class Stores:
    """The stores of all watched workers, opened once each. Usually there is one."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}
        self._said = 0.0

    async def beat(self, lease: Lease) -> bool | None:
        """Beat once. False: the store has given this worker up. None: the store is away."""
        try:
            store = await self._store(lease.url)
            async with asyncio.timeout(max(PATIENCE, lease.heartbeat)):
                return await store.beat(lease.worker_id)
        except Exception as error:  # noqa: BLE001 - a heartbeat that stops costs every running task
            self._say("beat", error)
            return None

    async def bury(self, lease: Lease, last: Sequence[Settlement] = ()) -> None:
        """Declare the worker dead, so that its tasks need not wait for the lease to run out. One
        that left word of how its last attempts end has left in good order.
        """
        until = time.monotonic() + LAST_TRIES
        while time.monotonic() < until:
            try:
                store = await self._store(lease.url)
                async with asyncio.timeout(PATIENCE):
                    if last:
                        await store.save(last)
                        await store.beat(lease.worker_id, status=WorkerStatus.STOPPED)
                    else:
                        await store.bury(lease.worker_id, beats=None)
                return
            except Exception as error:  # noqa: BLE001 - as for a beat
                self._say("bury", error)
                await asyncio.sleep(RETRY)

    async def close(self) -> None:
        for store in self._stores.values():
            with suppress(StoreError):
                await store.close()
        self._stores.clear()

    async def _store(self, url: str) -> Store:
        store = self._stores.get(url)
        if store is None:
            store = open_store(url)
            await store.open()
            self._stores[url] = store
        return store

    def _say(self, doing: str, error: Exception) -> None:
        if time.monotonic() - self._said >= 1.0:
            self._said = time.monotonic()
            log.warning("store.lost", doing=doing, error=str(error) or "no answer")


class HeartbeatSender:
    """Beats for one process, whoever it says it is."""

    def __init__(self, stores: Stores, pid: int) -> None:
        self._stores = stores
        self._pid = pid
        self.lease: Lease | None = None
        self._changed = asyncio.Event()
        self._groups: list[int] = []
        self._last: Sequence[Settlement] = ()
        self._beat_at = time.monotonic()

    @property
    def is_silent(self) -> bool:
        """Whether its beats have not arrived for as long as several should have taken."""
        lease = self.lease
        missed = time.monotonic() - self._beat_at
        return lease is not None and missed > max(SILENT_AFTER * lease.heartbeat, PATIENCE)

    def take(self, said: Json) -> None:
        """Hear what the process says about its heartbeat (`heartbeat.OutsideHeartbeat`)."""
        if "groups" in said:
            self._groups = said["groups"]
        if "last" in said:
            self._last = unpack_settlements(said["last"])
        if "lease" in said:
            self.set_lease(None if said["lease"] is None else Lease(**said["lease"]))

    def set_lease(self, lease: Lease | None) -> None:
        """Beat for this worker from now on; None: for nobody, it left in good order."""
        self.lease = lease
        self._beat_at = time.monotonic()
        self._changed.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        pause: float | None = None
        while True:
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                pause = await self.tick()
                continue
            self._changed.clear()
            # Whoever says who it is has beaten by that: it has just registered. So a program that
            # ends soon is gone, with its folder maybe, before a store is opened for it here.
            pause = None if self.lease is None else self.lease.heartbeat

    async def tick(self) -> float | None:
        """One beat; returns how long to rest. None: until the worker says who it is."""
        lease = self.lease
        if lease is None:
            return None
        if liveness(self._pid) is not Liveness.RUNNING:
            return min(lease.heartbeat, RETRY)
        match await self._stores.beat(lease):
            case True:
                self._beat_at = time.monotonic()
                return lease.heartbeat
            case None:
                return min(lease.heartbeat, RETRY)
            case _:
                # Given up already. It will come back under a new id.
                return None

    async def bury(self) -> None:
        """The process is gone: so are its groups, and so is its worker, unless it had left."""
        kill_groups(self._groups)
        lease, self.lease = self.lease, None
        if lease is not None:
            await self._stores.bury(lease, self._last)
