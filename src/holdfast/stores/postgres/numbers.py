"""The store in numbers, from the tally: never by counting a backlog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from holdfast.core.lifecycle import TERMINAL
from holdfast.core.stats import Depth, QueueStats, Stats
from holdfast.core.task import Priority, State
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.lanes import Lane, Lanes
from holdfast.stores.postgres.queries import Queries

_PLACES = ("ready", "waiting", "blocked", "running")
Counts = Mapping[str, dict[int, int]]
"""By kind, then by lane; ended tasks by whether (1) or not (0) it was within the last minute."""


@dataclass(slots=True)
class _Queue:
    """The sums of one queue's lanes; `oldest` in microseconds of waiting."""

    sums: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ready: dict[Priority, int] = field(default_factory=lambda: defaultdict(int))
    oldest: dict[Priority, int] = field(default_factory=dict)


async def stats(db: Connection, sql: Queries, lanes: Lanes, now: int | None) -> Stats:
    found = orjson.loads(await db.fetchval(sql["numbers"], now))
    oldest_transaction, dead_rows = await db.fetchrow(sql["burdens"]) or (0.0, 0)
    counts: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for kind, key, number in found["counts"]:
        counts[kind][key] = number
    oldest = dict(found["oldest"])
    known = await lanes.know(db, {lane for kind in _PLACES for lane in counts[kind]} | set(oldest))
    paused = frozenset(found["paused"])
    queues = _queues(counts, oldest, known)
    return Stats(
        queues=tuple(
            _queue_stats(queue, queues.get(queue, _Queue()), paused=queue in paused)
            for queue in sorted(queues.keys() | paused)
        ),
        states=_states(counts),
        last_minute={s: counts[s].get(1, 0) for s in State if s in TERMINAL},
        refused=counts["refused"].get(0, 0),
        oldest_transaction=oldest_transaction,
        dead_rows=dead_rows,
    )


def _queues(
    counts: Counts, oldest: Mapping[int, int], lanes: Mapping[int, Lane]
) -> dict[str, _Queue]:
    queues: defaultdict[str, _Queue] = defaultdict(_Queue)
    for kind in _PLACES:
        for lane_id, number in counts[kind].items():
            lane = lanes[lane_id]
            queues[lane.queue].sums[kind] += number
            if kind == "ready":
                queues[lane.queue].ready[lane.priority] += number
    for lane_id, age in oldest.items():
        lane = lanes[lane_id]
        ages = queues[lane.queue].oldest
        ages[lane.priority] = max(age, ages.get(lane.priority, age))
    return queues


def _queue_stats(queue: str, found: _Queue, *, paused: bool) -> QueueStats:
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
                oldest_seconds=found.oldest[priority] / 1e6,
            )
            for priority in Priority
            if priority in found.oldest
        ),
    )


def _states(counts: Counts) -> dict[State, int]:
    """Queued is what waits or is ready, but for what waits as `retrying`."""
    kept = {state: sum(counts[state].values()) for state in State}
    places = {kind: sum(counts[kind].values()) for kind in _PLACES}
    kept[State.QUEUED] = places["ready"] + places["waiting"] - kept[State.RETRYING]
    kept[State.BLOCKED] = places["blocked"]
    kept[State.RUNNING] = places["running"]
    return kept
