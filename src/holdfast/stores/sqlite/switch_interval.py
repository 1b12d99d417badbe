"""Keeps a busy interpreter from starving the database threads.

`sqlite3` lets go of the interpreter's lock (GIL) in every step and takes it back afterwards. While
another thread computes, each taking back waits for a whole switch interval, 5 ms by default, and a
transaction takes it back a dozen times. Measured with a main thread that never rests, claims and
saves in batches of 500: 12 to 17 thousand tasks a second at 5 ms, 28 to 44 thousand at 0.1 ms. In
a drain of no-ops, which has batches of 2,000: 55 thousand at 0.1 ms, 68 at 0.03. The statements are
few and work on whole batches for the same reason.

So the interval is short while somebody waits for the store, and only then.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Final

_SHORT: Final = 0.00003


class _ShortSwitchInterval:
    """A context manager that may be entered by many threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = _SHORT

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(_SHORT, self._usual))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._users -= 1
            # Somebody who chose another interval meanwhile keeps it.
            if self._users == 0 and sys.getswitchinterval() <= _SHORT:
                sys.setswitchinterval(self._usual)


SHORT_SWITCH_INTERVAL: Final = _ShortSwitchInterval()
