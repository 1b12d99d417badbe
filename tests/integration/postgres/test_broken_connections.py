"""Connections that broke while they rested, or fell silent: who notices, and who need not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.kit.servers.postgres import PostgresServer
from tests.kit.servers.proxy import Fate, Proxy

from holdfast.core.task import State, WorkerId
from holdfast.errors import StoreUnavailable
from holdfast.stores.postgres import store as module
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.factories import WINDOW, new_task, worker_info
from holdfast.testing.suites.base import claim

ME = WorkerId("me")


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
async def store(
    postgres: PostgresServer, proxy: Proxy, fresh_database: str
) -> AsyncIterator[PostgresStore]:
    """Seen through the proxy; its connections are open and rest."""
    url = fresh_database.replace(f":{postgres.port}/", f":{proxy.port}/")
    async with PostgresStore(url) as store:
        await store.register(worker_info(id=ME))
        yield store
        proxy.resume()


async def test_who_submits_after_a_break_need_not_notice(
    store: PostgresStore, proxy: Proxy
) -> None:
    assert proxy.cut() > 0
    await store.add([new_task()], idempotency_window=WINDOW)

    assert proxy.cut() > 0
    assert (await store.stats()).states[State.QUEUED] == 1

    assert proxy.cut() > 0
    assert await store.beat(ME)


@pytest.mark.parametrize("fate", [Fate.LOSE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER])
async def test_a_submit_that_is_cut_is_repeated_and_made_once(
    store: PostgresStore, proxy: Proxy, fate: Fate
) -> None:
    proxy.ambush(r"\badd", fate)
    task = new_task(idempotency_key="k")

    (added,) = await store.add([task], idempotency_window=WINDOW)

    assert (added.created, added.task_id) == (True, task.id)
    assert (await store.stats()).states[State.QUEUED] == 1


async def test_a_submit_that_is_cut_twice_is_the_callers_to_repeat(
    store: PostgresStore, proxy: Proxy
) -> None:
    proxy.ambush(r"\badd", Fate.LOSE_ANSWER, times=2)
    task = new_task()

    with pytest.raises(StoreUnavailable, match="may or may not"):
        await store.add([task], idempotency_window=WINDOW)
    await store.add([task], idempotency_window=WINDOW)

    assert (await store.stats()).states[State.QUEUED] == 1


async def test_a_claim_that_is_cut_is_never_repeated(store: PostgresStore, proxy: Proxy) -> None:
    await store.add([new_task(), new_task()], idempotency_window=WINDOW)
    proxy.ambush(r"\bclaim", Fate.LOSE_ANSWER)

    with pytest.raises(StoreUnavailable):
        await claim(store, ME, limit=1)

    states = (await store.stats()).states
    assert (states[State.QUEUED], states[State.RUNNING]) == (1, 1)


async def test_a_silent_connection_is_given_up_and_its_idle_neighbours_with_it(
    store: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HOT_TIMEOUT", 0.5)
    ambush = proxy.ambush(r"\bbeat", Fate.STALL)

    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await store.beat(ME)

    assert ambush.sprung.is_set()
    assert time.monotonic() - began < 10
    assert await store.beat(ME)
