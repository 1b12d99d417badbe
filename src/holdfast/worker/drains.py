"""Notices that an operator wants this worker to finish and leave, within about a second."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.ports.store import WorkerStore
from holdfast.worker.feeder import Lessee

EVERY = 1.0
AFTERWARDS = 3600.0


class DrainWatch:
    """Asks the store about once a second, and calls `on_asked` once."""

    def __init__(self, store: WorkerStore, *, lessee: Lessee, on_asked: Callable[[], None]) -> None:
        self._store = store
        self._lessee = lessee
        self._on_asked = on_asked
        self._asked = False

    async def tick(self) -> float:
        """Look once."""
        if not self._asked and await self._store.drain_requested(self._lessee.id):
            self._asked = True
            self._on_asked()
        return AFTERWARDS if self._asked else EVERY
