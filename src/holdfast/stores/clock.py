"""The clock of stores that have no server to ask."""

from __future__ import annotations

import time


class SystemClock:
    """The host's wall clock. All processes on one host read the same one."""

    def now_us(self) -> int:
        """Microseconds since 1970 UTC."""
        return time.time_ns() // 1000
