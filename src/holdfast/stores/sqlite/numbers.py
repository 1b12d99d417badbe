"""The store in numbers, from the tally: never by counting a backlog."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.stats import Depth, QueueStats, Stats
from holdfast.core.task import Priority, State
from holdfast.stores.sqlite.lanes import Lane, Lanes
from holdfast.stores.sqlite.queries import QUEUES, STATS, as_json

_MINUTE: Final = 60_000_000
_LOOKED_AT: Final = 1000
"""The most that `ended_lately` looks at."""


@dataclass(slots=True)
class _Queue:
    """The sums of one queue's lanes; `ready` by priority, with the eldest's run_at."""

    sums: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ready: dict[Priority, int] = field(default_factory=lambda: defaultdict(int))
    oldest: dict[Priority, int] = field(default_factory=dict)


def stats(db: sqlite3.Connection, lanes: Lanes, *, now: int) -> Stats:
    counts = _counts(db, since=(now - _MINUTE) // 1_000_000)
    paused = {queue for (queue,) in db.execute(QUEUES["paused"])}
    queues = defaultdict(_Queue, {queue: _Queue() for queue in paused})
    for kind in ("ready", "waiting", "blocked", "running"):
        for lane_id, number in counts[kind].items():
            lane = lanes.lookup(db, lane_id)
            queues[lane.queue].sums[kind] += number
            queues[lane.queue].ready[lane.priority] += number if kind == "ready" else 0
    _note_oldest(db, lanes, counts["ready"], queues)
    return Stats(
        queues=tuple(
            _queue_stats(queue, queues[queue], paused=queue in paused, now=now)
            for queue in sorted(queues)
        ),
        states=_states(counts),
        last_minute={state: sum(counts[f"ended:{state}"].values()) for state in _terminal()},
        refused=counts["refused"].get(0, 0),
    )


def demand(db: sqlite3.Connection) -> Mapping[frozenset[str], int]:
    found = db.execute(STATS["demand"])
    return {frozenset(orjson.loads(requires)): number for requires, number in found}


def ended_last_minute(db: sqlite3.Connection, queue: str, *, now: int) -> int:
    """About how many tasks of a queue were run to their end. Exact up to a thousand; beyond, their
    share of the last thousand is taken for their share of all.
    """
    return sum(_ended(db, queue, state, now) for state in _terminal() if state != State.CANCELLED)


def _ended(db: sqlite3.Connection, queue: str, state: State, now: int) -> int:
    dead_end = None if state is State.COMPLETED else state.value
    asked = {"queue": queue, "dead_end": dead_end, "since": now - _MINUTE}
    looked_at, here = db.execute(STATS["ended_lately"], asked).fetchone()
    if looked_at < _LOOKED_AT:
        return int(here)
    second = {"kind": f"ended:{state}", "second": (now - _MINUTE) // 1_000_000}
    (everywhere,) = db.execute(STATS["ended_in_all"], second).fetchone()
    return int(max(everywhere, looked_at) * here // looked_at)


def _counts(db: sqlite3.Connection, *, since: int) -> Mapping[str, dict[int, int]]:
    """By kind, then key. Zeros are left out: a lane that was used once is no news."""
    counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for kind, key, number in db.execute(STATS["counts"], {"since": since}):
        if number:
            counts[kind][key] = number
    counts["running"] = dict(map(tuple, db.execute(STATS["running_by_lane"])))
    return counts


def _note_oldest(
    db: sqlite3.Connection, lanes: Lanes, ready: Iterable[int], queues: Mapping[str, _Queue]
) -> None:
    for lane_id, run_at in db.execute(STATS["oldest_ready"], {"lanes": as_json(list(ready))}):
        lane: Lane = lanes.lookup(db, lane_id)
        oldest = queues[lane.queue].oldest
        oldest[lane.priority] = min(run_at, oldest.get(lane.priority, run_at))


def _queue_stats(queue: str, found: _Queue, *, paused: bool, now: int) -> QueueStats:
    return QueueStats(
        queue=queue,
        paused=paused,
        ready=found.sums["ready"],
        waiting=found.sums["waiting"],
        blocked=found.sums["blocked"],
        running=found.sums["running"],
        depths=tuple(
            Depth(
                priority=priority,
                ready=found.ready[priority],
                oldest_seconds=(now - found.oldest[priority]) / 1e6,
            )
            for priority in Priority
            if priority in found.oldest
        ),
    )


def _states(counts: Mapping[str, dict[int, int]]) -> dict[State, int]:
    """Queued is what waits or is ready, but for what waits as `retrying`."""
    kept = {state: counts[f"state:{state}"].get(0, 0) for state in State}
    places = {
        kind: sum(counts[kind].values()) for kind in ("ready", "waiting", "blocked", "running")
    }
    kept[State.QUEUED] = places["ready"] + places["waiting"] - kept[State.RETRYING]
    kept[State.BLOCKED] = places["blocked"]
    kept[State.RUNNING] = places["running"]
    return kept


def _terminal() -> list[State]:
    return [state for state in State if state in TERMINAL]
