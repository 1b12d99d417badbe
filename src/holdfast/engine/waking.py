"""Wakes whoever may take what ended attempts made ready: a task handed back, a retry that is due
soon, the next in line for a lock. Nobody submits those, so nobody else wakes a worker for them.

A store passes a lock on in the very step that frees it, to a task that may be of any queue. Only
the store knows to which: once that is on disk it is asked who is next.

All of it is a hint. A question that fails costs latency (`poll`), never a task.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from holdfast.asyncio_tools.cancel import end
from holdfast.asyncio_tools.shield import to_the_end
from holdfast.core.attempt import Settlement
from holdfast.core.task import Cause, NewTask
from holdfast.core.unfit import is_unfit
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.ports.store import TaskStore

log = EventLog(__name__)

AT_ONCE: Final = 0.01
"""Whoever looks for itself when a task is due tells others only of what is due within so many
seconds.
"""
PATIENCE: Final = 2.0
"""Seconds for one question. Those who would have been called have looked for themselves by then."""

TOGETHER: Final = 0.005
"""Seconds between two questions, however many locks are let go. A lone one is asked for at once."""
IN_VAIN: Final = 0.025
"""The same after one whose answer was for nobody else: then whoever lets locks go takes the next
itself, and questions would only cost.
"""
SHARE: Final = 10
"""Such questions take at most about one part in so many of the time."""

Wake = Callable[[Mapping[str, int]], None]
Ended = tuple[str, str | None, Settlement]
"""The queue of a task, its lock, and how its attempt was settled."""


async def wake_next(store: TaskStore, wake: Wake, keys: Collection[str]) -> Collection[str]:
    """Wake the workers of those who hold these lock keys now and have not started, and say in which
    queues they are. Never raises.
    """
    if not keys:
        return ()
    try:
        async with asyncio.timeout(PATIENCE):
            queues = await store.next_in_line(keys)
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs latency only
        log.debug("lock.next_unknown", error=str(error) or type(error).__name__)
        return ()
    if queues:
        wake(queues)
    return queues


class Waker:
    """Wakes others, and nudges its owner. For one event loop.

    It asks who is next for locks in the background: one question at a time, and what is let go
    meanwhile goes with the next.

    Args:
        own: The queues that its owner serves itself; None: all.
        nudge: Tells the owner that there may be work for it in so many seconds.
        ahead: Others are told of what is due within so many seconds.
    """

    def __init__(
        self,
        store: TaskStore,
        wake: Wake,
        *,
        own: Collection[str] | None = (),
        nudge: Callable[[float], None] = lambda _due_in: None,
        ahead: float = AT_ONCE,
    ) -> None:
        self._store = store
        self._wake = wake
        self._own = None if own is None else frozenset(own)
        self._nudge = nudge
        self._ahead = ahead
        self._keys: set[str] = set()
        self._asking: asyncio.Future[None] | None = None
        self._not_before = 0.0

    def saved(self, ended: Iterable[Ended]) -> None:
        """These are on disk: whatever they made ready may start."""
        queues: Counter[str] = Counter()
        keys: set[str] = set()
        soonest = math.inf
        for queue, lock, one in ended:
            if lock is not None:
                keys.add(lock)
            if one.also is not None:
                self._follow_ups(one.also.tasks, queues)
            if one.cause is None:
                continue
            if not is_unfit(one):
                soonest = min(soonest, one.delay)
            # One with a lock that is ready again is among those who are next for it.
            if one.delay <= self._ahead and _is_for_few(one):
                queues[queue] = EVERYBODY
            elif one.delay <= self._ahead and (lock is None or one.delay > 0.0):
                queues[queue] += 1
        if soonest < math.inf:
            self._nudge(soonest)
        if queues:
            self._wake(queues)
        if keys:
            self.let_go(keys)

    def _follow_ups(self, tasks: Sequence[NewTask], queues: Counter[str]) -> None:
        """Tasks that were stored along with the end of an attempt."""
        for new in tasks:
            queues[new.queue] = EVERYBODY if new.requires else queues[new.queue] + 1
        self._nudge(0.0)

    def let_go(self, keys: Collection[str]) -> None:
        """These locks were let go, and that is on disk."""
        if self._own != frozenset():
            self._nudge(0.0)
        self._keys.update(keys)
        self._ask_soon()

    async def finish(self) -> None:
        """Until the last has been woken, or that has taken too long; whoever is cancelled meanwhile
        learns of it then.
        """
        if self._asking is not None:
            await to_the_end(self._finish(self._asking))

    def _ask_soon(self) -> None:
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())

    async def _finish(self, asking: asyncio.Future[None]) -> None:
        await asyncio.wait({asking}, timeout=PATIENCE)
        await end([asking])

    async def _ask(self) -> None:
        try:
            while self._keys:
                await asyncio.sleep(self._not_before - time.monotonic())
                keys, self._keys = self._keys, set()
                began = time.monotonic()
                queues = await wake_next(self._store, self._wake, keys)
                now = time.monotonic()
                in_vain = self._own is None or self._own >= set(queues)
                pause = max(IN_VAIN, min(SHARE * (now - began), 10 * IN_VAIN))
                self._not_before = now + (pause if in_vain else TOGETHER)
        finally:
            self._asking = None


def _is_for_few(one: Settlement) -> bool:
    """Whether its worker could take the task and not everybody who sleeps may."""
    return one.needs is not None or one.cause is Cause.WORKER_LOST
