"""Groups of any size are made in bounded memory, and end once."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast, State, chain
from holdfast.definitions.definition import Definition

FEW, MANY = 3_000, 12_000
Inc = Definition[[int], int, int]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Holdfast]:
    with Holdfast(url=f"sqlite:///{tmp_path / 'tasks.db'}") as app:
        yield app


@pytest.fixture
def inc(app: Holdfast) -> Inc:
    @app.task
    async def inc(x: int) -> int:
        return x + 1

    return inc  # type: ignore[return-value] # async or not makes no difference here


def peak(inc: Inc, members: int) -> int:
    """The bytes that a group of so many needed at a time."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    inc.map(range(members)).submit()
    return tracemalloc.get_traced_memory()[1] - before


def test_a_group_is_made_in_memory_that_does_not_grow_with_it(inc: Inc) -> None:
    inc.map(range(FEW)).submit()  # what is made once is made
    tracemalloc.start()
    try:
        few, many = peak(inc, FEW), peak(inc, MANY)
    finally:
        tracemalloc.stop()

    assert many < 1.5 * few


def test_a_group_in_slices_and_a_chain_end_on_sqlite(app: Holdfast, inc: Inc) -> None:
    group = inc.map(range(FEW)).submit()
    links = chain(inc.s(0), *(inc.s() for _ in range(199))).submit()

    asyncio.run(app.run_worker(burst=True))

    assert group.result(timeout=5) == list(range(1, FEW + 1))
    assert links.result(timeout=5) == 200
    assert app.count(state=[s.value for s in State if s is not State.COMPLETED]) == 0
    assert list(app.doctor()) == []
