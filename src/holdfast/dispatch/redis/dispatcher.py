"""Wake-ups through Redis: as many sleepers as there is work for, within a millisecond or two.

Redis carries hints and nothing else. Whoever is called claims from the store, where order, locks,
pauses and capabilities are decided; a Redis that is lost, flushed or split costs latency only.

**Who sleeps is known.** An ear registers before it sleeps (`sleep.lua`) and is nowhere while it is
awake. A submit says for each queue how many tasks it got, and `wake.lua` calls so many ears that
sleep for it, those first who have slept longest, each by its process's own channel. Nobody asleep,
nobody called, and nothing piles up. A process that died is passed over: nobody hears its channel.

**Nothing is slept through.** A call that finds fewer sleepers than it has work for leaves word, in
`turn`. An ear tells which turns it knew before it last looked for work; if there was one since, it
is sent to look again instead of to sleep. It is the bargain of a futex, and spares the second look
before every sleep.

**Commits are not heard.** A task that was stored in somebody's own transaction is called for 10, 50
and 250 ms after; the poll finds it if the commit takes longer.

**Without Redis** the store's own dispatcher is in charge, as if Redis had never been; while Redis
is there it is not connected, or no longer. Redis has a third of a second for an answer, and is
tried again at least every two seconds. Each change is told once, and has every ear look once,
because nobody knows what was missed.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from holdfast.dispatch.redis.address import parse
from holdfast.dispatch.redis.board import Board
from holdfast.dispatch.redis.ear import RedisEar
from holdfast.ports.dispatcher import (
    Dispatcher,
    Listener,
    RestingDispatcher,
    RidingDispatcher,
)


class RedisDispatcher:
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
        self._address = parse(url)
        self._store = store
        self._fallback = fallback
        self._numbers = itertools.count(1)
        self._owner = os.getpid()
        self._ears: dict[int, RedisEar] = {}
        self._board = self._new_board()

    async def mode(self) -> str:
        """`redis`, or while that is away the word of who wakes instead."""
        self._here()
        return "redis" if await self._board.is_up() else await self._fallback.mode()

    def wake(self, queues: Mapping[str, int]) -> None:
        self._here()
        if self._board.is_away:
            self._fallback.wake(queues)
        else:
            self._board.call(queues)

    def wake_soon(self, queues: Mapping[str, int]) -> None:
        """Redis hears of no commit: call a few times, when it may have come."""
        self._here()
        if not self._board.is_away:
            self._board.call_later(queues)

    def may_ride(self, queues: Collection[str]) -> bool:
        """Only while Redis is away; then the store's commit may carry the call."""
        self._here()
        fallback = self._fallback
        return (
            self._board.is_away
            and isinstance(fallback, RidingDispatcher)
            and fallback.may_ride(queues)
        )

    def wake_here(self, queues: Collection[str]) -> None:
        if isinstance(self._fallback, RidingDispatcher):
            self._fallback.wake_here(queues)

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        self._here()
        ear = RedisEar(
            self._board.process, next(self._numbers), queues, self._board, self._fallback
        )
        self._ears = {**self._ears, ear.number: ear}
        self._board.serve(self._ears)
        self._board.start()
        try:
            yield ear
        finally:
            self._ears = {n: other for n, other in self._ears.items() if other is not ear}
            self._board.serve(self._ears)
            await ear.close()

    async def close(self) -> None:
        board, self._board = self._board, self._new_board()
        await board.close()
        await self._fallback.close()

    def _new_board(self) -> Board:
        return Board(
            self._address,
            self._name,
            secrets.token_hex(6),
            otherwise=self._fallback.wake,
            rest=self._rest,
        )

    async def _rest(self) -> None:
        if isinstance(self._fallback, RestingDispatcher):
            await self._fallback.rest()

    async def _name(self) -> str:
        return self._address.prefix or await self._store()

    def _here(self) -> None:
        if os.getpid() != self._owner:
            # The ears, the thread and the socket are the parent's.
            self._owner = os.getpid()
            self._ears = {}
            self._board = self._new_board()
