"""A MongoDB that is killed while a handler's transaction commits is asked when it is back."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.transactions.bookshops.base import ran
from tests.integration.transactions.bookshops.mongo import MongoBookshop
from tests.kit.servers.mongo import MongoServer
from tests.kit.servers.proxy import Fate

from holdfast import Context, State
from holdfast.testing.eventually import eventually

pytestmark = pytest.mark.usefixtures("hasty_driver")


@pytest.fixture
def bookshop(own_mongo: MongoServer) -> MongoBookshop:
    return MongoBookshop(own_mongo.url("shop"))


@pytest.mark.parametrize("fate", [Fate.LOSE_REQUEST, Fate.LOSE_ANSWER])
async def test_a_server_killed_during_the_commit_is_asked_when_it_is_back(
    own_mongo: MongoServer, bookshop: MongoBookshop, fate: Fate
) -> None:
    with bookshop.proxy() as proxy:
        async with bookshop.through(proxy) as app:
            restarted: list[asyncio.Future[None]] = []

            @app.task
            async def book(ctx: Context) -> None:
                async with ctx.transaction() as session:
                    await bookshop.book(session, f"attempt {ctx.attempt}")
                    if ctx.attempt == 1:
                        ambush = proxy.ambush(bookshop.commit, fate)

                        def restart() -> None:
                            assert ambush.sprung.wait(10)
                            if fate is Fate.LOSE_ANSWER:
                                proxy.rule = lambda text: (
                                    Fate.LOSE_REQUEST if bookshop.commit in text else None
                                )
                            own_mongo.restart()
                            proxy.rule = lambda text: None

                        loop = asyncio.get_running_loop()
                        restarted.append(loop.run_in_executor(None, restart))

            handle = await ran(app, book)
            await asyncio.gather(*restarted)

            assert await handle.status_async() is State.COMPLETED
            attempts = (await handle.history_async()).attempts
            assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
    assert bookshop.bookings() == [f"attempt {len(attempts)}"]


async def test_a_commit_that_the_driver_repeats_to_a_restarted_server_is_looked_up(
    own_mongo: MongoServer, bookshop: MongoBookshop
) -> None:
    """The driver asks twice before it tells anybody, and the second one may have forgotten."""
    with bookshop.proxy() as proxy:
        async with bookshop.through(proxy) as app:
            restarted: list[asyncio.Task[None]] = []

            async def restart() -> None:
                await eventually(lambda: proxy.held)
                await asyncio.to_thread(own_mongo.restart)
                proxy.cut()

            @app.task
            async def book(ctx: Context) -> None:
                async with ctx.transaction() as session:
                    await bookshop.book(session, f"attempt {ctx.attempt}")
                    proxy.ambush(bookshop.commit, Fate.STALL)
                    restarted.append(asyncio.create_task(restart()))

            handle = await ran(app, book)
            await asyncio.gather(*restarted)

            assert await handle.status_async() is State.COMPLETED
            assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
    assert bookshop.bookings() == ["attempt 1"]
