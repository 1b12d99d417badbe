"""Wake-ups inside one process: remembered, filtered by queue, from any thread."""

from __future__ import annotations

import asyncio
import threading
import time

from holdfast.dispatch.in_process import InProcessDispatcher


async def test_a_sleeping_listener_is_woken_at_once() -> None:
    dispatcher = InProcessDispatcher()

    async with dispatcher.listen(["mail"]) as listener:
        asyncio.get_running_loop().call_later(0.01, dispatcher.wake, ["mail"])
        woken = await listener.wait(30)

    assert woken


async def test_a_wake_up_between_two_waits_is_remembered_once() -> None:
    dispatcher = InProcessDispatcher()

    async with dispatcher.listen(["mail"]) as listener:
        dispatcher.wake(["mail"])
        dispatcher.wake(["mail"])
        answers = [await listener.wait(0.01), await listener.wait(0.01)]

    assert answers == [True, False]


async def test_only_listeners_of_the_queue_are_woken() -> None:
    dispatcher = InProcessDispatcher()

    async with (
        dispatcher.listen(["mail"]) as mail,
        dispatcher.listen(["films"]) as films,
        dispatcher.listen(None) as everything,
    ):
        dispatcher.wake(["mail", "letters"])
        answers = [await ear.wait(0.01) for ear in (mail, films, everything)]

    assert answers == [True, False, True]


async def test_a_wake_up_comes_through_from_another_thread() -> None:
    dispatcher = InProcessDispatcher()

    async with dispatcher.listen(None) as listener:
        started = time.monotonic()
        thread = threading.Timer(0.02, dispatcher.wake, [["mail"]])
        thread.start()
        woken = await listener.wait(30)
        thread.join()

    assert woken
    assert time.monotonic() - started < 10


async def test_nobody_is_woken_after_the_listener_left() -> None:
    dispatcher = InProcessDispatcher()
    async with dispatcher.listen(None) as listener:
        pass

    dispatcher.wake(["mail"])

    assert not await listener.wait(0.01)


def test_waking_a_listener_whose_loop_is_closed_is_harmless() -> None:
    dispatcher = InProcessDispatcher()

    async def leave_open() -> None:
        await dispatcher.listen(None).__aenter__()

    asyncio.run(leave_open())

    dispatcher.wake(["mail"])


async def test_a_cancelled_wait_leaves_the_listener_usable() -> None:
    dispatcher = InProcessDispatcher()

    async with dispatcher.listen(None) as listener:
        waiting = asyncio.ensure_future(listener.wait(30))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        dispatcher.wake(["mail"])
        woken = await listener.wait(30)

    assert woken
