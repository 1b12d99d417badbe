"""Lanes: interned (queue, required capabilities, priority).

Lanes are never changed or removed, so what a process once read stays true; only new ones appear.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.core.task import NewTask, Priority
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries


class Lane(NamedTuple):
    id: int
    queue: str
    requires: frozenset[str]
    priority: Priority


Key = tuple[str, frozenset[str], Priority]


class Lanes:
    """All lanes known to this process, shared by its threads: entries are only ever added."""

    def __init__(self, sql: Queries) -> None:
        self.by_id: dict[int, Lane] = {}
        self.by_key: dict[Key, int] = {}
        self._sql = sql

    async def know(self, db: Connection, ids: Iterable[int]) -> dict[int, Lane]:
        """All lanes, these among them, whoever made them."""
        if not self.by_id.keys() >= set(ids):
            for row in await db.fetch(self._sql["lanes"]):
                self._remember(Lane(row[0], row[1], frozenset(row[2]), Priority(row[3])))
        return self.by_id

    async def intern(self, db: Connection, tasks: Iterable[NewTask]) -> None:
        """See to it that the lanes of these tasks exist and are known. Not inside a transaction
        that may be rolled back.
        """
        for key in {(new.queue, new.requires, new.priority) for new in tasks}:
            if key not in self.by_key:
                queue, requires, priority = key
                lane = await db.fetchval(
                    self._sql["lane_of"], queue, sorted(requires), priority.value
                )
                self._remember(Lane(lane, queue, requires, priority))

    def _remember(self, lane: Lane) -> None:
        self.by_id[lane.id] = lane
        self.by_key[lane.queue, lane.requires, lane.priority] = lane.id
