"""Everything at once: failing bodies, timeouts, cancels, a flaky store, workers buried alive."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from itertools import pairwise
from typing import Any, cast

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cause, State, TaskId
from holdfast.definitions.context import Context
from holdfast.errors import Retry, Snooze, StoreUnavailable
from holdfast.ports.store import Store
from holdfast.testing.eventually import eventually
from holdfast.worker.maintenance.rescuer import Rescuer

TASKS = 300
RUNNING = frozenset({State.RUNNING})
FINISHED = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED, State.DEAD_LETTER})


class Flaky:
    """Fails before or after one call in ten: the caller cannot know which."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        self._store = store
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if name in ("url", "abilities"):
            return real

        async def call(*args: Any, **kwargs: Any) -> Any:
            draw = self._chance.random()
            if draw < 0.05:
                raise StoreUnavailable("not done")
            answer = await real(*args, **kwargs)
            if draw > 0.95 and name == "save":
                raise StoreUnavailable("done, but who knows")
            return answer

        return call


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_task_ends_once_and_every_start_has_a_cause(shop: Workshop, seed: int) -> None:
    chance = random.Random(seed)
    starts: Counter[str] = Counter()

    @shop.task(max_retries=50, timeout=0.1)
    async def moody(ctx: Context) -> int:
        starts[ctx.id] += 1
        ctx.progress(1, 2)
        draw = chance.random()
        await asyncio.sleep(draw * 0.01)
        if draw < 0.1:
            raise ValueError("moody")
        if draw < 0.15:
            raise Retry(after=0.01)
        if draw < 0.2:
            raise Snooze(after=0.01)
        if draw < 0.25:
            await asyncio.sleep(60)
        return ctx.attempt

    @shop.task(max_retries=50, timeout=0.1, lock="one")
    async def locked(ctx: Context) -> int:
        return await moody.handler(ctx)  # type: ignore[no-any-return]

    @shop.task(max_retries=50, timeout=0.2)
    def threaded(ctx: Context) -> int:
        starts[ctx.id] += 1
        if chance.random() < 0.2:
            raise ValueError("moody")
        time.sleep(chance.random() * 0.01)
        return ctx.attempt

    tasks = await shop.submit_many(moody, [()] * (TASKS - 60))
    tasks += await shop.submit_many(threaded, [()] * 40)
    tasks += await shop.submit_many(locked, [()] * 20)
    shop.settings = shop.settings.override(crash_limit=1000)
    flaky = cast("Store", Flaky(shop.store, chance))

    async with shop.working(store=flaky) as one, shop.working(store=flaky) as other:
        trouble = asyncio.create_task(make_trouble(shop, [one, other], chance))
        await eventually(lambda: are_finished(shop), within=60)
        trouble.cancel()

    ends: Counter[AttemptEnd | None] = Counter()
    for task in tasks:
        await check(shop, task, starts[task])
        ends.update(one.ended for one in await shop.attempts(task))
    assert ends[AttemptEnd.WORKER_LOST], "nobody was buried at work: the test shows nothing"
    assert ends[AttemptEnd.ERROR], "nothing failed: the test shows nothing"


async def make_trouble(shop: Workshop, workers: list[Any], chance: random.Random) -> None:
    rescuer = Rescuer(shop.store, shop.dispatcher, shop.settings)
    while True:
        await eventually(lambda: is_running(shop), within=60)
        if chance.random() < 0.6:
            await shop.store.bury(chance.choice(workers).id, beats=None)
        if chance.random() < 0.3:
            await shop.store.cancel(TaskFilter(states=RUNNING), limit=1)
        await rescuer.tick()
        await asyncio.sleep(0.05)


async def is_running(shop: Workshop) -> bool:
    return await shop.store.count(TaskFilter(states=RUNNING), limit=1) > 0


async def are_finished(shop: Workshop) -> bool:
    unfinished = TaskFilter(states=frozenset(State) - FINISHED)
    return await shop.store.count(unfinished, limit=1) == 0


async def check(shop: Workshop, task: TaskId, starts: int) -> None:
    found, attempts = await shop.get(task), await shop.attempts(task)
    assert found.state in FINISHED
    assert [one.number for one in attempts] == list(range(1, found.attempt + 1))
    assert all(one.ended is not None for one in attempts)
    assert starts <= len(attempts), "a start that the history does not know"
    completions = [one for one in attempts if one.ended is AttemptEnd.COMPLETED]
    assert len(completions) == (1 if found.state is State.COMPLETED else 0)
    if completions:
        assert found.result == b"%d" % completions[0].number
    expected = {
        AttemptEnd.ERROR: Cause.RETRY,
        AttemptEnd.TIMEOUT: Cause.TIMEOUT,
        AttemptEnd.WORKER_LOST: Cause.WORKER_LOST,
        AttemptEnd.RELEASED: Cause.RELEASED,
    }
    for before, after in pairwise(attempts):
        assert before.ended is not None
        assert after.cause is expected[before.ended]
