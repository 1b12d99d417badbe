"""A process whose wall clock is wrong, by libfaketime.

    environment = os.environ | clock_off_by("+1h")      # "-1h", "+30m", "@2031-01-01 00:00:00"

Only the wall clock lies; the monotonic one goes on as it does on a machine whose date is wrong.

libfaketime gets sleeps until an instant of the monotonic clock wrong (0.9.10: EINVAL, or hours of
sleep), and `time.sleep` is one. So a copy of it is used in which its `clock_nanosleep` has another
name, and everyone finds the C library's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.kit.servers.account import ServerError
from tests.kit.servers.debian import package

LIBRARY = "libfaketimeMT.so.1"  # the one for programs with threads
SYSTEM = Path("/usr/lib")
HIDDEN = (b"clock_nanosleep\0", b"clock_nanosleep"[:-1] + b"_\0")  # of the same length


def clock_off_by(offset: str) -> dict[str, str]:
    """The variables that make a new process see its wall clock off by so much."""
    mended = str(_without_sleeps(library()))
    return {"LD_PRELOAD": mended, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1"}


def library() -> Path:
    """`HOLDFAST_TEST_LIBFAKETIME`, the system's own, or Debian's package."""
    if given := os.environ.get("HOLDFAST_TEST_LIBFAKETIME"):
        return Path(given)
    if installed := sorted(SYSTEM.glob(f"**/faketime/{LIBRARY}")):
        return installed[0]
    try:
        (found,) = package("libfaketime").rglob(LIBRARY)
    except ServerError as problem:
        raise ServerError(
            f"{problem} Install libfaketime, or name its library in HOLDFAST_TEST_LIBFAKETIME."
        ) from None
    return found


def _without_sleeps(original: Path) -> Path:
    mended = Path(sys.prefix, "debian", f"no-sleeps-{LIBRARY}")
    if not mended.exists():
        mended.parent.mkdir(exist_ok=True)
        half = mended.with_suffix(f".{os.getpid()}")
        half.write_bytes(original.read_bytes().replace(*HIDDEN))
        half.rename(mended)
    return mended
