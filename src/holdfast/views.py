"""The answers that take more than one value to make: the store's clock, its settings, or several
reads. REST and `--json` are both made here, so that they cannot differ; the words are those of
`core.task_answers` and `core.store_answers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import orjson

from holdfast.core.fleet import ALIVE, WorkerInfo, WorkerStatus
from holdfast.core.lifecycle import TERMINAL
from holdfast.core.priority import Aging
from holdfast.core.shown import decoded, masked
from holdfast.core.stats import Depth, EffectiveDepth, QueueStats, Stats, place_in_line
from holdfast.core.store_answers import DEPTH, EFFECTIVE_DEPTH, LIMIT, QUEUE
from holdfast.core.task import Added, Json, Priority, State, SubmitOutcome, Task
from holdfast.core.task_answers import TASK
from holdfast.core.trace import trace_id_of

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.core.limit_state import LimitDetails, LimitPage
    from holdfast.core.query import Page
    from holdfast.definitions.registry import Registry

EPOCH: Final = datetime.fromtimestamp(0, UTC)
MOST_AGED: Final = 10_000
_KEYS: Final = (SubmitOutcome.UNIQUE_KEY, SubmitOutcome.IDEMPOTENCY_KEY)


def to_json(data: Json, *, indented: bool = False) -> bytes:
    """JSON as text; instants become RFC 3339 with a Z."""
    return orjson.dumps(data, option=orjson.OPT_UTC_Z | (orjson.OPT_INDENT_2 if indented else 0))


class TaskView:
    """Shows tasks, as they stand at one instant of the store's clock."""

    def __init__(
        self, registry: Registry, aging: Aging, now: datetime, *, with_traceback: bool = False
    ) -> None:
        self._registry = registry
        self._aging = aging
        self._now = now
        self._with_traceback = with_traceback

    @classmethod
    async def of(cls, client: Client, *, with_traceback: bool = False) -> TaskView:
        """How tasks of this store are shown now."""
        now = await client.now()
        return cls(client.registry, client.settings.aging, now, with_traceback=with_traceback)

    def task(self, task: Task) -> Json:
        """The whole picture of one task."""
        return TASK.write(
            task,
            whole=self._with_traceback,
            parameters=self._parameters(task),
            effective_priority=self._effective(task),
            result=decoded(task.result, orjson.loads),
        )

    def page(self, page: Page) -> Json:
        return {"tasks": [self.task(task) for task in page.tasks], "next": page.next}

    def _parameters(self, task: Task) -> Json:
        """Without its secrets, whether this process knows the task or not."""
        definition = self._registry.get(task.name)
        if definition is None:
            return masked(task.payload, orjson.loads)
        return definition.masked(task.payload)

    def _effective(self, task: Task) -> Priority:
        """What its rank is worth: now while it waits, else when it last started or ended."""
        if task.state in TERMINAL or task.state is State.RUNNING:
            at = task.started_at or task.finished_at or self._now
        else:
            at = self._now
        if task.run_at > at:  # it has not begun to age
            return task.priority
        return self._aging.effective(task.rank, _microseconds(at))


def submitted(added: Added, position: int | None, trace: str | None) -> dict[str, Json]:
    """The answer to a submit. `trace` is the `traceparent` that a new task came with."""
    view: dict[str, Json] = {
        "task_id": added.task_id,
        "status": added.state.value,
        "queue_position": position,
        "outcome": added.outcome.value,
        "existing": not added.created,
        "trace_id": trace_id_of(added.task_id, trace) if added.created else None,
    }
    if added.outcome in _KEYS:
        view["existing_by"] = added.outcome.value
    return view


async def place_of(client: Client, task: Task) -> int | None:
    """Where in its queue's line a task stands that was just submitted; None if it is in none."""
    if task.state is not State.QUEUED or task.run_at > await client.now():
        return None
    queues = (await client.stats()).queues
    depths = next((each.depths for each in queues if each.queue == task.queue), ())
    return place_in_line(task.priority, depths, {}, client.settings.aging, at_most_old=0.0)


def queue_list(client: Client, stats: Stats) -> Json:
    """The queues that are paused or have tasks, and the open ones."""
    known = {each.queue: each for each in stats.queues}
    idle = {name: _idle(name) for name in client.settings.open_queues if name not in known}
    listed = sorted((known | idle).items())
    return {"queues": [_queue(client, each) for _, each in listed]}


def limit_list(page: LimitPage) -> Json:
    """A page of limits."""
    return {"limits": [LIMIT.write(each) for each in page.limits], "next": page.next}


def limit_details(found: LimitDetails) -> Json:
    """One limit, with who holds it and who waits."""
    return LIMIT.write(found.limit, holders=list(found.holders), waiters=list(found.waiters))


async def numbers(
    client: Client, stats: Stats, workers: Sequence[WorkerInfo], wanted: str | None = None
) -> Json:
    """The store in numbers; of its queues only the `wanted` one, if one is."""
    ended = stats.last_minute
    queues = [each for each in stats.queues if wanted in (None, each.queue)]
    live = [worker for worker in workers if worker.status in ALIVE]
    statuses = [worker.status for worker in workers]
    worth = await effective_depths(client, queues, wanted)
    by_worth = {word.value: EFFECTIVE_DEPTH.write(depth) for word, depth in worth.items()}
    return {
        # `medium` is what many call `normal`.
        "queues": by_worth | {"medium": by_worth["normal"]},
        "named_queues": [_queue(client, each) for each in queues],
        "priorities": [DEPTH.write(each) for each in _depths(queues)],
        "workers": {status.value: statuses.count(status) for status in WorkerStatus}
        | {
            "total_capacity": sum(worker.capacity for worker in live),
            "used_capacity": sum(worker.load for worker in live),
        },
        "throughput": {
            "completed_last_minute": ended[State.COMPLETED],
            "failed_last_minute": ended[State.FAILED] + ended[State.DEAD_LETTER],
        },
        "statuses": {state.value: count for state, count in stats.states.items()},
        "last_minute": {state.value: count for state, count in ended.items()},
        "refused": stats.refused,
    }


async def effective_depths(
    client: Client, queues: Iterable[QueueStats], queue: str | None = None
) -> Mapping[Priority, EffectiveDepth]:
    """What is ready by what waiting has made of its priority, of one queue or of all together.

    The store knows the depths by the priority that tasks came with. Those of one that are worth
    more are counted, `MOST_AGED` at the most, and only if the oldest has waited long enough.
    """
    found = {priority: EffectiveDepth() for priority in Priority}
    depths = [depth for each in queues for depth in each.depths]
    now = _microseconds(await client.now())
    aging = client.settings.aging
    for priority in Priority:
        same = [depth for depth in depths if depth.priority is priority]
        left = sum(depth.ready for depth in same)
        oldest = max((depth.oldest_seconds or 0.0 for depth in same), default=0.0)
        counted = 0
        for other, seconds in aging.steps(priority):
            if left == counted or oldest < seconds:
                continue
            number = await client.store.count_ready(
                queue=queue,
                priority=priority,
                rank=now - aging.head_start(other),
                limit=MOST_AGED,
            )
            found[other].add(number - counted, oldest)
            found[other].is_capped |= number == MOST_AGED
            # What has not come so far has waited for less.
            counted, oldest = number, min(oldest, seconds)
        found[priority].add(left - counted, oldest)
    return found


def _queue(client: Client, stats: QueueStats) -> Json:
    return QUEUE.write(stats, open=stats.queue in client.settings.open_queues)


def _idle(name: str) -> QueueStats:
    return QueueStats(queue=name, paused=False, ready=0, waiting=0, blocked=0, running=0, depths=())


def _depths(queues: Iterable[QueueStats]) -> list[Depth]:
    """The depths of all queues together."""
    found: list[Depth] = []
    every = [depth for queue in queues for depth in queue.depths]
    for priority in Priority:
        same = [depth for depth in every if depth.priority is priority]
        waits = [depth.oldest_seconds for depth in same if depth.oldest_seconds is not None]
        ready = sum(depth.ready for depth in same)
        found.append(Depth(priority=priority, ready=ready, oldest_seconds=max(waits, default=None)))
    return found


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)
