"""What people ask of this worker by way of the store: to stop a task, to finish and leave.

Both are looked for about once a second.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Outcome, Stopped
from holdfast.ports.store import TaskStore, WorkerStore
from holdfast.worker.batch import BatchRun
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.gathering import Gatherer
from holdfast.worker.membership import Membership
from holdfast.worker.run import StopReason
from holdfast.worker.slots import Slots

CANCELS_EVERY = 0.75
DRAINS_EVERY = 1.0
AFTERWARDS = 3600.0


class CancelWatch:
    """Stops bodies that somebody cancelled. Asks while there is anything to stop."""

    def __init__(
        self,
        store: TaskStore,
        *,
        membership: Membership,
        slots: Slots,
        buffer: ClaimBuffer,
        gatherer: Gatherer,
        settle: Callable[[Claim, Outcome], object],
    ) -> None:
        self._store = store
        self._membership = membership
        self._slots = slots
        self._buffer = buffer
        self._gatherer = gatherer
        self._settle = settle

    async def tick(self) -> float:
        """Stop what was asked to stop."""
        if self._slots.busy or len(self._buffer) or len(self._gatherer):
            asked = frozenset(await self._store.cancel_requests(self._membership.id))
            if asked:
                unstarted = self._buffer.withdraw(asked) + self._gatherer.withdraw(asked)
                for claim in unstarted:
                    self._settle(claim, Stopped())
                for run in self._slots.running:
                    if isinstance(run, BatchRun):
                        run.cancel(asked)
                    elif run.claim.task_id in asked:
                        run.stop(StopReason.CANCELLED)
        return CANCELS_EVERY


class DrainWatch:
    """Notices that this worker is to finish and leave, and calls `on_asked` once."""

    def __init__(
        self, store: WorkerStore, membership: Membership, on_asked: Callable[[], None]
    ) -> None:
        self._store = store
        self._membership = membership
        self._on_asked = on_asked
        self._asked = False

    async def tick(self) -> float:
        """Look once."""
        if not self._asked and await self._store.drain_requested(self._membership.id):
            self._asked = True
            self._on_asked()
        return AFTERWARDS if self._asked else DRAINS_EVERY
