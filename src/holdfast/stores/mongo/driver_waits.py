"""Lets the driver's waits be cancelled on Python 3.11.

`asyncio.wait_for` of Python 3.11 waits in a task of its own. A cancellation that comes while that
task is about to take its lock back leaves it behind: it takes the lock when nobody is there to let
go of it, and whoever looks for a server after that waits for ever, though all of them be back.
From Python 3.12 on `wait_for` waits in the caller's task, as what stands here does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

import pymongo.lock

T = TypeVar("T")


def mend() -> None:
    """Make the conditions of the driver wait in the caller's task."""
    if sys.version_info < (3, 12):
        pymongo.lock.wait_for = _wait_for  # type: ignore[attr-defined,assignment] # it imports it


async def _wait_for(waiting: Awaitable[T], timeout: float | None) -> T:
    async with asyncio.timeout(timeout):
        return await waiting
