"""The pytest plugin, found by itself once Holdfast is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.testing.app import InMemory


@pytest.fixture
def holdfast_memory() -> Iterator[Callable[..., InMemory]]:
    """Call it with your app to have it in memory for this test:

    def test_it(holdfast_memory):
        memory = holdfast_memory(app)
        ...
        memory.drain()
    """
    # Imported late: pytest loads plugins for every run, also those that have no tasks to test.
    from holdfast.testing.app import in_memory  # noqa: PLC0415

    with ExitStack() as stack:

        def use(app: Holdfast | None = None) -> InMemory:
            return stack.enter_context(in_memory(app))

        yield use
