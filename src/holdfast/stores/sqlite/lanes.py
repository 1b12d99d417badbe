"""Lanes: interned (queue, required capabilities, priority).

Pause, choice of queues and capabilities then cost one probe per lane instead of a filter over rows.
Lanes are never changed or removed, so what a process once read stays true; only new ones appear.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

import orjson

from holdfast.core.task import Priority
from holdfast.stores.sqlite.queries import QUEUES, as_json


class Lane(NamedTuple):
    id: int
    queue: str
    requires: frozenset[str]
    priority: Priority

    def admits(
        self, queues: Collection[str] | None, paused: Collection[str], able: frozenset[str]
    ) -> bool:
        """Whether a worker for these queues, able to do this, may take from here now."""
        served = queues is None or self.queue in queues
        return served and self.queue not in paused and self.requires <= able


Key = tuple[str, frozenset[str], Priority]


class Lanes:
    """All lanes known to this process, shared by its threads: entries are only ever added."""

    def __init__(self) -> None:
        self.by_id: dict[int, Lane] = {}
        self._by_key: dict[Key, Lane] = {}

    def all(self) -> list[Lane]:
        """Those known at this moment. Their ids have no gaps, as none is ever removed: as many as
        the last id says are all there are.
        """
        return list(self.by_id.values())

    def find(self, key: Key) -> Lane | None:
        return self._by_key.get(key)

    def lookup(self, db: sqlite3.Connection, lane_id: int) -> Lane:
        """A lane that the database knows, whoever made it. For readers, on their own threads."""
        known = self.by_id.get(lane_id)
        if known is None:
            all_lanes = {lane.id: lane for lane in _read(db)}
            self._remember(*all_lanes.values())
            known = all_lanes[lane_id]
        return known

    def refresh(self, db: sqlite3.Connection) -> None:
        """Read the lanes that others have made meanwhile."""
        self._remember(*_read(db))

    def intern(self, db: sqlite3.Connection, key: Key) -> Lane:
        """The lane of that kind, made if there is none. `forget` if this is rolled back."""
        queue, requires, priority = key
        words = (queue, as_json(sorted(requires)), priority.value)
        db.execute(QUEUES["add_lane"], words)
        (lane_id,) = db.execute(QUEUES["lane_id"], words).fetchone()
        lane = Lane(lane_id, queue, requires, priority)
        self._remember(lane)
        return lane

    def forget(self) -> None:
        """Start afresh: what may have made lanes was rolled back, or the file is another."""
        self.by_id, self._by_key = {}, {}

    def _remember(self, *lanes: Lane) -> None:
        for lane in lanes:
            self._by_key[lane.queue, lane.requires, lane.priority] = lane
            self.by_id[lane.id] = lane


def _read(db: sqlite3.Connection) -> list[Lane]:
    return [
        Lane(lane_id, queue, frozenset(orjson.loads(requires)), Priority(priority))
        for lane_id, queue, requires, priority in db.execute(QUEUES["lanes"]).fetchall()
    ]
