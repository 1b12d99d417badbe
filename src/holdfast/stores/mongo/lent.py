"""Clients lent to handlers by `ctx.transaction()`, apart from those of the worker: handlers that
use all of their connections must not keep it from its work.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from pymongo import MongoClient

from holdfast.stores.mongo.address import Address
from holdfast.stores.mongo.connections import Connections, options_of
from holdfast.stores.mongo.documents import Document

_ROOM: Final = 100


class Lent:
    """Made with the store, and connected when the first handler asks."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._client: MongoClient[Document] | None = None
        self.clients = Connections(address, pool=_ROOM)

    def client(self) -> MongoClient[Document]:
        """The one for sync handlers, of all threads."""
        with self._lock:
            if self._client is None:
                options = options_of(self._address, pool=_ROOM)
                self._client = MongoClient(self._address.uri, **options)
            return self._client

    async def close(self) -> None:
        await self.clients.close()
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(client.close)
