"""One behaviour, many stores: the same random life, lived on two stores, looks the same.

The memory store is the yardstick. Both run under one clock and get the same calls; after every
step everything that can be read is compared.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from holdfast.core.lifecycle import (
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    WorkerLost,
)
from holdfast.core.task import (
    Claim,
    Cost,
    Depth,
    NewTask,
    Priority,
    Progress,
    QueueStats,
    Report,
    State,
    Stats,
    TaskFilter,
    TaskId,
    WorkerId,
    WorkerStatus,
)
from holdfast.errors import HoldfastError, IdempotencyConflict
from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SQLiteStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, new_task, settled, task_error, worker_info

T = TypeVar("T")
WINDOW = 120.0
MANY = 10_000

seconds = st.sampled_from([0.0, 0.5, 1.0, 5.0, 30.0, 700.0])
maybe_seconds = st.none() | seconds
limits = st.integers(0, 4)
queue_names = st.sampled_from(["default", "mail"])
capability_sets = st.sets(st.sampled_from(["gpu", "fast"])).map(frozenset)

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Succeeded(b"1")),
    st.builds(Failed, st.just(task_error()), maybe_seconds),
    st.just(Failed(task_error(type="Bug", retriable=False))),
    st.just(TimedOut(task_error(type="AttemptTimeout"))),
    st.just(WorkerLost(task_error(type="WorkerLost"))),
    st.just(Stopped()),
    st.builds(Released, seconds),
)

filters = st.one_of(
    st.just(TaskFilter()),
    st.builds(
        TaskFilter,
        states=st.none() | st.sets(st.sampled_from(list(State)), max_size=3).map(frozenset),
        name=st.none() | st.sampled_from(["one", "two"]),
        queue=st.none() | queue_names,
        tag=st.none() | st.sampled_from(["a", "b"]),
        lock=st.none() | st.sampled_from(["k", "l"]),
        unique_key=st.none() | st.just("u"),
        error_type=st.none() | st.sampled_from(["ValueError", "Bug"]),
        priority=st.none() | st.sampled_from(list(Priority)),
    ),
)


@st.composite
def submits(draw: st.DrawFn) -> Callable[[FakeClock], NewTask]:
    """A task to submit, its instants relative to the clock at that moment."""
    given = {
        "name": draw(st.sampled_from(["one", "two"])),
        "queue": draw(queue_names),
        "priority": draw(st.sampled_from(list(Priority))),
        "delay": draw(maybe_seconds),
        "expires_in": draw(maybe_seconds),
        "max_retries": draw(st.integers(0, 2)),
        "unique_key": draw(st.none() | st.just("u")),
        "idempotency_key": draw(st.none() | st.none() | st.sampled_from(["i", "j"])),
        "fingerprint": draw(st.sampled_from(["f", "f", "f", "g"])),
        "lock": draw(st.none() | st.sampled_from(["k", "l"])),
        "requires": draw(capability_sets),
        "tags": tuple(draw(st.lists(st.sampled_from(["a", "b"]), max_size=2))),
    }
    offset = draw(st.none() | st.sampled_from([-3600.0, -1.0, 2.0, 60.0]))

    def submit(clock: FakeClock) -> NewTask:
        run_at = None if offset is None else clock.now + timedelta(seconds=offset)
        return new_task(**given, run_at=run_at)

    return submit


@dataclass(frozen=True)
class Refused:
    """A call that both stores answered with the same error."""

    error: str


class TwoStores(RuleBasedStateMachine):
    """Lives one life on both stores."""

    known = Bundle[NewTask]("known")
    workers = Bundle[WorkerId]("workers")
    claims = Bundle[Claim]("claims")

    @initialize(target=workers)
    def open(self) -> WorkerId:
        self.clock = FakeClock()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.memory: Store = MemoryStore(clock=self.clock)
        self.other: Store = SQLiteStore(Path(self.folder.name) / "tasks.db", clock=self.clock)
        self.runner.run(self.other.open())
        info = worker_info()
        self.both(lambda store: store.register(info))
        return info.id

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.compare_histories()
            assert list(self.runner.run(self.other.check())) == []
            self.runner.run(self.other.close())
            self.runner.close()
            self.folder.cleanup()

    def both(self, call: Callable[[Store], Awaitable[T]]) -> T | Refused:
        """Make the call on both stores; their answers must be equal."""
        ours, theirs = self.ask(self.memory, call), self.ask(self.other, call)
        assert theirs == ours
        return ours

    def ask(self, store: Store, call: Callable[[Store], Awaitable[T]]) -> T | Refused:
        async def act() -> T | Refused:
            try:
                answer = await call(store)
            except HoldfastError as error:
                told = error.task_id if isinstance(error, IdempotencyConflict) else ""
                return Refused(f"{type(error).__name__} {told}")
            # Stores may answer with any sequence.
            return list(answer) if isinstance(answer, tuple) else answer  # type: ignore[return-value]

        return self.runner.run(act())

    # What may happen

    @rule(target=known, batch=st.lists(submits(), min_size=1, max_size=4))
    def submit(self, batch: list[Callable[[FakeClock], NewTask]]) -> MultipleResults[NewTask]:
        tasks = [make(self.clock) for make in batch]
        self.both(lambda store: store.add(tasks, idempotency_window=WINDOW))
        return multiple(*tasks)

    @rule(task=known)
    def submit_again(self, task: NewTask) -> None:
        self.both(lambda store: store.add([task], idempotency_window=WINDOW))

    @rule(passed=st.sampled_from([0.000_001, 0.5, 1.0, 10.0, 119.0, 700.0, 4000.0]))
    def let_time_pass(self, passed: float) -> None:
        self.clock.advance(passed)

    @rule(
        target=claims,
        worker=workers,
        queues=st.none() | st.sets(queue_names).map(sorted),
        capabilities=capability_sets,
        limit=limits,
    )
    def claim(
        self,
        worker: WorkerId,
        queues: list[str] | None,
        capabilities: frozenset[str],
        limit: int,
    ) -> MultipleResults[Claim]:
        due: list[float] = []

        async def claim(store: Store) -> list[Claim]:
            claimed = await store.claim(
                worker, queues=queues, capabilities=capabilities, limit=limit
            )
            due.append(float("inf") if claimed.next_due is None else claimed.next_due)
            return list(claimed.claims)

        found = self.both(claim)
        if isinstance(found, Refused):
            return multiple()
        truth, told = due
        assert told <= truth + 1e-6
        return multiple(*found)

    @rule(held=st.lists(st.tuples(claims, outcomes), min_size=1, max_size=3))
    def settle(self, held: list[tuple[Claim, Outcome]]) -> None:
        batch = [settled(found, outcome, crash_limit=2) for found, outcome in held]
        self.both(lambda store: store.save(batch))

    @rule(found=consumes(claims), outcome=outcomes)
    def settle_and_be_done_with_it(self, found: Claim, outcome: Outcome) -> None:
        self.both(lambda store: store.save([settled(found, outcome)]))

    @rule(found=claims, done=st.none() | st.floats(0, 1), units=st.none() | st.integers(0, 9))
    def report(self, found: Claim, done: float | None, units: int | None) -> None:
        report = Report(
            found.task_id,
            found.attempt,
            found.worker_id,
            None if done is None else Progress(done=done),
            None if units is None else Cost(units=units, tokens_in=units),
            ("line",) if units == 1 else (),
        )
        self.both(lambda store: store.report([report]))

    @rule(where=filters, limit=limits)
    def cancel(self, where: TaskFilter, limit: int) -> None:
        self.both(lambda store: store.cancel(where, limit=limit))

    @rule(where=filters, limit=limits, pace=st.none() | st.sampled_from([0.5, 3.0]))
    def requeue(self, where: TaskFilter, limit: int, pace: float | None) -> None:
        self.both(
            lambda store: store.requeue(where, limit=limit, head_starts=HEAD_STARTS, pace=pace)
        )

    @rule(where=filters, limit=limits)
    def discard(self, where: TaskFilter, limit: int) -> None:
        self.both(lambda store: store.discard(where, limit=limit))

    @rule(retention=st.sampled_from([1.0, 600.0, 5000.0]), dead=st.sampled_from([1.0, 6000.0]))
    def prune(self, retention: float, dead: float) -> None:
        self.both(
            lambda store: store.prune(retention=retention, dead_letter_retention=dead, limit=MANY)
        )

    @rule(target=workers)
    def register(self) -> WorkerId:
        self.clock.advance(0.001)
        info = worker_info()
        self.both(lambda store: store.register(info))
        return info.id

    @rule(worker=workers, load=st.none() | st.integers(0, 3))
    def beat(self, worker: WorkerId, load: int | None) -> None:
        status = WorkerStatus.DRAINING if load == 3 else None
        self.both(lambda store: store.beat(worker, load=load, status=status))

    @rule(worker=workers, beats=st.none() | st.integers(0, 2))
    def bury(self, worker: WorkerId, beats: int | None) -> None:
        self.both(lambda store: store.bury(worker, beats=beats))

    @rule(worker=workers)
    def retire(self, worker: WorkerId) -> None:
        self.both(lambda store: store.retire(worker))

    @rule(queue=queue_names, on=st.booleans())
    def pause_or_resume(self, queue: str, on: bool) -> None:
        self.both(lambda store: store.pause(queue) if on else store.resume(queue))

    @rule(task=known)
    def look_at_its_standing(self, task: NewTask) -> None:
        async def standing(store: Store) -> object:
            found = await store.standing(task.id)
            return found and replace(found, ahead_cap=0)

        self.both(standing)

    @rule(where=filters, limit=st.integers(1, 3))
    def turn_the_pages(self, where: TaskFilter, limit: int) -> None:
        async def pages(store: Store) -> list[list[TaskId]]:
            found, cursor = [], None
            while True:
                page = await store.list(where, limit=limit, after=cursor)
                found.append([task.id for task in page.tasks])
                cursor = page.next
                if cursor is None:
                    return found

        self.both(pages)
        self.both(lambda store: store.count(where, limit=limit))

    # What must hold

    @invariant()
    def every_task_looks_the_same(self) -> None:
        if not hasattr(self, "runner"):
            return
        self.both(lambda store: store.list(TaskFilter(), limit=MANY))
        self.both(lambda store: store.workers())
        self.both(_numbers)

        async def orphans(store: Store) -> list[Claim]:
            return sorted(await store.orphans(limit=MANY), key=lambda found: found.task_id)

        self.both(orphans)

        async def requests(store: Store) -> list[list[TaskId]]:
            return [list(await store.cancel_requests(info.id)) for info in await store.workers()]

        self.both(requests)

    def compare_histories(self) -> None:
        listed = self.runner.run(self.memory.list(TaskFilter(), limit=MANY))
        for task in listed.tasks:
            ours = self.runner.run(self.memory.history(task.id))
            theirs = self.runner.run(self.other.history(task.id))
            assert ours is not None
            assert theirs is not None
            assert theirs.attempts == ours.attempts
            # How a store words the detail of a refusal is its own business.
            assert [replace(event, detail=None) for event in theirs.events] == [
                replace(event, detail=None) for event in ours.events
            ]


async def _numbers(store: Store) -> Stats:
    """The stats, without what the port leaves to the store."""
    stats = await store.stats()
    return replace(
        stats,
        states=dict(stats.states),
        last_minute=dict(stats.last_minute),
        queues=tuple(sorted(filter(_is_busy, map(_plain, stats.queues)), key=_by_name)),
    )


def _plain(queue: QueueStats) -> QueueStats:
    depths = sorted((depth for depth in queue.depths if depth.ready), key=_by_priority)
    return replace(queue, depths=tuple(replace(d, oldest_seconds=None) for d in depths))


def _by_name(queue: QueueStats) -> str:
    return queue.queue


def _by_priority(depth: Depth) -> str:
    return depth.priority


def _is_busy(queue: QueueStats) -> bool:
    unfinished = queue.ready + queue.waiting + queue.blocked + queue.running
    return queue.paused or unfinished > 0


TestTwoStores = TwoStores.TestCase
TestTwoStores.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
