"""Keeps a busy interpreter from starving the database thread.

`sqlite3` lets go of the interpreter's lock (GIL) in every step and takes it back afterwards. While
another thread computes, each taking back waits for a whole switch interval, 5 ms by default; a
transaction of six statements then lasts 80 ms. Measured with a main thread that never rests: 6,900
tasks a second claimed and saved at 5 ms, 56,000 at 0.1 ms, for a main thread slowed down by a
quarter (it shares its core's time with the work done).

So the interval is short while a transaction is under way, and only then.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Final

_SHORT: Final = 0.0001


class _Haste:
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


HASTE: Final = _Haste()
