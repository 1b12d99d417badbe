"""Forgets what was noted of tasks that are gone: results of bodies, and who was dropped because of
whom. Such notes come due when the tasks they are about are not kept any more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from uuid import uuid4

from holdfast.core.dropping import DROPPED
from holdfast.core.record import Changes, Delete
from holdfast.core.task import TaskId
from holdfast.errors import RecordConflict
from holdfast.flow.bodies import BODY
from holdfast.flow.results import read_tasks
from holdfast.ports.store import Store
from holdfast.settings import Settings

AT_A_TIME: Final = 500
EVERY: Final = 60.0
BETWEEN_SLICES: Final = 0.1


class Tidier:
    """A maintenance agent. What its task is still there for is looked at again as much later."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._again = max(EVERY, settings.dead_letter_retention)

    async def tick(self) -> float:
        """Forget one slice of each kind; rest briefly if there may be more."""
        most = max([await self._tidy(BODY), await self._tidy(DROPPED)])
        return BETWEEN_SLICES if most >= AT_A_TIME else EVERY

    async def _tidy(self, kind: str) -> int:
        due = await self._store.take_due(kind, limit=AT_A_TIME, lease=self._again)
        kept = await read_tasks(self._store, [TaskId(record.key) for record in due.records])
        for record in due.records:
            if record.key not in kept:
                gone = Delete(kind, record.key, record.version)
                with suppress(RecordConflict):
                    await self._store.commit(Changes(uuid4().hex, records=(gone,)))
        return len(due.records)
