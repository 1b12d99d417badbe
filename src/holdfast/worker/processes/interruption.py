"""How a child is told to stop its handler: by signals, in the main thread.

SIGURG asks: `ctx.stop_requested` becomes true, nothing else happens. It is sent only to a handler
that looks, since it may cut short a system call of native code.
SIGUSR1 says the time is up, SIGUSR2 that the attempt is cancelled or handed back. A sync handler
gets `AttemptTimeout` or `CancelledError` raised wherever it is, an async one is cancelled. If that
does not end it within the worker's patience, SIGKILL does.

SIGTERM and SIGINT are not for children: a service manager sends them to every process it finds, at
the beginning of a drain in which running attempts are meant to end by themselves.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from holdfast.definitions.stopping import Stopping
from holdfast.errors import AttemptTimeout

OUT_OF_TIME = signal.SIGUSR1
STOP = signal.SIGUSR2
ASK = signal.SIGURG
_OURS = (OUT_OF_TIME, STOP, ASK, signal.SIGTERM, signal.SIGINT)


class Interruption:
    """Turns the worker's signals into exceptions, but only inside a handler."""

    def __init__(self) -> None:
        self.came = False
        self.stopping = Stopping()
        self._inside = False
        self._shielded = False
        self._held_back: BaseException | None = None
        self._coroutine: tuple[asyncio.AbstractEventLoop, asyncio.Task[object]] | None = None

    def install(self) -> None:
        """Listen to the signals. Main thread only."""
        for number in (OUT_OF_TIME, STOP):
            signal.signal(number, self._on_signal)
        signal.signal(ASK, self._on_ask)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _ignore)
        forks = _Forks()
        os.register_at_fork(
            before=forks.before,
            after_in_parent=forks.in_parent,
            after_in_child=forks.in_child,
        )

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The handler runs: from here on it may be interrupted."""
        self.came = False
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    @contextmanager
    def cancelling(self, task: asyncio.Task[object]) -> Iterator[None]:
        """The handler is this task: cancel it instead of raising somewhere in its event loop."""
        self._coroutine = (task.get_loop(), task)
        try:
            yield
        finally:
            self._coroutine = None

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Hold an interruption back until the end of this block."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Signals are handled in the main thread; others are never interrupted.
            return
        self._shielded = True
        try:
            yield
        finally:
            self._shielded = False
            error, self._held_back = self._held_back, None
        if error is not None and self._inside:
            raise error

    def _on_ask(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping.ask()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._inside:
            return
        self.came = True
        self.stopping.ask()
        if self._coroutine is not None:
            loop, task = self._coroutine
            loop.call_soon_threadsafe(task.cancel)
            return
        error: BaseException = asyncio.CancelledError()
        if number == OUT_OF_TIME:
            error = AttemptTimeout("the attempt ran out of time")
        if self._shielded:
            self._held_back = error
        else:
            raise error


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN, which programs started by the handler would inherit, to end at no SIGTERM."""


class _Forks:
    """Gives the forks of a handler their default signals back: `multiprocessing` ends its
    processes by SIGTERM.

    The signals are held up meanwhile. Python forgets those that arrive while a fork is being born.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def before(self) -> None:
        self._local.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)

    def in_parent(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._local.mask)

    def in_child(self) -> None:
        for number in _OURS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._local.mask)
