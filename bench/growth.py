"""Do claims and settlements grow dearer with the backlog, or with history? Asked of the store.

One store is built for each size. Then they take turns: a round times a claim of `BATCH` tasks, its
settlement and a claim of one task in every store, so that a slow moment of the machine meets all of
them alike. What a round took is filled up again, untimed: sizes stay as they are.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.place import FILL, Place
from bench.table import table
from bench.target import Target
from holdfast.wiring import open_store

BATCH = 100
ROUNDS = 60


class Size(NamedTuple):
    """How many tasks wait, and how many have finished."""

    waiting: int
    finished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Microseconds at one size, medians of all rounds; the first two are per task of a batch."""

    waiting: int
    finished: int
    claim: float
    settle: float
    single_claim: float


Build = Callable[[Place, str, Size], Awaitable[None]]


async def build(place: Place, _url: str, size: Size) -> None:
    """Bring a store to that size by the product's own verbs."""
    for start in range(0, size.finished, FILL):
        await place.add(min(FILL, size.finished - start))
        await place.settle(await place.claim(FILL))
    await place.add(size.waiting)


@dataclass(slots=True)
class _Measured:
    """A store of one size, and what was measured there."""

    place: Place
    size: Size
    claims: list[float] = field(default_factory=list)
    settles: list[float] = field(default_factory=list)
    singles: list[float] = field(default_factory=list)

    async def round(self) -> None:
        began = time.perf_counter()
        claims = await self.place.claim(BATCH)
        claimed = time.perf_counter()
        await self.place.settle(claims)
        settled = time.perf_counter()
        single = await self.place.claim(1)
        ended = time.perf_counter()
        assert (len(claims), len(single)) == (BATCH, 1)
        self.claims.append((claimed - began) / BATCH)
        self.settles.append((settled - claimed) / BATCH)
        self.singles.append(ended - settled)
        await self.place.settle(single)
        await self.place.add(BATCH + 1)

    def cost(self) -> Cost:
        return Cost(
            waiting=self.size.waiting,
            finished=self.size.finished,
            claim=statistics.median(self.claims) * 1e6,
            settle=statistics.median(self.settles) * 1e6,
            single_claim=statistics.median(self.singles) * 1e6,
        )


async def _measure(
    urls: Sequence[str], sizes: Sequence[Size], rounds: int, build: Build
) -> list[Cost]:
    async with AsyncExitStack() as stack:
        measured = []
        for url, size in zip(urls, sizes, strict=True):
            place = Place(await stack.enter_async_context(open_store(url)))
            await place.enter()
            await build(place, url, size)
            measured.append(_Measured(place, size))
        for _ in range(rounds):
            for each in measured:
                await each.round()
        return [each.cost() for each in measured]


def measure(
    urls: Sequence[str], sizes: Sequence[Size], rounds: int = ROUNDS, *, build: Build = build
) -> list[Cost]:
    """The cost at each size, each in the empty store at the URL beside it."""
    return asyncio.run(_measure(urls, sizes, rounds, build))


def targets(costs: Sequence[Cost]) -> Iterator[Target]:
    """How much dearer a deep store may be than the shallowest one."""
    first, *others = costs
    for cost in others:
        limit = 1.2 if cost.waiting <= 1_000_000 else 1.5
        yield Target(
            what=f"claim and settle, {cost.waiting:,} waiting / {first.waiting:,}",
            wanted=f"<= {limit:g}",
            value=(cost.claim + cost.settle) / (first.claim + first.settle),
            limit=limit,
            at_most=True,
            form="{:.2f}",
        )


def text(costs: Sequence[Cost]) -> str:
    """The costs as a part of the page."""
    first = costs[0]
    rows = [
        (
            f"{c.waiting:,}",
            f"{c.finished:,}",
            f"{c.claim:.1f} ({c.claim / first.claim:.2f})",
            f"{c.settle:.1f} ({c.settle / first.settle:.2f})",
            f"{c.single_claim:.0f} ({c.single_claim / first.single_claim:.2f})",
        )
        for c in costs
    ]
    head = (
        "waiting",
        "finished",
        f"a task in a claim of {BATCH}",
        "in its settlement",
        "a claim of one",
    )
    return (
        "\nMicroseconds, each in a commit of its own, sizes taking turns (against the first row):"
        "\n\n" + table(head, rows)
    )
