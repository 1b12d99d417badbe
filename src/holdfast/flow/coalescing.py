"""Submits that are debounced or throttled: look who stands there, decide, commit, or look again.

The record of a key is written in one commit with the task that it names, against the version that
was read. Of submits that race one wins each version, and the others look again; so every submit
that was acknowledged is either the newest of its key or was replaced by a newer one that was
acknowledged too, or stored. Cancelling what was replaced comes afterwards, and may be left to
others: the record says what may still wait, and a task that it does not name is never run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import uuid4

from holdfast.announcing import announce_cancelled
from holdfast.core.coalescing import (
    Coalescing,
    CoalescingKind,
    Debounced,
    First,
    Newest,
    debounced,
    winners,
)
from holdfast.core.flow import Flow, with_flow
from holdfast.core.lifecycle import CANCELLABLE_AT_ONCE, TERMINAL
from holdfast.core.query import TaskFilter
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.task import Added, NewTask, Reason, State, SubmitOutcome, Task, TaskId
from holdfast.definitions.call import Call
from holdfast.errors import RecordConflict, StoreUnavailable
from holdfast.logs import EventLog
from holdfast.ports.records import one_record
from holdfast.ports.store import Store

log = EventLog("holdfast.client")

AT_ONCE: Final = 32
"""How many records are read at a time."""
MOST_OLDER: Final = 16
"""So many that may still wait are named in a record; then they are cancelled first."""
PAUSE: Final = 0.02
"""Seconds, at the most, between two looks of one who has lost a race."""

Key = tuple[CoalescingKind, str]
MakeTasks = Callable[[Sequence[Call[Any]]], Sequence[NewTask]]


class _Standing(NamedTuple):
    """Who stands where a call comes: the record of its key, and the task that it names."""

    record: Record | None
    task: Task | None

    @property
    def version(self) -> int:
        return 0 if self.record is None else self.record.version


class _Planned(NamedTuple):
    """What becomes of the calls of one submit, by their numbers: those that make tasks, and the
    answers that are known already.
    """

    now: datetime
    calls: dict[int, Call[Any]]
    debounced: dict[int, Debounced]
    answers: dict[int, Added]


class Coalescer:
    """Submits calls of which some are coalesced, all or none. `make` makes the tasks of calls."""

    def __init__(self, store: Store, idempotency_window: float) -> None:
        self._store = store
        self._window = idempotency_window

    async def submit(
        self, calls: Sequence[Call[Any]], make: MakeTasks
    ) -> tuple[Sequence[NewTask], Sequence[Added]]:
        """The tasks that were stored, and an answer for each call in the same order."""
        keys = [_key(call) for call in calls]
        wins = winners(keys)
        while True:
            standing = await self._look(sorted({key for key in keys if key is not None}))
            planned = await self._plan(calls, keys, wins, standing)
            tasks = make(list(planned.calls.values()))
            puts = await self._puts(calls, keys, planned, tasks, standing)
            try:
                added = (
                    await self._store.commit(Changes(uuid4().hex, tasks, puts, self._window))
                    if planned.calls
                    else ()
                )
                break
            except RecordConflict:
                await asyncio.sleep(random.uniform(0.0, PAUSE))  # noqa: S311 - no secret
        await self._supersede(
            [task_id for one in planned.debounced.values() for task_id in one.older]
        )
        answers = planned.answers | dict(zip(planned.calls, added, strict=False))
        for number, one in planned.debounced.items():
            if one.replaces:
                answers[number] = answers[number]._replace(outcome=SubmitOutcome.DEBOUNCED)
        return tasks, [_answer(n, winner, keys[n], answers) for n, winner in enumerate(wins)]

    async def _look(self, keys: Sequence[Key]) -> dict[Key, _Standing]:
        found: dict[Key, _Standing] = {}
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            found.update(zip(some, await asyncio.gather(*map(self._standing, some)), strict=True))
        return found

    async def _standing(self, key: Key) -> _Standing:
        record = await one_record(self._store, *key)
        if record is None:
            return _Standing(None, None)
        said = Newest.of(record) if key[0] is CoalescingKind.DEBOUNCE else First.of(record)
        return _Standing(record, await self._store.get(said.task_id))

    async def _plan(
        self,
        calls: Sequence[Call[Any]],
        keys: Sequence[Key | None],
        wins: Sequence[int],
        standing: dict[Key, _Standing],
    ) -> _Planned:
        now = await self._store.now()
        planned = _Planned(now, {}, {}, {})
        for number, (call, key) in enumerate(zip(calls, keys, strict=True)):
            wanted = call.coalescing
            if wins[number] != number:
                continue
            if key is None or wanted is None:
                planned.calls[number] = call
                continue
            there = standing[key]
            if wanted.kind is CoalescingKind.DEBOUNCE:
                newest = None if there.record is None else Newest.of(there.record)
                one = debounced(wanted, newest, there.task, now)
                planned.calls[number] = _at_its_time(call, key[1], wanted, one)
                planned.debounced[number] = one
            elif there.record is not None and First.of(there.record).until > now:
                planned.answers[number] = _throttled(there)
            else:
                planned.calls[number] = replace(call, coalescing=None)
        return planned

    async def _puts(
        self,
        calls: Sequence[Call[Any]],
        keys: Sequence[Key | None],
        planned: _Planned,
        tasks: Sequence[NewTask],
        standing: dict[Key, _Standing],
    ) -> list[Put]:
        """The records that are written with the tasks."""
        puts: list[Put] = []
        for number, new in zip(planned.calls, tasks, strict=False):
            key, wanted = keys[number], calls[number].coalescing
            if key is None or wanted is None:
                continue
            version = standing[key].version
            if wanted.kind is CoalescingKind.THROTTLE:
                until = planned.now + timedelta(seconds=wanted.seconds)
                puts.append(First(new.id, until).put(key[1], version, wanted.seconds))
                continue
            one = planned.debounced[number]
            older = one.older
            if len(older) > MOST_OLDER:
                # All but the last were replaced by tasks that are stored: that cannot be undone.
                await self._supersede(older[:-1])
                older = older[-1:]
            newest = Newest(new.id, one.since, older)
            puts.append(newest.put(key[1], version, wanted.seconds))
        return puts

    async def _supersede(self, older: Sequence[TaskId]) -> None:
        """Cancel what was replaced and has not started. What is left is dropped when claimed."""
        if older:
            try:
                await supersede(self._store, older)
            except StoreUnavailable as error:
                log.warning("tasks.not_superseded", tasks=len(older), error=str(error))


async def supersede(store: Store, older: Sequence[TaskId]) -> None:
    """Cancel those of them that wait: a newer one of their key is stored."""
    which = TaskFilter(ids=tuple(older), states=CANCELLABLE_AT_ONCE)
    changed = await store.cancel(which, limit=len(older), reason=Reason.SUPERSEDED)
    announce_cancelled(log, changed)


class CoalescingSweeper:
    """Forgets the records of keys that nobody submits any more: of a throttle once its time is
    over, of a debounce once its task has ended and none that it replaced can start again.
    """

    EVERY: Final = 30.0
    LEASE: Final = 120.0
    AT_A_TIME: Final = 500

    def __init__(self, store: Store) -> None:
        self._store = store

    async def tick(self) -> float:
        """Look at one slice of each kind; rest briefly if there may be more."""
        full = False
        for kind in CoalescingKind:
            due = await self._store.take_due(kind, limit=self.AT_A_TIME, lease=self.LEASE)
            full |= len(due.records) == self.AT_A_TIME
            for record in due.records:
                if kind is CoalescingKind.THROTTLE or await self._has_served(record):
                    await self._forget(record)
        return 0.1 if full else self.EVERY

    async def _has_served(self, record: Record) -> bool:
        newest = Newest.of(record)
        task = await self._store.get(newest.task_id)
        if task is not None and task.state not in TERMINAL:
            return False
        if not newest.older:
            return True
        await supersede(self._store, newest.older)
        page = await self._store.list(TaskFilter(ids=newest.older), limit=len(newest.older))
        return all(each.state in TERMINAL for each in page.tasks)

    async def _forget(self, record: Record) -> None:
        gone = Delete(record.kind, record.key, record.version)
        with suppress(RecordConflict):  # somebody has submitted meanwhile
            await self._store.commit(Changes(uuid4().hex, records=[gone]))


def _key(call: Call[Any]) -> Key | None:
    wanted = call.coalescing
    if wanted is None:
        return None
    return wanted.kind, wanted.record_key(call.definition.name, call.options.owner)


def _at_its_time(call: Call[Any], key: str, wanted: Coalescing, one: Debounced) -> Call[Any]:
    """The call as a task that starts then, and only if none newer of its key is stored."""
    start = {"delay": wanted.seconds} if one.run_at is None else {"run_at": one.run_at}
    return replace(
        call,
        payload=with_flow(call.payload, Flow(debounce=key)),
        options=replace(call.options, **start),
        coalescing=None,
    )


def _throttled(there: _Standing) -> Added:
    """The answer to one who came too soon. A task that is forgotten already has ended."""
    assert there.record is not None
    state = State.COMPLETED if there.task is None else there.task.state
    return Added(First.of(there.record).task_id, SubmitOutcome.THROTTLED, state)


def _answer(number: int, winner: int, key: Key | None, answers: dict[int, Added]) -> Added:
    """Those that lost to another call of the same submit get that one's task."""
    answer = answers[winner]
    if winner == number or key is None:
        return answer
    is_last = key[0] is CoalescingKind.DEBOUNCE
    outcome = SubmitOutcome.DEBOUNCED if is_last else SubmitOutcome.THROTTLED
    return answer._replace(outcome=outcome)
