"""The long questions about PostgreSQL: does it grow dearer, does an old snapshot slow it down, does
it bloat? A plain run asks them briefly, `--long` at the length that the page shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench import growth, pinned
from bench.filling import fill
from bench.growth import Cost, Size
from bench.pinned import Pinned
from bench.run import Run
from bench.servers import Postgres
from bench.size import QUICK


@dataclass(frozen=True, slots=True, kw_only=True)
class Dose:
    """How much of each."""

    sizes: tuple[Size, ...]
    pinned_seconds: float
    bloat_stops: tuple[int, ...]


TASTE = Dose(
    sizes=(Size(1_000, 0), Size(100_000, 0)), pinned_seconds=5.0, bloat_stops=(20_000, 60_000)
)
BRIEF = Dose(
    sizes=(Size(1_000, 0), Size(1_000_000, 0)), pinned_seconds=20.0, bloat_stops=(100_000, 300_000)
)
LONG = Dose(
    sizes=(Size(1_000, 0), Size(1_000_000, 0), Size(10_000_000, 10_000_000)),
    pinned_seconds=300.0,
    bloat_stops=(500_000, 1_000_000, 2_000_000, 5_000_000),
)


def dose(run: Run) -> Dose:
    """What this run wants."""
    if run.size is QUICK:
        return TASTE
    return LONG if run.long else BRIEF


def grow(server: Postgres, sizes: Sequence[Size]) -> list[Cost]:
    """What claims and settlements cost at each size."""
    names = [f"bench_growth_{number}" for number in range(len(sizes))]
    try:
        return growth.measure([server.fresh(name) for name in names], sizes, build=fill)
    finally:
        for name in names:
            server.drop(name)


def hold(server: Postgres, seconds: float) -> Pinned:
    """What they cost while a transaction stays open."""
    return pinned.measure(server.fresh("bench_free"), server.fresh("bench_pinned"), seconds)
