"""Redis with sentinels, and as a cluster."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from tests.integration.dispatch.redis_kit import STORE, Dispatch, call, dispatchers, is_in_mode
from tests.kit.servers.redis import RedisServer
from tests.kit.servers.redis_groups import Cluster, Sentinels

from holdfast.dispatch.redis.dispatcher import RedisDispatcher
from holdfast.dispatch.redis.locate import slot
from holdfast.testing.eventually import eventually


@pytest.fixture
async def dispatch() -> AsyncIterator[Dispatch]:
    async with dispatchers() as make:
        yield make


async def test_a_failover_of_the_sentinels_is_followed(dispatch: Dispatch) -> None:
    with Sentinels() as group:
        here, there = dispatch(group.url), dispatch(group.url)
        await call(here, there, before := group.master)

        before.kill9()
        group.sentinels.pop(0).kill9()  # the first that everybody asks is gone as well
        assert await here.mode() in ("redis", "poll")
        await eventually(lambda: group.master is not before, within=20)
        elected = time.monotonic()
        await eventually(lambda: is_in_mode(here, "redis"))
        await eventually(lambda: is_in_mode(there, "redis"))

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
    return ours == len(dispatchers) and all(
        [await is_in_mode(each, "redis") for each in dispatchers]
    )
