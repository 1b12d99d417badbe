"""Wake-ups by LISTEN/NOTIFY: one connection per process, while somebody listens or calls.

NOTIFY is for those who sleep. A process registers before it sleeps (`dispatch/sleepers.py`), and
submitters ask the server to call only the queues that somebody sleeps for: a NOTIFY in every submit
would make all commits of a database wait for each other (16 submitters: 2.3 instead of 10.4
thousand submits a second). A submit's call leaves with its own commit: that is the store's affair
(`stores/postgres/calls.py`). All other calls are gathered, and made over the process's connection.

Behind a pooler that shares connections between transactions (pgbouncer) nothing can be heard at
all: that is found out by calling oneself, and `mode` says so.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection

from holdfast.dispatch.postgres.wakeups import PostgresWakeups
from holdfast.dispatch.sleepers import SleeperDispatcher


class PostgresDispatcher(SleeperDispatcher[PostgresWakeups]):
    """Wakes the workers of one database, wherever they are.

    Args:
        dsn: where the database is, as asyncpg understands it.
        schema: where Holdfast's functions are; also the name of the channel.
    """

    def __init__(self, dsn: str, *, schema: str = "holdfast") -> None:
        self._dsn = dsn
        self._schema = schema
        super().__init__()

    def wake(self, queues: Collection[str]) -> None:
        self._wake_here(queues)
        self._wakeups.call(dict.fromkeys(queues, 1))

    def _new_wakeups(self) -> PostgresWakeups:
        return PostgresWakeups(
            self._dsn,
            self._schema,
            f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            listeners=lambda: self._listeners,
            let_go=self._let_go,
        )
