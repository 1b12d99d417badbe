"""Warns of tasks that no worker knows, and gives them up when they have waited long enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from holdfast.announcing import announce_given_up
from holdfast.core.fleet import WorkerInfo, knows
from holdfast.core.lifecycle import CANCELLABLE_AT_ONCE
from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason
from holdfast.core.unfit import is_known, unknown_names, unknown_since
from holdfast.logs import EventLog
from holdfast.ports.store import Store
from holdfast.settings import Settings

log = EventLog("holdfast.worker")

AT_A_TIME = 200
AT_MOST = 60.0
"""Seconds between two looks, if `unknown_task_grace` is long."""


class Abandoner:
    """Looks for tasks that only a worker who knows them may take, and there is none."""

    def __init__(
        self, store: Store, settings: Settings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._grace = settings.unknown_task_grace
        self._clock = clock
        self._rest = max(0.1, min(AT_MOST, self._grace / 4))
        self._not_before: dict[str, float] = {}

    async def tick(self) -> float:
        """One look at what is asked for; nothing is, as a rule, and that costs nothing more."""
        asked = unknown_names(await self._store.demand())
        workers = await self._store.workers() if asked else ()
        for name, number in asked.items():
            if not is_known(name, workers):
                log.warning("tasks.unknown", task_name=name, tasks=number)
                await self._give_up(name, workers)
        return self._rest

    async def _give_up(self, name: str, workers: Sequence[WorkerInfo]) -> None:
        before = unknown_since(name, workers, self._grace)
        # To look for old ones may mean to walk a backlog: four times in the grace is enough.
        if before is None or self._clock() < self._not_before.get(name, 0.0):
            return
        self._not_before[name] = self._clock() + self._grace / 4
        unknown = TaskFilter(requires=knows(name), run_before=before, states=CANCELLABLE_AT_ONCE)
        while True:
            gone = await self._store.cancel(unknown, limit=AT_A_TIME, reason=Reason.UNKNOWN_TASK)
            announce_given_up(log, gone)
            if len(gone) < AT_A_TIME:
                return
