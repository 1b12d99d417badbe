"""Workers are listed as they are now, not as they were at their last heartbeat."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.client import Client
from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.definitions.registry import Registry
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.settings import Settings
from holdfast.stores.memory import MemoryStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task, worker_info


@pytest.fixture
async def verbs() -> AsyncIterator[Client]:
    async with MemoryStore() as store:
        yield Client(store, InProcessDispatcher(), Registry(), Settings(lease=0.2))


async def only(verbs: Client) -> WorkerInfo:
    (worker,) = await verbs.workers()
    return worker


async def test_the_load_is_what_the_store_has_leased(verbs: Client) -> None:
    me = worker_info(capacity=5)
    await verbs.store.register(me)
    await verbs.store.add([new_task(), new_task()], idempotency_window=WINDOW)

    await verbs.store.claim(me.id, queues=None, capabilities=frozenset(), limit=5)

    assert (await only(verbs)).load == 2


async def test_a_load_is_no_more_than_there_are_slots(verbs: Client) -> None:
    me = worker_info(capacity=1)
    await verbs.store.register(me)
    await verbs.store.add([new_task(), new_task()], idempotency_window=WINDOW)

    await verbs.store.claim(me.id, queues=None, capabilities=frozenset(), limit=2)

    assert (await only(verbs)).load == 1


async def test_a_worker_that_nobody_is_left_to_bury_is_not_shown_as_active(verbs: Client) -> None:
    me = worker_info()
    await verbs.store.register(me)
    added = await verbs.store.add([new_task()], idempotency_window=WINDOW)
    assert (await only(verbs)).status is WorkerStatus.ACTIVE

    async def is_silent() -> bool:
        return (await only(verbs)).status is WorkerStatus.SILENT

    await eventually(is_silent)
    told = await verbs.why(added[0].task_id)
    assert [code for code, _ in told.reasons] == ["no_worker"]
    await verbs.store.beat(me.id)
    assert (await only(verbs)).status is WorkerStatus.ACTIVE
