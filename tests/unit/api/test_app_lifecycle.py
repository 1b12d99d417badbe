"""An app opens its store once, at the first need, and lets go of it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.app_connection import AppConnection
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.errors import ConfigError, StoreUnavailable
from holdfast.stores.memory import MemoryStore


class SlowStore(MemoryStore):
    """Counts how often it was opened, and takes its time."""

    def __init__(self, *, failures: int = 0) -> None:
        super().__init__()
        self.opened = 0
        self.closed = 0
        self.failures = failures
        self.may_open = threading.Event()
        self.may_open.set()

    async def open(self) -> None:
        self.opened += 1
        await asyncio.to_thread(self.may_open.wait, 10)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("away")
        await super().open()

    async def close(self) -> None:
        self.closed += 1


def app_on(store: MemoryStore) -> Holdfast:
    app = Holdfast(url="memory://")
    app.swap_connection(AppConnection(store, InProcessDispatcher(), app.registry, app.settings))
    return app


def test_making_an_app_opens_nothing() -> None:
    store = SlowStore()
    app = app_on(store)

    @app.task
    def work() -> None: ...

    work.call()
    work.options(delay=5)

    assert store.opened == 0


def test_many_threads_and_loops_open_it_once() -> None:
    store = SlowStore()
    store.may_open.clear()
    app = app_on(store)
    counts: list[int] = []

    def use_sync() -> None:
        counts.append(app.count())

    def use_async() -> None:
        counts.append(asyncio.run(app.count_async()))

    threads = [threading.Thread(target=use) for use in (use_sync, use_async) * 5]
    for thread in threads:
        thread.start()
    store.may_open.set()
    for thread in threads:
        thread.join(10)

    assert counts == [0] * 10
    assert store.opened == 1


def test_a_failed_opening_is_tried_again_at_the_next_use() -> None:
    store = SlowStore(failures=1)
    app = app_on(store)

    with pytest.raises(StoreUnavailable):
        app.count()
    assert app.count() == 0
    assert store.opened == 2


async def test_a_cancelled_opening_does_not_cancel_those_who_wait() -> None:
    store = SlowStore()
    store.may_open.clear()
    app = app_on(store)
    first = asyncio.create_task(app.count_async())
    await asyncio.sleep(0)
    second = asyncio.create_task(app.count_async())
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.wait([first])
    store.may_open.set()

    assert first.cancelled()
    assert await second == 0


def test_a_with_block_opens_and_closes() -> None:
    store = SlowStore()

    with app_on(store) as app:
        assert (store.opened, store.closed) == (1, 0)
        assert app.client.store is store

    assert store.closed == 1


async def test_an_async_with_block_does_too() -> None:
    store = SlowStore()

    async with app_on(store) as app:
        assert await app.client.count() == 0

    assert (store.opened, store.closed) == (1, 1)


def test_a_closed_app_opens_again() -> None:
    app = Holdfast(url="memory://")

    @app.task
    def work() -> None: ...

    work.submit()
    app.close()
    app.close()

    assert app.count() == 0  # memory forgets


def test_a_bad_url_is_refused_at_the_first_use_and_a_bad_setting_at_once() -> None:
    app = Holdfast(url="mysql://host/db")

    with pytest.raises(ConfigError, match="got mysql://"):
        app.count()
    with pytest.raises(ConfigError, match=r"^lease: expected"):
        Holdfast(lease="x")


async def test_a_worker_takes_the_apps_settings_and_its_own() -> None:
    async with Holdfast(url="memory://", drain=7) as app:
        app.task(name="nothing")(lambda: None)
        worker: Any = app.worker(concurrency=3, queues="mail", burst=True)

    settings = worker._settings
    assert (settings.drain, settings.concurrency, settings.queues) == (7.0, 3, ("mail",))


async def test_an_app_runs_its_own_worker_until_nothing_is_left() -> None:
    async with Holdfast(url="memory://") as app:

        @app.task
        async def work(n: int) -> int:
            return n + 1

        handle = await work.submit_async(1)
        await app.run_worker(burst=True)

        assert await handle.result_async(timeout=5) == 2


def test_an_app_says_what_it_is() -> None:
    app = Holdfast(url="memory://")

    app.task(lambda: None)

    assert repr(app) == "<Holdfast memory, 1 tasks>"
