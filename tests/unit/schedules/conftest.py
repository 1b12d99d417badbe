"""An app in memory at a fixed time, with a task to schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.definitions.definition import Definition
from holdfast.schedules.book import Book
from holdfast.schedules.firing import Firer
from holdfast.testing import FakeClock, MemoryApp

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""A Monday. The clock stands a second later."""


@dataclass(frozen=True)
class Place:
    """An app, its schedules, and whoever fires them."""

    app: MemoryApp
    book: Book
    report: Definition[..., str, Any]

    @property
    def clock(self) -> FakeClock:
        return self.app.clock

    async def fire(self) -> None:
        """Fire what is due."""
        client = self.app.client
        await Firer(client.store, client.dispatcher, self.app.settings).round()

    async def tasks(self) -> int:
        return await self.app.client.count()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    app = MemoryApp(clock=FakeClock(NOON + timedelta(seconds=1)), callback_secret="s" * 32)

    @app.task(name="report", lock="{user}")
    def report(user: int = 7) -> str:
        return f"for {user}"

    async with app:
        yield Place(app, app.client.schedules, report)
