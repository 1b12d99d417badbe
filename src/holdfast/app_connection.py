"""A store and a dispatcher in use: opened once per process, at the first need, from any thread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from holdfast.client import Client
from holdfast.definitions.registry import Registry
from holdfast.engine.waking import PassedOn
from holdfast.ports.dispatcher import Dispatcher
from holdfast.ports.store import Store
from holdfast.settings import Settings


class AppConnection:
    """An app's connection to its store. Make it freely: nothing happens before `open`."""

    def __init__(
        self, store: Store, dispatcher: Dispatcher, registry: Registry, settings: Settings
    ) -> None:
        self.client = Client(store, dispatcher, registry, settings)
        self._passed_on = store.passed_on = PassedOn(dispatcher.wake)
        self._store = store
        self._dispatcher = dispatcher
        self._lock = threading.Lock()
        self._opening: Future[None] | None = None
        self.is_open = False

    async def open(self) -> None:
        """Open the store. However many threads and loops ask, one opens and the rest wait for it.

        A failure reaches all of them; the next to ask tries again.
        """
        while not self.is_open:
            with self._lock:
                others, mine = self._opening, Future[None]()
                if others is None:
                    self._opening = mine
            if others is None:
                await self._open(mine)
            else:
                await asyncio.wrap_future(others)

    async def close(self) -> None:
        """Let go of the store and the dispatcher. Idempotent."""
        self.is_open = False
        self._opening = None
        self._passed_on.call()
        await self._dispatcher.close()
        await self._store.close()

    async def _open(self, done: Future[None]) -> None:
        try:
            await self._store.open()
        except Exception as error:
            self._opening = None
            done.set_exception(error)
            raise
        except BaseException:
            # This caller was cancelled, which is nobody else's affair: they try for themselves.
            self._opening = None
            done.set_result(None)
            raise
        self.is_open = True
        done.set_result(None)
