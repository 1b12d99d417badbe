"""The thread of a connection for wake-ups, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from holdfast.dispatch.calls import Calls
from holdfast.dispatch.connection_thread import ConnectionThread


class Open:
    """A connection that never breaks by itself."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    def drop(self, why: Exception) -> None:
        if not self.lost.done():
            self.lost.set_result(why)


class Thread(ConnectionThread[Open]):
    async def _connect(self, attempt: int) -> Open:
        return Open()

    async def _look_after(self, connection: Open) -> None: ...

    def _changed(self, connection: Open | None) -> None: ...

    def _how(self) -> Mapping[str, str]:
        return {}

    def _story(self, error: str) -> str:
        return error


async def test_a_thread_that_is_told_to_stop_twice_at_once_ends_in_order() -> None:
    thread = Thread(every=60.0, within=5.0, calls=Calls(apart=0.0, in_vain=0.0))
    assert await thread.is_up()
    loop = thread._loop
    assert loop is not None

    def stop_twice() -> None:
        thread._end()
        loop.call_soon(thread._end)

    loop.call_soon_threadsafe(stop_twice)
    await thread.close()

    assert thread._thread is not None
    assert not thread._thread.is_alive()
    assert loop.is_closed()


async def test_what_begins_while_it_ends_is_ended_too() -> None:
    thread = Thread(every=60.0, within=5.0, calls=Calls(apart=0.0, in_vain=0.0))
    assert await thread.is_up()
    first: list[asyncio.Task[None]] = []
    begun: list[asyncio.Task[bool]] = []

    async def begin_another_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            begun.append(asyncio.create_task(asyncio.Event().wait()))

    async def begin() -> None:
        first.append(asyncio.create_task(begin_another_at_the_end()))
        await asyncio.sleep(0)

    beginning = thread._run(begin())
    assert beginning is not None
    await asyncio.wrap_future(beginning)
    await thread.close()

    assert [one.cancelled() for one in begun] == [True]
