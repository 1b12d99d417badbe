"""Forgets what has been finished for longer than anyone asked to remember: all tasks after
`retention`, those whose definition says `keep=False` once they have succeeded.

Of these a worker notes what it completed and forgets it by id a minute later, which is cheap on
every store. What it left when it died, and what HTTP workers completed, is found by name, now and
then: that may walk the whole history, so only those who have such definitions do it, and not often.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from datetime import timedelta
from typing import Final

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.definitions.registry import Registry
from holdfast.ports.store import Store, TaskStore
from holdfast.settings import Settings

KEPT_FOR = 60.0
"""Seconds that a result is there for whoever waits for it."""
LOOK_EVERY = 10.0
SWEEP_EVERY = 600.0
PRUNE_EVERY = 60.0
AT_A_TIME: Final = 500
BETWEEN_SLICES: Final = 0.1
MOST_NOTED: Final = 100_000
"""Beyond it the sweep finds them: a worker's memory is not for tasks that are over."""
_SUCCEEDED: Final = frozenset({State.COMPLETED})


class Forgetter:
    """Forgets in slices, so that nobody waits behind it. `note` is for the loop's thread."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._noted: deque[tuple[float, TaskId]] = deque(maxlen=MOST_NOTED)
        self._swept: float | None = None

    def note(self, task_id: TaskId) -> None:
        """This one has succeeded, and its definition does not keep it."""
        self._noted.append((time.monotonic(), task_id))

    async def tick(self) -> float:
        """Forget one slice; rest briefly if there may be more."""
        names = frozenset(self._registry.forgetful)
        if not names:
            return LOOK_EVERY
        if which := self._due():
            await self._forget(TaskFilter(ids=which))
            return BETWEEN_SLICES
        if self._swept is not None and time.monotonic() - self._swept < SWEEP_EVERY:
            return LOOK_EVERY
        oldest = await self._store.now() - timedelta(seconds=KEPT_FOR)
        if await self._forget(TaskFilter(names=names, finished_before=oldest)) >= AT_A_TIME:
            return BETWEEN_SLICES
        self._swept = time.monotonic()
        return LOOK_EVERY

    def _due(self) -> tuple[TaskId, ...]:
        ripe, due = time.monotonic() - KEPT_FOR, list[TaskId]()
        while self._noted and len(due) < AT_A_TIME and self._noted[0][0] <= ripe:
            due.append(self._noted.popleft()[1])
        return tuple(due)

    async def _forget(self, which: TaskFilter) -> int:
        return await self._store.discard(replace(which, states=_SUCCEEDED), limit=AT_A_TIME)


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
        return BETWEEN_SLICES if gone >= AT_A_TIME else PRUNE_EVERY
