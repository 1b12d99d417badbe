"""An app in memory, for tests of your own tasks: nothing on disk, time under your control.

from holdfast.testing import in_memory
from shop import app, send_mail

def test_the_mail_goes_out() -> None:
    with in_memory(app) as memory:
        handle = send_mail.submit("ann@example.org")
        memory.drain()

        assert handle.status() == "completed"
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Unpack

from holdfast.app import Holdfast
from holdfast.app_connection import AppConnection
from holdfast.dispatch.in_process import InProcessDispatcher
from holdfast.functional import HOME
from holdfast.settings import SettingsKeywords
from holdfast.stores.memory.store import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.drain import Drain, Drains


class MemoryApp(Drains, Holdfast):
    """A `Holdfast` whose store is in memory and whose clock stands still until you move it."""

    def __init__(
        self, *, clock: FakeClock | None = None, **settings: Unpack[SettingsKeywords]
    ) -> None:
        settings["url"] = "memory://"
        super().__init__(**settings)
        self.clock = clock or _clock()
        self.swap_connection(_connection_of(self, self.clock))
        self._drain = Drain(self, self.clock)


class InMemory(Drains):
    """An app of yours while its store is in memory."""

    def __init__(self, app: Holdfast, clock: FakeClock) -> None:
        self.app = app
        self.clock = clock
        self._drain = Drain(app, clock)


@contextmanager
def in_memory(app: Holdfast | None = None, *, clock: FakeClock | None = None) -> Iterator[InMemory]:
    """Give an app an empty store in memory, and its own one back at the end.

    Without `app` it is the default app of `holdfast.task`, initialised or not.
    """
    if app is None:
        before = HOME.swap_app(Holdfast(url="memory://"))
        HOME.app.registry = HOME.registry
        try:
            with in_memory(HOME.app, clock=clock) as memory:
                yield memory
        finally:
            HOME.swap_app(before)
        return
    chosen = clock or _clock()
    own = app.swap_connection(_connection_of(app, chosen))
    try:
        yield InMemory(app, chosen)
    finally:
        app.swap_connection(own)


def _clock() -> FakeClock:
    """A clock that begins at the real time, because tests and tasks ask for that too."""
    return FakeClock(datetime.now(UTC))


def _connection_of(app: Holdfast, clock: FakeClock) -> AppConnection:
    return AppConnection(
        MemoryStore(clock=clock), InProcessDispatcher(), app.registry, app.settings
    )
