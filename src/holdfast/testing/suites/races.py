"""Real races: many tasks of one event loop, and many threads with a loop each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

T = TypeVar("T")

Hold = tuple[str, float, float]
"""A lock key, when a claim brought it, and when its holder was about to give it back.

By the monotonic clock, which on one host is the same for every process.
"""


async def at_once(number: int, act: Callable[[int], Awaitable[T]]) -> list[T]:
    """Run `act(0) … act(number - 1)` as concurrent tasks of this event loop."""
    return list(await asyncio.gather(*(act(index) for index in range(number))))


async def in_threads(number: int, act: Callable[[int], Coroutine[Any, Any, T]]) -> list[T]:
    """Run `act(0) … act(number - 1)`, each in a thread with its own event loop.

    A barrier lets them start together.
    """
    barrier = threading.Barrier(number)

    def run(index: int) -> T:
        barrier.wait(timeout=30)
        return asyncio.run(act(index))

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(number) as pool:
        return list(
            await asyncio.gather(*(loop.run_in_executor(pool, run, i) for i in range(number)))
        )


def overlaps(holds: Iterable[Hold]) -> list[tuple[Hold, Hold]]:
    """The pairs that held one key at the same time. Empty is well."""
    pairs = pairwise(sorted(holds))
    return [(one, two) for one, two in pairs if one[0] == two[0] and two[1] < one[2]]
