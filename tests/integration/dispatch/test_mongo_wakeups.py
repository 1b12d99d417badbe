"""Wake-ups by change streams. Each dispatcher here stands for a process: it has its own client and
thread, and meets the others only in the database. Nobody polls in less than half a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError
from tests.integration.mongo.watching import Watch, name_of
from tests.kit.servers.mongo import MongoServer, MoodyServer

from holdfast import Holdfast, pauses
from holdfast.asyncio_tools.cancel import end
from holdfast.cli.doctor import _examine
from holdfast.dispatch import sleepers
from holdfast.ports.dispatcher import Dispatcher, Listener
from holdfast.settings import Settings
from holdfast.stores.mongo.store import MongoStore
from holdfast.stores.mongo.watching import Watching
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import WINDOW, new_task, new_tasks
from holdfast.wiring import open_dispatcher

Dispatch = Callable[..., Dispatcher]
HISTORY_LOST = 286


@pytest.fixture
async def store(fresh_mongo: str) -> AsyncIterator[MongoStore]:
    async with MongoStore(fresh_mongo) as store:
        yield store


@pytest.fixture(scope="module")
def moody() -> Iterator[MoodyServer]:
    with MoodyServer() as server:
        yield server


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


async def asleep(dispatcher: Dispatcher, *listeners: Listener) -> list[asyncio.Task[bool]]:
    """They sleep, and only wake when they are called; each is done then."""
    assert await dispatcher.mode() == "stream"
    while True:
        naps = [asyncio.create_task(listener.wait(30)) for listener in listeners]
        done, _ = await asyncio.wait(naps, timeout=0.2)
        if not done:  # it was another look, after registering
            return naps
        await end(naps)


async def is_woken(nap: asyncio.Task[bool]) -> bool:
    return await asyncio.wait_for(nap, 20)


async def submit(store: MongoStore, queue: str) -> None:
    await store.add([new_task(queue=queue)], idempotency_window=WINDOW)


async def test_only_those_who_hear_the_queue_are_woken(
    dispatch: Dispatch, store: MongoStore
) -> None:
    there = dispatch()
    async with (
        there.listen(["mail"]) as one,
        there.listen(["images"]) as two,
        there.listen(None) as three,
    ):
        mail, images, every = await asleep(there, one, two, three)

        await submit(store, "images")

        assert await is_woken(images)
        assert await is_woken(every)
        assert not mail.done()
        await end([mail])


async def test_a_submit_in_somebodys_transaction_wakes_at_its_commit(
    dispatch: Dispatch, store: MongoStore, fresh_mongo: str
) -> None:
    there = dispatch()
    async with (
        AsyncMongoClient[dict[str, object]](fresh_mongo) as client,
        there.listen(["mail"]) as listener,
    ):
        (nap,) = await asleep(there, listener)
        async with client.start_session() as session, await session.start_transaction():
            task = new_task(queue="mail")
            await store.add_within_async(session, [task], idempotency_window=WINDOW)
            await asyncio.sleep(0.1)
            assert not nap.done()

        assert await is_woken(nap)


async def test_a_queue_that_is_resumed_wakes_those_who_serve_it(
    dispatch: Dispatch, store: MongoStore
) -> None:
    there = dispatch()
    await pauses.pause(store, "mail")
    async with there.listen(["mail"]) as listener:
        (nap,) = await asleep(there, listener)

        await pauses.resume(store, "mail")

        assert await is_woken(nap)


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
    there = dispatch()
    with watch.over() as said:
        async with there.listen(["mail"]) as listener:
            await end(await asleep(there, listener))
            await eventually(lambda: name_of(said[-1]) == "killCursors")

            await store.add(new_tasks(200, queue="mail"), idempotency_window=WINDOW)

            assert name_of(said[-1]) == "killCursors"
            assert await listener.wait(20), "it must watch again, and look"
            assert name_of(said[-1]) != "killCursors"


async def test_many_submits_wake_a_sleeper_a_few_times(
    dispatch: Dispatch, store: MongoStore
) -> None:
    there = dispatch()
    async with there.listen(["mail"]) as listener:
        (nap,) = await asleep(there, listener)
        await store.add(new_tasks(500, queue="mail"), idempotency_window=WINDOW)
        assert await is_woken(nap)
        woken = 1
        while await listener.wait(0.5):
            woken += 1

    assert woken <= 20


@pytest.mark.parametrize("how", ["refused", "dropped"])
async def test_after_a_stream_that_cannot_go_on_everybody_looks_once_and_is_woken_again(
    moody: MoodyServer, how: str, dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    there = dispatch(moody.url(how))
    async with there.listen(["mail"]) as listener:
        async with MongoStore(moody.url(how)) as store:
            (nap,) = await asleep(there, listener)
            if how == "refused":
                moody.fail("getMore", HISTORY_LOST)
                await submit(store, "others")  # the server answers, and must be asked again
            else:
                moody.drop(how)
            assert await is_woken(nap), "what was submitted meanwhile must be found"
        async with MongoStore(moody.url(how)) as store:
            await eventually(lambda: streaming(there))
            (nap,) = await asleep(there, listener)
            await submit(store, "mail")
            assert await is_woken(nap)
    told = [r.getMessage().split()[0] for r in caplog.records if "dispatch." in r.getMessage()]
    assert told == ["dispatch.lost", "dispatch.back"]


async def test_while_the_server_is_away_waiting_is_polling(
    own_mongo: MongoServer, dispatch: Dispatch
) -> None:
    there = dispatch(f"{own_mongo.url('shop')}?serverSelectionTimeoutMS=500")
    async with there.listen(["mail"]) as listener:
        (nap,) = await asleep(there, listener)
        own_mongo.kill9()
        await eventually(lambda: polling(there), within=20)
        await end([nap])
        assert not await listener.wait(0.2)
        there.wake({"mail": 1})
        assert await listener.wait(20), "this process needs no server to wake itself"

        nap = asyncio.create_task(listener.wait(30))
        own_mongo.start()
        assert await is_woken(nap), "back again: look at once"
        await end(await asleep(there, listener))


async def test_closing_does_not_wait_for_a_server_that_is_silent(
    own_mongo: MongoServer, dispatch: Dispatch
) -> None:
    there = dispatch(own_mongo.url("shop"))
    async with there.listen(["mail"]) as listener:
        (nap,) = await asleep(there, listener)
        own_mongo.pause()
        began = time.monotonic()

        await there.close()

        assert time.monotonic() - began < 10
        await end([nap])
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
    url = own_mongo.url("shop")
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


async def test_a_stream_that_broke_off_says_so_whatever_the_driver_would_make_of_it(
    own_mongo: MongoServer,
) -> None:
    watching = Watching(own_mongo.url("shop"))
    stream = await watching.watch(None)
    own_mongo.restart()
    async with MongoStore(own_mongo.url("shop")) as store:
        await submit(store, "mail")  # before anybody looked whether the stream still flows

        with pytest.raises(PyMongoError):
            await stream.heard()

    await stream.close()
    await watching.close()


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


async def polling(dispatcher: Dispatcher) -> bool:
    return await dispatcher.mode() == "poll"


async def streaming(dispatcher: Dispatcher) -> bool:
    return await dispatcher.mode() == "stream"
