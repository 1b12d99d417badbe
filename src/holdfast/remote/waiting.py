"""Polls that wait for the same tasks: same queues, same capabilities.

One task in the background listens for all of them and claims for whoever has waited longest: what
the first is not given, the others would not be given either. So a thousand idle workers of one kind
cost the store what one of them costs, and one wake-up serves as many as there is work for.

A poll that comes in has claimed for itself before; a wake-up that was used up between that claim
and its entry is counted (`wake_ups`), and the store is looked at again.

Without polls nobody sleeps by the dispatcher: one that counts would wake this process, which has
nobody to give the task to, instead of a worker. The listener stays, and what it hears is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress

from holdfast.core.attempt import Claim, Claimed
from holdfast.engine.napping import Napper
from holdfast.remote.registrations import RemoteWorker

LINGER = 5.0
"""Seconds that somebody listens though nobody waits: polls come back."""
WIDEST = 8
"""How many claims are under way at once at most, when there is work for many."""


class LongPoll:
    """A poll, answered exactly once: with claims, with none, or with an error.

    A claim under way for it is never given up, because the store may have started its tasks: a poll
    that is asked to close meanwhile is answered when the claim has landed.
    """

    __slots__ = ("_closing", "_is_claiming", "answer", "limit", "worker")

    def __init__(self, worker: RemoteWorker, limit: int) -> None:
        self.worker = worker
        self.limit = limit
        self.answer: asyncio.Future[Sequence[Claim]] = asyncio.get_running_loop().create_future()
        self._is_claiming = False
        self._closing = False

    @property
    def is_closing(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._closing

    def close(self) -> None:
        """Wait no more: none came."""
        self._closing = True
        if not self._is_claiming:
            self._set([])

    def begin(self) -> None:
        """A claim for it is under way."""
        self._is_claiming = True

    def land(self, claims: Sequence[Claim]) -> None:
        """The claim brought this."""
        self._is_claiming = False
        if claims or self._closing:
            self._set(claims)

    def fail(self, error: BaseException) -> None:
        """The claim failed."""
        self._is_claiming = False
        if not self.answer.done():
            self.answer.set_exception(error)

    def _set(self, claims: Sequence[Claim]) -> None:
        if not self.answer.done():
            self.answer.set_result(claims)


class WaitingPolls:
    """First come, first served.

    Args:
        serve: Claims for one poll; None if that failed.
        spawn: Runs something in the background, and holds on to it.
    """

    def __init__(
        self,
        napper: Napper,
        *,
        serve: Callable[[LongPoll], Awaitable[Claimed | None]],
        spawn: Callable[[Awaitable[None]], object],
    ) -> None:
        self._napper = napper
        self._serve = serve
        self._spawn = spawn
        self._polls: deque[LongPoll] = deque()
        self._left_at = 0.0
        self._entered = asyncio.Event()
        self.is_listening = False
        self.wake_ups = 0
        self.nudge = napper.nudge

    def enter(self, poll: LongPoll, *, next_due: float | None, wake_ups: int) -> None:
        """Wait here. `wake_ups` is the number of them before the poll's own claim, `next_due` what
        that claim said of work to come.
        """
        self._polls.append(poll)
        self._entered.set()
        if not self.is_listening:
            self.is_listening = True
            self._spawn(self._run())
        elif wake_ups != self.wake_ups:
            self.nudge(0.0)
        elif next_due is not None:
            self.nudge(next_due)

    def leave(self, poll: LongPoll) -> None:
        """Wait no more. Allowed to who does not wait here."""
        if poll in self._polls:
            self._polls.remove(poll)
            self._left_at = time.monotonic()
            if not self._polls:
                self._napper.wake()

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._napper.listening())
                await self._serve_all()
                while self._polls or await self._somebody_comes():
                    self.wake_ups += await self._napper.nap(self._napper.until_next_look())
                    await self._serve_all()
            finally:
                # Before the listener is let go: who enters from now on needs a new one.
                self.is_listening = False
                for poll in self._polls:
                    poll.close()

    async def _somebody_comes(self) -> bool:
        """Wait while there are no polls. Who comes has claimed before, and need not again."""
        self._entered.clear()
        with suppress(TimeoutError):
            left = self._left_at + LINGER - time.monotonic()
            await asyncio.wait_for(self._entered.wait(), max(0.0, left))
        return bool(self._polls)

    async def _serve_all(self) -> None:
        """Claim for the first, and while there is work for all asked, for more and more at once."""
        self._napper.look()
        width = 1
        while self._polls:
            chosen = self._next(width)
            claimed = await asyncio.gather(*map(self._serve, chosen))
            still_waiting = [poll for poll in chosen if not poll.answer.done()]
            self._polls.extendleft(reversed(still_waiting))
            self._left_at = time.monotonic()
            for one in claimed:
                if one is not None and one.next_due is not None:
                    self.nudge(one.next_due)
            if not all(_is_filled(*pair) for pair in zip(chosen, claimed, strict=True)):
                return
            width = min(2 * width, WIDEST)

    def _next(self, number: int) -> list[LongPoll]:
        """Up to so many that still wait, longest first."""
        chosen: list[LongPoll] = []
        while self._polls and len(chosen) < number:
            poll = self._polls.popleft()
            if not poll.answer.done():
                chosen.append(poll)
        return chosen


def _is_filled(poll: LongPoll, claimed: Claimed | None) -> bool:
    return claimed is not None and len(claimed.claims) == poll.limit
