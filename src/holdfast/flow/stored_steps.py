"""Durable steps straight from the store, each on its own: for whoever runs one task at a time."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from datetime import datetime
from typing import Any, TypeVar

from holdfast.asyncio_tools.at_once import at_once
from holdfast.core.attempt import Claim, Report
from holdfast.core.events import Looked
from holdfast.errors import LeaseLost
from holdfast.flow import events
from holdfast.ports.store import Store

T = TypeVar("T")


class StoredSteps:
    """A `StepHost`. Sync handlers need a store whose answers come at once: the one in memory."""

    def __init__(self, store: Store, max_result: int, keep: float) -> None:
        self.max_result = max_result
        self._store = store
        self._keep = keep

    async def journal(self, claim: Claim) -> Mapping[str, bytes]:
        return await self._store.journal(claim.task_id)

    async def record(self, claim: Claim, name: str, value: bytes) -> None:
        fence = claim.task_id, claim.attempt, claim.worker_id
        for refusal in await self._store.report([Report(*fence, steps=((name, value),))]):
            raise LeaseLost(refusal.task_id, refusal.attempt, holder=refusal.holder)

    async def now(self) -> datetime:
        return await self._store.now()

    async def look_for(self, claim: Claim, event: str, timeout: float | None) -> Looked:
        return await events.look_for(self._store, claim.task_id, event, timeout, keep=self._keep)

    async def wait_no_more(self, claim: Claim, event: str) -> None:
        await events.wait_no_more(self._store, claim.task_id, event)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return at_once(work)
