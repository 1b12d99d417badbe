"""A Redis that answers, but not what was hoped for: full, old, crowded, or silent at the door."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import pytest
from tests.integration.dispatch.redis_kit import (
    BACK,
    Dispatch,
    PollingDispatcher,
    call,
    dispatchers,
    fast_asleep,
    settled,
)
from tests.kit.servers.redis import RedisServer

from holdfast.dispatch.redis.dispatcher import RedisDispatcher


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
        assert [text.partition(" ")[0] for text in caplog.messages] == ["dispatch.lost"]
        assert "OOM" in caplog.text
        assert len(connected(own_redis)) <= 3, "whoever was refused has hung up"
        own_redis.command("CONFIG", "SET", "maxmemory", 0)
        await settled(there, "redis")
    await call(here, there, own_redis)


@asynccontextmanager
async def answering(text: str) -> AsyncIterator[int]:
    """The port of something that says the same to everybody, and hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(text.encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_an_old_redis_is_told_as_such_and_the_password_is_not(
    dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Redis 5 repeats what it does not understand."""
    words = "`3`, `AUTH`, `default`, `s3cret`, `SETNAME`, `holdfast`, "
    refusal = f"-ERR unknown command `HELLO`, with args beginning with: {words}\r\n"
    async with answering(refusal) as port:
        assert await dispatch(f"redis://:s3cret@127.0.0.1:{port}").mode() == "poll"

    assert "Redis 6 or later, or Valkey, is needed" in caplog.text
    assert "s3cret" not in caplog.text


async def test_a_crowded_redis_is_told_as_such(
    dispatch: Dispatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with answering("-ERR max number of clients reached\r\n") as port:
        assert await dispatch(f"redis://127.0.0.1:{port}").mode() == "poll"

    assert "max number of clients reached" in caplog.text
    assert "is needed" not in caplog.text


async def test_a_process_has_one_connection_however_many_listen(
    own_redis: RedisServer, dispatch: Dispatch
) -> None:
    there = dispatch(own_redis.url)
    async with there.listen(["mail"]) as mail, there.listen(["films"]) as films:
        for listener in (mail, films):
            waiting = await fast_asleep(listener, own_redis)
            assert len(connected(own_redis)) == 1
            there.wake({"mail": 1, "films": 1})
            assert await asyncio.wait_for(waiting, BACK)


@pytest.fixture
def silent() -> Iterator[int]:
    """A port at which nothing is ever said, not even that nobody is there."""
    with ExitStack() as stack:
        door = stack.enter_context(socket.socket())
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        for _ in range(4):  # a queue at the door that nobody opens
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(door.getsockname())
        yield door.getsockname()[1]


async def test_a_host_that_says_nothing_holds_up_nobody(dispatch: Dispatch, silent: int) -> None:
    here = dispatch(f"redis://127.0.0.1:{silent}")
    async with here.listen(["mail"]) as listener:
        began = time.monotonic()

        await listener.wait(0.5)

        assert time.monotonic() - began < 2


async def test_a_sentinel_that_says_nothing_is_passed_over(
    dispatch: Dispatch, own_redis: RedisServer, silent: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It was on the same host as the master that is gone."""
    config = f"sentinel monitor shop 127.0.0.1 {own_redis.port} 1\n"
    with RedisServer(None, "--sentinel", config=config) as sentinel:
        there = dispatch(f"redis+sentinel://127.0.0.1:{silent},127.0.0.1:{sentinel.port}/shop")

        assert await there.mode() == "redis"
    assert "dispatch.lost" not in caplog.text


async def test_a_store_that_does_not_tell_its_name_is_not_taken_for_a_lost_redis(
    own_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="holdfast.dispatch")
    asked = itertools.count(1)

    async def name() -> str:
        if next(asked) == 1:
            raise ConnectionError("the database starts up")
        return "shop"

    here = RedisDispatcher(own_redis.url, store=name, fallback=PollingDispatcher())
    assert await here.mode() == "poll"
    await settled(here, "redis")
    await here.close()

    lost, back = caplog.messages
    assert "the store does not tell its name: the database starts up" in lost
    assert back.startswith("dispatch.back")


def connected(server: RedisServer) -> list[str]:
    """Our connections, as the server sees them."""
    clients = str(server.command("CLIENT", "LIST")).splitlines()
    return [line for line in clients if "name=holdfast" in line]
