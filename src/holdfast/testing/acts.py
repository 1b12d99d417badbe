"""What `StoreProcesses` do to a store: functions of (store, JSON arguments) that answer JSON."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence

from holdfast.core.attempt import Claim, Settlement
from holdfast.core.lifecycle import UNFINISHED
from holdfast.core.query import TaskFilter
from holdfast.core.task import Added, AttemptEnd, Json, State, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.factories import (
    HEAD_STARTS,
    WINDOW,
    behind,
    failure,
    loss,
    new_task,
    new_tasks,
    release,
    success,
    worker_id,
    worker_info,
)


async def submit_same(store: Store, *, times: int, **keys: str) -> Json:
    """Submit tasks that share a key, one by one; answer [task, outcome] for each."""
    answers: list[Added] = []
    for _ in range(times):
        answers += await store.add([new_task(**keys)], idempotency_window=WINDOW)
    return [[answer.task_id, answer.outcome] for answer in answers]


async def submit_batches(store: Store, *, batches: int, size: int) -> Json:
    """Submit plain tasks; answer their ids."""
    ids = []
    for _ in range(batches):
        answers = await store.add(new_tasks(size), idempotency_window=WINDOW)
        ids += [answer.task_id for answer in answers]
    return ids


async def submit_for_ever(store: Store) -> Json:
    """Submit one by one and say each id when it was acknowledged. Ends by being killed."""
    while True:
        (answer,) = await store.add([new_task()], idempotency_window=WINDOW)
        print(json.dumps(answer.task_id), flush=True)


async def work_for_ever(store: Store) -> Json:
    """Submit tasks with another behind each, run them, and say how many each time. Ends by being
    killed.
    """
    worker = await _enlist(store)
    while True:
        firsts = new_tasks(3, name="first")
        seconds = [new_task(name="second", queue="b", gates=behind(first.id)) for first in firsts]
        await store.add([*firsts, *seconds], idempotency_window=WINDOW)
        claims = await _claim(store, worker, 2, queues=["default"])
        await store.save([success(found) for found in claims])
        queued = TaskFilter(states=frozenset({State.QUEUED}), queue="default")
        await store.cancel(queued, limit=1)
        print(json.dumps(len(claims)), flush=True)


async def claim_and_stop(store: Store, *, worker: str, limit: int) -> Json:
    """Claim, and never settle: for being killed with work in hand."""
    await store.register(worker_info(id=WorkerId(worker)))
    return [found.task_id for found in await _claim(store, WorkerId(worker), limit)]


async def drain(store: Store, *, limit: int = 10, until: int | None = None) -> Json:
    """Run tasks until none is unfinished (and `until` have ended, if given).

    Answers every start as [task, attempt] and every hold of a lock as [key, from, to, fence].
    """
    worker = await _enlist(store)
    starts: list[Json] = []
    holds: list[Json] = []
    while await _work_is_left(store, until):
        claims = await _claim(store, worker, limit)
        since = time.monotonic()
        starts += [[found.task_id, found.attempt] for found in claims]
        until_now = time.monotonic()
        holds += [[found.lock, since, until_now, found.fence] for found in claims if found.lock]
        assert not await store.save([success(found) for found in claims])
    return {"starts": starts, "holds": holds}


async def settle(store: Store, *, fences: Sequence[Json], ended: str) -> Json:
    """End running attempts, each given as [task, attempt, worker]; answer which were taken."""
    state = {"completed": State.COMPLETED, "cancelled": State.CANCELLED}.get(ended, State.FAILED)
    taken = []
    for task, attempt, worker in fences:
        settlement = Settlement(
            TaskId(task), attempt, WorkerId(worker), state, AttemptEnd(ended), 0, 0
        )
        if not await store.save([settlement]):
            taken.append(task)
    return taken


async def rescue(store: Store) -> Json:
    """Settle all orphans as lost; answer how many of those writes were refused."""
    return len(await store.save([loss(orphan) for orphan in await store.orphans(limit=1000)]))


async def replay(store: Store, *, limit: int) -> Json:
    """Requeue dead letters until none is left; answer which."""
    dead = TaskFilter(states=frozenset({State.DEAD_LETTER}))
    ids: list[str] = []
    while found := await store.requeue(dead, limit=limit, head_starts=HEAD_STARTS):
        ids += [task.id for task in found]
    return ids


async def bury(store: Store, *, workers: Sequence[str]) -> Json:
    """Bury workers that never beat; answer which died by this."""
    return [worker for worker in workers if await store.bury(WorkerId(worker), beats=0)]


async def churn(store: Store, *, seed: int, rounds: int) -> Json:
    """Everything at once, at random: submit, claim, settle, cancel, requeue, pause, read."""
    draw = random.Random(seed)  # noqa: S311 - a storm that can be repeated
    worker = await _enlist(store)
    held: list[Claim] = []
    for _ in range(rounds):
        await _submit_some(store, draw)
        held += await _claim(store, worker, draw.randrange(6))
        draw.shuffle(held)
        some = draw.randrange(6)
        done, held = held[:some], held[some:]
        endings = (success, release, lambda found: failure(found, backoff=draw.random() / 50))
        await store.save([draw.choice(endings)(found) for found in done])
        await store.cancel(TaskFilter(tag=str(draw.randrange(9))), limit=2)
        where = TaskFilter(tag=str(draw.randrange(9)))
        await store.requeue(where, limit=2, head_starts=HEAD_STARTS)
        await store.stats()
    assert not await store.save([release(found) for found in held])
    return len(held)


async def _submit_some(store: Store, draw: random.Random) -> None:
    tasks = [
        new_task(
            lock=draw.choice((None, "a", "b")),
            unique_key=draw.choice((None, None, "u", "v")),
            delay=draw.choice((None, 0.005)),
            tags=(str(draw.randrange(9)),),
        )
        for _ in range(draw.randrange(5))
    ]
    await store.add(tasks, idempotency_window=WINDOW)


async def _enlist(store: Store) -> WorkerId:
    info = worker_info(id=worker_id("member"))
    await store.register(info)
    return info.id


async def _claim(
    store: Store, worker: WorkerId, limit: int, queues: Sequence[str] | None = None
) -> Sequence[Claim]:
    claimed = await store.claim(worker, queues=queues, capabilities=frozenset(), limit=limit)
    return claimed.claims


async def _work_is_left(store: Store, until: int | None) -> bool:
    if await store.count(TaskFilter(states=UNFINISHED), limit=1):
        return True
    return until is not None and await store.count(TaskFilter(), limit=until) < until


__all__ = [name for name in dir(sys.modules[__name__]) if not name.startswith("_")]
