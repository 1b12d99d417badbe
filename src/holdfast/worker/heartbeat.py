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
from typing import Protocol

from holdfast.core.attempt import Settlement
from holdfast.core.task import WorkerId
from holdfast.errors import StoreUnavailable
from holdfast.logs import EventLog
from holdfast.ports.store import WorkerStore
from holdfast.traces import trace_of

log = EventLog("holdfast.worker")


class WorkerHeartbeat(Protocol):
    """Beats for one worker until closed. Its methods do not block."""

    def set_worker(self, worker_id: WorkerId) -> None:
        """Beat for this id from now on: the old one is gone."""
        ...

    def settle_when_gone(self, settlements: Sequence[Settlement]) -> bool:
        """Beat until this process has ended, save these then, and retire the worker. False: this
        one ends with the process.
        """
        ...

    def close(self) -> None:
        """Beat no more."""
        ...


StartHeartbeat = Callable[[WorkerId], WorkerHeartbeat]


class ThreadHeartbeat:
    """Beats from a thread of this process."""

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
