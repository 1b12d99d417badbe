"""The long questions about PostgreSQL: does it grow dearer, does an old snapshot slow it down, does
it bloat? A plain run asks the first two briefly; `--growth`, `--pinned` and `--bloat` at length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench import bloat, growth, pinned
from bench.bloat import Bloat
from bench.filling import fill
from bench.growth import Cost, Size
from bench.pinned import Pinned
from bench.servers import Postgres
from bench.table import table
from bench.target import Target, verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Dose:
    """What is measured and how long; what is empty is not."""

    sizes: tuple[Size, ...] = (Size(1_000, 0), Size(1_000_000, 0))
    pinned_seconds: float = 20.0
    bloat_stops: tuple[int, ...] = ()


BRIEF = Dose(sizes=(Size(1_000, 0), Size(100_000, 0)), pinned_seconds=5.0)
DEEP = (Size(1_000, 0), Size(1_000_000, 0), Size(10_000_000, 10_000_000))
LONG_PINNED = 300.0
BLOAT_STOPS = (500_000, 1_000_000, 2_000_000, 5_000_000)

HEAD = """
## PostgreSQL: growth, an old snapshot, bloat

The first two are asked of the store itself, batch by batch; the last with a worker.

"""
PINNED = """
Claim and settlement in batches of {batch}, microseconds a task, in two databases that take turns; \
a transaction stays open in the second one ({tasks:,} tasks each in {seconds:.0f} s):

"""
BLOAT = """
Size of the tables that tasks pass through, indexes included:

"""


def measure(server: Postgres, dose: Dose) -> str:
    """Ask, and answer as a part of the page."""
    costs = _growth(server, dose.sizes) if dose.sizes else []
    held = _pinned(server, dose.pinned_seconds) if dose.pinned_seconds else None
    sizes = bloat.measure(server, dose.bloat_stops) if dose.bloat_stops else []
    wishes = verdicts([*_growth_targets(costs), *_pinned_targets(held), *_bloat_targets(sizes)])
    parts = [
        growth.text(costs) if costs else "",
        _pinned_text(held) if held else "",
        _bloat_text(sizes) if sizes else "",
    ]
    return "".join([HEAD, wishes, *parts])


def _growth(server: Postgres, sizes: Sequence[Size]) -> list[Cost]:
    names = [f"bench_growth_{number}" for number in range(len(sizes))]
    try:
        return growth.measure([server.fresh(name) for name in names], sizes, build=fill)
    finally:
        for name in names:
            server.drop(name)


def _pinned(server: Postgres, seconds: float) -> Pinned:
    return pinned.measure(server.fresh("bench_free"), server.fresh("bench_pinned"), seconds)


def _growth_targets(costs: Sequence[Cost]) -> Iterator[Target]:
    if not costs:
        return
    first, *others = costs
    for cost in others:
        limit = 1.2 if cost.waiting <= 1_000_000 else 1.5
        value = (cost.claim + cost.settle) / (first.claim + first.settle)
        yield Target(
            what=f"claim and settle, {cost.waiting:,} waiting / {first.waiting:,}",
            wanted=f"<= {limit:g}",
            value=value,
            limit=limit,
            at_most=True,
            form="{:.2f}",
        )


def _pinned_targets(held: Pinned | None) -> Iterator[Target]:
    if held is not None:
        yield Target(
            what=f"speed lost to a snapshot held for {held.seconds:.0f} s",
            wanted="<= 10 %",
            value=held.loss * 100,
            limit=10.0,
            at_most=True,
            form="{:.0f} %",
        )


def _bloat_targets(sizes: Sequence[Bloat]) -> Iterator[Target]:
    if sizes:
        first, last = sizes[0], sizes[-1]
        yield Target(
            what=f"size after {last.tasks:,} tasks / after {first.tasks:,}",
            wanted="<= 1",
            value=last.bytes / first.bytes,
            limit=1.0,
            at_most=True,
            form="{:.2f}",
        )


def _pinned_text(held: Pinned) -> str:
    head = ("", f"first {pinned.SHARE:.0%} of the time", f"last {pinned.SHARE:.0%}")
    rows = [
        ("no transaction", f"{held.free_first:.1f}", f"{held.free_last:.1f}"),
        ("one stays open", f"{held.pinned_first:.1f}", f"{held.pinned_last:.1f}"),
    ]
    return PINNED.format(batch=pinned.BATCH, tasks=held.tasks, seconds=held.seconds) + table(
        head, rows
    )


def _bloat_text(sizes: Sequence[Bloat]) -> str:
    rows = [(f"{size.tasks:,}", f"{size.bytes / 2**20:.1f}") for size in sizes]
    return BLOAT + table(("tasks so far", "MiB"), rows)
