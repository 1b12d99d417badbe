"""Wake-ups by LISTEN/NOTIFY: one connection per process, while somebody listens or calls.

NOTIFY is for those who sleep. A process registers before it sleeps, and submitters ask the server
to call only the queues that somebody sleeps for: a NOTIFY in every submit would make all commits of
a database wait for each other (16 submitters: 2.3 instead of 10.4 thousand submits a second).
A submit's call leaves with its own commit: that is the store's affair (`stores/postgres/calls.py`).
All other calls are gathered, and made over the process's connection.

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
from contextlib import ExitStack, asynccontextmanager

from holdfast.dispatch.in_process import BaseDispatcher, InProcessListener
from holdfast.dispatch.postgres.wakeups import PostgresWakeups
from holdfast.ports.dispatcher import Listener

REPEATS = (0.005, 0.02, 0.1, 0.5)
"""Seconds after which a process that has just registered looks again, in spite of no call."""


class PostgresDispatcher(BaseDispatcher["PostgresListener"]):
    """Wakes the workers of one database, wherever they are.

    Args:
        dsn: where the database is, as asyncpg understands it.
        schema: where Holdfast's functions are; also the name of the channel.
    """

    def __init__(self, dsn: str, *, schema: str = "holdfast") -> None:
        super().__init__()
        self._dsn = dsn
        self._schema = schema
        self._wakeups: PostgresWakeups
        self._begin_anew()

    def wake(self, queues: Collection[str]) -> None:
        self._wake_here(queues)
        self._wakeups.call(dict.fromkeys(queues, 1))

    def added(self, queues: Collection[str]) -> None:
        """The store's commits call other processes."""
        self._wake_here(queues)

    @asynccontextmanager
    async def listen(self, queues: Collection[str] | None) -> AsyncIterator[Listener]:
        self._check_fork()
        with ExitStack() as stack:
            with self._guard:
                listener = PostgresListener(queues, self._wakeups)
                stack.enter_context(self._keeping(listener))
            self._wakeups.start()
            yield listener

    async def mode(self) -> str:
        """`listen`, or `poll` if nothing can be heard on this connection, or there is none."""
        self._check_fork()
        return await self._wakeups.mode()

    async def close(self) -> None:
        wakeups, self._wakeups = self._wakeups, self._new_wakeups()
        await wakeups.close()

    def _begin_anew(self) -> None:
        self._guard = threading.Lock()
        self._wakeups = self._new_wakeups()

    def _new_wakeups(self) -> PostgresWakeups:
        return PostgresWakeups(
            self._dsn,
            self._schema,
            f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            listeners=lambda: self._listeners,
            let_go=self._let_go,
        )

    def _let_go(self, wakeups: PostgresWakeups) -> bool:
        with self._guard:
            if self._listeners:
                return False
            if self._wakeups is wakeups:
                self._wakeups = self._new_wakeups()
            return True


class PostgresListener(InProcessListener):
    """Other processes can wake it through the database."""

    def __init__(self, queues: Collection[str] | None, wakeups: PostgresWakeups) -> None:
        super().__init__(queues)
        self._wakeups = wakeups
        self._registration = 0
        self._repeats: list[float] = []

    async def wait(self, timeout: float) -> bool:
        """Sleep until called or for `timeout` seconds; True also if it is time to look again."""
        if not self._is_woken and self._wakeups.must_register(self._registration):
            registration = await self._wakeups.register(within=min(timeout, 1.0))
            if registration is not None:
                self._registration = registration
                self._repeats = list(REPEATS)
                self._is_woken = False
                return True
        repeat = self._repeats.pop(0) if self._repeats else None
        try:
            woken = await super().wait(timeout if repeat is None else min(timeout, repeat))
        finally:
            self._wakeups.slept()
        return woken or repeat is not None
