"""Keeps timers armed: the store says what should be, a timer is only how we hear of it.

A record of the kind `timer` stands for every wake-up that somebody wants, by its key:

    {"at": when it is due, "wake": when its timer calls, "name": that timer, "hop": how many before}

It is written before the timer is armed and due a little after the timer should have called. So
whoever dies in between, and whatever a timer service loses, leaves a record that comes due, and the
next sweep arms it again. A call that finds no record, or one whose time is not near, is of a timer
that was replaced, cancelled or answered: it does nothing. A call that finds its time come `fire`s,
and then forgets the record. Timers call at least once and so may we: `fire` must not mind.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import uuid4

from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.errors import RecordConflict, TimerUnavailable
from holdfast.logs import EventLog
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.ports.timer import Timer
from holdfast.timers.hops import next_hop

log = EventLog("holdfast.timers")

TIMER: Final = "timer"
"""The kind of these records."""
LATE: Final = timedelta(seconds=60)
"""How long after its time a call is taken for lost."""
LEASE: Final = 60.0
"""Seconds that whoever arms a timer has for it before a sweep does it again."""
NEAR: Final = 10.0
"""Seconds that a call may come before its time and is waited for: clocks differ."""
AT_A_TIME: Final = 20
"""How many timers are armed side by side."""
NEVER: Final = datetime.max.replace(tzinfo=UTC)
LOOK_UP: Final = 500
"""Of how many wake-ups a sweep looks up the records at once."""

Fire = Callable[[str], Awaitable[None]]
"""Does what is due under a key. It may be called twice, even at once, and for what is over."""


class Wanted(NamedTuple):
    """A wake-up that somebody wants."""

    key: str
    at: datetime


Find = Callable[[], AsyncIterator[Wanted]]
"""All that should be armed, looked up where it is true; a sweep asks."""


class Armed(NamedTuple):
    """A timer as its record has it. Without a `name` it is yet to be armed."""

    at: datetime
    wake: datetime
    name: str | None
    hop: int

    @classmethod
    def of(cls, record: Record) -> Armed:
        said = json.loads(record.document)
        at, wake = (datetime.fromisoformat(said[word]) for word in ("at", "wake"))
        return cls(at, wake, said["name"], said["hop"])

    def put(self, key: str, version: int | None, *, due_in: float | None = None) -> Put:
        said = {
            "at": self.at.isoformat(),
            "wake": self.wake.isoformat(),
            "name": self.name,
            "hop": self.hop,
        }
        due_at = self.wake + LATE if due_in is None else None
        return Put(TIMER, key, json.dumps(said), version=version, due_in=due_in, due_at=due_at)


def wanted(key: str, at: datetime) -> Put:
    """The record of a wake-up that is yet to be armed, for a commit of the caller's own. It is due
    at once: the next sweep arms it, unless `Arming.arm` does before.
    """
    return Armed(at, at, None, 0).put(key, None, due_in=0.0)


class Arming:
    """Arms, answers and sweeps the wake-ups of one store. Any number of processes may."""

    def __init__(
        self,
        store: Store,
        timer: Timer,
        fire: Fire,
        *,
        find: Sequence[Find] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._timer = timer
        self._fire = fire
        self._find = find
        self._sleep = sleep

    async def arm(self, key: str, at: datetime) -> None:
        """Be woken with this key at that instant, and not at the one it was armed for before.

        Idempotent. When it returns the wish is durable; if the timer service is away just now, a
        sweep arms it.
        """
        await self._arm_wish(key, at)

    async def _arm_wish(self, key: str, at: datetime) -> bool:
        """The same; whether there is a timer now."""
        while True:
            record = await one_record(self._store, TIMER, key)
            before = None if record is None else Armed.of(record)
            if before is not None and before.at == at and before.name is not None:
                return True
            wish = Armed(at, at, None, 0)
            version = 0 if record is None else record.version
            try:
                await self._write(wish.put(key, version, due_in=LEASE))
            except RecordConflict:
                continue
            break
        name = await self._arm(key, wish, version + 1)
        if name and before is not None and before.name not in (None, name):
            await self._let_go(key, before.name)
        return name is not None

    async def arm_by(self, key: str, at: datetime) -> None:
        """Be woken with this key at that instant at the latest: what is armed for before stays."""
        await self.arm_missing([Wanted(key, at)])

    async def arm_missing(self, found: Sequence[Wanted]) -> bool:
        """The same for several, looked up together. False if the timer service is away: then those
        that are left have no record, and a sweep must find them where it found these.
        """
        keys = [each.key for each in found]
        records = await self._store.records(TIMER, keys=keys, limit=len(keys)) if keys else ()
        armed = {record.key: Armed.of(record).at for record in records}
        missing = [each for each in found if armed.get(each.key, NEVER) > each.at]
        for start in range(0, len(missing), AT_A_TIME):
            some = missing[start : start + AT_A_TIME]
            if not all(await asyncio.gather(*(self._arm_wish(*each) for each in some))):
                return False
        return True

    async def cancel(self, key: str) -> None:
        """Do not be woken with this key."""
        record = await one_record(self._store, TIMER, key)
        if record is not None:
            await self._write(Delete(TIMER, key))
            if name := Armed.of(record).name:
                await self._let_go(key, name)

    async def execute(self, key: str) -> None:
        """A timer has called with this key: hop on, fire, or do nothing. What `fire` raises is
        raised; the record stays, for the next call or a sweep.
        """
        record = await one_record(self._store, TIMER, key)
        if record is None:
            return
        armed, now = Armed.of(record), await self._store.now()
        if (armed.wake - now).total_seconds() > NEAR:
            log.debug("timer.stale", key=key, wake=armed.wake.isoformat())
            return
        if (early := (armed.wake - now).total_seconds()) > 0:
            await self._sleep(early)
        if armed.wake < armed.at:
            await self._arm(key, armed._replace(hop=armed.hop + 1), record.version, armed.wake)
            return
        await self._fire(key)
        with suppress(RecordConflict):  # it was armed anew meanwhile, perhaps by what it fired
            await self._write(Delete(TIMER, key, record.version))

    async def sweep(self) -> float | None:
        """Arm whatever is wanted and has no timer, or one that did not call; the seconds until the
        next one is late.
        """
        while True:
            due = await self._store.take_due(TIMER, limit=AT_A_TIME, lease=LEASE)
            if not all(await asyncio.gather(*map(self._arm_again, due.records))):
                return due.next_due  # the service is away
            if len(due.records) < AT_A_TIME:
                break
        for find in self._find:
            found = list[Wanted]()
            async for each in find():
                found.append(each)
                if len(found) == LOOK_UP:
                    if not await self.arm_missing(found):
                        return due.next_due
                    found = []
            await self.arm_missing(found)
        return due.next_due

    async def _arm_again(self, record: Record) -> bool:
        """Arm what a sweep found. For the same instant as before, if there was a timer: if it is
        still there, and what it calls for merely fails, it does not get a second one beside it.
        """
        armed = Armed.of(record)
        if armed.name is None:
            return await self._arm(record.key, armed, record.version) is not None
        log.warning("timer.late", key=record.key, wake=armed.wake.isoformat())
        name = await self._call_at(armed.wake, record.key, armed, record.version)
        return name is not None

    async def _arm(
        self, key: str, armed: Armed, version: int, since: datetime | None = None
    ) -> str | None:
        """Arm the next hop on the way. Hops follow from each other (`since`) and not from now, so
        that of two calls each arms the same.
        """
        since = since or await self._store.now()
        wake = next_hop(armed.at, now=since, horizon=self._timer.horizon)
        return await self._call_at(wake, key, armed, version)

    async def _call_at(self, wake: datetime, key: str, armed: Armed, version: int) -> str | None:
        """Arm the timer and note its name; None if that cannot be done now."""
        try:
            name = await self._timer.arm(key, wake)
        except TimerUnavailable as error:
            log.warning("timer.not_armed", key=key, error=str(error))
            return None
        # One that is late already has its time from now on.
        late = LATE.total_seconds() if wake <= await self._store.now() else None
        done = armed._replace(wake=wake, name=name)
        with suppress(RecordConflict):  # somebody else has armed it, or it was cancelled
            await self._write(done.put(key, version, due_in=late))
        return name

    async def _let_go(self, key: str, name: str) -> None:
        with suppress(TimerUnavailable):  # it calls in vain
            await self._timer.cancel(key, name)

    async def _write(self, change: Put | Delete) -> None:
        await self._store.commit(Changes(uuid4().hex, records=(change,)))
