"""Which queues are paused: a list on the board, which every claim reads anyway."""

from __future__ import annotations

from holdfast.stores.mongo.connected import Connected
from holdfast.stores.mongo.schema import BOARD
from holdfast.stores.mongo.texts import safe_text


class KeepsQueues(Connected):
    """All of `ports.store.QueueStore`."""

    async def pause(self, queue: str) -> bool:
        return await self._change_board("$addToSet", queue)

    async def resume(self, queue: str) -> bool:
        return await self._change_board("$pull", queue)

    async def _change_board(self, verb: str, queue: str) -> bool:
        async with self._server() as db:
            done = await db.state.update_one({"_id": BOARD}, {verb: {"paused": safe_text(queue)}})
            return done.modified_count == 1
