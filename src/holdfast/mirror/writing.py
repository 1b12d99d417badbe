"""What a mirror task does: reads the truth, and makes its copy the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from holdfast.core.delivery import NAME as DELIVERY
from holdfast.core.delivery import channel_of
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, Task, TaskId
from holdfast.errors import Snooze
from holdfast.mirror.address import EXECUTIONS
from holdfast.mirror.documents import execution_document, schedule_document
from holdfast.ports.mirror import KEEP, Documents, Truth
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.schedules.series import SERIES, Series, load_series

MOST_DELIVERIES: Final = 100
SOONEST: Final = 1.0
LATEST: Final = 300.0
"""Seconds after which an execution that is under way is looked at again, at least and at most."""


class Mirror:
    """Brings documents up to date with one store."""

    def __init__(self, store: Store, documents: Documents) -> None:
        self._store = store
        self._documents = documents

    async def bring(
        self, schedule: str, execution: str | None = None, *, follow: bool = False
    ) -> str:
        """Make the document of a schedule what it should be now, and then that of one of its
        executions: nobody sees an execution whose schedule is older.

        Raises:
            MirrorUnavailable: it cannot be written now.
            Snooze: with `follow`, as long as the execution has not ended.
        """
        changed = await self._schedule(schedule)
        if execution is not None:
            changed |= await self._execution(schedule, TaskId(execution), follow=follow)
        return "written" if changed else "the same already"

    async def _schedule(self, schedule: str) -> bool:
        async def truth() -> Truth:
            series = await self._mirrored(schedule)
            return None if series is None else schedule_document(series)

        changed = await self._documents.write(schedule, truth)
        if await self._mirrored(schedule) is None:
            changed |= bool(await self._documents.clear(f"{schedule}/{EXECUTIONS}"))
        return changed

    async def _execution(self, schedule: str, execution: TaskId, *, follow: bool) -> bool:
        run: Task | None = None

        async def truth() -> Truth:
            nonlocal run
            series, run = await self._mirrored(schedule), await self._store.get(execution)
            if series is None:
                return None
            if run is None:
                return KEEP  # history ends, and what was shown of it stays
            return execution_document(series, run, is_delivered=await self._is_delivered(run))

        changed = await self._documents.write(f"{schedule}/{EXECUTIONS}/{execution}", truth)
        if follow and run is not None and run.state not in TERMINAL:
            age = await self._store.now() - run.created_at
            raise Snooze("the execution has not ended yet", after=next_look(age))
        return changed

    async def _mirrored(self, schedule: str) -> Series | None:
        """The schedule as it is now; None if there is none, or it is nobody's."""
        record = await one_record(self._store, SERIES, schedule)
        series = None if record is None else load_series(record)
        return None if series is None or series.about.owner is None else series

    async def _is_delivered(self, run: Task) -> bool:
        """Whether its result was delivered by each channel, if there is one. A run that was started
        again has several deliveries by each; one that came through is enough.
        """
        if run.state is not State.COMPLETED:
            return False
        which = TaskFilter(parent_id=run.id, name=DELIVERY)
        found = (await self._store.list(which, limit=MOST_DELIVERIES)).tasks
        done = {channel_of(task.tags) for task in found if task.state is State.COMPLETED}
        return bool(done) and done == {channel_of(task.tags) for task in found}


def next_look(age: timedelta) -> float:
    """Seconds until an execution of this age is looked at again: the longer it takes, the rarer."""
    return min(LATEST, max(SOONEST, age.total_seconds() / 4))
