"""What the measuring side asks of a peer, in the peer's own interpreter. Standard library only.

Each file beside this one holds one peer: its tasks at module level, where its own worker imports
them, and a `Driver` that submits. How its workers are started is in `roster.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

POSTGRES = os.environ.get("BENCH_POSTGRES", "")
REDIS = os.environ.get("BENCH_REDIS", "")
MONGO = os.environ.get("BENCH_MONGO", "")
SQLITE = Path(os.environ.get("BENCH_SQLITE", "."))
WAKES = os.environ.get("BENCH_WAKES", "")
KEEP_RESULTS = os.environ.get("BENCH_RESULTS") == "1"


class Driver:
    """One peer, as a producer sees it. Not every peer has every verb."""

    async def install(self) -> None:
        """Make tables, or whatever an empty server lacks."""

    async def open(self) -> None:
        """Connect; not timed."""

    async def submit(self, count: int) -> None:
        """One call for each task, the next when the last has returned."""
        raise NotImplementedError

    async def bulk(self, numbers: Sequence[int]) -> None:
        """The peer's own call for many; two may be under way at a time."""
        raise NotImplementedError

    async def fill(self, count: int) -> None:
        """Enqueue where the peer has no call for many; not timed."""
        await self.submit(count)

    async def send(self, sent: float) -> None:
        """One task that records how long it was on its way."""
        raise NotImplementedError

    async def compose(self, kind: str, count: int) -> None:
        """Submit `count` tasks as one whole, of which `count + 1` ticks are the mark.

        The last tick is the end: the start of one more task or link, or the call after a group.
        """
        raise NotImplementedError

    async def finished(self) -> int:
        """How many tasks the peer's store shows as finished, or holds a result of."""
        raise NotImplementedError

    async def mode(self) -> str:
        """How wake-ups travel to its workers; only of Holdfast."""
        raise NotImplementedError
