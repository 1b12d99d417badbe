"""Who a worker over HTTP is."""

from __future__ import annotations

import pytest
from tests.integration.remote.depot import Depot, result

from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import WorkerId
from holdfast.errors import InvalidOption, WorkerGone, WorkerNotFound
from holdfast.testing.factories import worker_info


async def test_a_registered_worker_is_in_the_store_as_it_said(depot: Depot) -> None:
    told = await depot.remote.register(
        capabilities=["gpu"], capacity=4, queues=["images", "mail"], version="1.2", host="box"
    )

    (info,) = await depot.store.workers()
    assert (info.id, info.kind, info.host, info.version) == (told.worker_id, "http", "box", "1.2")
    assert info.queues == ("images", "mail")
    assert info.capabilities == {"gpu", "http"}
    assert (info.capacity, info.status) == (4, WorkerStatus.ACTIVE)
    assert (told.poll_interval_ms, told.heartbeat_seconds) == (30_000, 10.0)


async def test_a_star_among_the_queues_means_all_of_them(depot: Depot) -> None:
    await depot.worker(queues=["mail", "*"])

    (info,) = await depot.store.workers()
    assert info.queues is None


@pytest.mark.parametrize("queues", [[], ["two words"], [""]])
async def test_queues_that_are_none_are_refused(depot: Depot, queues: list[str]) -> None:
    with pytest.raises(InvalidOption):
        await depot.worker(queues=queues)

    assert list(await depot.store.workers()) == []


async def test_nobody_knows_a_worker_that_never_registered(depot: Depot) -> None:
    nobody = WorkerId("nobody")
    other = await depot.worker()
    claim = await depot.started(other)

    with pytest.raises(WorkerNotFound):
        await depot.remote.poll(nobody, limit=1, wait=0.0)
    with pytest.raises(WorkerNotFound):
        await depot.remote.heartbeat(nobody)
    with pytest.raises(WorkerNotFound):
        await depot.remote.results(nobody, [result(claim)])
    with pytest.raises(WorkerNotFound):
        await depot.remote.drain(nobody)


async def test_a_worker_in_python_cannot_be_spoken_for(depot: Depot) -> None:
    python = worker_info()
    await depot.store.register(python)

    with pytest.raises(WorkerNotFound):
        await depot.remote.poll(python.id, limit=1, wait=0.0)


async def test_a_worker_that_was_buried_is_told_to_register_anew(depot: Depot) -> None:
    worker = await depot.worker()
    elsewhere = depot.server()
    await depot.store.bury(worker, beats=None)
    await depot.submit()

    for server in (depot.remote, elsewhere):
        with pytest.raises(WorkerGone):
            await server.poll(worker, limit=1, wait=0.0)
        with pytest.raises(WorkerGone):
            await server.heartbeat(worker)

    anew = await depot.worker()
    assert len(await depot.remote.poll(anew, limit=1, wait=0.0)) == 1


async def test_any_server_knows_a_worker_that_registered_with_another(depot: Depot) -> None:
    worker = await depot.worker(queues=["mail"], capabilities=["gpu"])
    task_id = await depot.submit(queue="mail", requires=frozenset({"gpu", "http"}))

    (claim,) = await depot.server().poll(worker, limit=1, wait=0.0)

    assert claim.task_id == task_id


async def test_a_worker_leaves_when_nothing_is_left(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    assert await depot.remote.drain(worker) == 1
    (info,) = await depot.store.workers()
    assert info.status is WorkerStatus.DRAINING

    await depot.tell(worker, claim)
    assert await depot.remote.drain(worker) == 0
    (info,) = await depot.store.workers()
    assert info.status is WorkerStatus.STOPPED
    assert await depot.remote.drain(worker) == 0
    with pytest.raises(WorkerGone):
        await depot.remote.poll(worker, limit=1, wait=0.0)
