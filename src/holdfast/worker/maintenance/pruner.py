"""Forgets what has been finished for longer than anyone asked to remember."""

from __future__ import annotations

from holdfast.ports.store import TaskStore
from holdfast.settings import Settings

AT_A_TIME = 500
BETWEEN_SLICES = 0.1
WHEN_DONE = 60.0


class Pruner:
    """Prunes in slices, so that nobody waits behind it."""

    def __init__(self, store: TaskStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    async def tick(self) -> float:
        """Prune one slice; rest briefly if there may be more, a minute if not."""
        gone = await self._store.prune(
            retention=self._settings.retention,
            dead_letter_retention=self._settings.dead_letter_retention,
            limit=AT_A_TIME,
        )
        return BETWEEN_SLICES if gone >= AT_A_TIME else WHEN_DONE
