"""How a task's memory limit is kept.

The limit is on what the attempt *adds* to its process, resident memory, so that it does not depend
on how much the app's own imports take. The worker looks every few hundredths of a second and kills
the process that went over: exact for what grows, and independent of what the handler does.

Something that grows by gigabytes between two looks is stopped by the kernel: RLIMIT_DATA refuses
memory far above the limit, which Python code sees as `MemoryError`. Only far above: RLIMIT_DATA (as
RLIMIT_AS even more) counts memory that is reserved but never used, such as the stacks of threads,
and a tight one would fail honest handlers.

Programs that the handler starts are not counted.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.core.task import TaskError

LOOK_EVERY = 0.03
"""Seconds between two looks at a process with a limit."""

ROOM = 64 * 1024 * 1024


@contextmanager
def capped(limit: int | None) -> Iterator[None]:
    """In the child: let the kernel refuse what is far above the limit."""
    if limit is None or (used := _data_size()) is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    cap = used + 2 * limit + ROOM
    if soft != resource.RLIM_INFINITY:
        cap = min(cap, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def over_limit(limit: int, used: int | None, traceback: str | None = None) -> TaskError:
    """The error of an attempt that wanted more. `used` is None if the kernel refused it first."""
    took = "asked for far more memory than" if used is None else f"took {mib(used)} of memory, over"
    return TaskError(
        type=MemoryError.__name__,
        message=f"the attempt {took} its memory_limit of {mib(limit)}, and was stopped. "
        "Raise the task's memory_limit, or let it work in smaller parts.",
        traceback=traceback,
    )


def mib(size: int) -> str:
    """Bytes, for people."""
    return f"{size / 1024 / 1024:.4g} MiB"


def _data_size() -> int | None:
    try:
        pages = Path("/proc/self/statm").read_text().split()[5]
    except OSError:
        return None
    return int(pages) * resource.getpagesize()
