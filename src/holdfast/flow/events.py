"""Emits events, looks for them, and tells those who wait (`core.events` says why none is missed).

Telling takes several steps: an event that is not marked as told is due after a moment, and whoever
finds it so (`EventKeeper`) tells those who are left. All of it may be done twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import uuid4

from holdfast.core.events import (
    EVENT,
    WAITING,
    Came,
    Emitted,
    Looked,
    NotYet,
    TooLate,
    deadline,
    emitted,
    is_told,
    left,
    named,
    payload_of,
    waiter_of,
    waiting,
    waits_key,
    waits_until,
)
from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.task import Json, Priority, State, TaskId
from holdfast.errors import RecordConflict
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.settings import Settings

SLICE: Final = 200
TELL_AGAIN: Final = 30.0
"""Seconds after which others finish what somebody began."""
LONGEST_REST: Final = 30.0

Wake = Callable[[Mapping[str, int]], None]


class Events:
    """The events of one store. `wake` calls workers for those who go on."""

    def __init__(self, store: Store, wake: Wake, settings: Settings) -> None:
        self._store = store
        self._wake = wake
        self._keep = settings.retention
        self._head_starts = {one.value: settings.aging.head_start(one) for one in Priority}

    async def emit(self, event: str, payload: Json) -> Emitted:
        """Write the event, unless it was emitted before, and hurry those who wait for it."""
        put = emitted(event, payload, due_in=TELL_AGAIN, told=False)
        try:
            await _commit(self._store, [put])
        except RecordConflict:
            return Emitted(*named(event), first=False)
        woken = await self.tell(event)
        await self.mark_told(event, payload, version=1)
        return Emitted(*named(event), first=True, woken=woken)

    async def tell(self, event: str) -> int:
        """Hurry everybody who waits for this event; how many slept."""
        told = 0
        while waits := await self._store.records(WAITING, group=event, limit=SLICE):
            # Those that are about to go to sleep notice it by the version of their record.
            touched = [Put(WAITING, w.key, w.document, group=event) for w in waits]
            await _commit(self._store, touched)
            told += await self._hurry([waiter_of(w)[0] for w in waits])
            await _commit(self._store, [Delete(WAITING, w.key) for w in waits])
        return told

    async def mark_told(self, event: str, payload: Json, *, version: int) -> None:
        """All who waited have been told: from now on it is merely kept."""
        put = emitted(event, payload, due_in=self._keep, version=version, told=True)
        await _unless_taken(self._store, put)

    async def _hurry(self, ids: Sequence[TaskId]) -> int:
        """Let these go on now, as far as they sleep; how many did."""
        asleep = TaskFilter(ids=tuple(ids), states=frozenset({State.QUEUED}))
        hurried = await self._store.requeue(asleep, limit=len(ids), head_starts=self._head_starts)
        queues = Counter(task.queue for task in hurried)
        for task in hurried:
            if task.requires:
                queues[task.queue] = EVERYBODY
        if queues:
            self._wake(queues)
        return len(hurried)


async def look_for(
    store: Store, task_id: TaskId, event: str, timeout: float | None, *, keep: float
) -> Looked:
    """Whether the event has come for this task; if not, what to write as it goes to sleep."""
    while True:
        mine = await one_record(store, WAITING, waits_key(task_id, event))
        if mine is None and (came := await one_record(store, EVENT, event)) is not None:
            return Came(payload_of(came))
        now = await store.now()
        until = deadline(now, timeout) if mine is None else waits_until(mine)
        due_in = max(keep, timeout or 0.0)
        version = 0 if mine is None else mine.version
        put = waiting(task_id, event, until, version, due_in=due_in)
        if mine is None:
            try:
                await _commit(store, [put])
            except RecordConflict:
                continue
            put = put._replace(version=1)
        # Only after the record is there: who emits now finds it.
        if (came := await one_record(store, EVENT, event)) is not None:
            return Came(payload_of(came), was_waiting=True)
        if until is not None and now >= until:
            return TooLate()
        return NotYet(left(now, until), put)


async def wait_no_more(store: Store, task_id: TaskId, event: str) -> None:
    """The task does not wait for this event any more."""
    await _commit(store, [Delete(WAITING, waits_key(task_id, event))])


async def waits_for(store: Store, task_id: TaskId) -> Record | None:
    """The record of what a task waits for, if it does."""
    before = Record(WAITING, waits_key(task_id, ""), 0, "")
    found = await store.records(WAITING, limit=1, after=before)
    return found[0] if found and waiter_of(found[0])[0] == task_id else None


class EventKeeper:
    """Tells those whom an emitter that died did not tell, and forgets old events, and the waits of
    tasks that ended otherwise.
    """

    def __init__(self, store: Store, wake: Wake, settings: Settings) -> None:
        self._store = store
        self._keep = settings.retention
        self._events = Events(store, wake, settings)

    async def tick(self) -> float:
        """One round; nothing is due, as a rule."""
        events = await self._store.take_due(EVENT, limit=SLICE, lease=TELL_AGAIN)
        for record in events.records:
            await self._see_to(record)
        waits = await self._store.take_due(WAITING, limit=SLICE, lease=TELL_AGAIN)
        for record in waits.records:
            await self._look_at(record)
        rests = [each for each in (events.next_due, waits.next_due) if each is not None]
        return min([LONGEST_REST, *(max(1.0, rest) for rest in rests)])

    async def _see_to(self, event: Record) -> None:
        if is_told(event):
            await _unless_taken(self._store, Delete(EVENT, event.key, event.version))
            return
        await self._events.tell(event.key)
        await self._events.mark_told(event.key, payload_of(event), version=event.version)

    async def _look_at(self, record: Record) -> None:
        task = await self._store.get(waiter_of(record)[0])
        if task is None or task.state not in UNFINISHED:
            await _unless_taken(self._store, Delete(WAITING, record.key, record.version))
            return
        again = Put(WAITING, record.key, record.document, record.version, record.group)
        await _unless_taken(self._store, again._replace(due_in=self._keep))


async def _unless_taken(store: Store, change: Put | Delete) -> None:
    """Somebody else may have done the same meanwhile."""
    try:
        await _commit(store, [change])
    except RecordConflict:
        return


async def _commit(store: Store, records: Sequence[Put | Delete]) -> None:
    await store.commit(Changes(uuid4().hex, records=records))
