"""What operators do to many tasks at once: cancel and requeue.

Slice by slice, oldest first, each in a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from holdfast.core.lifecycle import HURRIED, REQUEUEABLE, UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason, State, Task, TaskId
from holdfast.stores.columns import span_us
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import WITHOUT_HISTORY, Document, Place, unique_mark
from holdfast.stores.mongo.drafts import Draft
from holdfast.stores.mongo.due import end
from holdfast.stores.mongo.filters import query_of
from holdfast.stores.mongo.passing import Moved, write_and_let_pass
from holdfast.stores.values import hurried, renewed

_SLICE: Final = 500

_Decide = Callable[[Draft, int], None]
"""Changes a draft; the number is how many were changed before it."""


class Operates(Connected):
    """`TaskStore.cancel` and `requeue`."""

    async def cancel(
        self, where: TaskFilter, *, limit: int, reason: Reason = Reason.CANCELLED
    ) -> Sequence[Task]:
        async with self._server() as db:
            now = await self._now_us(db)

            def stop(draft: Draft, _: int) -> None:
                if draft.place is Place.RUNNING:
                    draft.change(replace(draft.task, cancel_requested=True))
                    draft.note(now, "cancel_requested")
                else:
                    end(draft, reason, now)

            walk = _Walk(where, UNFINISHED, {"cancel_requested": {"$ne": True}}, limit)
            changed = await walk.change(db, now, stop)
        self._tell(walk.moved, but=(task.id for task in changed))
        return changed

    async def requeue(
        self,
        where: TaskFilter,
        *,
        limit: int,
        head_starts: Mapping[str, int],
        pace: float | None = None,
    ) -> Sequence[Task]:
        async with self._server() as db:
            now = await self._now_us(db)

            def start_again(draft: Draft, number: int) -> None:
                due = now + (span_us((number + 1) / pace) if pace else 0)
                task, head_start = draft.task, head_starts[draft.task.priority]
                if task.state in HURRIED:
                    draft.move(hurried(task, due, head_start), now)
                else:
                    draft.move(renewed(task, due, head_start), now)
                    draft.note(now, "requeued")

            waits = {"place": {"$ne": Place.READY.value}}
            return await _Walk(where, REQUEUEABLE, waits, limit).change(db, now, start_again)


class _Walk:
    """Goes through all tasks that match, and changes as many as asked, slice by slice."""

    def __init__(
        self, where: TaskFilter, states: frozenset[State], also: Document, limit: int
    ) -> None:
        self._where = where
        self._states = states
        self._also = also
        self._limit = limit
        self.moved: Moved = {}

    async def change(self, db: Collections, now: int, decide: _Decide) -> Sequence[Task]:
        """The tasks changed, oldest first, as they are then; `moved` are whom that let pass."""
        changed: list[Task] = []
        last: TaskId | None = None
        while len(changed) < self._limit:
            some = _Slice(min(_SLICE, self._limit - len(changed)), len(changed), now, decide)
            query = query_of(self._where, states=self._states, after=last) | self._also
            changed += await atomically(db, partial(some.change, query=query))
            self.moved |= some.moved
            if some.is_last:
                break
            last = some.last
        return changed


class _Slice:
    """One transaction's share. It takes fewer the more often others were in its way."""

    def __init__(self, count: int, before: int, now: int, decide: _Decide) -> None:
        self._count = 2 * count
        self._before = before
        self._now = now
        self._decide = decide
        self.moved: Moved = {}
        self.last: TaskId | None = None
        self.is_last = False

    async def change(self, db: Collections, query: Document) -> Sequence[Task]:
        self._count = max(1, self._count // 2)
        line = db.tasks.find(query, WITHOUT_HISTORY, session=db.session)
        found = await line.sort("_id", 1).limit(self._count).to_list()
        self.is_last = len(found) < self._count
        self.last = TaskId(found[-1]["_id"]) if found else None
        drafts = await _free(db, [Draft(document) for document in found])
        for number, draft in enumerate(drafts, self._before):
            self._decide(draft, number)
        self.moved = await write_and_let_pass(db, drafts, self._now)
        states = {task_id: task.state for task_id, task in self.moved.items()}
        tasks = [draft.task for draft in drafts]
        return [replace(task, state=states.get(task.id, task.state)) for task in tasks]


async def _free(db: Collections, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Without those that may not begin again because another has their unique key."""
    marks = {draft.task.id: mark for draft in drafts if (mark := _lost_mark(draft.task))}
    if not marks:
        return drafts
    where = {"unique": {"$in": sorted(set(marks.values()))}}
    held = await db.tasks.find(where, {"unique": 1}, session=db.session).to_list()
    taken = {one["unique"] for one in held}
    free = []
    for draft in drafts:
        mark = marks.get(draft.task.id)
        if mark is None or mark not in taken:
            free.append(draft)
            taken |= {mark} if mark else set()
    return free


def _lost_mark(task: Task) -> str | None:
    """The unique key that an ended task no longer holds."""
    if task.unique_key is None or task.state in UNFINISHED:
        return None
    return unique_mark(task.name, task.unique_key)
