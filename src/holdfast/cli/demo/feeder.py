"""`python -m holdfast.cli.demo.feeder`: a mix of demo tasks, a few each second, until stopped."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from contextlib import suppress

from holdfast.cli.demo.mix import KINDS, Planned, plan
from holdfast.core.task import State
from holdfast.errors import StoreUnavailable
from holdfast.worker.supervisor_channel import stop_signals

PER_SECOND = 4.0
SAY_EVERY = 5.0


async def main() -> None:
    """Submit until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    # Imported late, as `mix` does: it reads its store's address when it is made.
    from holdfast.cli.demo_tasks import app  # noqa: PLC0415

    async with app, asyncio.TaskGroup() as group:
        telling = group.create_task(_tell())
        for planned in _endless():
            with suppress(StoreUnavailable):
                await planned.submit()
            with suppress(TimeoutError):
                rest = random.expovariate(PER_SECOND)
                await asyncio.wait_for(stopping.wait(), rest)
            if stopping.is_set():
                telling.cancel()
                return


def _endless() -> Iterator[Planned]:
    while True:
        seed = random.randrange(1_000_000)  # noqa: S311 - no secret
        yield from plan(10 * len(KINDS), seed).all


async def _tell() -> None:
    """Say how it goes, for those who watch."""
    from holdfast.cli.demo_tasks import app  # noqa: PLC0415

    while True:
        await asyncio.sleep(SAY_EVERY)
        with suppress(StoreUnavailable):
            states = (await app.stats_async()).states
            seen = ", ".join(f"{states[state]} {state}" for state in State if states[state])
            sys.stdout.write(f"tasks: {seen}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
