"""Breakers as the fleet shares them: one record each, and the capacity of its gate beside it.

Both are always written in one commit, so a breaker that is open lets nobody pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import uuid4

from holdfast.core.breaker import BREAKER, BreakerRecord, BreakerRule, BreakerState, is_needless
from holdfast.core.gate import Capacity, GateKind, gate_name
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.errors import RecordConflict
from holdfast.logs import EventLog
from holdfast.ports.records import RecordStore, one_record

log = EventLog("holdfast.breaker")

AT_A_TIME: Final = 500
TRIES: Final = 10

Change = Callable[[BreakerRecord], BreakerRecord]


async def read(store: RecordStore, key: str) -> BreakerRecord | None:
    """One breaker; None if it is closed and nothing failed lately."""
    found = await one_record(store, BREAKER, key)
    return None if found is None else BreakerRecord.load(found.document)


async def read_all(store: RecordStore) -> dict[str, Record]:
    """All that there are, by key: those that something failed behind lately, and forced ones."""
    records: dict[str, Record] = {}
    last: Record | None = None
    while True:
        page = await store.records(BREAKER, limit=AT_A_TIME, after=last)
        records.update((record.key, record) for record in page)
        if len(page) < AT_A_TIME:
            return records
        last = page[-1]


async def change(
    store: RecordStore, key: str, make: Change, *, rule: BreakerRule, found: Record | None
) -> BreakerRecord:
    """Change a breaker, or make it, whoever else does at the same time. `found` is how it was a
    moment ago.
    """
    for _ in range(TRIES):
        try:
            return await write(store, key, make, rule=rule, found=found)
        except RecordConflict:
            found = await one_record(store, BREAKER, key)
    raise RecordConflict(BREAKER, key, 0, 0 if found is None else found.version)


async def write(
    store: RecordStore, key: str, make: Change, *, rule: BreakerRule, found: Record | None
) -> BreakerRecord:
    """The same in one try; `RecordConflict` if it is not as it was found."""
    before = BreakerRecord(rule=rule, counts={}) if found is None else _loaded(found)
    after = make(before)
    if after == before:
        return after
    version = 0 if found is None else found.version
    written: Put | Delete
    if not is_needless(after):
        due = after.due_in
        written = Put(BREAKER, key, after.dump(), version, due_in=due)
    elif found is None:
        return after
    else:
        written = Delete(BREAKER, key, version)
    capacities = []
    if after.capacity != before.capacity:
        capacities.append(Capacity(gate_name(GateKind.BREAKER, key), after.capacity))
    await store.commit(Changes(uuid4().hex, records=[written], capacities=capacities))
    if after.state is not before.state:
        _say(key, after)
    return after


def _loaded(found: Record) -> BreakerRecord:
    return BreakerRecord.load(found.document)


def _say(key: str, record: BreakerRecord) -> None:
    match record.state:
        case BreakerState.OPEN:
            log.warning("breaker.opened", breaker=key, forced=record.forced)
        case BreakerState.HALF_OPEN:
            log.info("breaker.half_open", breaker=key)
        case BreakerState.CLOSED:
            log.info("breaker.closed", breaker=key, forced=record.forced)
