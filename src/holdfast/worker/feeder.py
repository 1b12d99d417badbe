"""Brings work: claims ahead of the slots, by time; sleeps when there is none.

A claim is issued while the batch before still runs, so slots do not wait for the store as long as
there is work. What was claimed and will not start soon after all goes back, uncharged.

A claim in flight is never cancelled: the store may have started its tasks already. Only naps are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from holdfast.core.attempt import Claim, Claimed
from holdfast.core.lifecycle import Outcome, Released
from holdfast.core.task import TaskId
from holdfast.counting import StoreClock, tally_of
from holdfast.engine.napping import Napper
from holdfast.errors import SchemaMismatch, StoreUnavailable, WorkerGone
from holdfast.flow.breakers import Breakers, given_back
from holdfast.flow.chores import Chores
from holdfast.logs import EventLog, trace_of
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import TaskStore
from holdfast.settings import Settings
from holdfast.worker.claim_buffer import ClaimBuffer
from holdfast.worker.gathering import Gatherer
from holdfast.worker.membership import Membership
from holdfast.worker.outage import Outage
from holdfast.worker.pace import Pace
from holdfast.worker.settler import Settler
from holdfast.worker.slots import Slots
from holdfast.worker.strays import Strays

log = EventLog("holdfast.worker")

LOOK_AGAIN = 0.25
"""Seconds between looks at what is held unstarted."""
AT_ONCE = 0.05
"""What is due within this many seconds is waited for even by a worker in a burst."""

STANDS_BACK = 60.0
COURTESY = 0.25
"""For so long after handing back what it was not fit for, a worker is so late for what is due."""


class Feeder:
    """Keeps the buffer filled with what will start soon, and with no more."""

    def __init__(
        self,
        store: TaskStore,
        dispatcher: Dispatcher,
        settings: Settings,
        *,
        membership: Membership,
        pace: Pace,
        buffer: ClaimBuffer,
        gatherer: Gatherer,
        room: asyncio.Event,
        slots: Slots,
        settler: Settler,
        settle: Callable[[Claim, Outcome], object],
        chores: Chores,
        breakers: Breakers,
        burst: bool,
    ) -> None:
        """`room` is set when something has ended or was saved: there may be room for more. A burst
        is not over before its `chores` are done.
        """
        self._store = store
        self._napper = Napper(dispatcher, settings.served_queues, poll=settings.poll)
        self.nudge = self._napper.nudge
        self._settings = settings
        self._membership = membership
        self._pace = pace
        self._room = room
        self._slots = slots
        self._settler = settler
        self._settle = settle
        self._chores = chores
        self._breakers = breakers
        self._burst = burst
        self._closing = asyncio.Event()
        self._refused: set[tuple[TaskId, int]] = set()
        self._stands_back_until = 0.0
        self._outage = Outage("claim")
        self._tally, self._clock = tally_of(store), StoreClock(store)
        self._strays = Strays(store, self.holds, settle)
        self.buffer = buffer
        self.gatherer = gatherer

    def stand_back(self) -> None:
        """What comes due next may be what this worker was not fit for: let others be first."""
        self._stands_back_until = time.monotonic() + STANDS_BACK

    def saved(self) -> None:
        """Something is on disk. There may be room for more; a burst may be over."""
        self._room.set()
        if self._burst:
            self.nudge(0.0)

    def refuse(self, claims: Iterable[Claim]) -> None:
        """These were handed back while their claim was on its way. From any thread."""
        self._refused.update((claim.task_id, claim.attempt) for claim in claims)

    def holds(self) -> set[TaskId]:
        """Every task this worker knows that it has."""
        unstarted = self.buffer.holds() | self.gatherer.holds()
        return unstarted | self._slots.holds() | self._settler.holds()

    def close(self) -> None:
        """Claim no more, hand back what has not started, send idle slots home."""
        self._closing.set()
        self._room.set()
        self._napper.wake()
        self._release(len(self.buffer))
        for claim in self.gatherer.seize():
            self._settle(claim, Released())
        self.buffer.close()

    async def run(self) -> None:
        """Feed until closed; in a burst, until nothing is left to do."""
        async with self._napper.listening():
            is_over = False
            while not (is_over or self._closing.is_set()):
                self._room.clear()
                wanted = self._wanted()
                if self._strays.due_in() == 0.0:
                    await self._look_for_strays()
                elif wanted > 0:
                    is_over = await self._fetch(wanted)
                else:
                    look_again = LOOK_AGAIN if len(self.buffer) else None
                    await self._wait_for_room(_sooner(look_again, self._strays.due_in()))

    def _wanted(self) -> int:
        if self._settler.is_full:
            return 0
        buffer = self.buffer
        ahead = self._pace.ahead(self._slots.ages())
        buffer.low = ahead // 2
        held, enough = len(buffer), max(ahead, buffer.idle)
        if held > 2 * enough and time.monotonic() - buffer.filled_at >= LOOK_AGAIN:
            # Work was guessed to be short and is not: let others have what will not start soon.
            self._release(held - enough)
            return 0
        if buffer.low < held >= buffer.idle:
            return 0
        wanted, per_run = enough - held, self.gatherer.per_run
        return wanted if per_run == 1 else self._pace.bounded(wanted * per_run)

    def _is_quiet(self) -> bool:
        """Whether nothing runs and nothing waits to be saved."""
        unstarted = len(self.buffer) or len(self.gatherer)
        return self._slots.is_idle and not (self._settler.unsaved or unstarted)

    async def _fetch(self, wanted: int) -> bool:
        """Claim, and sleep if there is no more to be had. True when a burst is over."""
        was_quiet = self._is_quiet()
        claimed = await self._claim(wanted)
        if claimed is None:
            return False
        await self._receive(claimed)
        if len(claimed.claims) == wanted or self._closing.is_set():
            return False
        if self._burst:
            self.gatherer.flush()
        # What ran while we asked may have made work that the answer does not know of.
        if self._burst and was_quiet and not claimed.claims and not _is_due_soon(claimed):
            return not await self._did_chores()
        await self._rest(claimed)
        return False

    async def _did_chores(self) -> bool:
        """Whether there were some that came due: they may have made work."""
        before = self._chores.done
        try:
            await self._chores.round()
        except StoreUnavailable as error:
            await self._wait_out(error)
            return True
        return self._chores.done > before

    async def _claim(self, wanted: int) -> Claimed | None:
        worker_id = self._membership.id
        self._napper.look()
        try:
            now_us = await self._clock.now_us()
            with self._tally.timed("claim"):
                claimed = await self._store.claim(
                    worker_id,
                    queues=self._settings.served_queues,
                    capabilities=self._settings.capabilities,
                    limit=wanted,
                )
        except WorkerGone:
            await self._membership.renew(worker_id)
            return None
        except SchemaMismatch:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, tasks may have been started
            self._strays.suspect(worker_id)
            await self._wait_out(error)
            return None
        self._outage.over()
        if claimed.claims:
            self._tally.claimed(claimed, now_us, self._settings.aging)
        return claimed

    async def _look_for_strays(self) -> None:
        try:
            await self._strays.look()
        except SchemaMismatch:
            raise
        except Exception as error:  # noqa: BLE001 - as for a claim
            await self._wait_out(error)

    async def _wait_out(self, error: Exception) -> None:
        if not isinstance(error, StoreUnavailable):
            log.error("store.failed", doing="claim", exception=trace_of(error))
        await self._doze(self._outage.delay(error))

    async def _receive(self, claimed: Claimed) -> None:
        claims = claimed.claims
        if self._breakers.has_shut:
            claims, kept = await self._breakers.admit(claims)
            for claim in kept:
                self._settle(claim, given_back())
        if self._refused:
            claims = [one for one in claims if (one.task_id, one.attempt) not in self._refused]
        if self._closing.is_set():
            for claim in claims:
                self._settle(claim, Released())
            return
        self._pace.received(len(claims), sum(len(claim.payload) for claim in claims))
        if self.gatherer.names:
            claims = self.gatherer.take(claims)
        self.buffer.put(claims)

    async def _rest(self, claimed: Claimed) -> None:
        """The store has no more for now: sleep until woken, due, or the next poll."""
        next_due = claimed.next_due
        if next_due is not None and time.monotonic() < self._stands_back_until:
            next_due += COURTESY
        nap = self._napper.until_next_look(next_due, self._strays.due_in())
        looks_again = len(self.buffer) or (self._burst and not self._is_quiet())
        if not self._napper.is_due:
            # Else something became ready while we asked, and is looked for at once.
            await self._napper.nap(min(nap, LOOK_AGAIN) if looks_again else nap)

    async def _doze(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _wait_for_room(self, timeout: float | None) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._room.wait(), timeout)

    def _release(self, count: int) -> None:
        for claim in self.buffer.last(count):
            self._settle(claim, Released())


def _is_due_soon(claimed: Claimed) -> bool:
    return claimed.next_due is not None and claimed.next_due <= AT_ONCE


def _sooner(one: float | None, other: float | None) -> float | None:
    return min((each for each in (one, other) if each is not None), default=None)
