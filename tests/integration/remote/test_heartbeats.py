"""A heartbeat says what the worker has, and is told what it should no longer have."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integration.remote.depot import SOON, Depot

from holdfast.core.attempt import Report
from holdfast.core.fleet import WorkerStatus
from holdfast.core.query import TaskFilter
from holdfast.core.task import AttemptEnd, Cost, Progress, State
from holdfast.remote import Verdict
from holdfast.testing.eventually import eventually

QUICK: dict[str, Any] = {"heartbeat": 0.05, "lease": 30.0}


async def test_a_beat_keeps_the_worker_alive(depot: Depot) -> None:
    worker = await depot.worker()
    (before,) = await depot.store.workers()

    told = await depot.remote.heartbeat(worker, status=WorkerStatus.ACTIVE)

    (after,) = await depot.store.workers()
    assert after.beats == before.beats + 1
    assert (told.cancel, told.drain) == ((), False)


async def test_a_worker_that_is_to_leave_cannot_say_that_it_stays(depot: Depot) -> None:
    asked, leaving = await depot.worker(), await depot.worker()
    elsewhere = depot.server()
    for worker in (asked, leaving):
        await elsewhere.heartbeat(worker)
        await depot.started(worker)
    await depot.store.ask_to_drain(asked)
    await depot.remote.drain(leaving)
    await asyncio.sleep(1.01)  # the answer to "is it to leave?" is good for a second

    for worker in (asked, leaving):
        told = await elsewhere.heartbeat(worker, status=WorkerStatus.ACTIVE)
        assert told.drain

    shown = {worker.status for worker in await depot.store.workers()}
    assert shown == {WorkerStatus.DRAINING}


async def test_a_beat_that_says_active_at_once_undoes_no_drain(depot: Depot) -> None:
    worker = await depot.worker()
    elsewhere = depot.server()
    await elsewhere.heartbeat(worker)
    await depot.started(worker)
    await depot.remote.drain(worker)

    await elsewhere.heartbeat(worker, status=WorkerStatus.ACTIVE)

    (info,) = await depot.store.workers()
    assert info.status is WorkerStatus.DRAINING


async def test_a_beat_names_what_was_cancelled(depot: Depot) -> None:
    worker = await depot.worker()
    stopped, _ = await depot.started(worker), await depot.started(worker)
    await depot.store.cancel(TaskFilter(ids=(stopped.task_id,)), limit=1)

    told = await depot.remote.heartbeat(worker)

    assert told.cancel == (stopped.task_id,)


async def test_a_beat_is_told_to_leave_and_its_poll_is_answered(depot: Depot) -> None:
    worker = await depot.worker()
    polling = await depot.parked(worker)
    await depot.store.ask_to_drain(worker)
    await asyncio.sleep(1.01)  # the answer to "is it to leave?" is good for a second

    told = await depot.remote.heartbeat(worker)

    assert told.drain
    assert list(await asyncio.wait_for(polling, SOON)) == []


async def test_reports_are_stored_with_their_attempt(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    said = Report(
        claim.task_id,
        claim.attempt,
        worker,
        progress=Progress(done=1, total=4, message="first"),
        cost=Cost(units=2.0, tokens_in=7),
        logs=("hello",),
    )

    told = await depot.remote.heartbeat(worker, reports=[said])

    task = await depot.get(claim.task_id)
    assert told.cancel == ()
    assert task.progress == Progress(done=1, total=4, message="first")
    assert task.cost == Cost(units=2.0, tokens_in=7)
    assert "log" in await depot.kinds(claim.task_id)


async def test_a_report_of_a_lost_attempt_is_refused_and_the_worker_told_to_stop(
    depot: Depot,
) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    await depot.remote.give_back([claim])
    said = Report(claim.task_id, claim.attempt, worker, progress=Progress(done=1))

    told = await depot.remote.heartbeat(worker, reports=[said])

    assert told.cancel == (claim.task_id,)
    assert (await depot.get(claim.task_id)).progress is None


async def test_a_worker_is_told_to_stop_what_is_no_longer_its_own(depot: Depot) -> None:
    worker, other = await depot.worker(), await depot.worker()
    mine, lost = await depot.started(worker), await depot.started(worker)
    await depot.remote.give_back([lost])
    assert len(await depot.remote.poll(other, limit=1)) == 1

    told = await depot.server().heartbeat(worker, running=[mine.task_id, lost.task_id])

    assert told.cancel == (lost.task_id,)


async def test_a_task_whose_hand_out_never_arrived_is_handed_back(depot: Depot) -> None:
    server = depot.server(**QUICK)
    worker = await depot.worker()
    task_id, kept = await depot.submit(), await depot.submit()
    assert len(await server.poll(worker, limit=2)) == 2  # and the answer is lost

    async def handed_back() -> bool:
        await server.heartbeat(worker, running=[kept])
        return await depot.state(task_id) is State.QUEUED

    await eventually(handed_back)
    (attempt,) = (await depot.history(task_id)).attempts
    assert (attempt.ended, attempt.charged) == (AttemptEnd.RELEASED, False)
    assert await depot.state(kept) is State.RUNNING


async def test_a_hand_out_of_a_server_that_died_is_handed_back_too(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    server = depot.server(**QUICK)
    await server.timeouts.look()

    async def handed_back() -> bool:
        await server.heartbeat(worker, running=[])
        return await depot.state(claim.task_id) is State.QUEUED

    await eventually(handed_back)


async def test_a_task_that_is_on_its_way_to_the_worker_is_left_alone(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    for _ in range(5):
        await depot.remote.heartbeat(worker, running=[])

    assert await depot.state(claim.task_id) is State.RUNNING
    assert (await depot.tell(worker, claim)).verdict is Verdict.SAVED


async def test_a_beat_that_names_nothing_says_nothing_about_what_runs(depot: Depot) -> None:
    server = depot.server(**QUICK)
    worker = await depot.worker()
    task_id = await depot.submit()
    await server.poll(worker, limit=1)
    await asyncio.sleep(0.15)

    for _ in range(3):
        await server.heartbeat(worker)

    assert await depot.state(task_id) is State.RUNNING
