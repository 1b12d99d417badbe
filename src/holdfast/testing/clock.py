"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FakeClock:
    """The wall time of a store under test. Safe from any thread."""

    def __init__(self, start: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self._us = (start - _EPOCH) // timedelta(microseconds=1)
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Microseconds since 1970 UTC."""
        return self._us

    @property
    def now(self) -> datetime:
        """The same instant as an aware datetime, for comparing with a task's times."""
        return _EPOCH + timedelta(microseconds=self._us)

    def advance(self, seconds: float | timedelta) -> None:
        """Let time pass. Never backwards: a store may rely on that."""
        span = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        if span < timedelta(0):
            raise ValueError(f"expected a time >= 0 to advance by, got {span}")
        with self._lock:
            self._us += span // timedelta(microseconds=1)
