"""A store whose answers a test can spoil: away, slow, or broken. The rest is the real one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from holdfast.core.attempt import Settlement
from holdfast.errors import StoreUnavailable
from holdfast.ports.store import Store


class Spoiled:
    """Wraps a store. `away` lists the methods that raise `StoreUnavailable`; "*" means all.

    `unanswered` lists those that do their work and then raise it: the outcome is unknown. `late`
    lists those that raise it and do their work at `deliver`. `deaf` lists those that take long and
    lose every other cancellation, as drivers do that use `asyncio.wait_for` of Python 3.11.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away: set[str] = set()
        self.unanswered: set[str] = set()
        self.late: set[str] = set()
        self.deaf: set[str] = set()
        self.cancels = 0
        self.calls: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.limits: list[int] = []
        self.saved: list[Sequence[Settlement]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.bugs: dict[str, Exception] = {}
        self._under_way: list[Callable[[], Awaitable[Any]]] = []

    @classmethod
    def around(cls, store: Store) -> tuple[Spoiled, Store]:
        """The wrapper, and the same seen as a store."""
        spoiled = cls(store)
        return spoiled, cast("Store", spoiled)

    async def deliver(self) -> None:
        """Let the late calls happen."""
        while self._under_way:
            await self._under_way.pop()()

    async def _hold_up(self, name: str) -> None:
        if name in self.gates:
            await self.gates[name].wait()
        if name in self.deaf:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.cancels += 1
                if self.cancels % 2 == 0:
                    raise

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if name in ("url", "abilities"):
            return real

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            if name == "claim":
                self.limits.append(kwargs["limit"])
            await self._hold_up(name)
            if name in self.bugs:
                raise self.bugs[name]
            if name in self.away or "*" in self.away:
                self.refused[name] += 1
                raise StoreUnavailable(f"{name}: the disk is full")
            if name in self.late:
                self.refused[name] += 1
                self._under_way.append(partial(real, *args, **kwargs))
                raise StoreUnavailable(f"{name}: the connection is gone")
            answer = await real(*args, **kwargs)
            if name == "save":
                self.saved.append(args[0])
            if name in self.unanswered:
                self.refused[name] += 1
                raise StoreUnavailable(f"{name}: the connection is gone")
            return answer

        return call
