"""Queues without a resident worker: a timer calls the server when a task is due, and the server
works until nothing is left.

    push_queues(app, "mail", at_most="5m")

Every task that is submitted into such a queue arms a timer (`task:<id>`) for the instant at which
it may run. The call is answered by a burst worker of that queue, which also runs whatever else is
due there. What is left over (a retry, a follow-up, a task behind a lock) is armed for later. As
long as something waits, a wake-up of its own sweeps for timers that were lost.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from holdfast.core.duration import Duration, parse_duration
from holdfast.core.lifecycle import HURRIED, TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.task import Added, State, Task, TaskId
from holdfast.errors import HoldfastError, InvalidOption
from holdfast.logs import EventLog
from holdfast.timers.arming import Wanted

if TYPE_CHECKING:
    from holdfast.app import Holdfast

log = EventLog("holdfast.timers")

TASK: Final = "task"
SWEEP: Final = "sweep"
PAGE: Final = 1000
LATER: Final = timedelta(seconds=30)
"""When to look again for a task that could not run though it was due: behind a lock, a limit or a
pause, or because somebody else runs it.
"""


class Pushing:
    """Arms, works and sweeps for the pushed queues of one app."""

    def __init__(
        self, app: Holdfast, queues: Sequence[str], *, at_most: float, sweep: float
    ) -> None:
        self._app = app
        self._queues = frozenset(queues)
        self._waiting = TaskFilter(queues=self._queues, states=HURRIED)
        self._at_most = at_most
        self._sweep = timedelta(seconds=sweep)
        self._bursts: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def arm_added(self, added: Sequence[Added]) -> None:
        """Arm a timer for each of these that is new and in a pushed queue. They are stored already:
        whatever goes wrong here is mended by a sweep, and no reason to fail.
        """
        new = [each.task_id for each in added if each.created and each.state is not State.BLOCKED]
        try:
            for start in range(0, len(new), PAGE):
                await self._arm_ids(tuple(new[start : start + PAGE]))
        except HoldfastError as error:
            log.warning("timer.not_armed", key=f"{TASK}:…", error=str(error))

    async def work(self, key: str) -> None:
        """Run what is due in the queue of this task, unless it has ended; arm what is left."""
        task = await self._unfinished(key)
        if task is None:
            return
        began, again = await (await self._app.verbs()).store.now(), LATER
        async with self._bursts[task.queue]:
            # Many timers call at once, and the first burst does the work of all of them.
            if await self._unfinished(key) and not await self._burst(task.queue):
                again = timedelta(0)
        await self._arm_rest(key, began, again)

    async def sweep(self, key: str) -> None:
        """Arm again what was lost, and come back as long as something waits."""
        await self._app.wake_ups.sweep()
        store = (await self._app.verbs()).store
        if (await store.list(self._waiting, limit=1)).tasks:
            await self._app.wake_ups.arm(key, await store.now() + self._sweep)

    async def find(self) -> AsyncIterator[Wanted]:
        """The tasks that wait for their time in pushed queues."""
        store, after = (await self._app.verbs()).store, None
        while True:
            page = await store.list(self._waiting, limit=PAGE, after=after)
            for task in page.tasks:
                yield Wanted(f"{TASK}:{task.id}", task.run_at)
            if (after := page.next) is None:
                return

    async def _arm_ids(self, ids: tuple[TaskId, ...]) -> None:
        store = (await self._app.verbs()).store
        where = replace(self._waiting, ids=ids)
        await self._arm_missing((await store.list(where, limit=PAGE)).tasks)

    async def _keep_sweeping(self) -> None:
        """Have the next sweep armed, unless it is."""
        store = (await self._app.verbs()).store
        await self._app.wake_ups.arm_by(f"{SWEEP}:queues", await store.now() + self._sweep)

    async def _burst(self, queue: str) -> bool:
        """Work until nothing is due; False if the time was over before. What ran is handed back."""
        try:
            async with asyncio.timeout(self._at_most):
                await self._app.run_worker(burst=True, queues=[queue])
        except TimeoutError:
            log.warning("timer.out_of_time", queue=queue, seconds=self._at_most)
            return False
        return True

    async def _arm_rest(self, key: str, began: datetime, again: timedelta) -> None:
        """Arm this task anew if it has not ended, and what has been submitted or has become due
        since its burst began and has no timer: follow-ups, and what waited for others.
        """
        store = (await self._app.verbs()).store
        now = await store.now()
        if (task := await self._unfinished(key)) is not None:
            at = task.run_at if task.run_at > now else now + again
            await self._app.wake_ups.arm(key, at)
        for recent in (
            replace(self._waiting, created_after=began),
            replace(self._waiting, run_before=now),
        ):
            await self._arm_missing((await store.list(recent, limit=PAGE)).tasks)

    async def _arm_missing(self, tasks: Sequence[Task]) -> None:
        found = [Wanted(f"{TASK}:{task.id}", task.run_at) for task in tasks]
        await self._app.wake_ups.arm_missing(found)
        if found:
            await self._keep_sweeping()

    async def _unfinished(self, key: str) -> Task | None:
        """The task of this key, if it is in a pushed queue and has not ended."""
        store = (await self._app.verbs()).store
        task = await store.get(TaskId(key.partition(":")[2]))
        if task is None or task.queue not in self._queues or task.state in TERMINAL:
            return None
        return task


def push_queues(
    app: Holdfast, *queues: str, at_most: Duration = "5m", sweep: Duration = "5m"
) -> None:
    """Let tasks of these queues be run by `POST /v1/tasks/execute`, which a timer calls when they
    are due (`timer_url`). Call it where the tasks are defined: whoever submits must know of it.

    Args:
        at_most: How long one call works; less than the `deadline` of the timer.
        sweep: How often lost timers are looked for, while something waits.
    """
    if TASK in app.wake_ups.kinds:
        raise InvalidOption(
            "queues", "are pushed already: call `push_queues` once, with all of them"
        )
    pushing = Pushing(app, queues, at_most=parse_duration(at_most), sweep=parse_duration(sweep))
    app.wake_ups.on(TASK, pushing.work, pushing.find)
    app.wake_ups.on(SWEEP, pushing.sweep)
    app.registry.middleware.stored.append(pushing.arm_added)
