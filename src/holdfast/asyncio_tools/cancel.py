"""Ends what runs in the background, also if it does not hear that the first time.

A cancellation can get lost. `asyncio.wait_for` of Python 3.11 forgets one that comes at the moment
at which what it waits for is done; drivers wait like that, and some catch more than they should.
Whoever cancels once and then waits would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

AGAIN: Final = 2.0
"""Seconds until it is said again. Whoever ends in good order is done by then."""


async def end(tasks: Iterable[asyncio.Future[Any]], *, again: float = AGAIN) -> None:
    """Cancel these until all of them have ended. What they raise is theirs."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again)
