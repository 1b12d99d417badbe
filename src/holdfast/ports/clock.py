"""The one clock of a store that has no server to ask: the host's, or a test's."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells the wall time of a store. Only stores ask it; workers think in durations."""

    def now_us(self) -> int:
        """Microseconds since 1970 UTC."""
        ...
