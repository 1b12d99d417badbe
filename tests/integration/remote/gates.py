"""A store whose claims can be held up after they are done, or made to fail. The rest is real."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from holdfast.core.attempt import Claimed
from holdfast.ports.store import Store


class Gate:
    """Wraps a store. While `held`, a claim is done and its answer waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: asyncio.Event | None = None
        self._reached = asyncio.Event()
        self.failure: Exception | None = None

    @classmethod
    def around(cls, store: Store) -> tuple[Gate, Store]:
        """The wrapper, and the same seen as a store."""
        gate = cls(store)
        return gate, cast("Store", gate)

    def hold(self) -> None:
        self._held = asyncio.Event()

    def release(self) -> None:
        assert self._held is not None
        self._held.set()

    async def reached(self) -> None:
        """Until a claim is held up."""
        async with asyncio.timeout(5.0):
            await self._reached.wait()

    async def claim(self, *args: Any, **kwargs: Any) -> Claimed:
        if self.failure is not None:
            raise self.failure
        claimed = await self._store.claim(*args, **kwargs)
        if self._held is not None:
            self._reached.set()
            await self._held.wait()
        return claimed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
