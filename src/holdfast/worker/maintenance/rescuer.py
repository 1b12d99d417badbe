"""Finds workers that died, and gives their tasks to others.

Nobody compares clocks. A living worker's `beats` grow; a rescuer that has watched the same number
for `lease` seconds of its own monotonic time buries the worker, and the store refuses if it has
beaten since. A rescuer that itself was asleep must not mistake its own absence for the others':
between two looks it counts no more than `LONGEST_LOOK` sweeps as watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from holdfast.announcing import Announcer
from holdfast.core.attempt import Claim
from holdfast.core.fleet import ALIVE, WorkerInfo
from holdfast.core.lifecycle import WorkerLost
from holdfast.core.task import TaskError, WorkerId
from holdfast.engine.judging import Judge
from holdfast.engine.settling import Settling
from holdfast.engine.waking import Waker
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings

log = EventLog("holdfast.worker")

LONGEST_LOOK = 2
AT_A_TIME = 200


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
        waker: Waker | None = None,
    ) -> None:
        """`clock` and `waker` are replaced where there is no event loop."""
        self._store = store
        self._settings = settings
        self._own_id = own_id
        self._clock = clock
        self._waker = waker or Waker(dispatcher.wake)
        # A lost worker needs no definitions: its tasks are charged nothing, and wait for nothing.
        self._settling = Settling(store, Judge({}, settings), self._waker, Announcer(log))
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
            if worker.status not in ALIVE or worker.id == self._own_id():
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
        # A refusal means that another rescuer, or the worker itself after all, was faster.
        await self._settling.settle([(claim, WorkerLost(_error(claim))) for claim in orphans])


def _error(claim: Claim) -> TaskError:
    return TaskError(
        type="WorkerLost",
        message=f"worker {claim.worker_id} died or lost contact during attempt {claim.attempt}",
    )
