"""Ends attempts that outlive their timeout, though their worker beats: nobody here can stop them.

Every server process may run it. What this process handed out it knows by heart; what others did, or
it did itself before a restart, it finds by looking at what the workers over HTTP run. Before an
attempt is ended the store is asked whether it still runs: a result may have come in elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.fleet import ALIVE, HTTP
from holdfast.core.query import TaskFilter, running_on
from holdfast.core.task import State, Task, TaskId, WorkerId
from holdfast.logs import EventLog
from holdfast.ports.store import Store
from holdfast.remote.handouts import Handout, Handouts
from holdfast.remote.roster import Roster
from holdfast.remote.verdicts import Judge

log = EventLog("holdfast.remote")

EVERY = 0.5
LOOK_EVERY = 15.0
"""Seconds between looks at what the workers run."""
AT_A_TIME = 200

Saved = Callable[[Sequence[tuple[Claim, Settlement]]], None]


class Overseer:
    """A maintenance agent: `tick` does one round."""

    def __init__(
        self,
        store: Store,
        roster: Roster,
        handouts: Handouts,
        judge: Judge,
        *,
        on_saved: Saved,
    ) -> None:
        self._store = store
        self._roster = roster
        self._handouts = handouts
        self._judge = judge
        self._on_saved = on_saved
        self._look_at = 0.0

    async def tick(self) -> float:
        """End what is overdue; now and then look at what there is."""
        if time.monotonic() >= self._look_at:
            await self.look()
            self._look_at = time.monotonic() + LOOK_EVERY
        overdue = self._handouts.overdue()[:AT_A_TIME]
        if overdue:
            await self._end(overdue)
        return 0.0 if len(overdue) == AT_A_TIME else EVERY

    async def look(self) -> None:
        """Learn what every living worker runs."""
        alive = [
            worker.id
            for worker in await self._store.workers()
            if worker.kind == HTTP and worker.status in ALIVE
        ]
        self._roster.keep(alive)
        self._handouts.keep_workers(alive)
        for worker_id in alive:
            await self._look_at_worker(worker_id)

    async def still_running(self, handouts: Sequence[Handout]) -> list[Claim]:
        """Those that run in truth; the rest is forgotten."""
        claims = [handout.claim for handout in handouts]
        ids = tuple({claim.task_id for claim in claims})
        page = await self._store.list(TaskFilter(ids=ids), limit=max(1, len(ids)))
        running = {_fence(task) for task in page.tasks if task.state is State.RUNNING}
        self._handouts.drop([claim for claim in claims if claim[:3] not in running])
        return [claim for claim in claims if claim[:3] in running]

    async def _end(self, overdue: Sequence[Handout]) -> None:
        claims = await self.still_running(overdue)
        if not claims:
            return
        settlements = [self._judge.settle(one, self._judge.out_of_time(one)) for one in claims]
        refused = {refusal.task_id for refusal in await self._store.save(settlements)}
        self._handouts.drop(claims)
        pairs = zip(claims, settlements, strict=True)
        self._on_saved([pair for pair in pairs if pair[0].task_id not in refused])

    async def _look_at_worker(self, worker_id: WorkerId) -> None:
        known = self._handouts.of(worker_id)
        found: dict[TaskId, Task] = {}
        after: str | None = None
        running = running_on(worker_id)
        while True:
            page = await self._store.list(running, limit=AT_A_TIME, after=after)
            found |= {task.id: task for task in page.tasks}
            after = page.next
            if after is None:
                break
        await self._adopt([task for task in found.values() if not _is_known(task, known)])
        gone = [one.claim for one in known.values() if one.claim.task_id not in found]
        self._handouts.drop(gone)

    async def _adopt(self, tasks: Sequence[Task]) -> None:
        """Remember tasks that run and that this process knew nothing of."""
        if tasks:
            now = await self._store.now()
            for task in tasks:
                age = (now - task.started_at).total_seconds() if task.started_at else 0.0
                self._handouts.add(Claim.of(task), age=max(0.0, age))

    async def adopt_running(self, worker_id: WorkerId, ids: Sequence[TaskId]) -> set[TaskId]:
        """Read these tasks, remember those that this worker runs, and say which it does not."""
        if not ids:
            return set()
        page = await self._store.list(TaskFilter(ids=tuple(ids)), limit=len(ids))
        its = [
            task
            for task in page.tasks
            if task.state is State.RUNNING and task.worker_id == worker_id
        ]
        await self._adopt(its)
        return set(ids) - {task.id for task in its}


def _fence(task: Task) -> tuple[TaskId, int, WorkerId | None]:
    return task.id, task.attempt, task.worker_id


def _is_known(task: Task, known: dict[TaskId, Handout]) -> bool:
    handout = known.get(task.id)
    return handout is not None and handout.claim.attempt == task.attempt
