"""A store that goes away and comes back: nothing is lost, nobody has to restart."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.integration.worker.faults import Spoiled
from tests.integration.worker.workshop import Workshop

from holdfast.core.lifecycle import Stopped
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, State, TaskId
from holdfast.errors import SchemaMismatch
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import settled
from holdfast.worker import settler
from holdfast.worker.outage import Outage
from holdfast.worker.strays import Strays


async def test_results_are_kept_while_the_store_is_away(shop: Workshop) -> None:
    go = asyncio.Event()
    starts = 0

    @shop.task()
    async def work() -> str:
        nonlocal starts
        starts += 1
        await go.wait()
        return "kept"

    tasks = await shop.submit_many(work, [()] * 5)
    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store):
        await eventually(lambda: starts == 5)
        spoiled.away.add("*")
        go.set()
        await eventually(lambda: spoiled.refused["save"] >= 2)
        assert (await shop.get(tasks[0])).state is State.RUNNING
        spoiled.away.clear()
        for task in tasks:
            assert (await shop.reaches(task, State.COMPLETED)).result == b'"kept"'

    assert starts == 5


async def test_a_worker_claims_again_when_the_store_is_back(shop: Workshop) -> None:
    @shop.task()
    async def work() -> None: ...

    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store):
        spoiled.away.add("claim")
        task = await shop.submit(work)
        await eventually(lambda: spoiled.refused["claim"] >= 2)
        spoiled.away.clear()
        await shop.reaches(task, State.COMPLETED)


async def test_what_an_unanswered_claim_has_started_is_handed_back_and_run(shop: Workshop) -> None:
    go = asyncio.Event()

    @shop.task()
    async def work() -> None:
        await go.wait()

    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store):
        held = await shop.submit(work)
        await shop.reaches(held, State.RUNNING)
        spoiled.unanswered.add("claim")
        stray = await shop.submit(work)
        await eventually(lambda: spoiled.refused["claim"] >= 1)
        spoiled.unanswered.clear()
        go.set()
        await shop.reaches(held, State.COMPLETED)
        await shop.reaches(stray, State.COMPLETED)

    assert [a.ended for a in await shop.attempts(held)] == [AttemptEnd.COMPLETED]
    ends = [a.ended for a in await shop.attempts(stray)]
    assert ends[-1] is AttemptEnd.COMPLETED
    assert set(ends[:-1]) == {AttemptEnd.RELEASED}


@pytest.mark.parametrize("busy", [False, True], ids=["with a free slot", "with none"])
async def test_what_a_claim_starts_after_it_was_given_up_is_handed_back_and_run(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr(Strays, "FIRST", 0.1)
    go = asyncio.Event()

    @shop.task()
    async def work() -> None: ...

    @shop.task()
    async def long() -> None:
        await go.wait()

    spoiled, store = Spoiled.around(shop.store)
    async with shop.working(store=store, concurrency=1):
        spoiled.late.add("claim")
        stray = await shop.submit(work)
        await eventually(lambda: spoiled.refused["claim"] >= 1)
        gate = spoiled.gates["claim"] = asyncio.Event()
        spoiled.late.clear()
        await eventually(lambda: spoiled.calls["list"] >= 1)  # it has looked, and found nothing
        await spoiled.deliver()
        assert (await shop.get(stray)).state is State.RUNNING
        if busy:
            held = await shop.submit(long)
        gate.set()
        if busy:
            await shop.reaches(held, State.RUNNING)
            await eventually(lambda: _has_ended(shop, stray))
            go.set()
        await shop.reaches(stray, State.COMPLETED)

    ends = [a.ended for a in await shop.attempts(stray)]
    assert ends == [AttemptEnd.RELEASED, AttemptEnd.COMPLETED]


async def _has_ended(shop: Workshop, task: TaskId) -> bool:
    return (await shop.attempts(task))[0].ended is not None


async def test_a_worker_can_start_and_stop_while_the_store_is_away(shop: Workshop) -> None:
    @shop.task()
    async def work() -> None: ...

    task = await shop.submit(work)
    spoiled, store = Spoiled.around(shop.store)
    spoiled.away.add("*")
    stopped = shop.worker(store=store)
    run = asyncio.create_task(stopped.run())
    await eventually(lambda: spoiled.refused["register"] >= 2)
    stopped.stop()
    await asyncio.wait_for(run, 5)

    async with shop.working(store=store):
        await eventually(lambda: spoiled.refused["register"] >= 4)
        spoiled.away.clear()
        await shop.reaches(task, State.COMPLETED)


async def test_an_outage_is_logged_at_most_once_a_second(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Outage, "_last_line", 0.0)
    spoiled, store = Spoiled.around(shop.store)
    started = time.monotonic()
    async with shop.working(store=store, heartbeat=0.05):
        await eventually(lambda: spoiled.calls["claim"])
        spoiled.away.add("*")
        await eventually(lambda: sum(spoiled.refused.values()) >= 12)
        spoiled.away.clear()

    lines = [line for line in caplog.messages if line.startswith("store.lost")]
    assert 1 <= len(lines) <= 1 + (time.monotonic() - started)
    assert "the disk is full" in lines[0]


async def test_no_more_work_is_started_than_can_wait_to_be_saved(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler, "MOST_WAITING", 50)
    starts = 0

    @shop.task()
    async def work() -> None:
        nonlocal starts
        starts += 1
        await asyncio.sleep(0)

    await shop.submit_many(work, [()] * 5000)
    spoiled, store = Spoiled.around(shop.store)
    spoiled.away.add("save")
    async with shop.working(store=store, concurrency=4):
        await eventually(lambda: spoiled.refused["save"] >= 3)
        held = starts
        assert held < 2500
        spoiled.away.clear()
        await eventually(lambda: starts == 5000)


async def test_one_settlement_that_breaks_the_store_does_not_hold_up_the_others(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    @shop.task()
    async def work(n: int) -> int:
        return n

    tasks = await shop.submit_many(work, [(n,) for n in range(5)])
    save = shop.store.save

    async def fragile(settlements: Any) -> Any:
        if any(one.result == b"3" for one in settlements):
            raise ValueError("a bug in the driver")
        return await save(settlements)

    monkeypatch.setattr(shop.store, "save", fragile)
    async with shop.working():
        for n in (0, 1, 2, 4):
            await shop.reaches(tasks[n], State.COMPLETED)

    assert (await shop.get(tasks[3])).state is State.RUNNING


async def test_a_wrong_schema_ends_the_worker_with_the_reason(shop: Workshop) -> None:
    spoiled, store = Spoiled.around(shop.store)
    spoiled.bugs["claim"] = SchemaMismatch(found=1, expected=2, where="tasks.db")

    with pytest.raises(SchemaMismatch, match="holdfast migrate"):
        await asyncio.wait_for(shop.worker(store=store).run(), 5)


async def test_a_fault_of_a_store_is_logged_without_what_was_to_be_saved(
    shop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    @shop.task()
    async def work() -> str:
        return "the-password"

    await shop.submit(work)
    spoiled, store = Spoiled.around(shop.store)
    spoiled.bugs["save"] = RuntimeError("no such column")
    async with shop.working(store=store):
        await eventually(lambda: spoiled.calls["save"] == 1)

    assert "RuntimeError: no such column" in caplog.text
    assert "the-password" not in caplog.text


async def test_a_save_whose_answer_was_lost_is_repeated_and_counts_once(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.errors import StoreUnavailable

    @shop.task()
    async def work() -> str:
        return "once"

    tasks = await shop.submit_many(work, [()] * 20)
    save, lost = shop.store.save, 0

    async def forgetful(settlements: Any) -> Any:
        nonlocal lost
        answer = await save(settlements)
        if lost < 3:
            lost += 1
            raise StoreUnavailable("the answer got lost")
        return answer

    monkeypatch.setattr(shop.store, "save", forgetful)
    await shop.drain()

    assert lost == 3
    for task in tasks:
        assert (await shop.get(task)).state is State.COMPLETED
        [attempt] = await shop.attempts(task)
        assert attempt.ended is AttemptEnd.COMPLETED
    assert (await shop.store.stats()).refused == 0
    assert await shop.store.count(TaskFilter(), limit=100) == 20


async def test_a_refusal_while_the_store_goes_away_does_not_stop_the_saving(
    shop: Workshop,
) -> None:
    go = asyncio.Event()
    runs = 0

    @shop.task()
    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            await go.wait()

    spoiled, store = Spoiled.around(shop.store)
    stolen = await shop.submit(work)
    async with shop.working(store=store) as worker:
        await eventually(lambda: runs)
        # Somebody else settles it: the worker's own result will be refused.
        [claim] = [
            run.claim
            for run in worker._parts.slots.running  # type: ignore[union-attr]
        ]
        await shop.store.save([settled(claim, Stopped())])
        spoiled.away.add("beat")
        go.set()
        await eventually(lambda: spoiled.refused["beat"], within=3)
        spoiled.away.clear()
        after = await shop.submit(work)
        await shop.reaches(after, State.COMPLETED)

    assert (await shop.get(stolen)).state is State.CANCELLED
