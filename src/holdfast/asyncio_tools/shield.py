"""Work that must not be left half done because somebody no longer waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await this; whoever is cancelled meanwhile learns of it when the work is done.

    A second cancellation is obeyed at once: the work then goes on in the background.
    """
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        if not doing.done():
            doing.add_done_callback(_swallow)
            await asyncio.wait({doing})
        raise


def _swallow(done: asyncio.Future[Any]) -> None:
    """Nobody will ask for its exception."""
    if not done.cancelled():
        done.exception()
