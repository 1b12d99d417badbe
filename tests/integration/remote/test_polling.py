"""Tasks reach workers over HTTP at once, and nobody is handed what nobody waits for."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.integration.remote.depot import SOON, Depot, failure
from tests.integration.remote.gates import Gate

from holdfast.core.attempt import Claim
from holdfast.core.coalescing import Newest
from holdfast.core.flow import Flow, with_flow
from holdfast.core.record import Changes
from holdfast.core.task import AttemptEnd, Reason, State
from holdfast.errors import StoreUnavailable, WorkerGone
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task


async def test_work_that_is_there_is_handed_out_at_once(depot: Depot) -> None:
    worker = await depot.worker()
    first = await depot.submit(name="resize", payload=b'{"n":1}', timeout=7.0)
    second = await depot.submit()

    claims = await depot.remote.poll(worker, limit=5)

    assert [claim.task_id for claim in claims] == [first, second]
    claim = claims[0]
    assert (claim.name, claim.payload, claim.attempt, claim.worker_id, claim.timeout) == (
        "resize",
        b'{"n":1}',
        1,
        worker,
        7.0,
    )
    assert await depot.state(first) is State.RUNNING


async def test_a_poll_takes_no_more_than_it_asked_for_or_the_worker_can_hold(depot: Depot) -> None:
    worker = await depot.worker(capacity=2)
    for _ in range(5):
        await depot.submit()

    assert len(await depot.remote.poll(worker, limit=1)) == 1
    assert len(await depot.remote.poll(worker, limit=50)) == 1


async def test_a_poll_without_work_is_answered_empty_when_its_time_is_up(depot: Depot) -> None:
    worker = await depot.worker()
    began = time.monotonic()

    assert list(await depot.remote.poll(worker, limit=1, wait=0.0)) == []
    assert list(await depot.remote.poll(worker, limit=1, wait=0.2)) == []

    assert 0.2 <= time.monotonic() - began < SOON


async def test_a_waiting_poll_gets_a_task_as_it_is_submitted(depot: Depot) -> None:
    polling = await depot.parked(await depot.worker())

    task_id = await depot.submit()

    (claim,) = await asyncio.wait_for(polling, SOON)
    assert claim.task_id == task_id


async def test_a_task_submitted_between_the_claim_and_the_wait_is_not_slept_through(
    depot: Depot,
) -> None:
    gate, gated = Gate.around(depot.store)
    server = depot.server(store=gated)
    before, worker = await depot.worker(), await depot.worker()
    # Whoever still listens though nobody waits uses the wake-up up.
    assert list(await server.poll(before, limit=1, wait=0.1)) == []
    gate.hold()
    polling = asyncio.create_task(server.poll(worker, limit=1))
    await gate.reached()

    task_id = await depot.submit()
    await asyncio.sleep(0.05)
    gate.release()

    (claim,) = await asyncio.wait_for(polling, SOON)
    assert claim.task_id == task_id


async def test_one_wake_up_serves_as_many_as_there_is_work_for(depot: Depot) -> None:
    workers = [await depot.worker() for _ in range(5)]
    polls = [await depot.parked(worker) for worker in workers]

    tasks = {await depot.submit() for _ in range(4)}

    done, waiting = await asyncio.wait(polls, timeout=1.0)
    assert {claim.task_id for poll in done for claim in poll.result()} == tasks
    assert len(waiting) == 1


async def test_a_retry_reaches_a_waiting_poll_when_it_is_due(depot: Depot) -> None:
    worker, other = await depot.worker(), await depot.worker()
    claim = await depot.started(worker)
    polling = await depot.parked(other)

    await depot.remote.results(worker, [failure(claim, retry_after=0.2)])

    (again,) = await asyncio.wait_for(polling, SOON)
    assert (again.task_id, again.attempt) == (claim.task_id, 2)


async def test_a_task_that_is_due_later_reaches_a_waiting_poll_in_time(depot: Depot) -> None:
    worker = await depot.worker()
    await depot.submit(delay=0.3)

    (claim,) = await asyncio.wait_for(depot.remote.poll(worker, limit=1), SOON)

    assert claim.attempt == 1


async def test_a_worker_gets_only_what_it_serves_and_can_do(depot: Depot) -> None:
    worker = await depot.worker(queues=["mail"], capabilities=["gpu"])
    await depot.submit(queue="other")
    await depot.submit(queue="mail", requires=frozenset({"tpu"}))
    wanted = await depot.submit(queue="mail", requires=frozenset({"gpu"}))

    (claim,) = await depot.remote.poll(worker, limit=10, wait=0.0)

    assert claim.task_id == wanted


async def test_a_client_that_hangs_up_is_handed_nothing(depot: Depot) -> None:
    worker, other = await depot.worker(), await depot.worker()
    polling = await depot.parked(worker)
    polling.cancel()
    await asyncio.wait({polling})

    task_id = await depot.submit()

    assert await depot.state(task_id) is State.QUEUED
    (claim,) = await depot.remote.poll(other, limit=1)
    assert (claim.task_id, claim.attempt) == (task_id, 1)


async def test_what_is_claimed_for_a_client_that_hung_up_goes_back_uncharged(depot: Depot) -> None:
    gate, gated = Gate.around(depot.store)
    server = depot.server(store=gated)
    worker, other = await depot.worker(), await depot.worker()
    task_id = await depot.submit()
    gate.hold()
    polling = asyncio.create_task(server.poll(worker, limit=1))
    await gate.reached()

    polling.cancel()
    await asyncio.sleep(0)
    gate.release()

    with pytest.raises(asyncio.CancelledError):
        await polling
    assert await depot.state(task_id) is State.QUEUED
    (attempt,) = (await depot.history(task_id)).attempts
    assert (attempt.ended, attempt.charged) == (AttemptEnd.RELEASED, False)
    (claim,) = await depot.remote.poll(other, limit=1)
    assert (claim.attempt, claim.charged) == (2, 0)


async def test_what_goes_back_wakes_another_waiting_poll(depot: Depot) -> None:
    claim = await depot.started(await depot.worker())
    polling = await depot.parked(await depot.worker())

    await depot.remote.give_back([claim])

    (again,) = await asyncio.wait_for(polling, SOON)
    assert again.task_id == claim.task_id


async def test_a_poll_of_a_worker_that_came_back_replaces_the_one_it_left_behind(
    depot: Depot,
) -> None:
    worker = await depot.worker(capacity=2)
    left_behind = await depot.parked(worker, limit=2)

    polling = asyncio.create_task(depot.remote.poll(worker, limit=2))

    assert list(await asyncio.wait_for(left_behind, SOON)) == []
    task_id = await depot.submit()
    (claim,) = await asyncio.wait_for(polling, SOON)
    assert claim.task_id == task_id


async def test_a_worker_may_poll_once_for_each_of_its_slots(depot: Depot) -> None:
    worker = await depot.worker(capacity=3)
    polls = [asyncio.create_task(depot.remote.poll(worker, limit=1)) for _ in range(3)]

    for _ in range(3):
        await depot.submit()

    answers: list[Any] = await asyncio.wait_for(asyncio.gather(*polls), SOON)
    assert [len(claims) for claims in answers] == [1, 1, 1]


async def test_polls_never_lease_more_than_the_worker_has_room_for(depot: Depot) -> None:
    worker = await depot.worker(capacity=2)
    for _ in range(5):
        await depot.submit()

    first = await depot.remote.poll(worker, limit=2, wait=0.0)
    more = await depot.remote.poll(worker, limit=2, wait=0.0)
    elsewhere = await depot.server().poll(worker, limit=2, wait=0.0)

    assert (len(first), len(more), len(elsewhere)) == (2, 0, 0)
    await depot.tell(worker, first[0])
    assert len(await depot.server().poll(worker, limit=2, wait=0.0)) == 1


async def test_a_result_lets_the_poll_of_a_full_worker_go_on(depot: Depot) -> None:
    worker = await depot.worker(capacity=1)
    held = await depot.started(worker)
    next_one = await depot.submit()
    polling = asyncio.create_task(depot.remote.poll(worker, limit=1))
    await asyncio.sleep(0)

    await depot.tell(worker, held)

    claims = await asyncio.wait_for(polling, SOON)
    assert [claim.task_id for claim in claims] == [next_one]


async def test_a_waiting_poll_of_a_worker_that_filled_up_keeps_nobody_from_work(
    depot: Depot,
) -> None:
    full, free = await depot.worker(capacity=1), await depot.worker(capacity=1)
    of_full, of_free = await depot.parked(full), await depot.parked(free)
    await depot.store.add([new_task()], idempotency_window=WINDOW)
    assert len(await depot.server().poll(full, limit=1, wait=0.0)) == 1

    task_id = await depot.submit()

    claims = await asyncio.wait_for(of_free, SOON)
    assert [claim.task_id for claim in claims] == [task_id]
    assert list(await asyncio.wait_for(of_full, SOON)) == []


async def test_a_worker_that_sends_no_heartbeats_lives_by_its_polls(depot: Depot) -> None:
    server = depot.server(heartbeat=0.2)
    silent, beating = await depot.worker(), await depot.worker()
    await server.heartbeat(beating)
    long = asyncio.create_task(server.poll(beating, limit=1))
    beats = {worker.id: worker.beats for worker in await depot.store.workers()}

    for _ in range(3):
        assert list(await asyncio.wait_for(server.poll(silent, limit=1), SOON)) == []

    after = {worker.id: worker.beats for worker in await depot.store.workers()}
    assert after[silent] >= beats[silent] + 2
    assert not long.done()
    long.cancel()


async def test_a_worker_that_is_to_leave_gets_no_more(depot: Depot) -> None:
    worker = await depot.worker()
    assert await depot.store.ask_to_drain(worker)
    task_id = await depot.submit()

    assert list(await depot.remote.poll(worker, limit=1, wait=0.1)) == []

    assert await depot.state(task_id) is State.QUEUED


async def test_a_worker_that_says_it_leaves_is_not_kept_waiting(depot: Depot) -> None:
    worker = await depot.worker()
    polling = await depot.parked(worker)

    await depot.remote.drain(worker)

    assert list(await asyncio.wait_for(polling, SOON)) == []


async def test_a_waiting_poll_learns_that_its_worker_was_buried(depot: Depot) -> None:
    worker = await depot.worker()
    polling = await depot.parked(worker)
    await depot.store.bury(worker, beats=None)

    await depot.submit()

    with pytest.raises(WorkerGone):
        await asyncio.wait_for(polling, SOON)


async def test_a_store_that_is_away_is_told_to_the_worker(depot: Depot) -> None:
    gate, gated = Gate.around(depot.store)
    server = depot.server(store=gated)
    worker = await depot.worker()
    gate.failure = StoreUnavailable("no answer")

    with pytest.raises(StoreUnavailable):
        await server.poll(worker, limit=1)

    gate.failure = None
    await depot.submit()
    assert len(await server.poll(worker, limit=1)) == 1


async def test_closing_answers_every_poll(depot: Depot) -> None:
    polls = [await depot.parked(await depot.worker()) for _ in range(2)]

    await depot.remote.close()

    answers: list[Any] = await asyncio.wait_for(asyncio.gather(*polls), SOON)
    assert answers == [[], []]


async def test_tasks_are_found_without_a_wake_up(depot: Depot) -> None:
    server = depot.server(poll=0.2)
    polling = asyncio.create_task(server.poll(await depot.worker(), limit=1))
    await asyncio.sleep(0.1)

    task = new_task()
    await depot.store.add([task], idempotency_window=WINDOW)

    (claim,) = await asyncio.wait_for(polling, SOON)
    assert claim.task_id == task.id


async def test_no_two_polls_are_given_the_same_task(depot: Depot) -> None:
    workers = [await depot.worker() for _ in range(8)]
    tasks = [await depot.submit() for _ in range(40)]
    found: list[Claim] = []

    async def fetch(worker: Any) -> None:
        while claims := await depot.remote.poll(worker, limit=2, wait=0.0):
            found.extend(claims)

    await asyncio.gather(*map(fetch, workers))

    assert sorted(claim.task_id for claim in found) == sorted(tasks)


async def test_nobody_listens_for_long_without_polls(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.remote.waiting.LINGER", 0.05)
    server = depot.server(poll=0.05)
    await server.poll(await depot.worker(), limit=1, wait=0.1)

    await eventually(lambda: depot.dispatcher._listeners == ())


async def test_a_poll_may_name_some_of_its_workers_capabilities(depot: Depot) -> None:
    worker = await depot.worker(capabilities=["gpu", "ssd"])
    task = await depot.submit(requires=frozenset({"gpu", "http"}))

    without = await depot.remote.poll(worker, limit=1, wait=0.0, capabilities=["ssd", "lidar"])
    within = await depot.remote.poll(worker, limit=1, wait=0.0, capabilities=["gpu"])

    assert (without, [claim.task_id for claim in within]) == ([], [task])


async def test_a_debounced_task_that_a_newer_one_has_replaced_is_never_handed_out(
    depot: Depot,
) -> None:
    worker = await depot.worker()
    flow = Flow(debounce="resize 1")
    older, newest = (
        new_task(name="resize", payload=with_flow(b'{"n":%d}' % n, flow)) for n in (1, 2)
    )
    record = Newest(newest.id).put("resize 1", 0, 60.0)
    await depot.store.commit(Changes("one", [older, newest], [record]))

    (claim,) = await depot.remote.poll(worker, limit=1)

    assert claim.task_id == newest.id
    dropped = await depot.get(older.id)
    assert (dropped.state, dropped.reason) == (State.CANCELLED, Reason.SUPERSEDED)
