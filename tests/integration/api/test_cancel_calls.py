"""Cancelling lets locks go: those who are next in line are called, by whoever cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast import State, client
from holdfast.client import Client
from holdfast.core.task import Priority, TaskId
from holdfast.definitions.registry import Registry
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.engine import waking
from holdfast.engine.waking import PassedOn
from holdfast.ports.store import Store
from holdfast.settings import Settings
from holdfast.stores.memory import MemoryStore
from holdfast.testing.factories import HEAD_STARTS, WINDOW, new_task, success, worker_info


class Overheard(InProcessDispatcher):
    """Says who was called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, int]] = []

    def wake(self, queues: Mapping[str, int]) -> None:  # type: ignore[override] # in truth it is given one
        self.calls.append(dict(queues))


@pytest.fixture
def heard() -> Overheard:
    return Overheard()


@pytest.fixture
def store() -> Store:
    return MemoryStore()


@pytest.fixture
def verbs(store: Store, heard: Overheard, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(waking, "TOGETHER", 0.0)
    store.passed_on = PassedOn(heard.wake)
    return Client(store, heard, Registry(), Settings())


async def submit(store: Store, **given: Any) -> TaskId:
    (added,) = await store.add([new_task(**given)], idempotency_window=WINDOW)
    return added.task_id


async def test_a_holder_that_has_not_started_makes_way_for_the_next(
    store: Store, verbs: Client, heard: Overheard
) -> None:
    first = await submit(store, lock="k", queue="a")
    await submit(store, lock="k", queue="b")

    await verbs.cancel(first)

    assert heard.calls == [{"b": 1}]


async def test_nobody_is_called_without_a_lock_or_a_next(
    store: Store, verbs: Client, heard: Overheard
) -> None:
    await verbs.cancel(await submit(store))
    await verbs.cancel(await submit(store, lock="k"))
    await verbs.cancel(await submit(store, lock="k", delay=60.0))

    assert heard.calls == []


async def test_a_running_holder_is_only_asked_to_stop_and_nobody_is_called(
    store: Store, verbs: Client, heard: Overheard
) -> None:
    first = await submit(store, lock="k", queue="a")
    await submit(store, lock="k", queue="b")
    me = worker_info()
    await store.register(me)
    await store.claim(me.id, queues=None, capabilities=frozenset(), limit=1)

    assert (await verbs.cancel(first)).state is State.RUNNING

    assert heard.calls == []


async def test_those_of_one_slice_are_called_together(
    store: Store, verbs: Client, heard: Overheard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "SLICE", 3)
    for number in range(4):
        await submit(store, lock=f"k{number}", queue="a")
        await submit(store, lock=f"k{number}", queue="b", priority=Priority.LOW)

    assert await verbs.cancel_many(queue="a") == 4

    assert heard.calls == [{"b": 3}, {"b": 1}]


async def test_what_is_replayed_into_a_taken_lock_calls_nobody(
    store: Store, verbs: Client, heard: Overheard
) -> None:
    me = worker_info()
    await store.register(me)
    first = await submit(store, lock="k", queue="a")
    (claim,) = (await store.claim(me.id, queues=None, capabilities=frozenset(), limit=1)).claims
    await store.save([success(claim)])
    await submit(store, lock="k", queue="b", head_start=HEAD_STARTS[Priority.CRITICAL])

    assert (await verbs.retry(first)).state is State.BLOCKED

    assert heard.calls == []
