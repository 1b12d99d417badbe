"""Writes how attempts ended, by group commit.

A flush starts as soon as the one before has returned, with whatever has gathered meanwhile. No
timer: an idle worker saves a lone result at once, a busy one saves hundreds in one commit.

A save whose outcome is unknown is repeated as it is, which every store accepts. Reports of an
attempt (progress, cost, log lines) are stored before the attempt's end, or the fence would refuse
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from holdfast.core.attempt import Refusal, Settlement
from holdfast.core.metrics import LEASES_LOST
from holdfast.core.task import TaskId
from holdfast.counting import tally_of
from holdfast.errors import LeaseLost
from holdfast.logs import EventLog, trace_of
from holdfast.ports.store import TaskStore
from holdfast.worker.outage import Outage
from holdfast.worker.reporter import Reporter

log = EventLog("holdfast.worker")

MOST_PER_SAVE = 2000
"""A drain of no-ops does 56 thousand a second at 1000, 69 at 2000; beyond, others wait too long."""
MOST_WAITING = 4000
MOST_WAITING_BYTES = 64 * 1024 * 1024


class Settler:
    """Gathers settlements and saves them in batches. Loop-thread only."""

    def __init__(
        self,
        store: TaskStore,
        reporter: Reporter,
        *,
        on_saved: Callable[[Sequence[Settlement]], None],
        on_clashed: Callable[[Refusal], None],
        on_refused: Callable[[Sequence[Refusal]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._reporter = reporter
        self._on_saved = on_saved
        self._on_clashed = on_clashed
        self._on_refused = on_refused
        self._waiting: list[Settlement] = []
        self._bytes = 0
        self._saving: Sequence[Settlement] = ()
        self._sleeper: asyncio.Future[None] | None = None
        self._closing = False
        self._outage = Outage("save")
        self._tally = tally_of(store)
        self.saved = 0
        """How many ends of attempts are on disk by now."""

    @property
    def unsaved(self) -> int:
        """How many attempts have ended and are not on disk yet."""
        return len(self._waiting) + len(self._saving)

    @property
    def is_full(self) -> bool:
        """Whether so much waits to be saved that no more work should be started."""
        return len(self._waiting) >= MOST_WAITING or self._bytes >= MOST_WAITING_BYTES

    def holds(self) -> set[TaskId]:
        """The tasks whose end is not on disk yet."""
        return {one.task_id for one in (*self._waiting, *self._saving)}

    def pending(self) -> list[Settlement]:
        """What is not on disk yet. From any thread, while the loop stands still."""
        return [*self._saving, *self._waiting]

    def put(self, settlement: Settlement) -> None:
        """Save this soon."""
        self._waiting.append(settlement)
        if settlement.result is not None:
            self._bytes += len(settlement.result)
        if self._sleeper is not None:
            self._wake()

    def close(self) -> None:
        """No more will come: `run` returns when all is saved."""
        self._closing = True
        self._wake()

    async def run(self) -> None:
        """Save until closed and empty."""
        while True:
            if self._waiting:
                await self._flush()
            elif self._closing:
                return
            else:
                self._sleeper = asyncio.get_running_loop().create_future()
                await self._sleeper

    def _wake(self) -> None:
        sleeper, self._sleeper = self._sleeper, None
        if sleeper is not None and not sleeper.done():
            sleeper.set_result(None)

    async def _flush(self) -> None:
        batch = self._waiting[:MOST_PER_SAVE]
        del self._waiting[:MOST_PER_SAVE]
        size = sum(len(one.result) for one in batch if one.result is not None)
        self._bytes -= size
        self._saving = batch
        try:
            await self._reporter.flush_before(batch)
            refusals = await self._save(batch)
        except BaseException:
            self._waiting[:0] = batch
            self._bytes += size
            raise
        finally:
            self._saving = ()
        clashed = [refusal for refusal in refusals if refusal.conflict is not None]
        if clashed:
            refusals = [refusal for refusal in refusals if refusal.conflict is None]
            running = {(refusal.task_id, refusal.attempt) for refusal in clashed}
            batch = [one for one in batch if (one.task_id, one.attempt) not in running]
        self.saved += len(batch)
        late = {(refusal.task_id, refusal.attempt) for refusal in refusals}
        self._tally.saved(
            [one for one in batch if (one.task_id, one.attempt) not in late] if late else batch
        )
        self._on_saved(batch)
        for refusal in clashed:
            self._on_clashed(refusal)
        if refusals:
            await self._tell(refusals)

    async def _tell(self, refusals: Sequence[Refusal]) -> None:
        self._tally.add(LEASES_LOST, by=len(refusals))
        for refusal in refusals:
            error = LeaseLost(refusal.task_id, refusal.attempt, holder=refusal.holder)
            log.warning("task.result_refused", task_id=refusal.task_id, error=str(error))
        await self._on_refused(refusals)

    async def _save(self, batch: Sequence[Settlement]) -> Sequence[Refusal]:
        try:
            return await self._outage.outlast(lambda: self._timed(batch))
        except Exception as error:  # noqa: BLE001 - one of them may be to blame
            trace = trace_of(error)
            log.error("store.failed", doing="save", settlements=len(batch), exception=trace)
            return await self._save_one_by_one(batch)

    async def _timed(self, batch: Sequence[Settlement]) -> Sequence[Refusal]:
        with self._tally.timed("save"):
            return await self._store.save(batch)

    async def _save_one_by_one(self, batch: Sequence[Settlement]) -> Sequence[Refusal]:
        """One settlement breaks the batch: save the others.

        The one that cannot be saved stays running until this worker is gone, and is then rescued.
        """
        if len(batch) == 1:
            log.error("task.result_dropped", task_id=batch[0].task_id)
            return []
        return [refusal for one in batch for refusal in await self._save([one])]
