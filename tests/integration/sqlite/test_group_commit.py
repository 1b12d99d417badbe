"""Group commit: many callers share a transaction, and nobody pays for another's failure."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.sqlite.conftest import statements

from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, State, TaskId, WorkerId
from holdfast.errors import IdempotencyConflict, StoreError
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import new_task, new_tasks
from holdfast.testing.suites.base import (
    MANY,
    add,
    attempts,
    claim,
    claim_ids,
    enlist,
    state,
    submit,
)


def commits(log: list[str]) -> int:
    return sum(statement.startswith("COMMIT") for statement in log)


async def test_concurrent_submits_share_commits(store: SQLiteStore) -> None:
    log = await statements(store)

    await asyncio.gather(*(add(store, new_task()) for _ in range(200)))

    assert await store.count(TaskFilter(), limit=MANY) == 200
    assert commits(log) <= 20


async def test_a_lone_submit_is_committed_without_waiting_for_company(store: SQLiteStore) -> None:
    log = await statements(store)

    await submit(store)

    assert commits(log) == 1


async def test_one_failing_submit_of_a_group_fails_alone(store: SQLiteStore) -> None:
    await submit(store, idempotency_key="k", fingerprint="one")
    good = new_tasks(20)
    bad = new_task(idempotency_key="k", fingerprint="another")

    answers = await asyncio.gather(
        *(add(store, task) for task in good[:10]),
        add(store, new_task(queue="made by the one that fails"), bad),
        *(add(store, task) for task in good[10:]),
        return_exceptions=True,
    )

    assert [a for a in answers if isinstance(a, BaseException)] == [answers[10]]
    assert isinstance(answers[10], IdempotencyConflict)
    assert await store.count(TaskFilter(), limit=MANY) == 1 + 20
    assert list(await store.check()) == []


async def test_a_lane_made_in_a_failed_group_is_made_again(store: SQLiteStore) -> None:
    """What was remembered of a transaction that was rolled back must be forgotten."""
    await submit(store, idempotency_key="k", fingerprint="one")
    bad = new_task(idempotency_key="k", fingerprint="another")

    await asyncio.gather(add(store, new_task(queue="new")), add(store, bad), return_exceptions=True)
    task = await submit(store, queue="new")

    found = await store.get(task)
    assert found is not None
    assert found.queue == "new"
    assert list(await store.check()) == []


async def test_an_idle_claim_only_reads(store: SQLiteStore, worker: WorkerId) -> None:
    await submit(store, delay=60.0)
    await claim(store, worker)
    log = await statements(store)

    for _ in range(3):
        assert await claim(store, worker) == []

    assert not any(s.startswith(("BEGIN", "COMMIT", "UPDATE", "INSERT")) for s in log)
    assert log, "the claim must have looked"


async def test_a_claim_whose_caller_is_gone_is_handed_back(
    store: SQLiteStore, worker: WorkerId, outside: sqlite3.Connection
) -> None:
    """Else the task would count as running until this worker dies."""
    task = await submit(store)
    claiming = asyncio.create_task(claim(store, worker))
    await asyncio.sleep(0)
    until(lambda: outside.execute("SELECT state FROM task").fetchone() == ("running",))

    claiming.cancel()  # this loop has not heard of the answer yet

    await eventually(lambda: state_is(store, task, State.QUEUED))
    (attempt,) = await attempts(store, task)
    assert (attempt.ended, attempt.charged) == (AttemptEnd.RELEASED, False)
    assert await claim_ids(store, worker) == [task]


async def test_a_job_given_up_before_its_turn_is_not_done(store: SQLiteStore) -> None:
    gate = threading.Event()
    busy = asyncio.create_task(store._write(lambda unit: gate.wait(10)))
    await asyncio.sleep(0)
    submitting = asyncio.create_task(submit(store))
    await asyncio.sleep(0)

    submitting.cancel()
    gate.set()

    await busy
    assert await store.count(TaskFilter(), limit=MANY) == 0


async def test_callers_in_many_event_loops_are_all_answered(store: SQLiteStore) -> None:
    def submit_some() -> None:
        async def run() -> None:
            await asyncio.gather(*(submit(store) for _ in range(25)))

        asyncio.run(run())

    await asyncio.gather(*(asyncio.to_thread(submit_some) for _ in range(4)))

    assert await store.count(TaskFilter(), limit=MANY) == 100


async def test_a_loop_that_was_closed_hurts_nobody(store: SQLiteStore) -> None:
    """Its caller went away while the writer worked; the answer finds no loop."""
    gate = threading.Event()
    busy = asyncio.create_task(store._write(lambda unit: gate.wait(10)))
    await asyncio.sleep(0)

    def submit_and_leave() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(submit(store))
        loop.run_until_complete(asyncio.sleep(0))
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # leaving it is the point
        loop.close()

    await asyncio.to_thread(submit_and_leave)
    gate.set()
    await busy

    assert await submit(store)


async def test_closing_finishes_what_was_accepted(store: SQLiteStore, path: Path) -> None:
    submitting = [asyncio.create_task(submit(store)) for _ in range(50)]
    await asyncio.sleep(0)

    await store.close()
    await store.close()

    ids = await asyncio.gather(*submitting)
    async with SQLiteStore(path) as again:
        assert await again.count(TaskFilter(ids=tuple(ids)), limit=MANY) == 50


async def test_a_closed_store_says_so(store: SQLiteStore) -> None:
    await store.close()

    with pytest.raises(StoreError, match="is not open"):
        await submit(store)
    with pytest.raises(StoreError, match="is not open"):
        await store.stats()


async def test_more_due_tasks_than_one_slice_are_promoted_in_order(
    store: SQLiteStore, worker: WorkerId, clock: FakeClock
) -> None:
    """Other callers get their turn between the slices, and the order is still by rank."""
    batch = [new_task(delay=1.0 + n % 7) for n in range(12_000)]
    await add(store, *batch)
    clock.advance(60)

    claimed, _ = await asyncio.gather(claim_ids(store, worker, limit=3), submit(store))

    assert claimed == [task.id for task in batch if task.delay == 1.0][:3]
    assert list(await store.check()) == []


def test_the_switch_interval_is_as_before_once_a_transaction_is_over(tmp_path: Path) -> None:
    before = sys.getswitchinterval()

    async def run() -> float:
        async with SQLiteStore(tmp_path / "holdfast.db") as store:
            return await store._write(lambda unit: sys.getswitchinterval())

    during = asyncio.run(run())

    assert during < before
    assert sys.getswitchinterval() == pytest.approx(before)


def until(is_true: Callable[[], bool], *, within: float = 10.0) -> None:
    """Wait without letting the event loop run."""
    deadline = time.monotonic() + within
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def state_is(store: SQLiteStore, task_id: TaskId, wanted: State) -> bool:
    return await state(store, task_id) is wanted


async def test_who_comes_while_the_store_closes_is_answered(store: SQLiteStore) -> None:
    writer = store._writer
    assert writer is not None
    await store.close()

    with pytest.raises(StoreError, match="was closed meanwhile"):
        await writer.do(lambda unit: None)


async def test_a_claim_finds_what_is_ready_though_a_reader_learns_of_its_lane_meanwhile(
    path: Path, store: SQLiteStore, clock: FakeClock
) -> None:
    task_id = await submit(store)
    reader = sqlite3.connect(path, check_same_thread=False)
    async with SQLiteStore(path, clock=clock) as other:
        worker = await enlist(other)
        begun: list[str] = []

        def learn(statement: str) -> None:
            begun.append(statement)
            other._lanes.refresh(reader)

        await other._write(lambda unit: unit.db.set_trace_callback(learn))
        other._lanes.forget()
        begun.clear()
        claimed = await claim_ids(other, worker)

    reader.close()
    assert claimed == [task_id]
    assert begun
