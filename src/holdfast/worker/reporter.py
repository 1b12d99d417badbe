"""Carries what handlers say while they run (progress, cost, log lines) to the store.

Reports are merged per attempt: the latest progress wins, costs add up, lines are appended. At most
five writes a second, however often a handler speaks, and always before the attempt's settlement.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from holdfast.core.attempt import Claim, Refusal, Report, Settlement
from holdfast.core.report import merged, parts
from holdfast.core.task import TaskId
from holdfast.logs import EventLog, trace_of
from holdfast.ports.store import TaskStore
from holdfast.worker.outage import Outage

log = EventLog("holdfast.worker")

EVERY = 0.2
_Key = tuple[TaskId, int]


class Reporter:
    """Gathers reports from any thread; stores them from the loop."""

    def __init__(
        self,
        store: TaskStore,
        loop: asyncio.AbstractEventLoop,
        on_refused: Callable[[Sequence[Refusal]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._loop = loop
        self._on_refused = on_refused
        self._guard = threading.Lock()
        self._waiting: dict[_Key, Report] = {}
        self._held: set[_Key] = set()
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._outage = Outage("report")

    def put(self, report: Report) -> None:
        """Store this soon. From any thread."""
        key = (report.task_id, report.attempt)
        with self._guard:
            is_first = not self._waiting
            earlier = self._waiting.get(key)
            self._waiting[key] = report if earlier is None else merged(earlier, report)
        if is_first:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Store reports a few times a second while there are any. Runs until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(EVERY)
            self._wake.clear()
            await self._write(None)

    async def flush_before(self, settlements: Sequence[Settlement]) -> None:
        """Store what these attempts have said, before their end is saved."""
        if self._waiting or self._writing.locked():
            await self._write({(one.task_id, one.attempt) for one in settlements})

    async def hold(self, claim: Claim) -> None:
        """Store what this attempt has said; what it says from now on is for `take`."""
        key = (claim.task_id, claim.attempt)
        with self._guard:
            self._held.add(key)
        if self._waiting or self._writing.locked():
            await self._write({key})

    def take(self, claim: Claim) -> Report | None:
        """What it has said since, for whoever stores it otherwise. From any thread."""
        with self._guard:
            return self._waiting.pop((claim.task_id, claim.attempt), None)

    def let_go(self, claim: Claim) -> None:
        """Store its reports as usual again. From any thread."""
        with self._guard:
            self._held.discard((claim.task_id, claim.attempt))
        with suppress(RuntimeError):  # the loop was closed: nobody reports any more
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _write(self, keys: AbstractSet[_Key] | None) -> None:
        async with self._writing:
            refusals = await self._store_all(self._pick(keys))
        if refusals:
            await self._on_refused(refusals)

    async def _store_all(self, reports: Sequence[Report]) -> Sequence[Refusal]:
        if not reports:
            return ()
        try:
            return await self._outage.outlast(lambda: self._store.report(reports))
        except Exception as error:  # noqa: BLE001 - a report is no promise
            return await self._store_apart(reports, error)

    async def _store_apart(self, reports: Sequence[Report], error: Exception) -> Sequence[Refusal]:
        """One of them cannot be stored: store the others, and what else that one says."""
        if len(reports) > 1:
            middle = len(reports) // 2
            pieces = [reports[:middle], reports[middle:]]
        elif len(apart := parts(reports[0])) > 1:
            pieces = [[part] for part in apart]
        else:
            (lost,) = reports
            log.error(
                "store.failed", doing="report", task_id=lost.task_id, exception=trace_of(error)
            )
            return ()
        return [refusal for piece in pieces for refusal in await self._store_all(piece)]

    def _pick(self, keys: AbstractSet[_Key] | None) -> list[Report]:
        with self._guard:
            if keys is None:
                keys = self._waiting.keys() - self._held
            return [self._waiting.pop(key) for key in keys & self._waiting.keys()]
