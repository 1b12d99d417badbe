"""Two stores under one clock that get the same calls and must look the same."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from holdfast.core.attempt import Claim
from holdfast.core.gate import GateKind, GateState
from holdfast.core.query import TaskFilter
from holdfast.core.stats import QueueStats, Stats
from holdfast.core.task import TaskId
from holdfast.errors import HoldfastError, IdempotencyConflict
from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SQLiteStore
from holdfast.testing.clock import FakeClock

T = TypeVar("T")
MANY = 10_000
LATCHES = ("latch:group", "latch:other")
"""Counted up and down at will, and not as often as there are tasks that count them."""


@dataclass(frozen=True)
class Refused:
    """A call that was answered with an error; two are equal if they say the same."""

    error: str


class Pair:
    """The memory store, which is the yardstick, and another: SQLite, unless one is given."""

    def __init__(self, other: Callable[[FakeClock], Store] | None = None) -> None:
        self.clock = FakeClock()
        self._folder = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        self._memory: Store = MemoryStore(clock=self.clock)
        self._other = other(self.clock) if other else self._sqlite()
        self._runner.run(self._other.open())

    def _sqlite(self) -> Store:
        return SQLiteStore(Path(self._folder.name) / "tasks.db", clock=self.clock)

    def close(self) -> None:
        self._runner.run(self._other.close())
        self._runner.close()
        self._folder.cleanup()

    def both(self, call: Callable[[Store], Awaitable[T]]) -> T | Refused:
        """Make the call on both stores; their answers must be equal."""
        ours, theirs = self._ask(self._memory, call), self._ask(self._other, call)
        assert theirs == ours
        return ours

    def compare(self) -> None:
        """Look at everything that can be read at once."""
        self.both(lambda store: store.list(TaskFilter(), limit=MANY))
        self.both(_gates)
        self.both(lambda store: store.workers())
        self.both(_numbers)
        self.both(_orphans)
        self.both(_requests)

    def compare_histories(self) -> None:
        """Look at every attempt and every event of every task, and ask the store for its health."""
        listed = self._runner.run(self._memory.list(TaskFilter(), limit=MANY))
        for task in listed.tasks:
            self.both(lambda store, id_=task.id: _history(store, id_))  # type: ignore[misc]  # bound
        assert list(self._runner.run(self._other.check())) == []

    def _ask(self, store: Store, call: Callable[[Store], Awaitable[T]]) -> T | Refused:
        async def act() -> T | Refused:
            try:
                answer = await call(store)
            except HoldfastError as error:
                about = error.task_id if isinstance(error, IdempotencyConflict) else ""
                return Refused(f"{type(error).__name__} {about}")
            # A store may answer with any kind of sequence.
            return list(answer) if isinstance(answer, tuple) else answer  # type: ignore[return-value]

        return self._runner.run(act())


async def _orphans(store: Store) -> list[Claim]:
    return sorted(await store.orphans(limit=MANY), key=lambda found: found.task_id)


async def _requests(store: Store) -> list[tuple[list[TaskId], bool]]:
    asked = [await store.requests(info.id) for info in await store.workers()]
    return [(list(each.cancel), each.drain) for each in asked]


async def _history(store: Store, task_id: TaskId) -> object:
    found = await store.history(task_id)
    assert found is not None
    # How a store words the detail of a refusal is its own business.
    quiet = [
        replace(event, detail=None) if event.kind == "late_result_refused" else event
        for event in found.events
    ]
    return [found.attempts, quiet]


async def _numbers(store: Store) -> Stats:
    """The stats, without what the port leaves to the store."""
    stats = await store.stats()
    busy = filter(_is_busy, map(_plain, stats.queues))
    return replace(
        stats,
        oldest_transaction=0.0,
        dead_rows=0,
        states=dict(stats.states),
        last_minute=dict(stats.last_minute),
        queues=tuple(sorted(busy, key=lambda queue: queue.queue)),
    )


def _plain(queue: QueueStats) -> QueueStats:
    depths = [replace(depth, oldest_seconds=None) for depth in queue.depths if depth.ready]
    return replace(queue, depths=tuple(sorted(depths, key=lambda depth: depth.priority)))


def _is_busy(queue: QueueStats) -> bool:
    return queue.paused or queue.ready + queue.waiting + queue.blocked + queue.running > 0


async def _gates(store: Store) -> list[GateState]:
    """All but rates that nobody uses: when those are forgotten is the store's choice; and so is
    whether failures count that come in the step that opens a latch, beyond those it waited for. It
    may be closed again with them.
    """
    found = await store.gates(limit=MANY)
    used = [g for g in found if g.kind is not GateKind.RATE or g.held or g.parked or g.pinned]
    return [replace(gate, failed=0) if gate.name in LATCHES else gate for gate in used]
