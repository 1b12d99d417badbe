"""Wake-ups through Redis: as many sleepers as there is work for, within a millisecond or two.

Redis carries hints and nothing else. Whoever is called claims from the store, where order, locks,
pauses and capabilities are decided; a Redis that is lost, flushed or split costs latency only.

**Who sleeps is known.** A listener registers before it sleeps (`sleep.lua`) and is nowhere while it
is awake. A submit says for each queue how many tasks it got, and `wake.lua` calls so many that
sleep for it, those first who have slept longest, each by its process's own channel. Nobody asleep,
nobody called, and nothing piles up. A process that died is passed over: nobody hears its channel.

**Nothing is slept through.** A call that finds fewer sleepers than it has work for leaves word, in
`turn`. A listener tells which turns it knew before it last looked for work; if there was one since,
it is sent to look again instead of to sleep. It is the bargain of a futex, and spares the second
look before every sleep.

**Commits are not heard.** A task that was stored in somebody's own transaction is called for 10, 50
and 250 ms after; the poll finds it if the commit takes longer.

**Without Redis** the store's own dispatcher is in charge, as if Redis had never been; while Redis
is there it is not connected, or no longer. Redis has a third of a second for an answer, and is
tried again at least every two seconds. Each change is told once, and has every listener look once,
because nobody knows what was missed.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from holdfast.dispatch.in_process import BaseDispatcher
from holdfast.dispatch.redis.address import parse
from holdfast.dispatch.redis.listener import RedisListener
from holdfast.dispatch.redis.wakeups import RedisWakeups
from holdfast.ports.dispatcher import Dispatcher, Listener


class RedisDispatcher(BaseDispatcher[RedisListener]):
    """Wakes the workers of one store through Redis, or otherwise while that is away.

    Args:
        url: where Redis is; see `address.py`.
        store: tells a name that is this store's alone among all that use the same Redis. Asked
            once, on another event loop. A `prefix` in the URL goes before.
        fallback: who wakes them without Redis. Closed with this one.
    """

    def __init__(
        self, url: str, *, store: Callable[[], Awaitable[str]], fallback: Dispatcher
    ) -> None:
        super().__init__()
        self._address = parse(url)
        self._store = store
        self._fallback = fallback
        self._numbers = itertools.count(1)
        self._begin_anew()

    def wake(self, queues: Mapping[str, int]) -> None:
        self._check_fork()
        if self._wakeups.is_away:
            self._fallback.wake(queues)
        else:
            self._wakeups.call(queues)

    def added(self, queues: Mapping[str, int]) -> None:
        self._check_fork()
        if self._wakeups.is_away:
            self._fallback.added(queues)
        else:
            self._wakeups.call(queues)

    def added_within(self, queues: Mapping[str, int]) -> None:
        """Redis hears of no commit: call a few times, when it may have come."""
        self._check_fork()
        if self._wakeups.is_away:
            self._fallback.added_within(queues)
        else:
            self._wakeups.call_later(queues)

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        self._check_fork()
        wakeups = self._wakeups
        listener = RedisListener(next(self._numbers), queues, wakeups, self._fallback)
        try:
            with self._keeping(listener):
                wakeups.start()
                yield listener
        finally:
            await listener.close()

    async def mode(self) -> str:
        """`redis`, or while that is away the word of who wakes instead."""
        self._check_fork()
        return "redis" if await self._wakeups.is_up() else await self._fallback.mode()

    async def close(self) -> None:
        wakeups = self._wakeups
        self._begin_anew()
        await wakeups.close()
        await self._fallback.close()

    def _begin_anew(self) -> None:
        self._wakeups = RedisWakeups(
            self._address,
            self._name,
            secrets.token_hex(6),
            listeners=lambda: self._listeners,
            otherwise=self._fallback.wake,
        )

    async def _name(self) -> str:
        return self._address.prefix or await self._store()
