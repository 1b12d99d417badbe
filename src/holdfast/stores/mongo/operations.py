"""What operators do to many tasks at once: cancel and requeue.

Slice by slice, oldest first. A task that another wrote meanwhile is looked at again before the next
slice: it is changed if it still matches, and passed over if not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from holdfast.core.lifecycle import REQUEUEABLE, UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import Reason, State, Task, TaskId
from holdfast.stores.columns import as_time, span_us
from holdfast.stores.mongo.alarms import end
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document, Place, task_of, unique_mark
from holdfast.stores.mongo.drafts import Draft, write
from holdfast.stores.mongo.filters import query_of
from holdfast.stores.mongo.locks import pass_on
from holdfast.stores.mongo.points import reached
from holdfast.stores.values import renewed

WITHOUT_HISTORY: Final = {"attempts": 0, "events": 0}
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
            return await walk.change(db, stop)

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
                task = draft.task
                if task.state is State.RETRYING:
                    draft.move(replace(task, run_at=as_time(due)), now)
                else:
                    draft.move(renewed(task, due, head_starts[task.priority]), now)
                    draft.note(now, "requeued")

            return await _Walk(where, REQUEUEABLE, {}, limit).change(db, start_again)


class _Walk:
    """Goes through all tasks that match, and changes as many as asked."""

    def __init__(
        self, where: TaskFilter, states: frozenset[State], also: Document, limit: int
    ) -> None:
        self._where = where
        self._states = states
        self._also = also
        self._limit = limit
        self._last: TaskId | None = None
        self._again: tuple[TaskId, ...] = ()
        self._changed: dict[TaskId, Task] = {}
        self._contested: set[str] = set()
        self._taken: set[str] = set()

    async def change(self, db: Collections, decide: _Decide) -> Sequence[Task]:
        """The tasks changed, oldest first, as they are then."""
        while len(self._changed) < self._limit:
            was_second_look = bool(self._again)
            drafts = [Draft(document) for document in await self._next(db)]
            if not (drafts or was_second_look):
                break
            await self._write(db, await self._free(db, drafts), decide)
        if self._contested:
            reached("operated")
            await pass_on(db, self._contested)
            await self._look_again(db)
        return [self._changed[task_id] for task_id in sorted(self._changed)]

    async def _next(self, db: Collections) -> Sequence[Document]:
        count = min(_SLICE, self._limit - len(self._changed))
        if self._again:
            again = replace(self._where, ids=self._again)
            query = query_of(again, states=self._states)
        else:
            query = query_of(self._where, states=self._states, after=self._last)
        line = db.tasks.find(query | self._also, WITHOUT_HISTORY).sort("_id", 1).limit(count)
        found = await line.to_list()
        if found and not self._again:
            self._last = TaskId(found[-1]["_id"])
        self._again = ()
        return found

    async def _free(self, db: Collections, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """Without those that may not begin again because another has their unique key."""
        marks = {draft.task.id: mark for draft in drafts if (mark := _lost_mark(draft.task))}
        if not marks:
            return drafts
        taken = db.tasks.find({"unique": {"$in": sorted(set(marks.values()))}}, {"unique": 1})
        self._taken |= {one["unique"] async for one in taken}
        free = []
        for draft in drafts:
            mark = marks.get(draft.task.id)
            if mark is None or mark not in self._taken:
                free.append(draft)
                self._taken |= {mark} if mark else set()
        return free

    async def _write(self, db: Collections, drafts: Sequence[Draft], decide: _Decide) -> None:
        for number, draft in enumerate(drafts, len(self._changed)):
            decide(draft, number)
        written = await write(db, drafts)
        self._again = tuple(draft.task.id for draft in written.lost)
        self._taken -= {mark for draft in written.lost if (mark := _mark(draft.task))}
        for draft in written.done:
            self._changed[draft.task.id] = draft.task
            if draft.contested is not None:
                self._contested.add(draft.contested)

    async def _look_again(self, db: Collections) -> None:
        """Passing locks on has moved some of them."""
        ids = [task.id for task in self._changed.values() if task.state is State.BLOCKED]
        if ids:
            found = db.tasks.find({"_id": {"$in": ids}}, WITHOUT_HISTORY)
            self._changed |= {TaskId(one["_id"]): task_of(one) async for one in found}


def _mark(task: Task) -> str | None:
    return None if task.unique_key is None else unique_mark(task.name, task.unique_key)


def _lost_mark(task: Task) -> str | None:
    """The unique key that an ended task no longer holds."""
    return None if task.state in UNFINISHED else _mark(task)
