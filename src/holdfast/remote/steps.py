"""Durable steps of workers over HTTP: what was recorded comes with a task, and its worker does not
do it again. Sleeps and waits end an attempt as they do in Python; the server sees to the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson

from holdfast.core.attempt import Claim, Report
from holdfast.core.events import Came, NotYet, event_id, named
from holdfast.core.lifecycle import Deferred
from holdfast.core.record import Changes
from holdfast.core.steps import (
    AWAITED,
    NOTHING,
    SLEEP,
    WAIT,
    Journal,
    Place,
    entry,
    sleep_value,
    slept_until,
)
from holdfast.core.task import Json, TaskId
from holdfast.flow.events import look_for, wait_no_more
from holdfast.ports.store import Store
from holdfast.remote.values import EventWait, RemoteStep, Sleep, StepKind


class RemoteSteps:
    """What the steps of such workers need of the store."""

    def __init__(self, store: Store, *, keep: float) -> None:
        self._store = store
        self._keep = keep

    async def recorded(self, claims: Sequence[Claim]) -> Mapping[TaskId, Sequence[RemoteStep]]:
        """What earlier attempts of these recorded, in that order. First ones have nothing."""
        return {claim.task_id: await self._recorded(claim) for claim in claims if claim.attempt > 1}

    async def defer(self, claim: Claim, rest: Sleep | EventWait) -> Deferred:
        """The attempt hands its task back until then."""
        if isinstance(rest, Sleep):
            return Deferred(await self._left(claim, rest))
        event = event_id(rest.event, rest.key)
        await self._record(claim, AWAITED + event, orjson.dumps(rest.timeout))
        return await self._wait_for(claim, event, rest.timeout)

    async def _recorded(self, claim: Claim) -> list[RemoteStep]:
        entries = await self._store.journal(claim.task_id)
        if awaited := _awaited(entries):
            # It may have come, or it is too late for that.
            for event, timeout in awaited.items():
                await self._wait_for(claim, event, timeout)
            entries = await self._store.journal(claim.task_id)
        now = await self._store.now() if entries else None
        journal = Journal(entries)
        steps = (_step(name, journal[name], now) for name in entries)
        return [step for step in steps if step is not None]

    async def _left(self, claim: Claim, sleep: Sleep) -> float:
        """How long this sleep still takes: it is counted from when it was first asked for."""
        name, now = SLEEP + sleep.name, await self._store.now()
        journal = Journal(await self._store.journal(claim.task_id))
        if name in journal:
            return (slept_until(journal[name]) - now).total_seconds()
        await self._record(claim, name, sleep_value(now + timedelta(seconds=sleep.seconds)))
        return sleep.seconds

    async def _wait_for(self, claim: Claim, event: str, timeout: float | None) -> Deferred:
        looked = await look_for(self._store, claim.task_id, event, timeout, keep=self._keep)
        if isinstance(looked, NotYet):
            return Deferred(looked.delay, also=Changes(uuid4().hex, records=(looked.put,)))
        came: Json = {"timed_out": True}
        if isinstance(looked, Came):
            came = {"payload": looked.payload}
        await self._record(claim, WAIT + event, orjson.dumps(came))
        await wait_no_more(self._store, claim.task_id, event)
        return Deferred()

    async def _record(self, claim: Claim, name: str, value: bytes) -> None:
        # From who has lost the lease it is refused, and so will be what comes with it.
        await self._store.report([Report(*claim[:3], steps=(step_entry(name, value),))])


def step_entry(name: str, value: bytes) -> tuple[str, bytes]:
    """A step as the journal keeps it. Whether a worker goes the same way again it must see to."""
    return name, entry(Place(None, name), name, value)


def _awaited(entries: Mapping[str, bytes]) -> dict[str, float | None]:
    """The events that were waited for, with their timeouts, and of which nobody knows yet what
    became of them.
    """
    events = [name.removeprefix(AWAITED) for name in entries if name.startswith(AWAITED)]
    journal = Journal(entries) if events else NOTHING
    return {event: journal[AWAITED + event] for event in events if WAIT + event not in entries}


def _step(name: str, value: Any, now: datetime | None) -> RemoteStep | None:
    """A step as a worker is told of it; None for a sleep that is not over, and such."""
    if name.startswith(AWAITED):
        return None
    if name.startswith(SLEEP):
        is_over = now is not None and slept_until(value) <= now
        return RemoteStep(name.removeprefix(SLEEP), StepKind.SLEEP) if is_over else None
    if name.startswith(WAIT):
        event, key = named(name.removeprefix(WAIT))
        late = "timed_out" in value
        return RemoteStep(event, StepKind.EVENT, key, value.get("payload"), late)
    return RemoteStep(name, StepKind.STEP, None, value)
