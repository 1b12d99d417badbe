"""Connections: a few for every event loop that uses the store, made when needed.

A connection belongs to the loop it was made on and is never carried to another. Loops come and go
(`asyncio.run` in a thread is one); each closes its own connections when it ends, by way of an
asynchronous generator, which is the one thing that every ending loop attends to.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

import asyncpg

from holdfast.errors import StoreError
from holdfast.stores.postgres.address import Address
from holdfast.stores.postgres.faults import LOST, Patience, explain, is_lost
from holdfast.stores.postgres.queries import Queries, queries

T = TypeVar("T")

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

CONNECT_TIMEOUT: Final = 5.0
COMMAND_TIMEOUT: Final = 60.0
HOT_TIMEOUT: Final = 15.0
"""For what a worker waits for with empty hands. Longer means a connection that died silently."""
_OWN_NAMES: Final = {"search_path": "pg_catalog, pg_temp"}
"""What we call is PostgreSQL's own, or named with its schema: nobody who may create things in
another schema can put his in its place. A pooler does not take it; there the few statements to
which it matters set it for their transaction."""
_MOST: Final = 8
"""Connections of one loop. A worker needs about three."""
CANCELLED: Final = (asyncio.CancelledError, GeneratorExit)


class Connections:
    """All connections of a store in this process. Usable from any thread's loop."""

    def __init__(self, address: Address, *, lent: bool = False) -> None:
        self._address = address
        self._lent = lent
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._is_open = True

    async def do(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        worker: str = "",
        repeats: bool = False,
        within: float | None = None,
    ) -> T:
        """Do the work on a connection of this loop. It is one transaction, so it may be repeated
        if others were in the way.

        `repeats`: also once if the connection breaks. `within`: seconds after which a connection
        that says nothing counts as broken, where the driver's own limit is too long to wait for.
        """
        patience = Patience(repeats=repeats)
        while True:
            try:
                pool = await self._pool()
                if within is None:
                    return await pool.do(work, patience)
                async with asyncio.timeout(within):
                    return await pool.do(work, patience)
            except (asyncpg.PostgresError, *LOST) as error:
                if isinstance(error, TimeoutError):
                    (await self._pool()).distrust()
                if not patience.allows(error):
                    raise explain(error, self._address.shown, worker) from error
            await asyncio.sleep(patience.pause())

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for the block. If anything unexpected is raised, it is thrown away."""
        pool = await self._pool()
        async with pool.connection() as connection:
            yield connection

    async def connect(self) -> Connection:
        """A connection of the caller's own."""
        return await connect(self._address)

    async def close(self) -> None:
        """Wait for what is under way on this loop, and close everything everywhere."""
        with self._lock:
            self._is_open = False
            pools = dict(self._pools.items())
            self._pools.clear()
        if self._pid != os.getpid():
            return  # what a fork left behind is the parent's to close
        here = asyncio.get_running_loop()
        for loop, pool in pools.items():
            if loop is here:
                await pool.close()
            elif not loop.is_closed():
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(pool.terminate)

    async def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None and self._pid == os.getpid():
            return pool
        with self._lock:
            if not self._is_open or self._pid != os.getpid():
                raise StoreError(f"the store {self._address.shown} is not open in this process")
            pool = self._pools[loop] = Pool(self._address, lent=self._lent)
        await pool.follow_the_loop()
        return pool


class Pool:
    """The connections of one loop."""

    def __init__(self, address: Address, *, lent: bool) -> None:
        self._address = address
        self._lent = lent
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._room = asyncio.Semaphore(_MOST)
        self._keeper: AsyncGenerator[None, None] | None = None
        self._is_closed = False

    async def follow_the_loop(self) -> None:
        """See to it that the connections are closed when the loop ends."""
        self._keeper = self._keep()
        await anext(self._keeper)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with self._room:
            connection = await self._taken()
            try:
                yield connection
            except BaseException as error:
                self._give_back(connection, error)
                raise
            self._idle.append(connection)

    async def do(self, work: Callable[[Connection], Awaitable[T]], patience: Patience) -> T:
        """The work on a connection: `connection()` in fewer steps, for what is done often."""
        async with self._room:
            connection = await self._taken()
            patience.connected = True
            try:
                answer = await work(connection)
            except BaseException as error:
                self._give_back(connection, error)
                raise
            self._idle.append(connection)
            return answer

    def distrust(self) -> None:
        """One connection said nothing for long: the idle ones may be no better."""
        for connection in self._idle:
            connection.terminate()
            self._all.discard(connection)
        self._idle.clear()

    async def close(self) -> None:
        for _ in range(_MOST):
            await self._room.acquire()
        self._is_closed = True
        try:
            if self._keeper is not None:
                await self._keeper.aclose()
        finally:
            for _ in range(_MOST):
                self._room.release()

    def terminate(self) -> None:
        self._is_closed = True
        for connection in self._all:
            connection.terminate()
        self._all.clear()
        self._idle.clear()

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            for connection in list(self._idle):
                with suppress(asyncpg.PostgresError, *LOST):
                    await connection.close(timeout=1.0)
                self._all.discard(connection)
            self.terminate()

    async def _taken(self) -> Connection:
        if self._is_closed:
            raise StoreError(f"the store {self._address.shown} was closed meanwhile")
        return self._rested() or await self._fresh()

    def _give_back(self, connection: Connection, error: BaseException) -> None:
        """Take back a connection on which this was raised."""
        if is_lost(error):
            self._throw_away(connection, others=not isinstance(error, CANCELLED))
        else:
            self._idle.append(connection)

    def _rested(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._all.discard(connection)
        return None

    async def _fresh(self) -> Connection:
        connection = await connect(self._address, lent=self._lent)
        self._all.add(connection)
        return connection

    def _throw_away(self, connection: Connection, *, others: bool) -> None:
        """What the server did to one it probably did to all: then the idle ones go with it."""
        lost = {connection, *(self._idle if others else ())}
        self._idle = [idle for idle in self._idle if idle not in lost]
        for each in lost:
            each.terminate()
            self._all.discard(each)


async def connect(address: Address, *, lent: bool = False) -> Connection:
    """A new connection, in a few seconds or not at all. One that is `lent` to a handler is for its
    own statements: they take the time and find the names that they would anywhere.
    """
    settings = {"application_name": "holdfast"} | ({} if lent else _OWN_NAMES)
    connection = await asyncpg.connect(
        address.dsn,
        timeout=CONNECT_TIMEOUT,
        command_timeout=None if lent else COMMAND_TIMEOUT,
        statement_cache_size=0 if address.pgbouncer else 100,
        server_settings={} if address.pgbouncer else settings,
    )
    if address.pgbouncer and not lent:
        await _learn_types(connection, queries(address.schema))
    return connection


async def _learn_types(connection: Connection, sql: Queries) -> None:
    """Let the driver ask for the types that it will need where its question means what it should;
    later it would ask under any search_path.
    """
    try:
        async with connection.transaction():
            await connection.execute(sql["search_path"])
            await connection.fetch(sql["types"])
    except BaseException:
        connection.terminate()
        raise
