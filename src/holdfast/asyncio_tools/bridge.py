"""Lets sync code use the async implementation: one event loop in a daemon thread, started late.

There is one bridge per process, shared by all apps. Sync verbs may be called from any thread, from
inside a running event loop (it is blocked meanwhile, as any sync call would do), and even from
coroutines that run on the bridge itself: those are passed on to a second bridge, because a loop
cannot wait for itself. After a fork the child starts its own; threads do not survive a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdfast.asyncio_tools.cancel import end

T = TypeVar("T")

_here = threading.local()
"""In a bridge's own thread, `_here.bridge` is that bridge: work from there must go deeper."""


class Bridge:
    """Runs coroutines for threads that cannot await."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._nested: Bridge | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine to its end and return what it returns. Ctrl-C cancels it."""
        blocked: Bridge | None = getattr(_here, "bridge", None)
        bridge = self if blocked is None else blocked._deeper()
        future = asyncio.run_coroutine_threadsafe(work, bridge._running_loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the thread. The next `run` starts another."""
        with self._lock:
            loop, thread, deeper = self._loop, self._thread, self._nested
            self._loop = self._thread = self._nested = None
        if deeper is not None:
            deeper.close()
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=5)

    def forget(self) -> None:
        """Begin anew in a forked child, where the thread does not exist."""
        _LEFT_BEHIND.append(self._loop)
        self._lock = threading.Lock()
        self._loop = self._thread = self._nested = None

    def _deeper(self) -> Bridge:
        with self._lock:
            if self._nested is None:
                self._nested = Bridge()
            return self._nested

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self, self._loop), name="holdfast-bridge", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(bridge: Bridge, loop: asyncio.AbstractEventLoop) -> None:
    _here.bridge = bridge
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(end(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


_LEFT_BEHIND: list[asyncio.AbstractEventLoop | None] = []
# A parent's loop, seen from its forked child: not to be closed here, so never collected either.

BRIDGE = Bridge()
"""The bridge of this process."""


def at_exit(action: Callable[[], None]) -> None:
    """Call this when the interpreter ends, while threads and executors still work.

    Plain `atexit` comes too late: by then no executor takes work. The hook that executors use for
    themselves has no public name; the last registered is called first, so theirs must be in place.
    """
    import concurrent.futures.thread  # noqa: F401, PLC0415 - registers its hook when imported

    getattr(threading, "_register_atexit", atexit.register)(action)


os.register_at_fork(after_in_child=BRIDGE.forget)
at_exit(BRIDGE.close)
