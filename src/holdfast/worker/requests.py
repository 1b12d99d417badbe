"""What people ask of this worker by way of the store: to stop a task, to finish and leave."""

from __future__ import annotations

from collections.abc import Callable, Collection

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Outcome, Stopped
from holdfast.core.task import TaskId
from holdfast.ports.store import WorkerStore
from holdfast.worker.batch import BatchRun
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.gathering import Gatherer
from holdfast.worker.membership import Membership
from holdfast.worker.run import StopReason
from holdfast.worker.slots import Slots

WHILE_BUSY = 0.75
WHILE_IDLE = 1.0
"""Seconds between two looks: a task is to be stopped soon, a worker may leave a little later."""


class RequestWatch:
    """Stops bodies that somebody cancelled, and calls `send_home` while this worker is to leave."""

    def __init__(
        self,
        store: WorkerStore,
        *,
        membership: Membership,
        slots: Slots,
        buffer: ClaimBuffer,
        gatherer: Gatherer,
        settle: Callable[[Claim, Outcome], object],
        send_home: Callable[[], None],
    ) -> None:
        self._store = store
        self._membership = membership
        self._slots = slots
        self._buffer = buffer
        self._gatherer = gatherer
        self._settle = settle
        self._send_home = send_home

    async def tick(self) -> float:
        """Do what is asked now."""
        asked = await self._store.requests(self._membership.id)
        if asked.cancel:
            self._stop(frozenset(asked.cancel))
        if asked.drain:
            self._send_home()
        has_something = self._slots.busy or len(self._buffer) or len(self._gatherer)
        return WHILE_BUSY if has_something else WHILE_IDLE

    def _stop(self, asked: Collection[TaskId]) -> None:
        for claim in self._buffer.withdraw(asked) + self._gatherer.withdraw(asked):
            self._settle(claim, Stopped())
        for run in self._slots.running:
            if isinstance(run, BatchRun):
                run.cancel(asked)
            elif run.claim.task_id in asked:
                run.stop(StopReason.CANCELLED)
