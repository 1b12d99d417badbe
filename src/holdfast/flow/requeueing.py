"""Starts tasks again on somebody's word, calls workers for them and tells of their next ends."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.announcing import announce_requeued
from holdfast.core.callback import requeues
from holdfast.core.delivery import NAME as DELIVER
from holdfast.core.delivery import channel_of, delivered_again
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.mirror import mirror_task
from holdfast.core.query import TaskFilter
from holdfast.core.schedule_state import TAG
from holdfast.core.task import Cause, NewTask, Priority, State, Task, TaskId
from holdfast.definitions.new_tasks import TaskMaker
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher, work_for
from holdfast.ports.store import Store
from holdfast.settings import Settings

log = EventLog("holdfast.client")

SLICE = 1000
"""How many tasks one step changes at most, so that none holds the store for long."""


class Requeuer:
    """`Store.requeue`, and what belongs to it."""

    def __init__(self, store: Store, dispatcher: Dispatcher, settings: Settings) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._maker = TaskMaker(settings)
        self._is_mirrored = settings.firestore_url is not None

    async def requeue(
        self, which: TaskFilter, *, limit: int, pace: float | None = None
    ) -> Sequence[Task]:
        """Start these again; returns those that were."""
        changed = await self._store.requeue(
            which,
            limit=limit,
            head_starts={p.value: start for p, start in self._maker.head_starts.items()},
            pace=pace,
        )
        announce_requeued(log, changed)
        in_line = [task for task in changed if task.state is not State.BLOCKED]
        if in_line:
            self._dispatcher.wake(work_for(in_line))
        await self._tell_again(changed)
        return changed

    async def in_order(self, ids: Sequence[TaskId]) -> None:
        """Start these again, in slices, those first that others wait for."""
        for start in range(0, len(ids), SLICE):
            some = tuple(ids[start : start + SLICE])
            await self.requeue(TaskFilter(ids=some), limit=len(some))

    async def _starts_anew(self, task_id: TaskId) -> int:
        """How often it was started again."""
        history = await self._store.history(task_id)
        return 0 if history is None else requeues(history)

    async def _tell_again(self, changed: Sequence[Task]) -> None:
        """Send a notice of the next end, too, unless that of the last is still under way: it goes
        back behind the task's end by itself.
        """
        notices = [
            self._maker.notice(task, end=await self._starts_anew(task.id))
            for task in changed
            if task.callback is not None and task.cause is Cause.OPERATOR
        ]
        for task in changed:
            if task.cause is Cause.OPERATOR and _is_scheduled(task):
                deliveries = await self._delivered_again(task)
                notices += [*deliveries, *self._mirrors(task, deliveries)]
        if notices:
            await self._store.add(notices, idempotency_window=0.0)

    async def _delivered_again(self, run: Task) -> list[NewTask]:
        """The deliveries of the next end of a run, by the channels that have none under way."""
        page = await self._store.list(TaskFilter(parent_id=run.id, name=DELIVER), limit=SLICE)
        waiting = {channel_of(one.tags) for one in page.tasks if one.state not in TERMINAL}
        last = {channel_of(one.tags): one for one in page.tasks}
        ended = [one for channel, one in last.items() if channel not in waiting]
        if not ended:
            return []
        end, head_start = await self._starts_anew(run.id), self._maker.head_starts[Priority.NORMAL]
        return [delivered_again(one, run, head_start=head_start, end=end) for one in ended]

    def _mirrors(self, task: Task, deliveries: Sequence[NewTask]) -> list[NewTask]:
        """The tasks that show the execution as it is under way again, its end, and the end of its
        deliveries.
        """
        if not self._is_mirrored or task.owner is None or (run := task.schedule) is None:
            return []
        ends = [[], [task.id], [each.id for each in deliveries]]
        return [
            mirror_task(
                self._maker.new_id(),
                run.name,
                task.id,
                owner=task.owner,
                head_start=self._maker.head_starts[Priority.NORMAL],
                behind=behind,
                follow=not behind,
            )
            for behind in (ends if deliveries else ends[:2])
        ]


def _is_scheduled(task: Task) -> bool:
    return any(tag.startswith(f"{TAG}=") for tag in task.tags)
