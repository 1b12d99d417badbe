"""Moves what time has moved: what is due becomes eligible, what has expired ends.

Runs at the beginning of every claim, whoever claims from whatever queue; nothing due costs one
look at the head of a sparse index.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from holdfast.core.lifecycle import ended_idle_as
from holdfast.core.task import Reason, Task
from holdfast.stores.columns import as_time, in_us
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place
from holdfast.stores.mongo.drafts import LEAN, Draft
from holdfast.stores.mongo.locks import write_and_pass_on

_SLICE: Final = 500


async def move_due(db: Collections, now: int) -> None:
    """Move everything whose time has come."""
    due: Document = {"alarm": {"$lte": now}}
    while await db.tasks.find_one(due, {"_id": 1}) is not None:
        await atomically(db, partial(_move, where=due, now=now))


async def release_lock(db: Collections, task_id: str) -> None:
    """Pass on what a task kept that ended inside its handler's transaction."""
    kept: Document = {"_id": task_id, "place": Place.DONE.value, "holds": {"$exists": True}}
    await atomically(db, partial(_move, where=kept, now=0))


async def _move(db: Collections, where: Document, now: int) -> None:
    found = db.tasks.find(where, LEAN, sort=[("alarm", 1)], limit=_SLICE, session=db.session)
    drafts = [Draft(document) for document in await found.to_list()]
    for draft in drafts:
        if draft.place is Place.DONE:
            continue  # it only kept its lock, which writing it as it is takes off
        if _has_expired(draft.task, now):
            end(draft, Reason.EXPIRED, now)
        else:
            draft.move(draft.task, now)
    await write_and_pass_on(db, drafts)


def _has_expired(task: Task, now: int) -> bool:
    return task.expires_at is not None and in_us(task.expires_at) <= now


def end(draft: Draft, reason: Reason, now: int) -> None:
    """End a task that is not running."""
    state = ended_idle_as(reason)
    draft.move(replace(draft.task, state=state, reason=reason, finished_at=as_time(now)), now)
    draft.note(now, reason.value)
