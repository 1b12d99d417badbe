"""Workers in memory. Whose tasks are orphaned is for the store to see, which has both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.core.fleet import ALIVE, WorkerInfo, WorkerStatus
from holdfast.core.task import TaskId, WorkerId
from holdfast.ports.clock import Clock
from holdfast.stores.memory.guarded import Guarded
from holdfast.stores.values import as_time


class KeepsWorkers(Guarded):
    """`ports.store.WorkerStore`, but for what is about tasks too."""

    def __init__(self, clock: Clock | None) -> None:
        super().__init__(clock)
        self._workers: dict[WorkerId, WorkerInfo] = {}

    async def register(self, worker: WorkerInfo) -> None:
        with self._lock:
            now = as_time(self._clock.now_us())
            fresh = replace(worker, started_at=now, beat_at=now, drain_requested=False)
            self._workers.setdefault(worker.id, fresh)

    async def beat(
        self,
        worker_id: WorkerId,
        *,
        load: int | None = None,
        status: WorkerStatus | None = None,
        blocked_by: str | None = None,
    ) -> bool:
        with self._lock:
            if not self._is_alive(worker_id):
                return False
            worker = self._workers[worker_id]
            self._workers[worker_id] = replace(
                worker,
                beats=worker.beats + 1,
                beat_at=as_time(self._clock.now_us()),
                load=worker.load if load is None else load,
                status=status or worker.status,
                blocked_by=worker.blocked_by if blocked_by is None else TaskId(blocked_by) or None,
            )
            return True

    async def workers(self) -> Sequence[WorkerInfo]:
        with self._lock:
            return self._newest_workers()

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        with self._lock:
            if not self._is_alive(worker_id):
                return False
            worker = self._workers[worker_id]
            if beats is not None and worker.beats != beats:
                return False
            self._workers[worker_id] = replace(worker, status=WorkerStatus.DEAD)
            return True

    async def ask_to_drain(self, worker_id: WorkerId) -> bool:
        with self._lock:
            if not self._is_alive(worker_id):
                return False
            worker = self._workers[worker_id]
            self._workers[worker_id] = replace(worker, drain_requested=True)
            return True

    # Steps; the lock is held.

    def _is_alive(self, worker_id: WorkerId) -> bool:
        worker = self._workers.get(worker_id)
        return worker is not None and worker.status in ALIVE

    def _newest_workers(self) -> tuple[WorkerInfo, ...]:
        return tuple(reversed(self._workers.values()))

    def _forget_workers(self, oldest: datetime) -> None:
        self._workers = {
            worker.id: worker
            for worker in self._workers.values()
            if worker.status in ALIVE or (worker.beat_at and worker.beat_at >= oldest)
        }
