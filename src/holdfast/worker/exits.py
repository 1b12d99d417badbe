"""Hear at once when a process of ours ends, without a polling loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress


def when_exited(pid: int, loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    """Call `tell` on the loop once this child process has ended. It is left to be reaped.

    Not reaped yet, so that its number, and that of its group, still belong to it.
    """
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        # Not Linux, or an old one: a thread that waits.
        threading.Thread(target=_wait, args=(pid, loop, tell), daemon=True).start()
        return

    def ended() -> None:
        loop.remove_reader(fd)
        os.close(fd)
        tell()

    loop.add_reader(fd, ended)


def _wait(pid: int, loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with suppress(RuntimeError):  # the loop is closed: nobody wants to know
        loop.call_soon_threadsafe(tell)
