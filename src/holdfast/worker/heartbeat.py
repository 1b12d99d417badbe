"""Who says that this worker is alive.

A heartbeat must come from where user code cannot starve it: a C call that holds the interpreter
for a minute would otherwise look like death. So it is sent by another process: the supervisor, or a
small one of its own (`heartbeat_process.py`). Only a store that no other process can reach
(`memory://`) is beaten from a thread in here; its workers and rescuers share one process anyway.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from holdfast.core.attempt import Settlement
from holdfast.core.task import Json, WorkerId
from holdfast.errors import StoreUnavailable
from holdfast.logs import EventLog, trace_of
from holdfast.ports.store import WorkerStore
from holdfast.worker.groups import GROUPS
from holdfast.worker.supervisor_channel import Lease, pack_settlements

log = EventLog("holdfast.worker")


class OutsideHeartbeat:
    """Has another process beat for one worker until closed. Its methods do not block.

    What is said to that process: `lease` (whom to beat for; None: the worker left in good order),
    `groups` (of processes that must not outlive this one) and `last` (settlements to save when this
    process has ended). `HeartbeatSender.take` understands it.
    """

    def __init__(self, lease: Lease, say: Callable[[Json], None]) -> None:
        self._lease = lease
        self._say = say
        self.set_worker(lease.worker_id)
        GROUPS.tell(self._tell_groups)

    def set_worker(self, worker_id: WorkerId) -> None:
        """Beat for this id from now on: the old one is gone."""
        self._say({"lease": asdict(replace(self._lease, worker_id=worker_id))})

    def settle_when_gone(self, settlements: Sequence[Settlement]) -> bool:
        """Beat until this process has ended, save these then, and retire the worker. False: this
        one ends with the process.
        """
        self._say({"last": pack_settlements(settlements)})
        return True

    def close(self) -> None:
        """Beat no more."""
        GROUPS.forget(self._tell_groups)
        self._say({"lease": None})

    def _tell_groups(self, groups: list[int]) -> None:
        self._say({"groups": groups})


class ThreadHeartbeat:
    """Beats from a thread of this process; else as `OutsideHeartbeat`."""

    def __init__(self, store: WorkerStore, worker_id: WorkerId, every: float) -> None:
        self._store = store
        self._worker_id = worker_id
        self._every = every
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="holdfast-heartbeat", daemon=True)
        self._thread.start()

    def set_worker(self, worker_id: WorkerId) -> None:
        self._worker_id = worker_id

    def settle_when_gone(self, settlements: Sequence[Settlement]) -> bool:
        return False

    def close(self) -> None:
        self._closed.set()

    def _beat(self) -> None:
        with asyncio.Runner() as runner:
            while not self._closed.wait(self._every):
                try:
                    runner.run(self._one())
                except Exception as error:  # noqa: BLE001 - a heartbeat that stops costs every task
                    # The next beat is soon enough: a lease lasts several.
                    if not isinstance(error, StoreUnavailable):
                        log.error("heartbeat.failed", exception=trace_of(error))

    async def _one(self) -> None:
        await self._store.beat(self._worker_id)


WorkerHeartbeat = OutsideHeartbeat | ThreadHeartbeat
StartHeartbeat = Callable[[WorkerId], WorkerHeartbeat]
