"""Measures a store as `holdfast doctor` does: its clock, its answers, one durable write."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Final, TypeVar

from holdfast.cli.deployed import Measured
from holdfast.core.record import Changes, Delete, Put
from holdfast.errors import StoreError

if TYPE_CHECKING:
    from holdfast.ports.store import Store

TRIPS: Final = 5
WRITES: Final = 3
T = TypeVar("T")
KIND, KEY = "probe", "doctor"
"""One record under one name: what a doctor that was killed left behind, the next one takes away."""


async def measure(store: Store) -> Measured:
    """Ask for the time a few times; write a record and delete it as often."""
    trips = [await _trip(store) for _ in range(TRIPS)]
    took, ahead = min(trips)  # the shortest trip says the most about the clock
    read = median(each for each, _ in trips)
    try:
        write = median([await _write(store) for _ in range(WRITES)])
    except StoreError as error:
        return Measured(ahead, took / 2, read, None, str(error))
    finally:
        with suppress(StoreError):
            await _commit(store, Delete(KIND, KEY))
    return Measured(ahead, took / 2, read, write)


async def _trip(store: Store) -> tuple[float, float]:
    """How long the store took to say its time, and how far ours was ahead of it half-way."""
    before = datetime.now(UTC)
    took, theirs = await _timed(store.now)
    return took, (before - theirs).total_seconds() + took / 2


async def _write(store: Store) -> float:
    took, _ = await _timed(lambda: _commit(store, Put(KIND, KEY, "{}")))
    return took


async def _commit(store: Store, change: Put | Delete) -> None:
    await store.commit(Changes(secrets.token_hex(16), records=(change,)))


async def _timed(ask: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    before = time.perf_counter()
    answer = await ask()
    return time.perf_counter() - before, answer
