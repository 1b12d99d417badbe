"""Wake-ups by LISTEN/NOTIFY: one connection per process, used for both.

NOTIFY is for those who sleep. A process registers before it sleeps, and submitters ask the server
to call only the queues that somebody sleeps for: a NOTIFY in every submit would make all commits of
a database wait for each other (16 submitters: 2.3 instead of 10.4 thousand submits a second).
A submit takes its call along in its own commit (`may_ride`) unless one has left just before; those
are gathered, and the process's own connection calls for them.

**Nothing is slept through.** A listener whose process is not registered registers, then claims once
more (`wait` returns at once), and only then sleeps. A submit that looked for sleepers just before
and commits just after is found by looking again after 5, 20, 100 and 500 ms; then by the poll.

**Busy processes are not called.** One that has not slept for a while is taken off the list.

**Breaks.** After any break: connect again, with jitter, listen, and wake every listener once. While
there is no connection, workers poll. Behind a pooler that shares connections between transactions
(pgbouncer) nothing can be heard at all: that is found out by calling oneself, and `mode` says so.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from holdfast.dispatch.ear import Ear
from holdfast.dispatch.switchboard import Switchboard
from holdfast.ports.dispatcher import Listener

REPEATS = (0.005, 0.02, 0.1, 0.5)
"""Seconds after which a process that has just registered looks again, in spite of no call."""


class PostgresDispatcher:
    """Wakes the workers of one database, wherever they are.

    Args:
        dsn: where the database is, as asyncpg understands it.
        schema: where Holdfast's functions are; also the name of the channel.
    """

    def __init__(self, dsn: str, *, schema: str = "holdfast") -> None:
        self._dsn = dsn
        self._schema = schema
        self._owner = os.getpid()
        self._ears: tuple[CallEar, ...] = ()
        self._guard = threading.Lock()
        self._board = self._new_board()

    async def mode(self) -> str:
        """`listen`, or `poll` if nothing can be heard on this connection, or there is none."""
        return await self._board.mode()

    def wake(self, queues: Collection[str]) -> None:
        if os.getpid() != self._owner:
            self._forked()
        self.wake_here(queues)
        self._board.call(queues)

    def may_ride(self, queues: Collection[str]) -> bool:
        if os.getpid() != self._owner:
            self._forked()
        return self._board.take_turn()

    def wake_here(self, queues: Collection[str]) -> None:
        for ear in self._ears:
            if ear.hears(queues):
                ear.ring()

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        if os.getpid() != self._owner:
            self._forked()
        with self._guard:
            ear = CallEar(queues, self._board)
            self._ears = (*self._ears, ear)
            self._board.ears = self._ears
            self._board.start()
        try:
            yield ear
        finally:
            self._ears = tuple(other for other in self._ears if other is not ear)
            self._board.ears = self._ears

    async def rest(self) -> None:
        """Let go of the connection, unless somebody listens."""
        with self._guard:
            if self._ears or not self._board.has_started:
                return
            board, self._board = self._board, self._new_board()
        await board.close()

    async def close(self) -> None:
        board, self._board = self._board, self._new_board()
        await board.close()

    def _new_board(self) -> Switchboard:
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        return Switchboard(self._dsn, self._schema, name)

    def _forked(self) -> None:
        # The ears, the thread and the socket are the parent's.
        self._owner = os.getpid()
        self._ears = ()
        self._guard = threading.Lock()
        self._board = self._new_board()


class CallEar(Ear):
    """An ear that other processes can ring through the database."""

    def __init__(self, queues: Collection[str] | None, board: Switchboard) -> None:
        super().__init__(queues)
        self.queues = queues
        self._board = board
        self._registered = 0
        self._repeats: list[float] = []

    async def wait(self, timeout: float) -> bool:
        """Sleep until called or for `timeout` seconds; True also if it is time to look again."""
        if not self._rung and self._board.is_away(self._registered):
            registered = await self._board.register(within=min(timeout, 1.0))
            if registered is not None:
                self._registered = registered
                self._repeats = list(REPEATS)
                self._rung = False
                return True
        repeat = self._repeats.pop(0) if self._repeats else None
        self._board.begin_nap()
        try:
            woken = await super().wait(timeout if repeat is None else min(timeout, repeat))
        finally:
            self._board.end_nap()
        return woken or repeat is not None
