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
from holdfast.stores.mongo.passing import Effect, Effects, Moved, go_through, write_and_let_pass

_SLICE: Final = 500


async def move_due(db: Collections, now: int) -> None:
    """Move everything whose time has come."""
    due: Document = {"alarm": {"$lte": now}}
    while await db.tasks.find_one(due, {"_id": 1}) is not None:
        await atomically(db, partial(_move, where=due, now=now))


async def look_again(db: Collections, now: int) -> None:
    """Go through the gates that time has opened."""
    due: Document = {"look_at": {"$lte": now}}
    while await db.gates.find_one(due, {"_id": 1}) is not None:
        await atomically(db, partial(_look, where=due, now=now))


async def let_go(db: Collections, task_id: str, now: int) -> Moved:
    """Let go of what a task kept that ended inside its handler's transaction."""
    kept: Document = {"_id": task_id, "keeps": True}
    return await atomically(db, partial(_move, where=kept, now=now))


async def _look(db: Collections, where: Document, now: int) -> None:
    found = await db.gates.find(where, {"_id": 1}, session=db.session).limit(_SLICE).to_list()
    await go_through(db, Effects({one["_id"]: Effect() for one in found}), now)


async def _move(db: Collections, where: Document, now: int) -> Moved:
    found = db.tasks.find(where, LEAN, sort=[("alarm", 1)], limit=_SLICE, session=db.session)
    drafts = [Draft(document) for document in await found.to_list()]
    for draft in drafts:
        if draft.place is Place.DONE:
            continue  # it only kept its gates, which writing it as it is lets go
        if _has_expired(draft.task, now):
            end(draft, Reason.EXPIRED, now)
        else:
            draft.move(draft.task, now)
    return await write_and_let_pass(db, drafts, now)


def _has_expired(task: Task, now: int) -> bool:
    return task.expires_at is not None and in_us(task.expires_at) <= now


def end(draft: Draft, reason: Reason, now: int) -> None:
    """End a task that is not running."""
    state = ended_idle_as(reason)
    draft.move(replace(draft.task, state=state, reason=reason, finished_at=as_time(now)), now)
    draft.note(now, reason.value)
