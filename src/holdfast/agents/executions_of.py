"""The tasks that schedules fired, read from a store a page at a time.

Those of an owner or a schedule are told apart by the store. All of them are looked up by what is
kept of each run: beside them a store may have millions of tasks that nobody scheduled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from holdfast.core.flow import ScheduledRun, flow_of
from holdfast.core.query import Order, TaskFilter
from holdfast.core.record import Record
from holdfast.core.task import Task, TaskId
from holdfast.ports.store import Store
from holdfast.schedules.occurrence import OCCURRENCE, read_occurrence

PAGE: Final = 500
MOST_PAGES: Final = 20


def run_of(task: Task) -> ScheduledRun | None:
    """Which run of which schedule a task is; None if it is none."""
    flow = flow_of(task.payload)
    return None if flow is None else flow.run


async def runs_among(store: Store, which: TaskFilter) -> AsyncIterator[tuple[Task, ScheduledRun]]:
    """Those of the tasks that a schedule fired; of an owner or a schedule the oldest first."""
    is_narrow = which.owner is not None or which.tag is not None
    async for task in _listed(store, which) if is_narrow else _fired(store, which):
        run = run_of(task)
        if run is not None:
            yield task, run


async def _listed(store: Store, which: TaskFilter) -> AsyncIterator[Task]:
    after: str | None = None
    while True:
        page = await store.list(which, limit=PAGE, after=after, order=Order.OLDEST)
        for task in page.tasks:
            yield task
        after = page.next
        if after is None:
            return


async def fired_before(store: Store, after: str) -> list[TaskId]:
    """The runs among the tasks behind this one, newest first; none if there are very many."""
    found: list[TaskId] = []
    last: Record | None = None
    for _ in range(MOST_PAGES):
        page = await store.records(OCCURRENCE, limit=PAGE, after=last)
        fired = (read_occurrence(record).task_id for record in page)
        found += [task_id for task_id in fired if task_id is not None and task_id < after]
        if len(page) < PAGE:
            return sorted(found, reverse=True)
        last = page[-1]
    return []


async def _fired(store: Store, which: TaskFilter) -> AsyncIterator[Task]:
    after: Record | None = None
    while page := await store.records(OCCURRENCE, limit=PAGE, after=after):
        fired = [one.task_id for one in map(read_occurrence, page) if one.task_id is not None]
        some = replace(which, ids=tuple(fired))
        for task in (await store.list(some, limit=PAGE, order=Order.OLDEST)).tasks:
            yield task
        after = page[-1]
