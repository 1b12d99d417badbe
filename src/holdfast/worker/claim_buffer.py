"""Where claims wait for a slot, and slots for a claim. Loop-thread only, but for `seize`.

Bodies that end without suspending keep one slot busy for thousands of tasks; waking all the others
for them would be for nothing. So a slot counts as *awake* while it will look at the buffer again by
itself, and an idle one is woken only when claims are there and nobody is awake.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from holdfast.core.attempt import Claim
from holdfast.core.task import TaskId, WorkerId
from holdfast.worker.batch_claim import BatchClaim, apart, members_of


class ClaimBuffer:
    """Claims that were made and have not started, most urgent first.

    `on_room` is called when few are left (`low`) or a slot has nothing to do. `filled_at` is when
    claims came last, in monotonic time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_room: Callable[[], None]) -> None:
        self._loop = loop
        self._on_room = on_room
        self._claims: deque[Claim] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._awake = 0
        self._closed = False
        self.low = 0
        self.filled_at = 0.0

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def idle(self) -> int:
        """How many slots wait for something to do."""
        return len(self._idle)

    def holds(self) -> set[TaskId]:
        """The tasks that wait here."""
        return {claim.task_id for claim in apart(self._claims.copy())}

    def put(self, claims: Sequence[Claim], since: float | None = None) -> None:
        """Claims have come, now or at that monotonic time."""
        self.filled_at = time.monotonic() if since is None else since
        self._claims.extend(claims)
        self._pass_on()

    def take(self) -> Claim | None:
        """The next claim, if there is one."""
        claims = self._claims
        try:
            claim = claims.popleft()
        except IndexError:
            return None
        if len(claims) <= self.low:
            self._on_room()
        return claim

    async def wait(self) -> Claim | None:
        """Sleep until there is a claim; None when there will be no more."""
        while not self._closed:
            claim = self.take()
            if claim is not None:
                return claim
            waiter = self._loop.create_future()
            self._idle.append(waiter)
            self._awake -= 1
            self._on_room()
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.cancelled():  # along with the whole loop
                    self._idle.remove(waiter)
                raise
        return None

    def enter(self) -> None:
        """A slot is awake: it has opened, or its body no longer waits."""
        self._awake += 1

    def leave(self) -> None:
        """A slot will not look at the buffer for a while: its body waits, or it has gone home."""
        self._awake -= 1
        self._pass_on()

    def last(self, count: int) -> list[Claim]:
        """Take the `count` least urgent off again, to be handed back: the claims of batches one by
        one.
        """
        taken: list[Claim] = []
        with suppress(IndexError):
            while len(taken) < count:
                taken.append(self._claims.pop())
        return apart(taken)

    def seize(self) -> list[Claim]:
        """Take all of them off, from another thread: each claim is taken by one of us."""
        return self.last(sys.maxsize)

    def withdraw(self, task_ids: Collection[TaskId]) -> list[Claim]:
        """Take these off: they must not start."""
        return self._without(lambda claim: claim.task_id in task_ids)

    def drop(self, worker_id: WorkerId) -> int:
        """Forget what was claimed under an id that is gone: it is not ours to start or return."""
        return len(self._without(lambda claim: claim.worker_id == worker_id))

    def _without(self, is_meant: Callable[[Claim], bool]) -> list[Claim]:
        found: list[Claim] = []
        for claim in self._claims.copy():
            members = members_of(claim)
            meant = [one for one in members if is_meant(one)]
            if not meant:
                continue
            with suppress(ValueError):  # seized this moment
                self._claims.remove(claim)
                found += meant
                if len(meant) < len(members):
                    others = [one for one in members if one not in meant]
                    self._claims.appendleft(BatchClaim.gathered(others))
        return found

    def close(self) -> None:
        """Send idle slots home. Slots at work go when they come back."""
        self._closed = True
        while self._idle:
            self._wake_one()

    def _pass_on(self) -> None:
        if self._claims and not self._awake and self._idle:
            self._wake_one()

    def _wake_one(self) -> None:
        self._awake += 1
        self._idle.popleft().set_result(None)
