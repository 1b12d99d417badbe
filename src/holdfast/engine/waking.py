"""Wakes whoever may take what ended attempts made ready: a task handed back, a retry that is due
soon, what stood behind a gate. Nobody submits those, so nobody else wakes a worker for them.

A store lets tasks pass a gate in the very step that opens it, whatever their queue is, and tells of
it (`Store.passed_on`).

All of it is a hint: one that is lost costs latency (`poll`), never a task.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from holdfast.core.attempt import Settlement
from holdfast.core.task import Cause, NewTask
from holdfast.core.unfit import is_unfit
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.ports.store import Store

AT_ONCE: Final = 0.01
"""Whoever looks for itself when a task is due tells others only of what is due within so many
seconds.
"""

TOGETHER: Final = 0.025
"""Seconds between two calls for what passed gates, however many do. A lone one is called at once.
Mostly whoever lets a gate go takes what stands behind it itself, and others are called in vain.
"""

Wake = Callable[[Mapping[str, int]], None]
Ended = tuple[str, str | None, Settlement]
"""The queue of a task, its lock, and how its attempt was settled."""


class PassedOn:
    """Wakes workers of those whom gates let pass. Safe from any thread with an event loop."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._queues: Counter[str] = Counter()
        self._not_before = 0.0

    def __call__(self, queues: Mapping[str, int]) -> None:
        with self._lock:
            is_first = not self._queues
            self._queues.update(queues)
            wait = self._not_before - time.monotonic()
        if wait <= 0:
            self.call()
        elif is_first:
            asyncio.get_running_loop().call_later(wait, self.call)

    def call(self) -> None:
        """Tell of those who were not told of yet."""
        with self._lock:
            queues, self._queues = self._queues, Counter()
            self._not_before = time.monotonic() + TOGETHER
        if queues:
            self._wake({queue: min(number, EVERYBODY) for queue, number in queues.items()})


class _Told:
    """Tells several of those whom gates let pass."""

    def __init__(self, *hearers: Wake) -> None:
        self.hearers = list(hearers)

    def __call__(self, queues: Mapping[str, int]) -> None:
        for hear in tuple(self.hearers):
            hear(queues)


def also_tell(store: Store, hear: Wake) -> Callable[[], None]:
    """Let somebody hear too of whom the store's gates let pass, until what is returned is called.
    Whoever let them pass can mostly take them itself, and need not be woken for it by others.
    """
    told = store.passed_on
    if not isinstance(told, _Told):
        told = store.passed_on = _Told(told)
    hearers = told.hearers
    hearers.append(hear)
    return lambda: hearers.remove(hear)


class Waker:
    """Wakes others, and nudges its owner.

    Args:
        nudge: Tells the owner that there may be work for it in so many seconds.
        ahead: Others are told of what is due within so many seconds.
    """

    def __init__(
        self,
        wake: Wake,
        *,
        nudge: Callable[[float], None] = lambda _due_in: None,
        ahead: float = AT_ONCE,
    ) -> None:
        self._wake = wake
        self._nudge = nudge
        self._ahead = ahead

    def saved(self, ended: Iterable[Ended]) -> None:
        """These are on disk: whatever they made ready may start."""
        queues: Counter[str] = Counter()
        soonest = math.inf
        for queue, lock, one in ended:
            if lock is not None:
                soonest = 0.0
            if one.also is not None:
                self._follow_ups(one.also.tasks, queues)
            if one.cause is None or one.behind is not None:
                continue
            if not is_unfit(one):
                soonest = min(soonest, one.delay)
            # One with a lock that is ready again has passed it, and the store tells of it.
            if one.delay <= self._ahead and _is_for_few(one):
                queues[queue] = EVERYBODY
            elif one.delay <= self._ahead and (lock is None or one.delay > 0.0):
                queues[queue] += 1
        if soonest < math.inf:
            self._nudge(soonest)
        if queues:
            self._wake(queues)

    def _follow_ups(self, tasks: Sequence[NewTask], queues: Counter[str]) -> None:
        """Tasks that were stored along with the end of an attempt."""
        for new in tasks:
            queues[new.queue] = EVERYBODY if new.requires else queues[new.queue] + 1
        self._nudge(0.0)

    def let_go(self) -> None:
        """A lock was let go, and that is on disk."""
        self._nudge(0.0)


def _is_for_few(one: Settlement) -> bool:
    """Whether its worker could take the task and not everybody who sleeps may."""
    return one.needs is not None or one.cause is Cause.WORKER_LOST
