"""The memory store keeps every promise of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.suites import StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    async def store(self, clock: FakeClock) -> AsyncIterator[Store]:
        async with MemoryStore(clock=clock) as store:
            yield store
