"""Looking at tasks, which changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pymongo import ASCENDING, DESCENDING

from holdfast.core.attempt import History
from holdfast.core.ids import is_task_id
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.query import Edge, Order, Page, TaskFilter, page_of, read_cursor
from holdfast.core.task import Task, TaskId
from holdfast.stores.columns import in_us
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import WITHOUT_HISTORY, Document, task_of
from holdfast.stores.mongo.filters import hint_of, query_of
from holdfast.stores.mongo.history import history_of


class Reads(Connected):
    """The questions of `ports.store.TaskStore`, but for those about numbers (`numbers.py`)."""

    async def get(self, task_id: TaskId) -> Task | None:
        if not is_task_id(task_id):
            return None
        async with self._server() as db:
            found = await db.tasks.find_one({"_id": task_id}, WITHOUT_HISTORY)
            return None if found is None else task_of(found)

    async def list(
        self,
        where: TaskFilter,
        *,
        limit: int,
        after: str | None = None,
        order: Order = Order.NEWEST,
    ) -> Page:
        edge = read_cursor(after, order)
        last = None if edge is None else edge.task_id
        later, sooner = (last, None) if order.is_ascending else (None, last)
        async with self._server() as db:
            if order.is_by_end:
                found = await _by_end(db, where, edge, order, limit + 1)
            else:
                query = query_of(where, after=later, before=sooner)
                way = [("_id", ASCENDING if order.is_ascending else DESCENDING)]
                listed = db.tasks.find(
                    query, WITHOUT_HISTORY, sort=way, limit=limit + 1, hint=hint_of(query)
                )
                found = await listed.to_list()
        return page_of([task_of(document) for document in found], limit=limit, order=order)

    async def count(self, where: TaskFilter, *, limit: int) -> int:
        if limit <= 0:
            return 0
        async with self._server() as db:
            return await db.tasks.count_documents(query_of(where), limit=limit)

    async def history(self, task_id: TaskId) -> History | None:
        """The document first: what moves out of it meanwhile is then in both, not in neither."""
        if not is_task_id(task_id):
            return None
        async with self._server() as db:
            found = await db.tasks.find_one({"_id": task_id}, {"payload": 0})
            if found is None:
                return None
            chapters = await db.history.find({"task": task_id}).to_list()
            return history_of(found, chapters)


async def _by_end(
    db: Collections, where: TaskFilter, edge: Edge | None, order: Order, limit: int
) -> Sequence[Document]:
    """Ended tasks in the order of their ends: the rest of those that ended when the last one of the
    page before did, then the others. Two questions, because one would need an `$or`.
    """
    way = ASCENDING if order.is_ascending else DESCENDING
    beyond = "$gt" if order.is_ascending else "$lt"
    found: list[Document] = []
    ends: Document = {"$exists": True}
    if edge is not None and edge.ended_at is not None:
        at = in_us(edge.ended_at)
        later, sooner = (edge.task_id, None) if order.is_ascending else (None, edge.task_id)
        alike = query_of(where, states=TERMINAL, after=later, before=sooner)
        alike["finished_at"] = at
        listed = db.tasks.find(alike, WITHOUT_HISTORY, sort=[("_id", way)], limit=limit)
        found, ends = await listed.to_list(), {beyond: at}
    if len(found) < limit:
        query = query_of(where, states=TERMINAL)
        # What was listed last fits the filter, so its end is a narrower bound than the filter's.
        query["finished_at"] = query.get("finished_at", {}) | ends
        ways = [("finished_at", way), ("_id", way)]
        listed = db.tasks.find(query, WITHOUT_HISTORY, sort=ways, limit=limit - len(found))
        found += await listed.to_list()
    return found
