"""What tests of wake-ups through Redis share: dispatchers of one store, and a call between two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.kit.servers.redis import RedisServer

from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.dispatch.redis.dispatcher import RedisDispatcher
from holdfast.ports.dispatcher import Listener
from holdfast.testing.eventually import eventually

Dispatch = Callable[[str], RedisDispatcher]
STORE = "shop"
LONG = 20.0
BACK = 5.0


class PollingDispatcher(InProcessDispatcher):
    """Of a store that wakes nobody in other processes."""

    async def mode(self) -> str:
        return "poll"


@asynccontextmanager
async def dispatchers() -> AsyncIterator[Dispatch]:
    """Makes dispatchers by URL, each of them a process as far as Redis can tell."""
    made: list[RedisDispatcher] = []

    async def name() -> str:
        return STORE

    def make(url: str) -> RedisDispatcher:
        made.append(RedisDispatcher(url, store=name, fallback=PollingDispatcher()))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.close()


def asleep(server: RedisServer) -> int:
    """How many are registered as asleep."""
    return int(str(server.command("ZCARD", f"holdfast:{{{STORE}}}:until")))


async def fast_asleep(listener: Listener, server: RedisServer) -> asyncio.Future[bool]:
    """It has looked often enough, and sleeps; done when it is woken."""
    while await listener.wait(0.01):
        pass
    await eventually(lambda: asleep(server) == 0)
    waiting = asyncio.ensure_future(listener.wait(LONG))
    await eventually(lambda: asleep(server) == 1)
    return waiting


async def call(here: RedisDispatcher, there: RedisDispatcher, server: RedisServer) -> None:
    """One calls the other, and both use this server for it."""
    async with there.listen(["calling"]) as listener:
        waiting = await fast_asleep(listener, server)
        here.wake({"calling": 1})
        assert await asyncio.wait_for(waiting, BACK)


async def is_in_mode(dispatcher: RedisDispatcher, mode: str) -> bool:
    return await dispatcher.mode() == mode


async def settled(dispatcher: RedisDispatcher, mode: str, *, within: float = BACK) -> None:
    """Until it is in that mode."""
    await eventually(lambda: is_in_mode(dispatcher, mode), within=within)
