"""The task of `bench/watching.py`: `python -m bench.watch_tasks N` submits it so often.

With `BENCH_UNCOUNTED` set nothing in this process is counted: what a worker would be without
metrics, to compare with.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast import Holdfast
from holdfast.counting import Tally

AT_A_TIME = 2000


class _Nothing(list[Any]):
    """Keeps nothing."""

    def append(self, thing: Any, /) -> None:
        pass


def count_nothing() -> None:
    """All tallies that are made from now on stay empty."""

    def start(tally: Tally) -> None:
        begin(tally)
        tally.ended = _Nothing()

    def skip(*_: object, **__: object) -> None:
        pass

    @contextmanager
    def untimed(*_: object) -> Iterator[None]:
        yield

    begin = Tally.__init__
    stubs = {"__init__": start, "timed": untimed}
    for name in ("add", "observe", "claimed", "saved", "went_wrong"):
        stubs[name] = skip
    for name, stub in stubs.items():
        setattr(Tally, name, stub)


if "BENCH_UNCOUNTED" in os.environ:
    count_nothing()

app = Holdfast()


@app.task(name="noop")
async def noop(number: int) -> int:
    return number


async def submit(tasks: int) -> None:
    """Store what a worker will run."""
    async with app:
        for start in range(0, tasks, AT_A_TIME):
            calls = [noop.call(n) for n in range(start, min(tasks, start + AT_A_TIME))]
            await app.submit_many_async(calls)


if __name__ == "__main__":
    asyncio.run(submit(int(sys.argv[1])))
