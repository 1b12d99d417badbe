"""Records the steps of a worker's attempts, by group commit.

A step goes on when it is on disk. What comes while a write is under way is written together with
the next one, so that many workflows share each commit; a lone step is written at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from holdfast.asyncio_tools.cancel import end
from holdfast.core.attempt import Claim, Refusal, Report
from holdfast.core.events import Looked
from holdfast.core.task import TaskId
from holdfast.errors import LeaseLost
from holdfast.flow import events
from holdfast.logs import EventLog
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.worker.outage import Outage

log = EventLog("holdfast.worker")

T = TypeVar("T")

MOST_PER_WRITE = 500
ENOUGH = 100
"""So many that wait are worth a second write beside the one that is under way: while the store is
at one, the handlers of the other go on. Two are enough for that.
"""


class _Waiting(NamedTuple):
    """A step that waits to be on disk."""

    claim: Claim
    step: tuple[str, bytes]
    written: asyncio.Future[None]


class WorkerSteps:
    """A `StepHost` for handlers that run in the worker itself, and for those of its processes."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        settings: Settings,
        on_refused: Callable[[Sequence[Refusal]], Awaitable[None]],
    ) -> None:
        self.max_result = settings.max_result
        self._store = store
        self._loop = loop
        self._keep = settings.retention
        self._on_refused = on_refused
        self._waiting: list[_Waiting] = []
        self._writers: set[asyncio.Task[None]] = set()
        self._writes = 0

    async def journal(self, claim: Claim) -> Mapping[str, bytes]:
        return await self._ask(lambda: self._store.journal(claim.task_id))

    def record(self, claim: Claim, name: str, value: bytes) -> Awaitable[None]:
        if asyncio.get_running_loop() is not self._loop:
            return self._over_there(self._recorded(claim, name, value))
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(_Waiting(claim, (name, value), written))
        if self._writes == 0 or (self._writes == 1 and len(self._waiting) >= ENOUGH):
            self._writes += 1
            writer = self._loop.create_task(self._write_all(), name="holdfast-steps")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        return written

    async def _recorded(self, claim: Claim, name: str, value: bytes) -> None:
        await self.record(claim, name, value)

    async def now(self) -> datetime:
        return await self._ask(self._store.now)

    async def look_for(self, claim: Claim, event: str, timeout: float | None) -> Looked:
        return await self._ask(
            lambda: events.look_for(self._store, claim.task_id, event, timeout, keep=self._keep)
        )

    async def wait_no_more(self, claim: Claim, event: str) -> None:
        await self._ask(lambda: events.wait_no_more(self._store, claim.task_id, event))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def close(self) -> None:
        """Write no more: whoever still waits has been stopped."""
        await end(self._writers)

    async def _ask(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Ask the store from its worker's loop, however long it is away."""
        asked = Outage("step").outlast(call)
        if asyncio.get_running_loop() is self._loop:
            return await asked
        return await self._over_there(asked)

    async def _over_there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch = self._waiting[:MOST_PER_WRITE]
                del self._waiting[:MOST_PER_WRITE]
                await self._write(batch)
        finally:
            self._writes -= 1  # right here: whoever comes next must know that nobody looks again

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        try:
            refusals = await Outage("step").outlast(lambda: self._store.report(_reports(batch)))
        except Exception as error:  # noqa: BLE001 - one of them may be to blame, and is told
            if len(batch) == 1:
                _resolve(batch[0].written, error)
                return
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
            return
        late = {refusal[:2]: refusal for refusal in refusals}
        for claim, _, written in batch:
            if late and claim[:2] in late:
                _resolve(written, _lost(late[claim[:2]]))
            elif not written.done():
                written.set_result(None)
        if refusals:
            await self._on_refused(refusals)


def _reports(batch: Sequence[_Waiting]) -> list[Report]:
    """One report for each attempt, with all of its steps."""
    reports: dict[tuple[TaskId, int], Report] = {}
    for claim, step, _ in batch:
        key = claim[:2]
        if key in reports:
            known = reports[key]
            reports[key] = known._replace(steps=(*known.steps, step))
        else:
            reports[key] = Report(*claim[:3], None, None, (), (step,))
    return list(reports.values())


def _lost(refusal: Refusal) -> LeaseLost:
    return LeaseLost(refusal.task_id, refusal.attempt, holder=refusal.holder)


def _resolve(written: asyncio.Future[None], error: Exception) -> None:
    if not written.done():
        written.set_exception(error)
