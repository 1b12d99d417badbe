"""A worker looks at tasks that have to do with others before it runs them."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.worker.workshop import Workshop
from tests.kit.weaving import chained, family, linked, one, parent, stored

from holdfast.core.flow import Body, OnFailure
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Reason, State
from holdfast.definitions.context import Context
from holdfast.errors import HoldfastError
from holdfast.flow.bodies import BODY
from holdfast.ports.records import one_record


async def test_a_chain_runs_through_async_and_sync_handlers_alike(shop: Workshop) -> None:
    @shop.task(name="hop")
    async def hop(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    @shop.task(name="threaded")
    def threaded(x: int) -> int:
        return x * 10

    links = chained([("hop", {"x": 1}), ("threaded", {}), ("hop", {}), ("threaded", {})])
    await shop.store.commit(stored(links))

    await shop.drain()

    assert [(await shop.get(task.id)).result for task in links] == [b"2", b"20", b"21", b"210"]


async def test_a_chain_goes_on_without_waiting_for_a_poll(shop: Workshop) -> None:
    @shop.task(name="hop")
    async def hop(x: int) -> int:
        return x + 1

    links = chained([("hop", {"x": 0})] + [("hop", {})] * 99)
    await shop.store.commit(stored(links))

    async with asyncio.timeout(30), shop.working(poll=600.0):
        await shop.reaches(links[-1].id, State.COMPLETED, within=29)

    assert (await shop.get(links[-1].id)).result == b"100"


async def test_what_follows_a_failure_never_runs(shop: Workshop) -> None:
    ran: list[int] = []

    @shop.task(name="break")
    async def broken() -> int:
        raise ValueError("no luck")

    @shop.task(name="hop")
    async def hop(x: int) -> int:
        ran.append(x)
        return x

    links = chained([("break", {}), ("hop", {}), ("hop", {})])
    await shop.store.commit(stored(links))

    await shop.drain()

    last = await shop.get(links[-1].id)
    assert (last.state, last.reason) == (State.CANCELLED, Reason.DEPENDENCY_FAILED)
    assert last.error is not None
    assert last.error.message.startswith(f"task {links[0].id} (break) ended as dead_letter")
    (attempt,) = await shop.attempts(links[-1].id)
    assert (attempt.ended, attempt.charged) == (AttemptEnd.CANCELLED, False)
    assert ran == []


async def test_a_dropped_task_of_a_name_that_nobody_knows_is_dropped_all_the_same(
    shop: Workshop,
) -> None:
    @shop.task(name="break")
    async def broken() -> int:
        raise ValueError("no luck")

    links = chained([("break", {}), ("elsewhere", {})])
    await shop.store.commit(stored(links))

    await shop.drain()

    assert (await shop.get(links[1].id)).reason is Reason.DEPENDENCY_FAILED


async def test_a_retry_gets_the_results_again(shop: Workshop) -> None:
    @shop.task(name="hop")
    async def hop(x: int) -> int:
        return x + 1

    @shop.task(name="twice")
    async def twice(ctx: Context, x: int) -> list[int]:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return [x, ctx.attempt]

    first = linked("hop", {"x": 1})
    last = linked("twice", after=[first], results={"x": one(first)}, max_retries=1)
    await shop.store.commit(stored([first, last]))

    await shop.drain()

    assert (await shop.get(last.id)).result == b"[2,2]"


async def test_a_parent_ends_after_the_children_that_its_handler_submitted(shop: Workshop) -> None:
    @shop.task(name="hop")
    async def hop(x: int) -> int:
        return x + 1

    @shop.task(name="split")
    async def split(ctx: Context, n: int) -> int:
        for number in range(n):
            ctx.submit_child(hop, number)
        return n

    @shop.task(name="split_sync")
    def split_sync(ctx: Context, n: int) -> int:
        ctx.submit_child(split, n)
        return n

    task = await shop.submit(split_sync, 3)

    async with shop.working(poll=600.0):
        done = await shop.reaches(task, State.COMPLETED)

    assert (done.result, done.attempt, done.charged) == (b"3", 2, 0)
    ends = [attempt.ended for attempt in await shop.attempts(task)]
    assert ends == [AttemptEnd.RELEASED, AttemptEnd.COMPLETED]


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_ended_parent_gets_no_child(shop: Workshop, is_async: bool) -> None:
    kept: list[Context] = []

    @shop.task(name="early")
    async def early(ctx: Context) -> None:
        kept.append(ctx)

    @shop.task(name="early_sync")
    def early_sync(ctx: Context) -> None:
        kept.append(ctx)

    task = await shop.submit(early if is_async else early_sync)
    await shop.drain()

    for add in (kept[0].submit, kept[0].submit_child):
        with pytest.raises(HoldfastError, match=f"attempt 1 of task {task} has ended"):
            add(early)
    assert (await shop.get(task)).state is State.COMPLETED
    assert len((await shop.store.list(TaskFilter(), limit=9)).tasks) == 1


async def test_a_body_that_goes_before_its_children_brings_its_result_along(
    shop: Workshop,
) -> None:
    @shop.task(name="hop")
    def hop(x: int) -> int:
        return x + 1

    father = parent("hop", {"x": 1}, body=Body.BEFORE)
    children = [linked("hop", {"x": n}, body_of=father) for n in range(3)]
    await shop.store.commit(stored(family(father, children)))

    await shop.drain()

    done = await shop.get(father.id)
    assert (done.state, done.result) == (State.COMPLETED, b"2")
    assert await one_record(shop.store, BODY, father.id) is None


async def test_the_rest_is_cancelled_when_a_child_fails_and_what_runs_is_stopped(
    shop: Workshop,
) -> None:
    started = asyncio.Event()

    @shop.task(name="break")
    async def broken() -> int:
        await started.wait()
        raise ValueError("no luck")

    @shop.task(name="long")
    async def long() -> None:
        started.set()
        await asyncio.sleep(60)

    father = parent(on_failure=OnFailure.CANCEL_REST)
    bad = linked("break", rest_of=father)
    running = linked("long", rest_of=father)
    later = linked("long", rest_of=father, delay=3600.0)
    await shop.store.commit(stored(family(father, [bad, running, later])))

    async with shop.working(poll=600.0):
        done = await shop.reaches(father.id, State.FAILED)

    assert done.error is not None
    assert bad.id in done.error.message
    assert (await shop.get(running.id)).state is State.CANCELLED
    assert (await shop.get(later.id)).reason is Reason.DEPENDENCY_FAILED
