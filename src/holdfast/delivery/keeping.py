"""Forgets what deliveries leave behind: old inbox items, and notes of who has had what."""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from uuid import uuid4

from holdfast.core.record import Changes, Delete
from holdfast.delivery.delivering import PARTS
from holdfast.delivery.inbox import INBOX
from holdfast.errors import RecordConflict
from holdfast.ports.store import Store

AT_A_TIME: Final = 500
REST: Final = 60.0


class DeliveryKeeper:
    """A maintenance agent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def tick(self) -> float:
        is_full = False
        for kind in (INBOX, PARTS):
            due = await self._store.take_due(kind, limit=AT_A_TIME, lease=60.0)
            gone = [Delete(kind, record.key, record.version) for record in due.records]
            if gone:
                with suppress(RecordConflict):  # one was read just now: it is kept a while
                    await self._store.commit(Changes(uuid4().hex, records=gone))
            is_full = is_full or len(gone) == AT_A_TIME
        return 0.1 if is_full else REST
