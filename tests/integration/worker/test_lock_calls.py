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
from holdfast.engine import waking
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


async def test_work_without_locks_asks_nothing(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    await shop.submit_many(work, [("well",)] * 50)
    await shop.submit_many(work, [("badly",)] * 5)
    heard.calls.clear()
    spoiled, store = Spoiled.around(shop.store)

    await shop.drain(store=store, queues=("a",))

    assert spoiled.calls["next_in_line"] == 0
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


async def test_a_question_holds_up_neither_results_nor_the_next_of_the_own_queue(
    shop: Workshop, work: AnyDefinition
) -> None:
    tasks = [await shop.submit(work, lock="k") for _ in range(20)]
    spoiled, store = Spoiled.around(shop.store)
    spoiled.gates["next_in_line"] = asyncio.Event()

    async with shop.working(store=store, queues=("a",), poll=ASLEEP):
        await shop.reaches(tasks[-1], State.COMPLETED, within=SOON)
        assert spoiled.calls["next_in_line"] == 1
        spoiled.gates["next_in_line"].set()


async def test_questions_are_paced_where_locks_are_let_go_all_the_time(
    shop: Workshop, work: AnyDefinition
) -> None:
    tasks = [await shop.submit(work, lock="k") for _ in range(100)]
    spoiled, store = Spoiled.around(shop.store)

    began = time.monotonic()
    await shop.drain(store=store, queues=("a",))
    took = time.monotonic() - began

    assert (await shop.get(tasks[-1])).state is State.COMPLETED
    assert spoiled.calls["save"] == 100
    assert 1 <= spoiled.calls["next_in_line"] <= 2 + took / waking.IN_VAIN


async def test_what_is_let_go_during_a_question_goes_with_the_next(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    keys = [f"k{number}" for number in range(9)]
    tasks = [await shop.submit(work, lock=key) for key in keys]
    for key in keys:
        await waits(shop, key)
    heard.calls.clear()
    spoiled, store = Spoiled.around(shop.store)
    spoiled.gates["next_in_line"] = asyncio.Event()

    async with shop.working(store=store, queues=("a",), concurrency=1, poll=ASLEEP):
        await eventually(lambda: spoiled.calls["next_in_line"] == 1)
        for task in tasks:
            await shop.reaches(task, State.COMPLETED, within=SOON)
        spoiled.gates["next_in_line"].set()
        await eventually(lambda: heard.called() == {"b": 9})

    assert spoiled.calls["next_in_line"] <= 2


@pytest.mark.parametrize("fault", ["away", "bug"])
async def test_a_question_that_fails_is_left_at_that(
    shop: Workshop, heard: Overheard, work: AnyDefinition, fault: str
) -> None:
    tasks = [await shop.submit(work, lock="k") for _ in range(3)]
    next_one = await waits(shop, "k")
    heard.calls.clear()
    spoiled, store = Spoiled.around(shop.store)
    if fault == "away":
        spoiled.away.add("next_in_line")
    else:
        spoiled.bugs["next_in_line"] = RuntimeError("no such method")

    await shop.drain(store=store, queues=("a",))

    for task in tasks:
        assert (await shop.get(task)).state is State.COMPLETED
    assert (await shop.get(next_one)).state is State.QUEUED
    assert (spoiled.calls["next_in_line"] > 0, heard.calls) == (True, [])


async def test_a_leaving_worker_makes_its_last_calls(
    shop: Workshop, heard: Overheard, work: AnyDefinition
) -> None:
    task = await shop.submit(work, lock="k")
    await waits(shop, "k")
    heard.calls.clear()
    spoiled, store = Spoiled.around(shop.store)
    spoiled.gates["next_in_line"] = asyncio.Event()
    worker = shop.worker(store=store, queues=("a",))
    run = asyncio.create_task(worker.run())
    await shop.reaches(task, State.COMPLETED)

    worker.stop()
    await asyncio.wait({run}, timeout=0.3)

    assert (run.done(), heard.calls) == (False, [])
    spoiled.gates["next_in_line"].set()
    await asyncio.wait_for(run, SOON)
    assert heard.calls == [{"b": 1}]


async def test_a_leaving_worker_does_not_wait_for_ever_to_make_its_last_calls(
    shop: Workshop, work: AnyDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "PATIENCE", 0.2)
    task = await shop.submit(work, lock="k")
    spoiled, store = Spoiled.around(shop.store)
    spoiled.gates["next_in_line"] = asyncio.Event()
    worker = shop.worker(store=store, queues=("a",))
    run = asyncio.create_task(worker.run())
    await shop.reaches(task, State.COMPLETED)

    worker.stop()

    await asyncio.wait_for(run, SOON)


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

    assert heard.calls[0] == {"a": EVERYBODY}
    assert heard.calls[1:] == [{"a": 1, "b": 1}]


async def test_a_rescuer_that_gives_up_a_task_calls_only_who_is_next(
    shop: Workshop, heard: Overheard
) -> None:
    await lost(shop, await waits(shop, "k", queue="a"))
    await waits(shop, "k", requires=frozenset({"gpu"}))
    settings = shop.settings.override(crash_limit=1)

    await Rescuer(shop.store, heard, settings).tick()

    assert heard.calls == [{"b": EVERYBODY}]


async def test_a_rescuer_that_is_sent_home_makes_its_last_calls(
    shop: Workshop, heard: Overheard
) -> None:
    await lost(shop, await waits(shop, "k", queue="a"))
    await waits(shop, "k", priority=Priority.HIGH)
    spoiled, store = Spoiled.around(shop.store)
    spoiled.gates["next_in_line"] = asyncio.Event()
    round_ = asyncio.create_task(Rescuer(store, heard, shop.settings).tick())
    await eventually(lambda: spoiled.calls["next_in_line"] == 1)

    round_.cancel()
    spoiled.gates["next_in_line"].set()
    await asyncio.wait({round_}, timeout=SOON)

    assert round_.cancelled()
    assert heard.calls[-1] == {"b": 1}
