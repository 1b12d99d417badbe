"""What `holdfast top` asks the store, once a second: little, and most of it seldom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.query import TaskFilter
from holdfast.core.stats import Stats
from holdfast.core.task import State, Task

if TYPE_CHECKING:
    from holdfast.client import Client

GONE: Final = frozenset({WorkerStatus.STOPPED, WorkerStatus.DEAD})
LOST: Final = frozenset({State.FAILED, State.DEAD_LETTER})
ERRORS: Final = 20
FEW_WORKERS: Final = 10
SELDOM: Final = 5
"""A worker's load costs a question each, so many workers are looked at every so many rounds."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One look at the store."""

    at: datetime
    stats: Stats
    workers: Sequence[WorkerInfo]
    errors: Sequence[Task]

    @property
    def ended(self) -> int:
        """How many tasks that have ended are kept: it grows by what ends."""
        return sum(self.stats.states.get(state, 0) for state in self.stats.last_minute)


class Eye:
    """Looks again and again, and remembers what need not be asked anew."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._rounds = 0
        self._workers: Sequence[WorkerInfo] = ()
        self._errors: Sequence[Task] = ()
        self._lost: Sequence[int] | None = None

    async def look(self) -> Facts:
        stats = await self._client.stats()
        if len(self._workers) <= FEW_WORKERS or self._rounds % SELDOM == 0:
            found = await self._client.workers()
            self._workers = [worker for worker in found if worker.status not in GONE]
        self._rounds += 1
        lost = [stats.states.get(state, 0) for state in sorted(LOST)]
        lost += [stats.last_minute.get(state, 0) for state in sorted(LOST)]
        if lost != self._lost:
            page = await self._client.list(TaskFilter(states=LOST), limit=ERRORS, by_end=True)
            self._errors, self._lost = page.tasks, lost
        return Facts(await self._client.now(), stats, self._workers, self._errors)
