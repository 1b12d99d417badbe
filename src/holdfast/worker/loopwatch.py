"""Notices that the worker's event loop is blocked, and sees to what the worker holds meanwhile.

An async body that computes, or calls something that blocks, keeps the loop from everything: other
bodies, claims, saves, the time limits. Heartbeats come from elsewhere, so nobody takes the worker
for lost, and what it holds would wait for as long. This watch has a thread and a small loop of its
own.

Once the loop has stood still for a lease, what was claimed and has not started is handed back,
uncharged, and a blocker past its timeout is recorded as timed out, unless it holds a lock: its body
still runs. Bodies that have begun are left alone, for they go on when the loop does. A block that
does not end (`PAST_TIMEOUT`, `WITHOUT_END`) ends with this process, if a supervisor starts another:
whatever else runs here is handed back after that, uncharged. So does a worker whose every slot is
taken by a body that was interrupted a lease ago and goes on.

A call that holds the interpreter stops this thread too. It counts no more than two of its own looks
as time that it has watched, so it never mistakes its own absence for the loop's.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Sequence

from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Outcome, Released
from holdfast.core.query import running_on
from holdfast.logs import EventLog, trace_of
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.worker.batch import ends_of
from holdfast.worker.batch_claim import ids_of
from holdfast.worker.coroutines import Blocker, blocker_of
from holdfast.worker.feeder import Feeder
from holdfast.worker.membership import Membership
from holdfast.worker.outcomes import Outcomes
from holdfast.worker.run import Run, StopReason
from holdfast.worker.settler import Settler
from holdfast.worker.slots import Slots
from holdfast.worker.supervisor_channel import SupervisorChannel
from holdfast.worker.verdict import stopped

log = EventLog("holdfast.worker")

LOOKS_PER_LEASE = 8
PAST_TIMEOUT = 2
"""Leases past its timeout after which a block counts as endless."""
WITHOUT_END = 10
"""The same for one without a timeout, or that no task is known to have caused."""
MOST = 1000
REPLACED_CODE = 75


class LoopWatch:
    """Watches the loop that it was made on. `tick` is called there, the rest is the thread's."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        membership: Membership,
        feeder: Feeder,
        slots: Slots,
        settler: Settler,
        outcomes: Outcomes,
    ) -> None:
        self._store = store
        self._lease = settings.lease
        self._every = settings.lease / LOOKS_PER_LEASE
        self._capacity = settings.concurrency
        self._membership = membership
        self._feeder = feeder
        self._slots = slots
        self._settler = settler
        self._outcomes = outcomes
        self._loop_thread = threading.get_ident()
        self._ticks = self._seen = 0
        self._looked_at = time.monotonic()
        self._silent = 0.0
        self._has_said = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="holdfast-loop-watch", daemon=True)
        self._thread.start()

    async def tick(self) -> float:
        """The loop turns. If no slot will ever be free again, that is as bad as if it did not."""
        self._ticks += 1
        if self._slots.all_stuck_for(self._lease) >= self._capacity:
            log.error("worker.slots_stuck", worker_id=self._membership.id, slots=self._capacity)
            await self._replace(None)
        return self._every / 2

    def close(self) -> None:
        """Watch no more."""
        self._closed.set()

    def _watch(self) -> None:
        with asyncio.Runner() as runner:
            while not self._closed.wait(self._every):
                try:
                    runner.run(self._look())
                except Exception as error:  # noqa: BLE001 - the next look may do better
                    log.error("worker.loop_watch_failed", exception=trace_of(error))

    async def _look(self) -> None:
        now = time.monotonic()
        watched = min(now - self._looked_at, 2 * self._every)
        self._looked_at = now
        if self._ticks != self._seen:
            self._seen, self._silent, self._has_said = self._ticks, 0.0, False
            return
        self._silent += watched
        if self._silent >= self._lease:
            await self._see_to_it(blocker_of(self._loop_thread))

    async def _see_to_it(self, blocker: Blocker | None) -> None:
        if not self._has_said:
            self._has_said = True
            self._say(blocker)
            if blocker is not None:
                task_id = blocker.run.claim.task_id
                await self._store.beat(self._membership.id, blocked_by=task_id)
        claims = self._feeder.buffer.seize() + self._feeder.gatherer.seize()
        if claims:
            await self._hand_back(claims)
        if blocker is not None:
            await self._hand_back_what_is_on_its_way(blocker)
            await self._time_out(blocker.run)
        if self._is_endless(None if blocker is None else blocker.run):
            await self._replace(None if blocker is None else blocker.run)

    def _say(self, blocker: Blocker | None) -> None:
        claim = None if blocker is None else blocker.run.claim
        log.error(
            "worker.loop_blocked",
            worker_id=self._membership.id,
            seconds=round(self._silent, 1),
            task_id=claim and claim.task_id,
            task_name=claim and claim.name,
            at=_where(self._loop_thread),
        )

    async def _hand_back(self, claims: Sequence[Claim]) -> None:
        log.warning("tasks.handed_back", tasks=len(claims))
        await self._store.save([self._outcomes.decide(claim, Released()) for claim in claims])

    async def _hand_back_what_is_on_its_way(self, blocker: Blocker) -> None:
        """A claim whose answer the loop has not read: the store has started its tasks, nobody will.

        Only while the blocker is in its first step, which proves that the loop has not turned: what
        the feeder is told to refuse before we have looked again cannot have been received.
        """
        if not blocker.in_first_step:
            return
        page = await self._store.list(running_on(self._membership.id), limit=MOST)
        known = self._slots.holds() | self._settler.holds() | ids_of(blocker.run.claim)
        claims = [Claim.of(task) for task in page.tasks if task.id not in known]
        self._feeder.refuse(claims)
        now = blocker_of(self._loop_thread)
        if claims and now is not None and now.run is blocker.run:
            await self._hand_back(claims)

    async def _time_out(self, run: Run) -> None:
        is_late = run.deadline is not None and run.deadline <= time.monotonic()
        if not is_late or run.stop_reason is not None:
            return
        run.stop_reason = StopReason.TIMED_OUT
        if run.claim.lock is None:
            await self._store.save([self._outcomes.decide(*end) for end in _ends(run)])

    def _is_endless(self, run: Run | None) -> bool:
        if run is None or run.deadline is None:
            return self._silent >= WITHOUT_END * self._lease
        return time.monotonic() - run.deadline >= PAST_TIMEOUT * self._lease

    async def _replace(self, blocker: Run | None) -> None:
        """End this process; its supervisor settles what still runs here, and starts another."""
        if SupervisorChannel.current is None:
            return  # it is somebody else's process
        unsaved = self._settler.pending()
        if unsaved:
            await self._store.save(unsaved)
        runs = [*self._slots.unsettled(), *([] if blocker is None else [blocker])]
        ends = [end for run in dict.fromkeys(runs) for end in _ends(run)]
        self._membership.settle_when_gone([self._outcomes.decide(*end) for end in ends])
        log.error("worker.replaced", worker_id=self._membership.id, running=len(runs))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(REPLACED_CODE)


def _ends(run: Run) -> list[tuple[Claim, Outcome]]:
    return ends_of(run, Released() if run.stop_reason is None else stopped(run))


def _where(thread: int) -> str | None:
    """The line that the loop stands at."""
    frame = sys._current_frames().get(thread)
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
