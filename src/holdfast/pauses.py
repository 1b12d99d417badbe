"""Which queues are paused: one record for each, which every claim looks for."""

from __future__ import annotations

from uuid import uuid4

from holdfast.core.record import PAUSE, Changes, Delete, Put
from holdfast.definitions.readers import read_name
from holdfast.errors import RecordConflict
from holdfast.fleet import knows_queue
from holdfast.logs import EventLog
from holdfast.ports.dispatcher import EVERYBODY, Dispatcher
from holdfast.ports.records import RecordStore, one_record
from holdfast.ports.store import Store
from holdfast.settings import Settings

log = EventLog("holdfast.client")


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


class QueueVerbs:
    """The verbs about queues that a client has."""

    store: Store
    dispatcher: Dispatcher
    settings: Settings

    async def pause(self, queue: str) -> bool:
        """Stop handing out this queue's tasks; running ones go on. False if it was paused."""
        changed = await pause(self.store, read_name("queue", queue))
        if changed:
            log.info("queue.paused", queue=queue)
        return changed

    async def resume(self, queue: str) -> bool:
        """Undo `pause`. False if it was not paused."""
        changed = await resume(self.store, read_name("queue", queue))
        if changed:
            log.info("queue.resumed", queue=queue)
        self.dispatcher.wake({queue: EVERYBODY})
        return changed

    async def knows_queue(self, queue: str) -> bool:
        """Whether a task is kept in this queue, a live worker names it or it is an open one. One
        that only was paused is not known: the name may be misspelt.
        """
        return queue in self.settings.open_queues or await knows_queue(self.store, queue)
