"""What a forgotten transaction costs: an old snapshot keeps dead row versions from being removed.

Two databases of one server take turns, so that both meet the same moments of the machine. In one of
them a transaction stays open, as a backup or a forgotten session would; a snapshot holds back only
its own database. Each turn adds, claims and settles a batch as a busy worker does.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import asyncpg

from bench.place import Place
from bench.table import table
from bench.target import Target
from holdfast.wiring import open_store

BATCH = 500
WAITING = 20_000
SHARE = 0.2
"""The share of the time at the beginning and at the end that is compared."""
HEAD = """
Asked of the store itself: claim and settlement in batches of {batch}, microseconds a task, in two \
databases that take turns; a transaction stays open in the second one ({tasks:,} tasks each in \
{seconds:.0f} s):

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """Microseconds to claim and settle one task, with and without the open transaction."""

    seconds: float
    tasks: int
    free_first: float
    free_last: float
    pinned_first: float
    pinned_last: float

    @property
    def loss(self) -> float:
        """The share of speed that is lost at the end."""
        return 1 - self.free_last / self.pinned_last


@dataclass(slots=True)
class _Turns:
    """One database and its turns: when each began, and what a task cost."""

    place: Place
    began: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    async def turn(self) -> None:
        self.began.append(time.monotonic())
        self.costs.append(await self.place.work(BATCH) / BATCH * 1e6)
        await self.place.add(BATCH)

    def first_and_last(self, seconds: float) -> tuple[float, float]:
        start = self.began[0]
        early = [c for b, c in zip(self.began, self.costs, strict=True) if b < start + seconds]
        late = [
            c for b, c in zip(self.began, self.costs, strict=True) if b > self.began[-1] - seconds
        ]
        return statistics.median(early), statistics.median(late)


async def _measure(free_url: str, pinned_url: str, seconds: float) -> Pinned:
    async with AsyncExitStack() as stack:
        free, pinned = [
            _Turns(Place(await stack.enter_async_context(open_store(url))))
            for url in (free_url, pinned_url)
        ]
        for turns in (free, pinned):
            await turns.place.enter()
            await turns.place.add(WAITING)
        connection = await asyncpg.connect(pinned_url)
        stack.push_async_callback(connection.close)
        await stack.enter_async_context(connection.transaction(isolation="repeatable_read"))
        await connection.execute("SELECT count(*) FROM pg_class")  # the snapshot is taken here
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            await free.turn()
            await pinned.turn()
    free_first, free_last = free.first_and_last(seconds * SHARE)
    pinned_first, pinned_last = pinned.first_and_last(seconds * SHARE)
    return Pinned(
        seconds=seconds,
        tasks=len(pinned.costs) * BATCH,
        free_first=free_first,
        free_last=free_last,
        pinned_first=pinned_first,
        pinned_last=pinned_last,
    )


def measure(free_url: str, pinned_url: str, seconds: float) -> Pinned:
    """Load on two empty databases for so long, a transaction open in the second."""
    return asyncio.run(_measure(free_url, pinned_url, seconds))


def targets(held: Pinned) -> list[Target]:
    return [
        Target(
            what=f"speed lost to a snapshot held for {held.seconds:.0f} s",
            wanted="<= 10 %",
            value=held.loss * 100,
            limit=10.0,
            at_most=True,
            form="{:.0f} %",
        )
    ]


def text(held: Pinned) -> str:
    """The table of the page."""
    head = ("", f"first {SHARE:.0%} of the time", f"last {SHARE:.0%}")
    rows = [
        ("no transaction", f"{held.free_first:.1f}", f"{held.free_last:.1f}"),
        ("one stays open", f"{held.pinned_first:.1f}", f"{held.pinned_last:.1f}"),
    ]
    return HEAD.format(batch=BATCH, tasks=held.tasks, seconds=held.seconds) + table(head, rows)
