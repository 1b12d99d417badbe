"""What a sender makes of a store that is away, and of a worker that was given up."""

from __future__ import annotations

import asyncio
import logging
import os

import pytest

from holdfast.core.task import WorkerId
from holdfast.errors import StoreUnavailable
from holdfast.testing.eventually import eventually
from holdfast.worker import heartbeat_sender as module
from holdfast.worker.heartbeat_sender import HeartbeatSender, Stores
from holdfast.worker.supervisor_channel import Lease


class FakeStore:
    """Counts beats; away or deaf on demand."""

    def __init__(self) -> None:
        self.beats: list[str] = []
        self.buried: list[str] = []
        self.away = False
        self.silent = False
        self.gives_up = False
        self.fault: Exception | None = None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def beat(self, worker_id: WorkerId) -> bool:
        if self.fault is not None:
            raise self.fault
        if self.away:
            raise StoreUnavailable("the disk is full")
        if self.silent:
            await asyncio.Event().wait()
        self.beats.append(worker_id)
        return not self.gives_up

    async def bury(self, worker_id: WorkerId, *, beats: int | None) -> bool:
        if self.away:
            raise StoreUnavailable("the disk is full")
        self.buried.append(worker_id)
        return True


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    store = FakeStore()
    monkeypatch.setattr(module, "open_store", lambda url: store)
    monkeypatch.setattr(module, "RETRY", 0.01)
    return store


def lease(worker_id: str = "w1", heartbeat: float = 10.0) -> Lease:
    return Lease(url="fake://", worker_id=WorkerId(worker_id), heartbeat=heartbeat)


async def test_a_beat_is_due_again_after_a_heartbeat(store: FakeStore) -> None:
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(lease())

    assert await sender.tick() == 10.0
    assert store.beats == ["w1"]


async def test_a_store_that_is_away_is_asked_again_soon_and_said_once(
    store: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(lease())
    store.away = True

    with caplog.at_level(logging.WARNING, "holdfast"):
        pauses = [await sender.tick() for _ in range(5)]
    store.away = False

    assert pauses == [0.01] * 5
    assert [record.getMessage() for record in caplog.records] == [
        'store.lost doing=beat error="the disk is full"'
    ]
    assert await sender.tick() == 10.0


async def test_a_fault_that_nobody_thought_of_does_not_stop_the_heartbeat(store: FakeStore) -> None:
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(lease())
    store.fault = RuntimeError("a bug of a driver")

    assert await sender.tick() == 0.01
    store.fault = None
    assert await sender.tick() == 10.0


async def test_a_beat_that_is_never_answered_is_given_up_before_the_lease_is(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(Lease(url="fake://", worker_id=WorkerId("w1"), heartbeat=0.05))
    store.silent = True

    with caplog.at_level(logging.WARNING, "holdfast"):
        pause = await asyncio.wait_for(sender.tick(), 5)
    store.silent = False

    assert pause == 0.01
    assert [record.getMessage() for record in caplog.records] == [
        'store.lost doing=beat error="no answer"'
    ]
    assert await sender.tick() == 0.05
    assert store.beats == ["w1"]


async def test_a_worker_that_was_given_up_is_left_until_it_has_a_new_id(store: FakeStore) -> None:
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(lease(heartbeat=0.1))
    beating = asyncio.ensure_future(sender.run())
    store.gives_up = True
    await eventually(lambda: store.beats == ["w1"])

    store.gives_up = False
    sender.set_lease(lease("w2", heartbeat=0.1))
    await eventually(lambda: store.beats[:2] == ["w1", "w2"])
    beating.cancel()


async def test_a_process_that_is_gone_gets_no_beats(store: FakeStore) -> None:
    child = await asyncio.create_subprocess_exec("true")
    await child.wait()
    sender = HeartbeatSender(Stores(), child.pid)
    sender.set_lease(lease())

    await sender.tick()

    assert store.beats == []


async def test_a_burial_is_repeated_until_the_store_is_back(store: FakeStore) -> None:
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(lease())
    store.away = True
    burying = asyncio.ensure_future(sender.bury())
    await asyncio.sleep(0.03)

    store.away = False
    await burying

    assert store.buried == ["w1"]


async def test_a_worker_that_left_in_good_order_is_not_buried(store: FakeStore) -> None:
    sender = HeartbeatSender(Stores(), os.getpid())
    sender.set_lease(lease())
    sender.set_lease(None)

    await sender.bury()

    assert store.buried == []
