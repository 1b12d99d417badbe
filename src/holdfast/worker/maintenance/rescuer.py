"""Finds workers that died, and gives their tasks to others.

Nobody compares clocks. A living worker's `beats` grow; a rescuer that has watched the same number
for `lease` seconds of its own monotonic time buries the worker, and the store refuses if it has
beaten since. A rescuer that itself was asleep must not mistake its own absence for the others':
between two looks it counts no more than `LONGEST_LOOK` sweeps as watched.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from holdfast.announcing import announce, fields_of
from holdfast.core.attempt import Claim, Settlement
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.lifecycle import WorkerLost, settle
from holdfast.core.task import TaskError, WorkerId
from holdfast.herald import call_next
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import EVERYBODY, Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.shielding import to_the_end

log = EventLog("holdfast.worker")

LONGEST_LOOK = 2
AT_A_TIME = 200
_ALIVE = frozenset({WorkerStatus.ACTIVE, WorkerStatus.DRAINING})


class Rescuer:
    """Buries silent workers and settles what they left behind as `WorkerLost`."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        settings: Settings,
        *,
        own_id: Callable[[], WorkerId | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        call_next: Callable[[Collection[str]], Awaitable[object]] | None = None,
    ) -> None:
        """`clock`, and `call_next` for lock keys, are replaced where there is no event loop."""
        self._store = store
        self._dispatcher = dispatcher
        self._settings = settings
        self._own_id = own_id
        self._clock = clock
        self._call_next = call_next or self._call_next_to_the_end
        self._sweep = min(settings.sweep, settings.lease / 4)
        self._silent: dict[WorkerId, tuple[int, float]] = {}
        self._looked_at: float | None = None

    async def tick(self) -> float:
        """Look at every worker once, and rescue one batch of orphans."""
        await self._bury_the_silent(await self._store.workers())
        orphans = await self._store.orphans(limit=AT_A_TIME)
        if orphans:
            await self._rescue(orphans)
        return 0.0 if len(orphans) == AT_A_TIME else self._sweep

    async def _bury_the_silent(self, workers: Sequence[WorkerInfo]) -> None:
        now = self._clock()
        watched = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        watched = min(watched, LONGEST_LOOK * self._sweep)
        before, self._silent = self._silent, {}
        for worker in workers:
            if worker.status not in _ALIVE or worker.id == self._own_id():
                continue
            beats, silent = before.get(worker.id, (None, 0.0))
            silent = silent + watched if beats == worker.beats else 0.0
            self._silent[worker.id] = (worker.beats, silent)
            if silent >= self._settings.lease:
                await self._bury(worker, silent)

    async def _bury(self, worker: WorkerInfo, silent: float) -> None:
        if await self._store.bury(worker.id, beats=worker.beats):
            log.warning(
                "worker.buried",
                worker_id=worker.id,
                host=worker.host,
                silent_seconds=round(silent, 1),
            )
            del self._silent[worker.id]

    async def _rescue(self, orphans: Sequence[Claim]) -> None:
        limit = self._settings.crash_limit
        settlements = [
            settle(claim, WorkerLost(_error(claim)), backoff=_at_once, crash_limit=limit)
            for claim in orphans
        ]
        refusals = await self._store.save(settlements)
        # A refusal means that another rescuer, or the worker itself after all, was faster.
        refused = {refusal.task_id for refusal in refusals}
        pairs = list(zip(orphans, settlements, strict=True))
        for claim, settlement in pairs:
            if claim.task_id not in refused:
                _say(claim, settlement)
        wake = self._dispatcher.wake
        again = {claim.queue for claim, settled in pairs if settled.cause is not None}
        if again:  # their worker could take them; not everybody who sleeps may
            wake(dict.fromkeys(again, EVERYBODY))
        locks = {claim.lock for claim in orphans if claim.lock is not None}
        if locks:
            await self._call_next(locks)

    async def _call_next_to_the_end(self, locks: Collection[str]) -> None:
        await to_the_end(call_next(self._store, self._dispatcher.wake, locks))


def _say(claim: Claim, settlement: Settlement) -> None:
    if settlement.cause is None:
        announce(log, claim, settlement)
    else:
        log.info("task.rescued", **fields_of(claim), worker_id=claim.worker_id)


def _error(claim: Claim) -> TaskError:
    return TaskError(
        type="WorkerLost",
        message=f"worker {claim.worker_id} died or lost contact during attempt {claim.attempt}",
    )


def _at_once(_n: int) -> float:
    return 0.0
