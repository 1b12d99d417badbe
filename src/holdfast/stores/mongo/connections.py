"""Two clients for every event loop that uses the store, made when needed.

The driver binds a client to the loop it is first used on. Loops come and go (`asyncio.run` in a
thread is one); each closes its own client when it ends, by way of an asynchronous generator, which
is the one thing that every ending loop attends to.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, NamedTuple

from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import ConfigurationError, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from holdfast.core.task import Json
from holdfast.errors import ConfigError, StoreError
from holdfast.stores.mongo.address import Address
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.driver_waits import mend

mend()

Client = AsyncMongoClient[Document]
Collection = AsyncCollection[Document]

_DEFAULTS: Final = {
    "appname": "holdfast",
    "connectTimeoutMS": 5_000,
    "serverSelectionTimeoutMS": 5_000,
    "socketTimeoutMS": 30_000,
    "serverMonitoringMode": "poll",
}
"""Unless the URL says otherwise. A worker that finds no server for a few seconds says so and tries
again by itself; the driver's half a minute would only keep it from saying so. Polling spares two
connections for every loop; a failing command tells of an election as soon.
"""
_POOL: Final = 8
_PATIENCE: Final = 2.0
_GOODBYE: Final = 0.5
DURABLE: Final = WriteConcern("majority", j=True)
MAJORITY: Final = ReadConcern("majority")
CODEC: Final[CodecOptions[Document]] = CodecOptions(tz_aware=True)
"""For what is not told by a client of ours: commands, and the clients of callers."""


NOUNS: Final = ("tasks", "history", "gates", "state", "workers", "records", "journal")


class Collections(NamedTuple):
    """The store's collections as one loop sees them.

    `session` is the transaction to work in. `apart` are the same collections by way of a client
    that only transactions use: plain writes wait in the server for the end of a transaction, and
    must not have all the connections that its end needs. `told` is what the board was told by
    way of these.
    """

    client: Client
    tasks: Collection
    history: Collection
    gates: Collection
    state: Collection
    workers: Collection
    records: Collection
    journal: Collection
    told: set[str]
    session: AsyncClientSession | None = None
    apart: Collections | None = None


class Connections:
    """All clients of a store in this process. Usable from any thread's loop."""

    def __init__(self, address: Address, *, pool: int = _POOL) -> None:
        self._address = address
        self._pool = pool
        self._here: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Attached] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._is_open = True

    @asynccontextmanager
    async def collections(self) -> AsyncIterator[Collections]:
        """Those of the running loop, for a block that `close` waits for."""
        attached = await self._attached()
        with attached.in_use():
            yield attached.collections or self._name(attached)

    async def _attached(self) -> Attached:
        loop = asyncio.get_running_loop()
        attached = self._here.get(loop)
        if attached is None or self._pid != os.getpid():
            attached = await self._connect(loop)
        return attached

    async def close(self) -> None:
        """Wait for what is under way, and close everything everywhere. Not for long if another
        loop is busy: it closes its client when it ends.
        """
        with self._lock:
            self._is_open = False
            everywhere = dict(self._here.items())
            self._here.clear()
        if self._pid != os.getpid():
            return  # what a fork left behind is the parent's to close
        here = everywhere.pop(asyncio.get_running_loop(), None)
        elsewhere = [
            asyncio.wrap_future(asyncio.run_coroutine_threadsafe(attached.close(), loop))
            for loop, attached in everywhere.items()
            if loop.is_running()
        ]
        if here is not None:
            await here.close()
        if elsewhere:
            done, _ = await asyncio.wait(elsewhere, timeout=_PATIENCE)
            for each in done:
                _ = each.cancelled() or each.exception()  # a loop that ended meanwhile did it

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> Attached:
        with self._lock:
            if not self._is_open or self._pid != os.getpid():
                raise StoreError(f"the store {self._address.shown} is not open in this process")
            clients = [client_of(self._address, pool=self._pool) for _ in range(2)]
            attached = self._here[loop] = Attached(*clients)
        await attached.follow_the_loop()
        return attached

    def _name(self, attached: Attached) -> Collections:
        apart = self._collections(attached.apart)
        own = self._collections(attached.client)
        attached.collections = own._replace(apart=apart, told=apart.told)
        return attached.collections

    def _collections(self, client: Client) -> Collections:
        database = client.get_database(
            self._address.database,
            read_concern=MAJORITY,
            write_concern=DURABLE,
            read_preference=ReadPreference.PRIMARY,
        )
        named = (database[self._address.collection(noun)] for noun in NOUNS)
        return Collections._make((client, *named, set(), None, None))


class Attached:
    """The clients of one loop; they connect when they are used."""

    def __init__(self, client: Client, apart: Client) -> None:
        self.client = client
        self.apart = apart
        self.collections: Collections | None = None
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._keeper: AsyncGenerator[None, None] = self._keep()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """For a block that `close` waits for."""
        self._users += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._idle.set()

    async def follow_the_loop(self) -> None:
        """See to it that the client is closed when the loop ends."""
        await anext(self._keeper)

    async def close(self) -> None:
        await self._idle.wait()
        await self._keeper.aclose()

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await close_clients(self.client, self.apart)


async def close_clients(*clients: Client) -> None:
    """Close these. Not for long, though no server be there to say goodbye to."""
    await asyncio.gather(*map(_close, clients))
    await asyncio.sleep(0)  # sockets are closed in the loop's next turn


async def _close(client: Client) -> None:
    for _ in range(2):  # the second says no goodbye
        with suppress(PyMongoError, TimeoutError):
            async with asyncio.timeout(_GOODBYE):
                await client.close()


def client_of(address: Address, *, pool: int = _POOL) -> Client:
    """A client that has not connected yet."""
    try:
        return AsyncMongoClient(address.uri, **options_of(address, pool=pool))
    except (ConfigurationError, ValueError) as error:
        raise ConfigError("url", f"url: {error}") from error


def options_of(address: Address, *, pool: int) -> dict[str, Json]:
    """What the driver is told beside the URL."""
    wanted: dict[str, Json] = {**_DEFAULTS, "maxPoolSize": pool}
    unsaid = {name: value for name, value in wanted.items() if name.lower() not in address.options}
    return unsaid | {"tz_aware": True}
