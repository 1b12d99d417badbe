"""Keeps the counts of all processes in the store, so that any server can tell those of the fleet.

Each process has a record with what it has counted and nobody has taken over yet. Records that have
not been written for a while are taken over: added to the sum of those who are gone, and marked as
taken, in one commit. They are kept like that for a day, so that a process which was only silent, or
never learned whether its last record was written, finds what was taken of its counts, and goes on
with the rest. So whatever dies, nothing counts twice, and what is lost is what the dead had counted
since their last record.

Once a minute somebody notes how much it was by then. Whoever is first does: graphs and "within the
last five minutes" are differences of two such notes.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

import orjson

from holdfast.core.metrics import Counts
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.counting import tally_of
from holdfast.errors import HoldfastError, RecordConflict
from holdfast.metrics.minutes import MINUTE, minute_of, note_of
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

COUNTS: Final = "counts"
"""The kind of what single processes have counted; the key is a name of the process."""
TAKEN: Final = "taken"
"""The group of those that were taken over; the others have none."""
TAKEN_KEPT: Final = 86_400.0
GONE: Final = "counts_gone"
"""The kind of the one record with the sum of those who are gone."""
ALL: Final = "all"
EVERY: Final = 10.0
SILENT: Final = 60.0
"""Seconds without a change after which a process's record is taken over."""
LEASE: Final = 30.0
PAGE: Final = 1000
MINUTES_KEPT: Final = 25 * 3600.0
LATEST: Final = 6.0
"""Seconds after a full minute, at most, at which this process looks whether it was noted."""
LAST_WORDS: Final = 3.0


class CountsKeeper:
    """Writes what this process has counted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tally = tally_of(store)
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._owed = Counts()
        self._written = Counts()
        self._version = 0
        self._pending: tuple[Changes, Counts] | None = None
        self._known_taken = ""

    async def tick(self) -> float:
        """Write what has changed since; the same again if nobody knows whether it was written."""
        if self._pending is None:
            self._owed = self._owed.plus(self._tally.take())
            if self._owed == self._written:
                return EVERY
            commit = uuid4().hex  # said in the document too: no two are the same
            said = document_of(self._owed, commit)
            put = Put(COUNTS, self._name, said, self._version, due_in=SILENT)
            self._pending = Changes(commit, records=[put]), self._owed
        changes, owed = self._pending
        try:
            await self._store.commit(changes)
        except RecordConflict:
            self._pending = None
            await self._look()
            return 0.0
        self._pending, self._written, self._version = None, owed, self._version + 1
        return EVERY

    async def _look(self) -> None:
        """Somebody is about to take our record over, or has done so: then the rest is owed."""
        record = await one_record(self._store, COUNTS, self._name)
        self._version = 0 if record is None else record.version
        if record is None:  # that was a day ago
            self._owed, self._written = self._owed.since(self._written), Counts()
        elif record.group == TAKEN and record.document != self._known_taken:
            self._known_taken = record.document
            self._owed, self._written = self._owed.since(counts_in(record)), Counts()

    async def close(self) -> None:
        """The last words of a process that leaves."""
        with suppress(HoldfastError, TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                if self._pending is not None:  # the last round was cut off
                    await self.tick()
                while await self.tick() == 0.0:
                    pass


class CountsTaker:
    """Takes over what processes have left, and forgets old minutes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def tick(self) -> float:
        due = (await self._store.take_due(COUNTS, limit=PAGE, lease=LEASE)).records
        await self._take([record for record in due if record.group != TAKEN])
        await self._forget([record for record in due if record.group == TAKEN])
        await self._forget((await self._store.take_due(MINUTE, limit=PAGE, lease=LEASE)).records)
        return SILENT

    async def _take(self, records: Sequence[Record]) -> None:
        left = {record.key: record for record in records}
        while left:
            gone = await one_record(self._store, GONE, ALL)
            total = Counts() if gone is None else counts_in(gone)
            for record in left.values():
                total = total.plus(counts_in(record))
            puts = [Put(GONE, ALL, document_of(total), 0 if gone is None else gone.version)]
            puts += [
                Put(COUNTS, one.key, one.document, one.version, group=TAKEN, due_in=TAKEN_KEPT)
                for one in left.values()
            ]
            try:
                await self._store.commit(Changes(uuid4().hex, records=puts))
            except RecordConflict as conflict:
                if conflict.kind == COUNTS:
                    del left[conflict.key]  # its process lives, and has written it again
                continue
            return

    async def _forget(self, records: Sequence[Record]) -> None:
        if records:
            forget = [Delete(one.kind, one.key, one.version) for one in records]
            with suppress(RecordConflict):
                await self._store.commit(Changes(uuid4().hex, records=forget))


class MinuteKeeper:
    """Notes the fleet's counts once a minute, if nobody else has."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def tick(self) -> float:
        now = await self._store.now()
        name = minute_of(now)
        if await one_record(self._store, MINUTE, name) is None:
            counts, stats = await fleet_counts(self._store), await self._store.stats()
            note = note_of(now, counts, stats, await self._store.workers())
            put = Put(MINUTE, name, note, 0, sort=name, due_in=MINUTES_KEPT)
            with suppress(RecordConflict):
                await self._store.commit(Changes(uuid4().hex, records=[put]))
        later = random.uniform(0, LATEST)  # noqa: S311 - so that not all look at once
        return 60.0 - now.second - now.microsecond / 1e6 + later


async def fleet_counts(store: Store) -> Counts:
    """What all processes have counted, those too that are gone. Read again if somebody was taken
    over meanwhile: the sum never shrinks.
    """
    gone = await one_record(store, GONE, ALL)
    while True:
        before, total = gone, Counts() if gone is None else counts_in(gone)
        after: Record | None = None
        while page := await store.records(COUNTS, limit=PAGE, group="", after=after):
            for record in page:
                total = total.plus(counts_in(record))
            if len(page) < PAGE:
                break
            after = page[-1]
        gone = await one_record(store, GONE, ALL)
        if gone == before:
            return total


def counts_in(record: Record) -> Counts:
    return Counts.from_json(orjson.loads(record.document))


def document_of(counts: Counts, commit: str = "") -> str:
    return orjson.dumps({**counts.to_json(), "commit": commit}).decode()
