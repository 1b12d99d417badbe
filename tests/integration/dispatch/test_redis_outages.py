"""Redis absent, killed, emptied, flushed, paused, slow: it costs latency, one line of log
for each change, and it is back within five seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator

import pytest
from tests.integration.dispatch.redis_kit import (
    LONG,
    Dispatch,
    call,
    dispatchers,
    fast_asleep,
    settled,
)
from tests.kit.servers.redis import RedisServer
from tests.kit.servers.slow import SlowWay


@pytest.fixture
async def dispatch() -> AsyncIterator[Dispatch]:
    async with dispatchers() as make:
        yield make


class Changes:
    """What was logged of changes, in order."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        caplog.set_level(logging.INFO, logger="holdfast.dispatch")

    @property
    def said(self) -> list[str]:
        told = (record.getMessage() for record in self._caplog.records)
        return [text.partition(" ")[0] for text in told if text.startswith("dispatch.")]


@pytest.fixture
def changes(caplog: pytest.LogCaptureFixture) -> Changes:
    return Changes(caplog)


async def test_a_redis_that_is_absent_at_the_start_is_used_when_it_comes(
    own_redis: RedisServer, dispatch: Dispatch, changes: Changes
) -> None:
    own_redis.kill9()
    here, there = dispatch(own_redis.url), dispatch(own_redis.url)

    assert (await here.mode(), await there.mode()) == ("poll", "poll")
    async with here.listen(["mail"]) as listener:
        here.wake({"mail": 1})  # this process needs nobody to wake itself
        assert await listener.wait(1.0) or await listener.wait(1.0)
        await asyncio.sleep(0.5)
        own_redis.start()
        await settled(here, "redis")
        await settled(there, "redis")

    await call(there, here, own_redis)
    assert sorted(changes.said) == ["dispatch.back"] * 2 + ["dispatch.lost"] * 2


async def test_killed_and_restarted_empty(
    own_redis: RedisServer, dispatch: Dispatch, changes: Changes
) -> None:
    here, there = dispatch(own_redis.url), dispatch(own_redis.url)
    await call(here, there, own_redis)
    async with there.listen(["mail"]) as listener:
        waiting = await fast_asleep(listener, own_redis)

        own_redis.kill9()

        assert await asyncio.wait_for(waiting, 2.0), "look once: nobody knows what was missed"
        await settled(there, "poll")
        own_redis.start()
        assert await listener.wait(LONG), "and once more when it is back"
        await settled(here, "redis")
        await settled(there, "redis")
    await call(here, there, own_redis)
    assert sorted(changes.said) == ["dispatch.back"] * 2 + ["dispatch.lost"] * 2


async def test_a_sleeper_that_was_flushed_lies_down_again(
    own_redis: RedisServer, dispatch: Dispatch, changes: Changes
) -> None:
    here, there = dispatch(own_redis.url), dispatch(own_redis.url)
    async with there.listen(["mail"]) as listener:
        waiting = await fast_asleep(listener, own_redis)

        own_redis.command("FLUSHALL")

        assert await asyncio.wait_for(waiting, 3.0), "it is told that Redis forgot it"
    await call(here, there, own_redis)
    assert changes.said == []


async def test_a_user_with_no_more_rights_than_the_manual_names_can_use_it(
    dispatch: Dispatch,
) -> None:
    rights = "+evalsha +script|load +subscribe +publish +role +ping +hello +time +pexpire"
    user = f"user shop on >pw ~holdfast:* &holdfast:* {rights} +get +set +@sortedset"
    with RedisServer(config=f"{user}\n") as server:
        url = f"redis://shop:pw@127.0.0.1:{server.port}"
        here, there = dispatch(url), dispatch(url)

        assert await here.mode() == "redis"
        await call(here, there, server)


async def test_flushed_scripts_are_loaded_again(
    own_redis: RedisServer, dispatch: Dispatch, changes: Changes
) -> None:
    here, there = dispatch(own_redis.url), dispatch(own_redis.url)
    await call(here, there, own_redis)

    own_redis.command("SCRIPT", "FLUSH")

    await call(here, there, own_redis)
    assert changes.said == []


async def test_a_paused_redis_holds_up_nobody(
    own_redis: RedisServer, dispatch: Dispatch, changes: Changes
) -> None:
    here = dispatch(own_redis.url)
    async with here.listen(["mail"]) as listener:
        waiting = await fast_asleep(listener, own_redis)

        own_redis.pause()
        began = time.monotonic()
        here.wake({"mail": 1})
        assert time.monotonic() - began < 0.1
        assert await asyncio.wait_for(waiting, 2.0)
        await settled(here, "poll")
        here.wake({"mail": 1})
        assert await listener.wait(1.0), "meanwhile the store's own dispatcher is in charge"

        own_redis.resume()
        await settled(here, "redis")
    await call(here, dispatch(own_redis.url), own_redis)
    assert changes.said == ["dispatch.lost", "dispatch.back"]


async def test_a_redis_that_became_slow_is_left_until_it_is_quick_again(
    own_redis: RedisServer, dispatch: Dispatch, changes: Changes
) -> None:
    with SlowWay(own_redis.port) as way:
        here = dispatch(f"redis://127.0.0.1:{way.port}")
        assert await here.mode() == "redis"

        way.delay = 0.25  # quick enough for a greeting, too slow for calls
        await settled(here, "poll", within=3.0)
        await asyncio.sleep(2.0)  # it is tried again meanwhile, and found too slow
        assert await here.mode() == "poll"

        way.delay = 0.0
        await settled(here, "redis")
        assert changes.said == ["dispatch.lost", "dispatch.back"]


async def test_a_wrong_password_is_told_once_and_the_right_one_works(
    dispatch: Dispatch, changes: Changes, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer(config="user shop on >s3cret/: ~* &* +@all\n") as server:
        wrong = dispatch(f"redis://shop:wrong@127.0.0.1:{server.port}/3")
        right = dispatch(f"redis://shop:s3cret%2F%3A@127.0.0.1:{server.port}/3")

        assert (await wrong.mode(), await right.mode()) == ("poll", "redis")

        await asyncio.sleep(0.5)
    told = [record.getMessage() for record in caplog.records if "WRONGPASS" in record.getMessage()]
    assert len(told) == 1
    assert "wrong" not in told[0].replace("WRONGPASS", "").lower().split("invalid")[0]


async def test_what_is_no_redis_is_told_as_such(
    dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    assert await dispatch(f"redis://127.0.0.1:{port}").mode() == "poll"

    server.close()
    assert "this is no Redis" in caplog.text
