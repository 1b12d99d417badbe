"""Where polls wait that could take the same tasks: same queues, same capabilities.

One usher per room listens for all of them and claims for whoever has waited longest: what the first
is not given, the others would not be given either. So a thousand idle workers of one kind cost the
store what one of them costs, and one wake-up serves as many as there is work for.

The order is the one that every listener keeps: listen, claim, and only then wait. A poll that comes
in has claimed for itself before; a wake-up that the usher used up between that claim and the poll's
taking its seat is counted (`rings`), and the usher looks again.

An usher without seats does not sleep by the dispatcher: one that counts would call it, who has
nobody to give the task to, instead of a worker. It keeps its ear, and what that hears is kept.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress

from holdfast.core.attempt import Claimed
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import Dispatcher, Listener
from holdfast.remote.seat import Seat

log = EventLog("holdfast.remote")

LINGER = 5.0
"""Seconds that an usher stays in an empty room: polls come back."""
WIDEST = 8
"""How many claims an usher has under way at most, when there is work for many."""

Serve = Callable[[Seat], Awaitable[Claimed | None]]
Spawn = Callable[[Awaitable[None]], object]


class Room:
    """Seats, first come first served, and their usher."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        queues: tuple[str, ...] | None,
        *,
        poll: float,
        serve: Serve,
        spawn: Spawn,
    ) -> None:
        self._dispatcher = dispatcher
        self._queues = queues
        self._poll = poll
        self._serve = serve
        self._spawn = spawn
        self._seats: deque[Seat] = deque()
        self._has_usher = False
        self._nap: asyncio.Future[bool] | None = None
        self._due_at: float | None = None
        self._left_at = 0.0
        self._entered = asyncio.Event()
        self.rings = 0

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits or listens here."""
        return not self._has_usher

    def enter(self, seat: Seat, *, next_due: float | None, rings: int) -> None:
        """Wait here. `rings` is the number of them before the poll's own claim, `next_due` what
        that claim said of work to come.
        """
        self._seats.append(seat)
        self._entered.set()
        if not self._has_usher:
            self._has_usher = True
            self._spawn(self._usher())
        elif rings != self.rings:
            self.nudge(0.0)
        elif next_due is not None:
            self.nudge(next_due)

    def leave(self, seat: Seat) -> None:
        """Wait no more. Allowed to who does not sit here."""
        if seat in self._seats:
            self._seats.remove(seat)
            self._left_at = time.monotonic()
            if not self._seats and self._nap is not None:
                self._nap.cancel()

    def nudge(self, due_in: float) -> None:
        """There may be work in that many seconds: look then at the latest."""
        at = time.monotonic() + due_in
        if self._due_at is None or at < self._due_at:
            self._due_at = at
            if self._nap is not None:
                self._nap.cancel()

    async def _usher(self) -> None:
        async with AsyncExitStack() as stack:
            try:
                listener = await self._listen(stack)
                await self._seat_all()
                while self._seats or await self._somebody_comes():
                    await self._rest(listener)
                    await self._seat_all()
            finally:
                # Before the listener is let go: who enters from now on needs a new usher.
                self._has_usher = False
                for seat in self._seats:
                    seat.close()

    async def _listen(self, stack: AsyncExitStack) -> Listener:
        try:
            return await stack.enter_async_context(self._dispatcher.listen(self._queues))
        except Exception as error:  # noqa: BLE001 - wake-ups are a hint: without them it polls
            log.warning("dispatch.failed", error=str(error))
            return _Deaf()

    async def _somebody_comes(self) -> bool:
        """Wait in an empty room. Who comes has claimed before, and need not again."""
        self._entered.clear()
        with suppress(TimeoutError):
            left = self._left_at + LINGER - time.monotonic()
            await asyncio.wait_for(self._entered.wait(), max(0.0, left))
        return bool(self._seats)

    async def _seat_all(self) -> None:
        """Claim for the first, and while there is work for all asked, for more and more at once."""
        self._due_at = None
        width = 1
        while self._seats:
            chosen = self._next(width)
            claimed = await asyncio.gather(*map(self._serve, chosen))
            still_waiting = [seat for seat in chosen if not seat.answer.done()]
            self._seats.extendleft(reversed(still_waiting))
            self._left_at = time.monotonic()
            for one in claimed:
                if one is not None and one.next_due is not None:
                    self.nudge(one.next_due)
            if not all(_is_filled(*pair) for pair in zip(chosen, claimed, strict=True)):
                return
            width = min(2 * width, WIDEST)

    def _next(self, number: int) -> list[Seat]:
        """Up to so many that still wait, longest first."""
        chosen: list[Seat] = []
        while self._seats and len(chosen) < number:
            seat = self._seats.popleft()
            if not seat.answer.done():
                chosen.append(seat)
        return chosen

    async def _rest(self, listener: Listener) -> None:
        """Sleep until woken, due, or the next look."""
        seconds = self._poll * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, no secret
        if self._due_at is not None:
            seconds = min(seconds, self._due_at - time.monotonic())
        nap = self._nap = asyncio.ensure_future(listener.wait(max(0.001, seconds)))
        me = asyncio.current_task()
        assert me is not None
        try:
            if await nap:
                self.rings += 1
        except asyncio.CancelledError:
            if me.cancelling():
                raise
            # Only the nap was, by `nudge` or `leave`.
        except Exception as error:  # noqa: BLE001 - a hint: one that fails costs latency, not work
            log.warning("dispatch.failed", error=str(error))
            await asyncio.sleep(seconds)
        finally:
            self._nap = None
            nap.cancel()


def _is_filled(seat: Seat, claimed: Claimed | None) -> bool:
    return claimed is not None and len(claimed.claims) == seat.limit


class _Deaf:
    """Stands in for a listener that could not be had."""

    async def wait(self, timeout: float) -> bool:
        await asyncio.sleep(timeout)
        return False
