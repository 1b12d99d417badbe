"""Attempts of workers over HTTP end: by their timeout, or with their worker."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.remote.depot import Depot, result, verdicts

from holdfast.core.task import AttemptEnd, Reason, State
from holdfast.definitions.registry import Registry
from holdfast.remote import Verdict
from holdfast.settings import Settings
from holdfast.testing.eventually import eventually
from holdfast.worker.heartbeat import ThreadHeartbeat
from holdfast.worker.maintenance.loop import maintain
from holdfast.worker.maintenance.rescuer import Rescuer
from holdfast.worker.worker import Worker


async def test_an_attempt_that_outlives_its_timeout_is_ended_though_its_worker_beats(
    depot: Depot,
) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, timeout=0.1, max_retries=0)

    async def ended() -> bool:
        await depot.remote.heartbeat(worker)
        await depot.remote.timeouts.tick()
        return await depot.state(claim.task_id) is State.DEAD_LETTER

    await eventually(ended)
    task = await depot.get(claim.task_id)
    assert task.reason is Reason.TIMEOUT
    assert task.error is not None
    assert "timeout of 0.1 s" in task.error.message
    late = await depot.tell(worker, claim, result="at last")
    assert late.verdict is Verdict.STALE
    assert (await depot.get(claim.task_id)).result is None


async def test_a_timed_out_attempt_is_retried_and_wakes_who_waits(depot: Depot) -> None:
    slow, other = await depot.worker(), await depot.worker()
    claim = await depot.started(slow, timeout=0.1)
    polling = await depot.parked(other)

    while not polling.done():
        await depot.remote.timeouts.tick()
        await asyncio.sleep(0.01)

    (again,) = polling.result()
    assert (again.task_id, again.attempt, again.charged) == (claim.task_id, 2, 1)
    (first, _) = (await depot.history(claim.task_id)).attempts
    assert (first.ended, first.charged) == (AttemptEnd.TIMEOUT, True)


async def test_an_attempt_within_its_timeout_is_left_alone(depot: Depot) -> None:
    worker = await depot.worker()
    claims = [await depot.started(worker, timeout=limit) for limit in (60.0, None)]

    await depot.remote.timeouts.tick()
    await depot.server().timeouts.tick()

    assert [await depot.state(claim.task_id) for claim in claims] == [State.RUNNING] * 2


async def test_a_server_ends_what_another_handed_out_before_it_died(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, timeout=0.1, max_retries=0)
    server = depot.server()

    async def ended() -> bool:
        await server.timeouts.tick()
        return await depot.state(claim.task_id) is State.DEAD_LETTER

    await eventually(ended)


async def test_what_was_settled_through_another_server_is_left_alone(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, timeout=0.01)
    answers = await depot.server().results(worker, [result(claim)])
    assert verdicts(answers) == [Verdict.SAVED]
    await asyncio.sleep(0.1)

    await depot.remote.timeouts.tick()

    assert await depot.kinds(claim.task_id) == ["submitted"]
    assert (await depot.store.stats()).refused == 0


async def test_two_servers_end_one_attempt_once(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, timeout=0.01, max_retries=5)
    servers = [depot.remote, depot.server(), depot.server()]
    for server in servers:
        await server.timeouts.look()
    await asyncio.sleep(0.1)

    await asyncio.gather(*(server.timeouts.tick() for server in servers))

    task = await depot.get(claim.task_id)
    assert task.charged == 1


async def test_the_tasks_of_a_worker_that_falls_silent_are_given_to_others(depot: Depot) -> None:
    silent, other = await depot.worker(), await depot.worker()
    claim = await depot.started(silent)
    now = 0.0
    settings = Settings(lease=3.0, heartbeat=1.0, sweep=0.75)
    rescuer = Rescuer(depot.store, depot.dispatcher, settings, clock=lambda: now)

    for _ in range(8):
        await rescuer.tick()
        await depot.remote.heartbeat(other)
        now += 0.75

    (again,) = await depot.remote.poll(other, limit=1, wait=0.0)
    assert (again.task_id, again.attempt) == (claim.task_id, 2)
    late = await depot.tell(silent, claim, result="too late")
    assert late.verdict is Verdict.STALE
    assert "late_result_refused" in await depot.kinds(claim.task_id)


async def test_a_buried_worker_may_hand_in_what_nobody_else_was_given(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    await depot.store.bury(worker, beats=None)

    answers = await depot.server().results(worker, [result(claim)])

    assert verdicts(answers) == [Verdict.SAVED]


async def test_a_server_can_do_all_the_maintenance(depot: Depot) -> None:
    worker, dead = await depot.worker(), await depot.worker()
    slow = await depot.started(worker, timeout=0.1, max_retries=0)
    orphan = await depot.started(dead)
    await depot.store.bury(dead, beats=None)
    settings = Settings(sweep=0.1)

    working = asyncio.create_task(
        maintain(depot.store, depot.dispatcher, settings, more=[depot.remote.timeouts])
    )

    async def all_done() -> bool:
        states = [await depot.state(claim.task_id) for claim in (slow, orphan)]
        return states == [State.DEAD_LETTER, State.QUEUED]

    await eventually(all_done)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_a_python_worker_that_serves_every_queue_leaves_open_tasks_to_http_workers(
    depot: Depot,
) -> None:
    open_task = await depot.submit(name="no.such.type", requires=frozenset({"http"}))
    plain = await depot.submit(name="no.such.type")
    settings = Settings(queues=("*",), poll=0.1)
    python = Worker(
        depot.store,
        depot.dispatcher,
        Registry(),
        settings,
        burst=True,
        start_heartbeat=lambda worker_id: ThreadHeartbeat(
            depot.store, worker_id, settings.heartbeat
        ),
    )

    async with asyncio.timeout(20):
        await python.run()

    attempts = {task: (await depot.get(task)).attempt for task in (plain, open_task)}
    assert attempts == {plain: 1, open_task: 0}
    assert await depot.state(open_task) is State.QUEUED
    (claim,) = await depot.remote.poll(await depot.worker(), limit=1)
    assert claim.task_id == open_task
