"""Moves what time has moved: what is due becomes eligible, what has expired ends.

Runs at the beginning of every claim, whoever claims from whatever queue; nothing due costs one
look at the head of a sparse index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from holdfast.core.lifecycle import ended_idle_as
from holdfast.core.task import Reason, Task
from holdfast.stores.columns import as_time, in_us
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.drafts import LEAN, Draft, write
from holdfast.stores.mongo.locks import pass_on
from holdfast.stores.mongo.points import reached

_SLICE: Final = 500


async def ring_alarms(db: Collections, now: int) -> None:
    """Move everything whose time has come."""
    while due := await _due(db, now):
        await _move(db, due, now)


async def _due(db: Collections, now: int) -> Sequence[Document]:
    found = db.tasks.find({"alarm": {"$lte": now}}, LEAN, sort=[("alarm", 1)], limit=_SLICE)
    return await found.to_list()


async def _move(db: Collections, due: Sequence[Document], now: int) -> None:
    drafts = [Draft(document) for document in due]
    for draft in drafts:
        if has_expired(draft.task, now):
            end(draft, Reason.EXPIRED, now)
        else:
            draft.move(draft.task, now)
    written = await write(db, drafts)
    contested = {draft.contested for draft in written.done if draft.contested is not None}
    if contested:
        reached("alarms-rung")
        await pass_on(db, contested)


def has_expired(task: Task, now: int) -> bool:
    return task.expires_at is not None and in_us(task.expires_at) <= now


def end(draft: Draft, reason: Reason, now: int) -> None:
    """End a task that is not running."""
    state = ended_idle_as(reason)
    draft.move(replace(draft.task, state=state, reason=reason, finished_at=as_time(now)), now)
    draft.note(now, reason.value)
