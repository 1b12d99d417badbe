"""What the parts of the memory store share: one clock, and one lock around every call."""

from __future__ import annotations

import threading
from datetime import datetime

from holdfast.ports.clock import Clock
from holdfast.stores.clock import SystemClock
from holdfast.stores.values import as_time


class Guarded:
    """Made once for all parts, as the last of their bases."""

    def __init__(self, clock: Clock | None) -> None:
        super().__init__()
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()

    async def now(self) -> datetime:
        return as_time(self._clock.now_us())
