"""The store's own life: opening, its schema, closing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from holdfast.stores.mongo import checks, schema
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections, Connections
from holdfast.stores.mongo.faults import explained
from holdfast.stores.mongo.lent import Lent


class Opens(Connected):
    """`ports.store.SchemaStore`, and what `async with` asks for."""

    async def open(self) -> None:
        if self._connections is not None:
            return
        connections = Connections(self._address)
        try:
            with explained(self.url):
                async with connections.collections() as db:
                    await schema.open_schema(db, self.url, ttl=self._clock is None)
        except BaseException:
            await connections.close()
            raise
        self._connections, self._lent = connections, Lent(self._address)

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        lent, self._lent = self._lent, None
        if lent is not None:
            await lent.close()
        if connections is not None:
            await connections.close()

    # Also of a store that cannot be opened because its version is another.

    async def schema_version(self) -> int:
        async with self._on_its_own() as db:
            return await schema.found_version(db)

    async def migrate(self) -> Sequence[int]:
        async with self._on_its_own() as db:
            return await schema.migrate(db, self.url, ttl=self._clock is None)

    async def check(self) -> Sequence[str]:
        async with self._server() as db:
            return await checks.problems(db, has_own_clock=self._clock is not None)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def _on_its_own(self) -> AsyncIterator[Collections]:
        """By a client for this once, so that the store need not be open."""
        connections = Connections(self._address)
        try:
            with explained(self.url):
                async with connections.collections() as db:
                    yield db
        finally:
            await connections.close()
