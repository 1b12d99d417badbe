"""Wait for something to become true, with a deadline instead of a guess."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(
    probe: Callable[[], Awaitable[T]], *, within: float = 10.0, every: float = 0.01
) -> T: ...
@overload
async def eventually(probe: Callable[[], T], *, within: float = 10.0, every: float = 0.01) -> T: ...
async def eventually(probe: Callable[[], Any], *, within: float = 10.0, every: float = 0.01) -> Any:
    """Call `probe` until it answers something true, and return that answer.

    A probe that raises `AssertionError` is asked again too, so it may hold several assertions
    (end it with a true value). After `within` seconds the last assertion is raised, or one that
    shows the last answer.
    """
    deadline = time.monotonic() + within
    while True:
        failure: AssertionError | None = None
        answer: Any = None
        try:
            found = probe()
            answer = await found if inspect.isawaitable(found) else found
            if answer:
                return answer
        except AssertionError as error:
            failure = error
        if time.monotonic() >= deadline:
            raise failure or AssertionError(f"not true within {within} s; last answer: {answer!r}")
        await asyncio.sleep(every)
