"""Executions: the runs that schedules fired, found and told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final, NamedTuple

from holdfast.agents.executions_of import fired_before, run_of
from holdfast.core.execution import DELIVER, Execution, execution_of, steps_said
from holdfast.core.flow import ScheduledRun
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Order, TaskFilter
from holdfast.core.schedule_state import RunEnd, schedule_tag
from holdfast.core.task import Json, State, Task
from holdfast.errors import InvalidOption, TaskNotFound
from holdfast.filters import page_size, read_id
from holdfast.ports.store import Store
from holdfast.schedules.series import SERIES, load_series

PAGE_BYTES: Final = 8 * 1024 * 1024
STEP: Final = 100
MOST_STEPS: Final = 20
"""Pages that are looked through for one page of executions: a store may have millions of others."""
WORDS: Final = ("running", "success", "failure", "cancelled")

_STATES: Final = {
    RunEnd.RUNNING: frozenset(State) - TERMINAL,
    RunEnd.SUCCESS: frozenset({State.COMPLETED}),
    RunEnd.FAILURE: frozenset({State.FAILED, State.DEAD_LETTER}),
    RunEnd.CANCELLED: frozenset({State.CANCELLED}),
}
_Found = tuple[Task, ScheduledRun]


class ExecutionPage(NamedTuple):
    """Executions, newest first; `next`, passed as `after`, brings those before. A page may be short
    and yet not the last.
    """

    executions: Sequence[Execution]
    next: str | None


class Executions:
    """The verbs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self,
        *,
        owner: str | None = None,
        schedule: str | None = None,
        status: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> ExecutionPage:
        """Executions, newest first. `status` is `running`, `success`, `failure` or `cancelled`."""
        which = filter_of(owner=owner, schedule=schedule, status=status)
        return await self.page(which, after=after, limit=limit)

    async def get(self, execution_id: str) -> Execution:
        """One execution, with its deliveries. `TaskNotFound` if there is none of that id."""
        task = await self._store.get(read_id(execution_id))
        if task is None:
            raise TaskNotFound(execution_id)
        return await self.told(task)

    async def told(self, task: Task) -> Execution:
        """The execution that a task is. `TaskNotFound` if no schedule fired it."""
        run = run_of(task)
        if run is None:
            raise TaskNotFound(task.id)
        abouts = await self._abouts([run])
        history = None if task.state is State.COMPLETED else await self._store.history(task.id)
        said = () if history is None else steps_said(history)
        which = TaskFilter(name=DELIVER, parent_id=task.id)
        found = await self._store.list(which, limit=STEP, order=Order.OLDEST)
        about = abouts.get(run.schedule, {})
        return execution_of(task, run, about, said=said, deliveries=found.tasks)

    async def page(self, which: TaskFilter, *, after: str | None, limit: int) -> ExecutionPage:
        """Those of these tasks that are executions: found among the newest, and behind many that
        are none by what is kept of each run.
        """
        size, found, left = page_size(limit), list[_Found](), PAGE_BYTES
        pages = self._newest(which, after, min(STEP, size))
        async for tasks, after in pages:
            for task in tasks:
                run = run_of(task)
                if run is not None:
                    found.append((task, run))
                    left -= len(task.payload) + len(task.result or b"")
                if len(found) == size or left < 0:
                    is_last = task is tasks[-1] and after is None
                    return ExecutionPage(await self._shown(found), None if is_last else task.id)
        return ExecutionPage(await self._shown(found), after)

    async def _newest(
        self, which: TaskFilter, after: str | None, step: int
    ) -> AsyncIterator[tuple[Sequence[Task], str | None]]:
        """Pages of tasks, each with what the one behind it begins after."""
        for _ in range(MOST_STEPS):
            page = await self._store.list(which, limit=step, after=after)
            after = page.next
            yield page.tasks, after
            if after is None:
                return
        assert after is not None
        fired = await fired_before(self._store, after)
        while fired:
            some, fired = fired[:STEP], fired[STEP:]
            page = await self._store.list(replace(which, ids=tuple(some)), limit=STEP)
            yield page.tasks, some[-1] if fired else None

    async def _shown(self, found: Sequence[_Found]) -> Sequence[Execution]:
        abouts = await self._abouts([run for _, run in found])
        return [execution_of(task, run, abouts.get(run.schedule, {})) for task, run in found]

    async def _abouts(self, runs: Sequence[ScheduledRun]) -> Mapping[str, Mapping[str, Json]]:
        """What their schedules say of themselves, if they are still there."""
        names = list({run.schedule for run in runs})
        if not names:
            return {}
        kept = await self._store.records(SERIES, keys=names, limit=len(names))
        return {record.key: asdict(load_series(record).about) for record in kept}


def filter_of(
    *, owner: str | None = None, schedule: str | None = None, status: str | None = None
) -> TaskFilter:
    """The tasks among which executions are looked for."""
    which = TaskFilter(owner=owner)
    if schedule is not None:
        which = replace(which, tag=schedule_tag(schedule))
    if status is not None:
        if status not in WORDS:
            raise InvalidOption("status", f"expected {', '.join(WORDS)}, got {status!r}")
        which = replace(which, states=_STATES[RunEnd(status)])
    return which
