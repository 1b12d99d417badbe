"""Notices that are owed: three fields of the ended task's own document.

`callback_due` is when the notice may be taken, `callback_tries` how often it was. Written with the
task's end, taken off with its delivery or a requeue: no notice without an end, no end without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from holdfast.core.callback import Callback
from holdfast.core.task import Json, TaskId
from holdfast.stores.columns import as_time, in_us, span_us
from holdfast.stores.mongo.atomic import atomically
from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.drafts import LEAN, Draft, write


class KeepsCallbacks(Connected):
    """All of `ports.callbacks.CallbackStore`."""

    async def due_callbacks(self, *, limit: int, lease: float) -> Sequence[Callback]:
        if limit <= 0:
            return []
        async with self._server() as db:
            if not self._due(await _first_owed(db, limit)):
                return []
            return await atomically(db, partial(self._take_due, limit=limit, lease=span_us(lease)))

    async def callback_done(
        self, callback: Callback, *, retry_in: float | None, error: str | None
    ) -> bool:
        async with self._server() as db:
            if retry_in is not None:
                return await self._put_off(db, callback, span_us(retry_in))
            return await atomically(db, partial(self._finish, callback=callback, error=error))

    async def _put_off(self, db: Collections, callback: Callback, wait: int) -> bool:
        later = {
            "callback_due": {"$add": [self._now_expression, wait]},
            "version": {"$add": ["$version", 1]},
        }
        done = await db.tasks.update_one(_held(callback), [{"$set": later}])
        return done.matched_count == 1

    async def _finish(self, db: Collections, callback: Callback, error: str | None) -> bool:
        """Take the notice off and tell the history."""
        found = await db.tasks.find_one(_held(callback), LEAN, session=db.session)
        if found is None:
            return False
        draft = Draft(found)
        draft.set(callback_due=None, callback_tries=None)
        kind = "callback_delivered" if error is None else "callback_failed"
        draft.note(await self._now_us(db), kind, detail=error)
        return await write(db, [draft])

    async def _take_due(self, db: Collections, limit: int, lease: int) -> Sequence[Callback]:
        """Lease the notices that are due by now."""
        due = self._due(await _first_owed(db, limit))
        if due:
            change = {
                "$set": {"callback_due": self._us(due[0]["now"]) + lease},
                "$inc": {"callback_tries": 1, "version": 1},
            }
            ids = [notice["_id"] for notice in due]
            await db.tasks.update_many({"_id": {"$in": ids}}, change, session=db.session)
        return [_callback(notice) for notice in due]

    def _due(self, owed: Sequence[Document]) -> Sequence[Document]:
        return [notice for notice in owed if notice["callback_due"] <= self._us(notice["now"])]


async def _first_owed(db: Collections, limit: int) -> list[Document]:
    """The notices that are due first, each with the server's now. None owed costs next to
    nothing: the index is empty then.
    """
    shown = {
        "callback": 1, "callback_due": 1, "callback_tries": 1, "finished_at": 1, "now": "$$NOW",
    }  # fmt: skip
    answers = await db.tasks.aggregate(
        [
            {"$match": {"callback_due": {"$gte": 0}}},
            {"$sort": {"callback_due": 1}},
            {"$limit": limit},
            {"$project": shown},
        ],
        session=db.session,
    )
    return await answers.to_list()


def _held(callback: Callback) -> Document:
    """Finds the task if its notice is as it was handed out."""
    return {
        "_id": callback.task_id,
        "callback_tries": callback.tries,
        "finished_at": in_us(callback.ended_at),
        "callback_due": {"$gte": 0},
    }


def _callback(notice: Mapping[str, Json]) -> Callback:
    tries = notice["callback_tries"] + 1
    ended_at = as_time(notice["finished_at"])
    return Callback(TaskId(notice["_id"]), notice["callback"], tries, ended_at)
