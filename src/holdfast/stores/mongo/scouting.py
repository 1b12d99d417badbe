"""Finds out whether the server stops reading at a limit, and if not, how the line is marked out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from pymongo.errors import OperationFailure

from holdfast.stores.mongo.connections import Collections
from holdfast.stores.mongo.documents import Document
from holdfast.stores.mongo.faults import is_away
from holdfast.stores.mongo.reach import Reach

_FEW: Final = 64
_MANY: Final = 16_384
"""Milestones: of about a thousand tasks, which is no long line, and of a quarter of a million."""
_TRIAL: Final = 16
_MILESTONE: Final[Document] = {"milestone": {"$gt": b""}}
_SHOWN: Final = {"_id": 0, "milestone": 1, "ready_lane": 1}


class Scout:
    """For all lines of a store in this process."""

    def __init__(self) -> None:
        self._stops_at_limits: bool | None = None  # None: there was no line yet to try it on

    @property
    def is_needed(self) -> bool:
        """Whether a query must say where to stop: as soon as a line has shown it."""
        return self._stops_at_limits is False

    async def look(self, db: Collections, reach: Reach, lanes: Sequence[str], limit: int) -> None:
        """Give `reach` what it wants to know."""
        now = time.monotonic()
        if self._stops_at_limits or not reach.wants_milestones(limit, now):
            return
        count = _FEW if self._stops_at_limits is None else _MANY
        found = await _milestones(db, count)
        if self._stops_at_limits is None and len(found) == count:
            self._stops_at_limits = await _stops_at_limits(db)
            if self._stops_at_limits:
                return
            count = _MANY
            found = await _milestones(db, count)
        ours = [one["milestone"] for one in found if one["ready_lane"] in lanes]
        reach.scouted(ours, now, more=len(found) == count)


async def _milestones(db: Collections, count: int) -> Sequence[Document]:
    line = db.tasks.find(_MILESTONE, _SHOWN, sort=[("milestone", 1)], limit=count)
    return await line.batch_size(count + 1).to_list()


async def _stops_at_limits(db: Collections) -> bool:
    """Ask for a few milestones where there are more, and for how many were looked at. A server that
    does not say is taken for MongoDB.
    """
    query = {
        "find": db.tasks.name, "filter": _MILESTONE, "sort": {"milestone": 1}, "limit": _TRIAL,
    }  # fmt: skip
    try:
        plan = await db.tasks.database.command("explain", query, verbosity="executionStats")
    except OperationFailure as error:
        if is_away(error):
            raise
        return True
    stats = plan.get("executionStats", {})
    return bool(stats.get("totalDocsExamined", 0) <= _TRIAL)
