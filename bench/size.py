"""How much is measured: everything for the page, or a little of everything to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """`share` is of each product's own number of tasks."""

    rounds: int
    share: float
    raw_tasks: int
    sqlite_tasks: int
    pick_ups: int
    idle_seconds: float
    deep: int
    requests: int


FULL = Size(
    rounds=3,
    share=1.0,
    raw_tasks=100_000,
    sqlite_tasks=100_000,
    pick_ups=150,
    idle_seconds=6.0,
    deep=1_000_000,
    requests=6_000,
)
QUICK = Size(
    rounds=1,
    share=0.2,
    raw_tasks=20_000,
    sqlite_tasks=10_000,
    pick_ups=40,
    idle_seconds=1.0,
    deep=50_000,
    requests=500,
)
