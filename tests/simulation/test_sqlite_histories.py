"""The SQLite store lives through the same histories: two stores, one reading of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.kit.simulation import Drive, Setup, run_history

from holdfast.ports.clock import Clock
from holdfast.stores.sqlite import SQLiteStore

T = TypeVar("T")

HISTORIES = 40


class LoopDrive(Drive):
    """Runs each call of a store that really waits, on a loop of its own."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    def __call__(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)


@pytest.fixture
def drive() -> Iterator[LoopDrive]:
    drive = LoopDrive()
    yield drive
    drive.runner.close()


@pytest.mark.parametrize("first", range(0, HISTORIES, 10))
def test_every_promise_holds_on_sqlite(first: int, drive: LoopDrive, tmp_path: Path) -> None:
    paths = (tmp_path / f"{number}.db" for number in range(HISTORIES))

    def fresh(clock: Clock) -> SQLiteStore:
        return SQLiteStore(next(paths), clock=clock)

    for seed in range(first, first + 10):
        verdict = run_history(seed, Setup(store=fresh, drive=drive))
        assert not verdict.broken, str(verdict)
