"""Tasks that a claim without an answer has started, and that nobody runs.

Nobody rescues the tasks of a living worker, so they would stay `running` for ever: the worker looks
for them and hands them back. A claim that was given up may still be on its way (the request waits
behind a broken link, the kernel sends it again) and start tasks when one has looked already. So one
looks again, at growing intervals, for longer than a kernel keeps what a closed connection has not
delivered.

Never look while a claim is under way: what it brings would be taken for strays and run twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Outcome, Released
from holdfast.core.query import running_on
from holdfast.core.task import TaskId, WorkerId
from holdfast.logs import EventLog
from holdfast.ports.store import TaskStore

log = EventLog("holdfast.worker")

PAGE = 1000
"""How many tasks are looked at in one go."""


class Strays:
    """Suspects strays after an unanswered claim, and hands back those that it finds."""

    FIRST = 1.0
    LAST = 120.0
    """Seconds from the suspicion to the last look, or a little more."""

    def __init__(
        self,
        store: TaskStore,
        known: Callable[[], set[TaskId]],
        settle: Callable[[Claim, Outcome], object],
    ) -> None:
        """`known` are the tasks that the worker knows it has."""
        self._store = store
        self._known = known
        self._settle = settle
        self._worker_id: WorkerId | None = None
        self._since = self._next = 0.0
        self._pause = self.FIRST

    def suspect(self, worker_id: WorkerId) -> None:
        """A claim under this id was not answered: look soon, and again."""
        self._worker_id = worker_id
        self._since = self._next = time.monotonic()
        self._pause = self.FIRST

    def due_in(self) -> float | None:
        """Seconds until the next look; None if nothing is suspected."""
        return None if self._worker_id is None else max(0.0, self._next - time.monotonic())

    async def look(self) -> None:
        """Hand back what is running under our name and unknown to us."""
        if self._worker_id is None:
            return
        await self._hand_back(self._worker_id)
        self._next = time.monotonic() + self._pause
        self._pause *= 2
        if self._next - self._since > 2 * self.LAST:
            self._worker_id = None

    async def _hand_back(self, worker_id: WorkerId) -> None:
        mine = running_on(worker_id)
        known = self._known()
        after: str | None = None
        while True:
            page = await self._store.list(mine, limit=PAGE, after=after)
            known |= self._known()
            for task in page.tasks:
                if task.id not in known:
                    log.warning("task.stray", task_id=task.id, attempt=task.attempt)
                    self._settle(Claim.of(task), Released())
            after = page.next
            if after is None:
                return
