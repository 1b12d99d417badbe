"""The driver's waits for a server, cut off at the worst moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pymongo.lock import _async_cond_wait, _async_create_condition, _async_create_lock

import holdfast.stores.mongo.connections  # noqa: F401 - it mends the driver


async def test_a_wait_that_is_cut_off_while_it_takes_its_lock_back_leaves_it_to_others() -> None:
    lock = _async_create_lock()
    condition = _async_create_condition(lock)

    async def wait() -> None:
        async with lock:
            await _async_cond_wait(condition, 0.01)

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    async with lock:
        await asyncio.sleep(0.05)  # it has waited long enough, and wants its lock
        waiting.cancel()
        await asyncio.sleep(0.01)
        gone_without_it = waiting.done()  # then it has let go of a lock that is ours
    with suppress(asyncio.CancelledError):
        await waiting

    await asyncio.sleep(0.01)
    assert not gone_without_it
    assert not lock.locked()
