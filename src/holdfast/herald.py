"""Calls whoever is next in line for a lock that was let go.

A store passes a lock on in the very step that frees it, to a task that may be of any queue. Nobody
submits that task, so nobody wakes a worker for it: whoever let the lock go asks the store who is
next, once that is on disk, and wakes the workers of those queues.

All of it is a hint. A question that fails costs latency (`poll`), never a task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from holdfast.ending import end
from holdfast.logs import EventLog
from holdfast.ports.store import TaskStore

log = EventLog(__name__)

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


async def call_next(store: TaskStore, wake: Wake, keys: Collection[str]) -> Collection[str]:
    """Wake the workers of those who hold these keys now and have not started, and say in which
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


class Herald:
    """Calls them in the background: one question at a time, and what is let go meanwhile goes with
    the next. For one event loop.

    Args:
        own: The queues that its owner serves itself; None: all.
    """

    def __init__(self, store: TaskStore, wake: Wake, *, own: Collection[str] | None = ()) -> None:
        self._store = store
        self._wake = wake
        self._own = None if own is None else frozenset(own)
        self._keys: set[str] = set()
        self._asking: asyncio.Future[None] | None = None
        self._not_before = 0.0

    def let_go(self, keys: Collection[str]) -> None:
        """These were let go, and that is on disk."""
        self._keys.update(keys)
        if self._keys and self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())

    async def finish(self) -> None:
        """Until the last has been called, or that has taken too long."""
        asking = self._asking
        if asking is not None:
            await asyncio.wait({asking}, timeout=PATIENCE)
            await end([asking])

    async def _ask(self) -> None:
        try:
            while self._keys:
                await asyncio.sleep(self._not_before - time.monotonic())
                keys, self._keys = self._keys, set()
                began = time.monotonic()
                queues = await call_next(self._store, self._wake, keys)
                now = time.monotonic()
                in_vain = self._own is None or self._own >= set(queues)
                pause = max(IN_VAIN, min(SHARE * (now - began), 10 * IN_VAIN))
                self._not_before = now + (pause if in_vain else TOGETHER)
        finally:
            self._asking = None
