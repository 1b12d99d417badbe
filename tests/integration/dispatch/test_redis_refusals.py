"""A Redis that answers, but not what was hoped for: full, old, crowded, or silent at the door."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator

import pytest
from tests.integration.dispatch.redis_kit import LONG, Dispatch, call, dispatchers, settled

from holdfast.testing.servers.redis import RedisServer


@pytest.fixture
async def dispatch() -> AsyncIterator[Dispatch]:
    async with dispatchers() as make:
        yield make


async def test_a_redis_that_refuses_to_write_is_away_until_it_does(
    own_redis: RedisServer, dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It greets, it loads scripts, it answers; and has no room for anything that sleeps."""
    caplog.set_level(logging.INFO, logger="holdfast.dispatch")
    here, there = dispatch(own_redis.url), dispatch(own_redis.url)
    async with there.listen(["mail"]) as listener:
        while await listener.wait(0.01):
            pass

        own_redis.command("CONFIG", "SET", "maxmemory", 1)
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            await listener.wait(0.05)

        assert await there.mode() == "poll"
        assert [text.partition(":")[0] for text in caplog.messages] == ["dispatch.lost"]
        assert "OOM" in caplog.text
        assert len(connected(own_redis)) <= 3, "whoever was refused has hung up"
        own_redis.command("CONFIG", "SET", "maxmemory", 0)
        await settled(there, "redis")
    await call(here, there, own_redis)


def connected(server: RedisServer) -> list[str]:
    """Our connections, as the server sees them."""
    clients = str(server.command("CLIENT", "LIST")).splitlines()
    return [line for line in clients if "name=holdfast" in line]
