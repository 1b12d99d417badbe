"""The worker: takes tasks from a store, runs them, records how they ended.

    worker = Worker(store, dispatcher, registry, settings)
    await worker.run()          # until worker.stop(), from a signal handler or another thread

`stop()` begins the drain: no more claims, what has not started goes back, what runs is asked to
stop, has `drain` seconds to end, and is then interrupted and handed back, uncharged. A second
`stop()` means now. An operator who asks the worker to drain (`WorkerStore.ask_to_drain`) does the
same as one `stop()`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from holdfast import logs
from holdfast.asyncio_tools.cancel import end
from holdfast.companions import companions_of
from holdfast.core.fleet import SERVER
from holdfast.core.task import WorkerId
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.definitions.registry import Registry
from holdfast.errors import HoldfastError
from holdfast.logs import EventLog
from holdfast.metrics.keeping import CountsKeeper
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.schedules.book import Book
from holdfast.schedules.declared import DeclarationKeeper
from holdfast.settings import Settings
from holdfast.worker.heartbeat import StartHeartbeat, ThreadHeartbeat, WorkerHeartbeat
from holdfast.worker.maintenance.loop import Agent, keep_ticking, maintenance_agents
from holdfast.worker.membership import new_worker_id
from holdfast.worker.parts import Parts
from holdfast.worker.run import StopReason

log = EventLog("holdfast.worker")

LAST_STOPS = 5.0
"""Seconds that a body has to end after it was told to, before the worker leaves without it."""
LAST_SAVES = 5.0
"""Seconds that a stopping worker goes on trying to save what has ended, if the store is away."""


class Beside(Agent, Protocol):
    """Runs what Holdfast brings along (`holdfast.builtin`)."""

    async def drain(self) -> None:
        """Run what is there to run now, and return: the end of a burst."""
        ...


class Worker:
    """Works in one process. Run it once."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        registry: Registry,
        settings: Settings,
        *,
        app_spec: str | None = None,
        burst: bool = False,
        kind: str = "python",
        start_heartbeat: StartHeartbeat | None = None,
        beside: Beside | None = None,
    ) -> None:
        """Prepare a worker on an open store.

        Args:
            store: the truth; opened by the caller, who closes it after `run()`.
            dispatcher: who wakes it.
            registry: the definitions it can run.
            settings: queues, concurrency, capabilities and every time.
            app_spec: `module:attr` or `path.py:attr`, how a child process finds the app. Needed for
                tasks of the process executor.
            burst: return from `run()` when nothing is ready, running or just about due.
            kind: what it is shown as; one of a `server` leaves the maintenance to that.
            start_heartbeat: who beats for it; by default a small process of its own.
            beside: who runs what is no task of the app, as long as this runs.
        """
        self._store = store
        self._dispatcher = dispatcher
        self._registry = registry
        self._settings = settings
        self._app_spec = app_spec
        self._burst = burst
        self._kind = kind
        self._beat = start_heartbeat or self._own_heartbeat
        self._beside = beside
        self._counts = CountsKeeper(store)
        self._first_id = new_worker_id(settings)
        self._parts: Parts | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stops = 0
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self.was_sent_home = False
        """Whether it stopped because an operator asked it to drain: no other should take its place.
        """
        self.has_left_bodies = False
        """Whether bodies that could not be stopped go on in this process: it should end now."""

    @property
    def id(self) -> WorkerId:
        """Its id in the store. Changes if the worker was declared lost and came back."""
        return self._first_id if self._parts is None else self._parts.membership.id

    def stop(self) -> None:
        """Begin the drain; called again: stop now. From any thread, before `run()` too."""
        if self._loop is None:
            self._count_stop()
        else:
            with suppress(RuntimeError):  # the loop is closed: it has stopped
                self._loop.call_soon_threadsafe(self._count_stop)

    async def run(self) -> None:
        """Work until stopped. Waits out every outage of the store; a wrong schema is raised."""
        logs.set_up(self._settings.log_level, self._settings.log_format)
        self._loop = asyncio.get_running_loop()
        if self._stopping.is_set():
            return
        parts = self._parts = Parts(
            self._store,
            self._dispatcher,
            self._registry,
            self._settings,
            worker_id=self._first_id,
            app_spec=self._app_spec,
            burst=self._burst,
            kind=self._kind,
            start_heartbeat=self._beat,
            send_home=self._send_home,
        )
        joining = asyncio.ensure_future(parts.membership.join())
        if not await self._unless_stopped(joining):
            await end([joining])
            return
        joining.result()
        if self._kind != SERVER:
            log.info("worker.started", worker_id=self.id, **self._facts())
        work = asyncio.ensure_future(self._work(parts))
        try:
            await asyncio.shield(work)
            if self._burst and self._beside is not None and not self._stopping.is_set():
                draining = asyncio.ensure_future(self._beside.drain())
                if await self._unless_stopped(draining):
                    draining.result()
                await end([draining])
        except asyncio.CancelledError:
            # Whoever runs us wants to leave. Leave in order, but at once.
            self._count_stop()
            self._count_stop()
            await asyncio.wait({work})
            raise
        finally:
            if self._kind != SERVER:
                log.info("worker.stopped", worker_id=self.id)
            if parts.spans is not None:
                await parts.spans.flush()

    async def _work(self, parts: Parts) -> None:
        chores = [asyncio.ensure_future(chore) for chore in self._chores(parts)]
        saving = asyncio.ensure_future(parts.settler.run())
        feeding = asyncio.ensure_future(parts.feeder.run())
        parts.slots.open(self._settings.concurrency)
        try:
            await self._unless_stopped(feeding, saving)
            await self._drain(parts)
        finally:
            parts.feeder.close()
            parts.slots.stop(StopReason.DRAINED)
            await _ended(feeding, within=LAST_SAVES)
            await self._save_the_rest(parts, saving)
            await end(chores)
            if self._kind != SERVER:
                await self._counts.close()
            if parts.breakers.is_used:
                with suppress(HoldfastError, TimeoutError):  # others count on
                    await asyncio.wait_for(parts.breakers.share(), LAST_SAVES)
            await parts.close()
            await parts.membership.retire()
        for part in (feeding, saving):
            if not part.cancelled():
                part.result()

    async def _save_the_rest(self, parts: Parts, saving: asyncio.Future[None]) -> None:
        parts.settler.close()
        if saving.done():  # cancelled along with the whole loop
            saving = asyncio.ensure_future(parts.settler.run())
        await asyncio.wait({saving}, timeout=LAST_SAVES)
        if parts.settler.unsaved:
            # Their tasks are rescued like those of a dead worker.
            log.error("worker.results_unsaved", attempts=parts.settler.unsaved)
            await end([saving])

    async def _drain(self, parts: Parts) -> None:
        """Let running work end, as long as `drain` and the operator's patience last."""
        parts.feeder.close()
        parts.slots.ask_to_stop()
        if parts.slots.busy:
            log.info("worker.draining", worker_id=self.id, running=parts.slots.busy)
            await parts.membership.drain()
        home = asyncio.ensure_future(parts.slots.all_home())
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait(
            {home, hurry}, timeout=self._settings.drain, return_when=asyncio.FIRST_COMPLETED
        )
        if parts.slots.busy:
            log.warning("worker.interrupting", worker_id=self.id, running=parts.slots.busy)
            parts.slots.stop(StopReason.DRAINED)
            await self._interrupted(parts, home)
            self._leave_behind(parts)
        await home
        await end([hurry])

    async def _interrupted(self, parts: Parts, home: asyncio.Future[None]) -> None:
        """Wait for the bodies to end, or to turn out to go on."""
        until = time.monotonic() + LAST_STOPS
        while not (home.done() or parts.slots.all_stuck) and time.monotonic() < until:
            await asyncio.wait({home}, timeout=0.05)

    def _leave_behind(self, parts: Parts) -> None:
        """Bodies that go on end with this process, and so do their attempts if they hold a lock."""
        self.has_left_bodies = parts.slots.busy > 0
        left = [parts.outcomes.decide(*one) for one in parts.slots.leave_behind()]
        mine = [one for one in left if one.worker_id == self.id]
        if mine and not parts.membership.settle_when_gone(mine):
            for settlement in mine:
                parts.settler.put(settlement)

    def _chores(self, parts: Parts) -> list[Coroutine[Any, Any, None]]:
        chores = [
            parts.reporter.run(),
            keep_ticking(parts.requests, jitter=0.0),
            keep_ticking(parts.membership),
            keep_ticking(parts.forgetter),
            keep_ticking(parts.chores),
            keep_ticking(parts.loop_watch, jitter=0.0),
        ]
        if self._kind == SERVER:
            return chores
        chores.append(keep_ticking(parts.breakers))
        agents = maintenance_agents(
            self._store, self._dispatcher, self._settings, own_id=lambda: parts.membership.id
        )
        settings, maker = self._settings, TaskMaker(self._settings, self._registry.queues)
        book = Book(
            self._store, self._dispatcher, self._registry, settings, maker, companions_of(settings)
        )
        declared = DeclarationKeeper(book)
        if self._beside is not None and not self._burst:
            agents.append(self._beside)
        agents += [declared, self._counts]
        return [*chores, *map(keep_ticking, agents)]

    async def _unless_stopped(self, *work: asyncio.Future[None]) -> bool:
        """Wait for any of that, or for `stop()`. True if some of the work was done first."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        either: set[asyncio.Future[Any]] = {*work, stopping}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        await end([stopping])
        return any(part.done() for part in work)

    def _send_home(self) -> None:
        self.was_sent_home = True
        if not self._stopping.is_set():
            self._count_stop()

    def _count_stop(self) -> None:
        self._stops += 1
        self._stopping.set()
        if self._stops > 1:
            self._hurry.set()

    def _own_heartbeat(self, worker_id: WorkerId) -> WorkerHeartbeat:
        if "many_processes" not in self._store.abilities:
            return ThreadHeartbeat(self._store, worker_id, self._settings.heartbeat)
        from holdfast.worker.heartbeat_process import start_heartbeat  # noqa: PLC0415 - only workers on their own need it

        return start_heartbeat(self._settings.url, worker_id, self._settings.heartbeat, os.getpid())

    def _facts(self) -> dict[str, object]:
        settings = self._settings
        return {
            "queues": list(settings.queues),
            "concurrency": settings.concurrency,
            "capabilities": sorted(settings.capabilities),
            "tasks": len(self._registry),
            "store": self._store.url,
        }


async def _ended(task: asyncio.Future[Any], *, within: float) -> None:
    await asyncio.wait({task}, timeout=within)
    await end([task])
