"""Which queues are paused: one record for each, which every claim looks for."""

from __future__ import annotations

from uuid import uuid4

from holdfast.core.record import PAUSE, Changes, Delete, Put
from holdfast.errors import RecordConflict
from holdfast.ports.records import RecordStore, one_record


async def pause(store: RecordStore, queue: str) -> bool:
    """Stop handing out this queue's tasks; running ones go on. False if it was paused already."""
    return await _changed(store, Put(PAUSE, queue, "{}", version=0))


async def resume(store: RecordStore, queue: str) -> bool:
    """Undo `pause`. False if it was not paused."""
    found = await one_record(store, PAUSE, queue)
    return found is not None and await _changed(store, Delete(PAUSE, queue, found.version))


async def _changed(store: RecordStore, change: Put | Delete) -> bool:
    """Whether this changed anything: somebody may have done the same a moment before."""
    try:
        await store.commit(Changes(uuid4().hex, records=[change]))
    except RecordConflict:
        return False
    return True
