"""The tasks that schedules fired, read from a store a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from holdfast.core.flow import ScheduledRun, flow_of
from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Task
from holdfast.ports.store import TaskStore

PAGE: Final = 500


def run_of(task: Task) -> ScheduledRun | None:
    """Which run of which schedule a task is; None if it is none."""
    flow = flow_of(task.payload)
    return None if flow is None else flow.run


async def runs_among(
    store: TaskStore, which: TaskFilter
) -> AsyncIterator[tuple[Task, ScheduledRun]]:
    """Those of the tasks that a schedule fired, oldest first."""
    after: str | None = None
    while True:
        page = await store.list(which, limit=PAGE, after=after, order=Order.OLDEST)
        for task in page.tasks:
            run = run_of(task)
            if run is not None:
                yield task, run
        after = page.next
        if after is None:
            return
