"""Wake-ups by change streams. Each dispatcher here stands for a process: it has its own client and
thread, and meets the others only in the database. Nobody polls in less than half a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from pymongo import AsyncMongoClient
from tests.integration.mongo.watching import Watch, name_of
from tests.kit.servers.mongo import MongoServer, MoodyServer

from holdfast import Holdfast, pauses
from holdfast.cli.doctor import _examine
from holdfast.dispatch import sleepers
from holdfast.ports.dispatcher import Dispatcher, Listener
from holdfast.settings import Settings
from holdfast.stores.mongo.store import MongoStore
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task, new_tasks
from holdfast.wiring import open_dispatcher

Dispatch = Callable[..., Dispatcher]
HISTORY_LOST = 286


@pytest.fixture
async def store(fresh_mongo: str) -> AsyncIterator[MongoStore]:
    async with MongoStore(fresh_mongo) as store:
        yield store


@pytest.fixture
async def dispatch(fresh_mongo: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dispatch]:
    monkeypatch.setattr(sleepers, "REPEATS", (0.005, 0.02))  # the others are for slow commits
    made: list[Dispatcher] = []

    def make(url: str = fresh_mongo) -> Dispatcher:
        made.append(open_dispatcher(Settings(url=url)))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.close()


@asynccontextmanager
async def asleep(dispatcher: Dispatcher, *queues: str) -> AsyncIterator[Listener]:
    """A listener that only wakes when it is called."""
    async with dispatcher.listen(queues or None) as listener:
        await settle(dispatcher, listener)
        yield listener


async def settle(dispatcher: Dispatcher, listener: Listener) -> None:
    assert await dispatcher.mode() == "stream"
    while await listener.wait(0.2):  # at first, after registering, and the looks after that
        pass


async def submit(store: MongoStore, queue: str) -> None:
    await store.add([new_task(queue=queue)], idempotency_window=WINDOW)


async def test_only_those_who_hear_the_queue_are_woken(
    dispatch: Dispatch, store: MongoStore
) -> None:
    there = dispatch()
    async with (
        asleep(there, "mail") as mail,
        asleep(there, "images") as images,
        asleep(there) as every,
    ):
        for listener in (mail, images, every):
            await settle(there, listener)

        await submit(store, "images")

        assert await images.wait(20)
        assert await every.wait(20)
        assert not await mail.wait(0.001)


async def test_a_submit_in_somebodys_transaction_wakes_at_its_commit(
    dispatch: Dispatch, store: MongoStore, fresh_mongo: str
) -> None:
    async with (
        AsyncMongoClient[dict[str, object]](fresh_mongo) as client,
        asleep(dispatch(), "mail") as listener,
    ):
        async with client.start_session() as session, await session.start_transaction():
            task = new_task(queue="mail")
            await store.add_within_async(session, [task], idempotency_window=WINDOW)
            assert not await listener.wait(0.1)

        assert await listener.wait(20)


async def test_a_queue_that_is_resumed_wakes_those_who_serve_it(
    dispatch: Dispatch, store: MongoStore
) -> None:
    await pauses.pause(store, "mail")
    async with asleep(dispatch(), "mail") as listener:
        await pauses.resume(store, "mail")

        assert await listener.wait(20)


async def test_a_process_that_only_submits_opens_no_connection_for_it(
    dispatch: Dispatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch.install(monkeypatch)
    with watch.over() as said:
        here = dispatch()
        here.added({"mail": 1})
        here.wake({"mail": 1})
        await here.close()

    assert said == []


async def test_a_busy_process_watches_nothing(
    dispatch: Dispatch, store: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch.install(monkeypatch)
    with watch.over() as said:
        there = dispatch()
        async with asleep(there, "mail") as listener:
            await eventually(lambda: name_of(said[-1]) == "killCursors")
            del said[:]
            await store.add(new_tasks(200, queue="mail"), idempotency_window=WINDOW)
            assert "getMore" not in map(name_of, said)

            assert await listener.wait(20), "it must watch again, and look"


async def test_many_submits_wake_a_sleeper_a_few_times(
    dispatch: Dispatch, store: MongoStore
) -> None:
    async with asleep(dispatch(), "mail") as listener:
        await store.add(new_tasks(500, queue="mail"), idempotency_window=WINDOW)
        woken = 0
        while await listener.wait(0.5):
            woken += 1

    assert 0 < woken <= 20


async def test_after_a_stream_that_cannot_go_on_everybody_looks_once_and_is_woken_again(
    dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with MoodyServer() as server:
        there = dispatch(server.url("shop"))
        async with MongoStore(server.url("shop")) as store, asleep(there, "mail") as listener:
            server.fail("getMore", HISTORY_LOST)
            await submit(store, "others")  # the server answers, and must be asked again

            assert await listener.wait(20), "what was submitted meanwhile must be found"
            await eventually(lambda: streaming(there))
            await settle(there, listener)
            await submit(store, "mail")
            assert await listener.wait(20)
        await there.close()
    assert [r.getMessage().split()[0] for r in caplog.records if "dispatch." in r.getMessage()] == [
        "dispatch.lost",
        "dispatch.back",
    ]


async def test_while_the_server_is_away_waiting_is_polling(
    own_mongo: MongoServer, dispatch: Dispatch
) -> None:
    there = dispatch(f"{own_mongo.url('shop')}?serverSelectionTimeoutMS=500")
    async with asleep(there, "mail") as listener:
        own_mongo.kill9()
        while await there.mode() == "stream":
            await listener.wait(0.1)  # who does not sleep does not watch
        began = time.monotonic()
        assert not await listener.wait(0.2)
        assert time.monotonic() - began >= 0.19
        there.wake({"mail": 1})
        assert await listener.wait(0.2), "this process needs no server to wake itself"

        own_mongo.start()
        assert await listener.wait(20), "back again: look at once"
        await settle(there, listener)


async def test_closing_does_not_wait_for_a_server_that_is_silent(
    own_mongo: MongoServer, dispatch: Dispatch
) -> None:
    there = dispatch(own_mongo.url("shop"))
    async with asleep(there, "mail"):
        own_mongo.pause()
        began = time.monotonic()

        await there.close()

        assert time.monotonic() - began < 10
    own_mongo.go_on()


async def test_a_server_without_change_streams_is_told_of_once_and_workers_poll(
    dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with MongoServer(standalone=True) as server:
        there = dispatch(server.url("shop"))
        for _ in range(2):
            async with there.listen(["mail"]) as listener:
                assert await there.mode() == "poll"
                await listener.wait(0.001)  # woken once, when that was known
                assert not await listener.wait(0.05)
        await there.close()

    told = [r for r in caplog.records if "dispatch." in r.getMessage()]
    assert [r.levelno for r in told] == [logging.INFO]
    assert "only supported on replica sets" in told[0].getMessage()


async def test_a_worker_is_woken_after_the_server_was_killed_and_came_back(
    own_mongo: MongoServer,
) -> None:
    url = f"{own_mongo.url('shop')}?serverSelectionTimeoutMS=500"
    app = shop(url)
    async with app, working(app):
        for n in range(3):
            async with shop(url) as caller:
                handle = await caller.registry["double"].submit_async(n)
                assert await handle.result_async(timeout=20) == 2 * n
            if n == 0:
                own_mongo.restart()
            else:
                await asyncio.sleep(1.0)  # the last look after going to sleep


async def test_the_doctor_says_how_workers_are_woken(fresh_mongo: str, store: MongoStore) -> None:
    told = [finding.text for finding in await _examine(Holdfast(url=fresh_mongo))]

    assert any("woken by change streams" in text for text in told), told


def shop(url: str) -> Holdfast:
    app = Holdfast(url=url, poll="30s")

    @app.task(name="double")
    async def double(n: int) -> int:
        return 2 * n

    return app


@asynccontextmanager
async def working(app: Holdfast) -> AsyncIterator[None]:
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def streaming(dispatcher: Dispatcher) -> bool:
    return await dispatcher.mode() == "stream"
