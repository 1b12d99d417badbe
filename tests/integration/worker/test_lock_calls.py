"""Who is called when a worker lets a lock go: exactly the queues of those who are next in line."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping

import pytest
from tests.integration.worker.faults import Spoiled
from tests.integration.worker.workshop import Workshop

from holdfast.core.task import Priority, State, TaskId
from holdfast.definitions.context import Context
from holdfast.definitions.registry import AnyDefinition
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.engine.waking import TOGETHER, PassedOn
from holdfast.ports.dispatcher import EVERYBODY
from holdfast.ports.store import Store
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task, worker_info
from holdfast.worker.maintenance.rescuer import Rescuer

ASLEEP = 30.0
"""A poll that no test waits for."""
SOON = 5.0


class Overheard(InProcessDispatcher):
    """Says who was called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, int]] = []

    def wake(self, queues: Mapping[str, int]) -> None:  # type: ignore[override] # in truth it is given one
        self.calls.append(dict(queues))
        super().wake(queues)

    def called(self) -> dict[str, int]:
        """How many of each queue, all in all."""
        return dict(sum(map(Counter, self.calls), Counter[str]()))


@pytest.fixture
def heard() -> Overheard:
    return Overheard()


@pytest.fixture
def shop(store: Store, heard: Overheard) -> Workshop:
    store.passed_on = PassedOn(heard.wake)
    return Workshop(store, heard)


@pytest.fixture
def work(shop: Workshop) -> AnyDefinition:
    """Ends as its argument says."""

    @shop.task(queue="a", max_retries=1, retry=lambda _: 0.0)
    async def work(end: str = "well") -> None:
        if end == "badly":
            raise ValueError(end)

    return work


async def waits(shop: Workshop, lock: str, *, queue: str = "b", **given: object) -> TaskId:
    """Somebody stands in line who is served by nobody here."""
    (added,) = await shop.store.add(
        [new_task(lock=lock, queue=queue, **given)], idempotency_window=WINDOW
    )
    return added.task_id


async def test_the_queue_of_the_next_is_called_and_no_other(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    await shop.submit(work, lock="k")
    await waits(shop, "k")
    await waits(shop, "k", queue="c")
    heard.calls.clear()

    await shop.drain(queues=("a",))

    assert heard.calls == [{"b": 1}]


async def test_nobody_is_called_if_nobody_is_next(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    for end in ("well", "badly"):
        await shop.submit(work, end, max_retries=0)
        await shop.submit(work, end, max_retries=0, lock=end)
    heard.calls.clear()

    await shop.drain(queues=("a",))

    assert heard.calls == []


async def test_work_without_locks_calls_for_retries_only(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    await shop.submit_many(work, [("well",)] * 50)
    await shop.submit_many(work, [("badly",)] * 5)
    heard.calls.clear()

    await shop.drain(queues=("a",))

    assert heard.called() == {"a": 5}, "retries are called for, ends are not"


async def test_a_task_with_a_lock_that_is_tried_again_at_once_is_called_for_once(
    shop: Workshop, heard: Overheard
) -> None:
    spoiled, store = Spoiled.around(shop.store)
    gate = spoiled.gates["claim"] = asyncio.Event()
    gate.set()

    @shop.task(queue="a", max_retries=1, retry=lambda _: 0.0)
    async def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            gate.clear()  # nobody takes it before it was called for
            raise ValueError("the first attempt fails")

    task = await shop.submit(flaky, lock="k")
    heard.calls.clear()

    async with shop.working(store=store, queues=("a",), poll=ASLEEP):
        await eventually(lambda: heard.calls)
        gate.set()
        await shop.reaches(task, State.COMPLETED, within=SOON)

    assert heard.calls == [{"a": 1}]


async def test_calls_are_paced_where_locks_are_let_go_all_the_time(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    tasks = [await shop.submit(work, lock="k") for _ in range(100)]
    heard.calls.clear()
    spoiled, store = Spoiled.around(shop.store)

    began = time.monotonic()
    await shop.drain(store=store, queues=("a",))
    took = time.monotonic() - began

    assert (await shop.get(tasks[-1])).state is State.COMPLETED
    assert spoiled.calls["save"] == 100
    assert 1 <= len(heard.calls) <= 2 + took / TOGETHER


async def test_what_is_let_go_between_two_calls_goes_with_the_next(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    keys = [f"k{number}" for number in range(9)]
    for key in keys:
        await shop.submit(work, lock=key)
        await waits(shop, key)
    heard.calls.clear()

    async with shop.working(queues=("a",), concurrency=1, poll=ASLEEP):
        await eventually(lambda: heard.called() == {"b": 9})


async def lost(shop: Workshop, task: TaskId, *, queue: str = "a") -> None:
    """Somebody took that task and died."""
    dead = worker_info()
    await shop.store.register(dead)
    claimed = await shop.store.claim(
        dead.id, queues=[queue], capabilities=frozenset({"gpu"}), limit=1
    )
    assert [claim.task_id for claim in claimed.claims] == [task]
    await shop.store.bury(dead.id, beats=None)


async def test_a_rescuer_calls_those_who_are_next(shop: Workshop, heard: Overheard) -> None:
    await lost(shop, await waits(shop, "k", queue="a"))
    await waits(shop, "k", priority=Priority.HIGH)
    await lost(shop, await waits(shop, "own", queue="a"))

    await Rescuer(shop.store, heard, shop.settings).tick()

    assert {"a": EVERYBODY} in heard.calls
    assert {"a": 1, "b": 1} in heard.calls


async def test_a_rescuer_that_gives_up_a_task_calls_only_who_is_next(
    shop: Workshop, heard: Overheard
) -> None:
    await lost(shop, await waits(shop, "k", queue="a"))
    await waits(shop, "k", requires=frozenset({"gpu"}))
    settings = shop.settings.override(crash_limit=1)

    await Rescuer(shop.store, heard, settings).tick()

    assert heard.calls == [{"b": EVERYBODY}]
