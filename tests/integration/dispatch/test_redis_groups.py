"""Redis with sentinels, and as a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from holdfast.dispatch.polling import PollingDispatcher
from holdfast.dispatch.redis.dispatcher import RedisDispatcher
from holdfast.dispatch.redis.finding import slot
from holdfast.testing.eventually import eventually
from holdfast.testing.servers.redis import RedisServer
from holdfast.testing.servers.redis_groups import Cluster, Sentinels

Dispatch = Callable[[str], RedisDispatcher]
STORE = "shop"
LONG = 20.0


@pytest.fixture
async def dispatch() -> AsyncIterator[Dispatch]:
    made: list[RedisDispatcher] = []

    async def name() -> str:
        return STORE

    def make(url: str) -> RedisDispatcher:
        made.append(RedisDispatcher(url, store=name, fallback=PollingDispatcher()))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.close()


async def call(here: RedisDispatcher, there: RedisDispatcher, server: RedisServer) -> None:
    """One calls the other, and both use this server for it."""
    async with there.listen(["mail"]) as listener:
        while await listener.wait(0.01):
            pass
        await eventually(lambda: asleep(server) == 0)
        waiting = asyncio.ensure_future(listener.wait(LONG))
        await eventually(lambda: asleep(server) == 1)
        here.wake({"mail": 1})
        assert await asyncio.wait_for(waiting, 5.0)


def asleep(server: RedisServer) -> int:
    return int(str(server.command("ZCARD", f"holdfast:{{{STORE}}}:until")))


async def is_redis(dispatcher: RedisDispatcher) -> bool:
    return await dispatcher.mode() == "redis"


async def test_a_failover_of_the_sentinels_is_followed(dispatch: Dispatch) -> None:
    with Sentinels() as group:
        here, there = dispatch(group.url), dispatch(group.url)
        await call(here, there, before := group.master)

        before.kill9()
        group.sentinels.pop(0).kill9()  # the first that everybody asks is gone as well
        assert await here.mode() in ("redis", "poll")
        await eventually(lambda: group.master is not before, within=20)
        elected = time.monotonic()
        await eventually(lambda: is_redis(here))
        await eventually(lambda: is_redis(there))

        assert time.monotonic() - elected < 5
        await call(here, there, group.master)

        before.start()  # comes back as a master, until a sentinel makes it a replica
        await call(here, there, group.master)


async def test_an_unknown_service_is_told(
    dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer(None, "--sentinel", config="\n") as sentinel:
        there = dispatch(f"redis+sentinel://127.0.0.1:{sentinel.port}/shop")

        assert await there.mode() == "poll"
    assert "the sentinels know no service 'shop'" in caplog.text


async def test_a_cluster_is_one_server_for_us_and_a_moved_slot_is_followed(
    dispatch: Dispatch,
) -> None:
    with Cluster() as group:
        here, there = dispatch(group.url), dispatch(group.url)
        owner = group.owner(slot(STORE))
        await call(here, there, owner)
        await eventually(lambda: not owner.keys("*asleep*"))

        other = next(server for server in group.servers if server is not owner)
        owner.command("FLUSHALL")
        group.move(slot(STORE), other)

        await eventually(lambda: found_at(other, here, there))
        await call(here, there, other)


async def found_at(server: RedisServer, *dispatchers: RedisDispatcher) -> bool:
    """All of them are connected to that server."""
    clients = str(server.command("CLIENT", "LIST"))
    ours = clients.count("name=holdfast")
    return ours == len(dispatchers) and all([await is_redis(each) for each in dispatchers])
