"""Does chores (`core.chore`): those that came due, and those that somebody begins here.

Every process that keeps the store in order has an agent for it, and so has every worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final
from uuid import uuid4

from holdfast.core.chore import CHORE, chore, read_chore
from holdfast.core.record import Changes, Delete, Record
from holdfast.core.task import Json
from holdfast.errors import RecordConflict
from holdfast.logs import EventLog, trace_of
from holdfast.ports.records import RecordStore

log = EventLog(__name__)

LEASE: Final = 60.0
"""Seconds that whoever took a chore has for it before another one may."""
AT_A_TIME: Final = 20

Do = Callable[[Json], Awaitable[None]]


class Chores:
    """An agent: `tick` does what is due, and waits for more. Of one event loop."""

    def __init__(self, store: RecordStore, known: Mapping[str, Do], *, sweep: float) -> None:
        """`known` says how each is done, by name."""
        self._store = store
        self._known = known
        self._sweep = sweep
        self._hurry = asyncio.Event()
        self.done = 0
        """How many were done here."""

    async def tick(self) -> float:
        """Do what is due. Rest until the next one is, or somebody knows of one."""
        next_due = await self.round()
        rest = self._sweep if next_due is None else min(self._sweep, next_due)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), rest)
        self._hurry.clear()
        return 0.0

    def hurry(self) -> None:
        """There is something to do."""
        self._hurry.set()

    async def round(self) -> float | None:
        """Do all that is due; the seconds until the next one is."""
        while True:
            due = await self._store.take_due(CHORE, limit=AT_A_TIME, lease=LEASE)
            for record in due.records:
                await self._do(record)
            if len(due.records) < AT_A_TIME:
                return due.next_due

    async def begin(self, name: str, about: Json) -> None:
        """Do this now. If we die over it, another one will."""
        put = chore(name, uuid4().hex, about, due_in=LEASE)
        await self._store.commit(Changes(uuid4().hex, records=(put,)))
        await self._known[name](about)
        await self._store.commit(Changes(uuid4().hex, records=(Delete(CHORE, put.key),)))

    async def _do(self, record: Record) -> None:
        name, about = read_chore(record)
        do = self._known.get(name)
        if do is None:  # one of a newer release
            return
        try:
            await do(about)
        except Exception as error:  # noqa: BLE001 - it comes due again; the others must not wait for it
            log.error("chore.failed", chore=name, exception=trace_of(error))
            return
        self.done += 1
        with suppress(RecordConflict):  # it is to be done once more
            gone = Delete(CHORE, record.key, record.version)
            await self._store.commit(Changes(uuid4().hex, records=(gone,)))
