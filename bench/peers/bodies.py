"""The bodies that every peer runs, and the marks they leave. Standard library only.

A mark is one append to a file in a folder the measuring side has chosen (in memory, where there is
such a folder), so the end of a drain is seen without asking the peer's own broker.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

FOLDER = Path(os.environ.get("BENCH_MARKS", "."))
EVERY = int(os.environ.get("BENCH_EVERY", "1"))
"""Each so many tasks leave a tick. Where the peer's store tells how many have finished, ticks are
few: they would cost a quick peer a tenth of its time."""
STEPS = 10
"""In a workflow."""
TICKS, STAMPS = "ticks", "stamps"
TICK, STAMP = struct.Struct("d"), struct.Struct("dd")

_files: dict[str, int] = {}


def noop(number: int) -> int:
    """Do nothing but tell the time."""
    if number % EVERY == 0:
        _append(TICKS, TICK.pack(time.time()))
    return number


async def async_noop(number: int) -> int:
    return noop(number)


def stamp(sent: float) -> None:
    """Record when it was sent and when it was started."""
    _append(STAMPS, STAMP.pack(sent, time.time()))


async def async_stamp(sent: float) -> None:
    stamp(sent)


def _append(name: str, record: bytes) -> None:
    # Opened once a process; a forked child goes on with its parent's, which is as good.
    file = _files.get(name)
    if file is None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = _files[name] = os.open(FOLDER / name, flags, 0o644)
    os.write(file, record)
