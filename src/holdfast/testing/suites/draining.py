"""Draining: a worker is asked to leave, and finds out when it looks."""

from __future__ import annotations

from holdfast.core.fleet import WorkerInfo, WorkerStatus
from holdfast.core.task import WorkerId
from holdfast.ports.store import Store
from holdfast.testing.factories import worker_info
from holdfast.testing.suites.base import StoreSuite, claim_ids, enlist, leave, submit


async def _only_worker(store: Store) -> WorkerInfo:
    (found,) = await store.workers()
    return found


class DrainSuite(StoreSuite):
    """`ask_to_drain`, what `requests` says of it, and the kinds of workers."""

    async def test_nobody_is_asked_at_first(self, store: Store, worker: WorkerId) -> None:
        assert (await store.requests(worker)).drain is False
        assert (await _only_worker(store)).drain_requested is False

    async def test_a_worker_that_was_asked_finds_out(self, store: Store) -> None:
        asked, other = await enlist(store), await enlist(store)

        assert await store.ask_to_drain(asked) is True

        assert (await store.requests(asked)).drain is True
        assert (await store.requests(other)).drain is False
        assert [(w.id, w.drain_requested) for w in await store.workers()] == [
            (other, False),
            (asked, True),
        ]

    async def test_asking_changes_nothing_else(self, store: Store, worker: WorkerId) -> None:
        task = await submit(store)

        await store.ask_to_drain(worker)

        found = await _only_worker(store)
        assert (found.status, found.beats) == (WorkerStatus.ACTIVE, 0)
        assert await claim_ids(store, worker) == [task]
        assert await store.beat(worker) is True

    async def test_a_request_outlives_heartbeats_and_the_draining_itself(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.ask_to_drain(worker)

        await store.beat(worker, load=1, status=WorkerStatus.DRAINING)

        assert (await store.requests(worker)).drain is True
        assert await store.ask_to_drain(worker) is True

    async def test_a_worker_that_is_gone_cannot_be_asked(self, store: Store) -> None:
        dead, stopped = await enlist(store), await enlist(store)
        await store.bury(dead, beats=None)
        await leave(store, stopped)

        assert await store.ask_to_drain(dead) is False
        assert await store.ask_to_drain(stopped) is False
        assert (await store.requests(dead)).drain is False

    async def test_an_unknown_worker_cannot_be_asked(self, store: Store) -> None:
        for text in ("nobody", "", "\0", "\ud800"):
            assert await store.ask_to_drain(WorkerId(text)) is False
            assert (await store.requests(WorkerId(text))).drain is False

    async def test_registering_again_does_not_take_the_request_back(self, store: Store) -> None:
        info = worker_info()
        await store.register(info)
        await store.ask_to_drain(info.id)

        await store.register(info)

        assert (await store.requests(info.id)).drain is True

    async def test_a_workers_kind_comes_back(self, store: Store) -> None:
        plain, remote = worker_info(), worker_info(kind="http")
        await store.register(plain)
        await store.register(remote)

        assert [(w.id, w.kind) for w in await store.workers()] == [
            (remote.id, "http"),
            (plain.id, "python"),
        ]
