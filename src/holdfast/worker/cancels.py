"""Carries cancel requests from the store to running bodies, within about a second."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Outcome, Stopped
from holdfast.ports.store import TaskStore
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.feeder import Lessee
from holdfast.worker.run import StopReason
from holdfast.worker.slots import Slots

EVERY = 0.75


class CancelWatch:
    """Asks about once a second, while there is anything to stop."""

    def __init__(
        self,
        store: TaskStore,
        *,
        lessee: Lessee,
        slots: Slots,
        buffer: ClaimBuffer,
        settle: Callable[[Claim, Outcome], object],
    ) -> None:
        self._store = store
        self._lessee = lessee
        self._slots = slots
        self._buffer = buffer
        self._settle = settle

    async def tick(self) -> float:
        """Stop what was asked to stop."""
        if self._slots.busy or len(self._buffer):
            asked = frozenset(await self._store.cancel_requests(self._lessee.id))
            if asked:
                for claim in self._buffer.withdraw(asked):
                    self._settle(claim, Stopped())
                for run in self._slots.running:
                    if run.claim.task_id in asked:
                        run.stop(StopReason.CANCELLED)
        return EVERY
