"""What can happen to a store, drawn at random, on both stores of a pair."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from tests.conformance.pair import LATCHES, MANY, Pair, Refused

from holdfast import pauses
from holdfast.core.attempt import Claim, Report, Settlement
from holdfast.core.fleet import WorkerStatus
from holdfast.core.gate import Capacity, Count, Gate, GateKind, latch_of
from holdfast.core.lifecycle import (
    Deferred,
    Failed,
    Outcome,
    Released,
    Stopped,
    Succeeded,
    TimedOut,
    WorkerLost,
)
from holdfast.core.query import Order, TaskFilter
from holdfast.core.record import Changes, Put
from holdfast.core.task import Cost, NewTask, Priority, Progress, State, TaskId, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.factories import HEAD_STARTS, new_task, settled, task_error, worker_info

T = TypeVar("T")
WINDOW = 120.0
SECONDS = (0.0, 0.000_001, 0.5, 1.0, 5.0, 30.0)
QUEUES = ("default", "mail")
CAPABILITIES = ("gpu", "fast")
LOCKS = ("k", "l", "m")
GATES = (
    Gate(GateKind.LIMIT, "a", 2),
    Gate(GateKind.LIMIT, "b", 1),
    Gate(GateKind.SHARE, "a", 3),
    Gate(GateKind.BREAKER, "c", 4),
    Gate(GateKind.RATE, "d", 2, 30.0),
    Gate(GateKind.LATCH, "group"),
)


class Life:
    """Acts on both stores. `draw` decides; the same seed lives the same life."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.known: list[NewTask] = []
        self.held: list[Claim] = []
        self.workers: list[WorkerId] = []
        self.commits = 0
        self.steady = self._enlist()
        self.workers.append(self._enlist())

    def submit(self, draw: random.Random) -> None:
        batch = [self._task(draw) for _ in range(draw.choice((1, 2, 4, 6, 20)))]
        if self.known and draw.random() < 0.2:
            batch.append(draw.choice(self.known))
        self.pair.both(lambda store: store.add(batch, idempotency_window=WINDOW))
        self.known += batch

    def run_some(self, draw: random.Random) -> None:
        """Claim and settle at once, as most of life is."""
        found = self._claim(self.steady, None, frozenset(CAPABILITIES), draw.randint(1, 5))
        self._save([settled(each, self._outcome(draw), crash_limit=2) for each in found])

    def hold_some(self, draw: random.Random) -> None:
        """Claim as a worker of few queues and capabilities, and keep what comes."""
        queues = draw.choice((None, None, [], ["mail"], ["mail", "default"]))
        worker = draw.choice([self.steady, *self.workers])
        capabilities = frozenset(draw.sample(CAPABILITIES, draw.randint(0, 2)))
        self.held += self._claim(worker, queues, capabilities, draw.randint(0, 4))

    def settle_held(self, draw: random.Random) -> None:
        """Settle what was claimed at some time: also what was settled or rescued since."""
        chosen = draw.sample(self.held, min(len(self.held), draw.randint(1, 4)))
        batch = [settled(each, self._outcome(draw), crash_limit=2) for each in chosen]
        again = batch[:1] if draw.random() < 0.3 else []
        self._save(batch + again)
        self.held = self.held[-12:]

    def report(self, draw: random.Random) -> None:
        for each in self.held[-3:]:
            report = Report(
                each.task_id,
                each.attempt,
                each.worker_id,
                draw.choice((None, Progress(done=draw.random(), total=1.0))),
                draw.choice((None, Cost(units=0.5, tokens_in=draw.randint(0, 9)))),
                draw.choice(((), ("one", "two"))),
            )
            self.pair.both(lambda store, report=report: store.report([report]))  # type: ignore[misc]

    def let_time_pass(self, draw: random.Random) -> None:
        self.pair.clock.advance(draw.choice((0.000_001, 0.5, 1.0, 10.0, 119.0, 700.0)))

    def operate(self, draw: random.Random) -> None:
        """What a person does: cancel, requeue, discard, pause, resume, prune."""
        where, limit = self._filter(draw), draw.choice((0, 1, 2, 5))
        pace = draw.choice((0.5, 3.0))
        queue = draw.choice(QUEUES)
        worker = draw.choice(self.workers)
        calls: list[Callable[[Store], Awaitable[object]]] = [
            lambda store: store.cancel(where, limit=limit),
            lambda store: store.cancel(TaskFilter(states=frozenset({State.RUNNING})), limit=1),
            lambda store: store.requeue(where, limit=limit, head_starts=HEAD_STARTS, pace=pace),
            lambda store: store.requeue(where, limit=limit, head_starts=HEAD_STARTS),
            lambda store: store.discard(where, limit=limit),
            lambda store: pauses.pause(store, queue),
            lambda store: pauses.resume(store, queue),
            lambda store: pauses.resume(store, queue),
            lambda store: store.ask_to_drain(worker),
            lambda store: store.prune(retention=500, dead_letter_retention=900, limit=MANY),
        ]
        self.pair.both(draw.choice(calls))

    def change_workers(self, draw: random.Random) -> None:
        worker = draw.choice(self.workers)
        beats = draw.choice((None, 0, 1))
        load = draw.choice((None, 0, 3))
        status = draw.choice((None, WorkerStatus.DRAINING))
        last = WorkerStatus.STOPPED
        calls: list[Callable[[Store], Awaitable[object]]] = [
            lambda store: store.beat(worker, load=load, status=status),
            lambda store: store.beat(worker),
            lambda store: store.bury(worker, beats=beats),
            lambda store: store.beat(worker, status=last),
        ]
        self.pair.both(draw.choice(calls))
        self._rescue(draw)
        if draw.random() < 0.5:
            self.workers.append(self._enlist())

    def change_gates(self, draw: random.Random) -> None:
        """Count latches up and down, and let operators say how many may pass."""
        self.commits += 1
        note = [Put("note", str(self.commits), "{}")]
        counts = [Count(draw.choice(LATCHES), draw.choice((-2, -1, -1, 1, 2)), draw.randint(0, 1))]
        gate = draw.choice(GATES[:5])
        capacities = [Capacity(gate.name, draw.choice((None, None, 0, 1, 5)))]
        chosen = draw.choice(((counts, []), ([], capacities), (counts, capacities)))
        changes = Changes(f"commit {self.commits}", (), note, 0.0, *chosen)
        self.pair.both(lambda store: store.commit(changes))

    def look(self, draw: random.Random) -> None:
        where, limit = self._filter(draw), draw.randint(1, 4)
        order = draw.choice(list(Order))
        self.pair.both(lambda store: _pages(store, where, limit, order=order))
        self.pair.both(lambda store: store.count(where, limit=limit))
        for task in draw.sample(self.known, min(len(self.known), 3)):
            self.pair.both(lambda store, id_=task.id: _standing(store, id_))  # type: ignore[misc]

    def _filter(self, draw: random.Random) -> TaskFilter:
        """By a few conditions: by many nothing would be found."""
        some = draw.sample(self.known, min(len(self.known), 3))
        possible: dict[str, Any] = {
            "ids": tuple(task.id for task in some),
            "states": frozenset(draw.sample(list(State), draw.randint(0, 4))),
            "name": "one",
            "name_prefix": draw.choice(("o", "tw", "two", "x")),
            "queue": draw.choice(QUEUES),
            "tag": "a",
            "lock": draw.choice(LOCKS),
            "unique_key": "u",
            "error_type": draw.choice(("ValueError", "Bug")),
            "priority": draw.choice(list(Priority)),
            "owner": "ann",
            "worker_id": draw.choice(self.workers),
            "parent_id": self.known[0].id if self.known else "nobody",
        }
        chosen = draw.sample(list(possible), draw.choice((0, 1, 1, 2, 3)))
        return TaskFilter(**{name: possible[name] for name in chosen})

    def _task(self, draw: random.Random) -> NewTask:
        now = self.pair.clock.now
        offset = draw.choice((-3600.0, -1.0, 2.0, 60.0))
        return new_task(
            name=draw.choice(("one", "two")),
            queue=draw.choice(QUEUES),
            priority=draw.choice(list(Priority)),
            delay=_seldom(draw, draw.choice(SECONDS)),
            run_at=_seldom(draw, now + timedelta(seconds=offset)),
            expires_in=_seldom(draw, draw.choice(SECONDS)),
            max_retries=draw.randint(0, 2),
            unique_key=_seldom(draw, "u"),
            idempotency_key=_seldom(draw, draw.choice(("i", "j"))),
            fingerprint=draw.choice(("f", "f", "f", "g")),
            lock=draw.choice((None, None, None, *LOCKS)),
            requires=_seldom(draw, frozenset(draw.sample(CAPABILITIES, 1))) or frozenset(),
            callback=_seldom(draw, "https://example.com"),
            gates=tuple(self._gates(draw)),
            counts=tuple(_seldom(draw, draw.sample(LATCHES, 1)) or ()),
            tags=tuple(draw.sample(("a", "b", "c"), draw.randint(0, 2))),
            owner=draw.choice((None, "ann")),
            parent_id=_seldom(draw, self.known[0].id) if self.known else None,
        )

    def _save(self, batch: list[Settlement]) -> None:
        """What brings something along comes alone: whether those who settle with it come before or
        after its latches are closed is the store's choice.
        """
        alone = [one for one in batch if one.also is not None]
        for part in ([one for one in batch if one.also is None], *([one] for one in alone)):
            self.pair.both(lambda store, part=part: store.save(part))  # type: ignore[misc]  # bound

    def _outcome(self, draw: random.Random) -> Outcome:
        return self._deferred(draw) if draw.random() < 0.15 else _outcome(draw)

    def _deferred(self, draw: random.Random) -> Deferred:
        """The attempt goes on later, mostly behind a latch, and behind tasks that come with it."""
        delay = draw.choice((0.0, 0.0, *SECONDS))
        if draw.random() < 0.4:
            latch = latch_of(draw.choice(self.known).id)
            return Deferred(delay, draw.choice((None, latch, *LATCHES)))
        self.commits += 1
        latch = draw.choice((f"latch:of {self.commits}", LATCHES[0]))
        members = [
            self._task(draw)._replace(counts=(latch,), unique_key=None, idempotency_key=None)
            for _ in range(draw.randint(1, 3))
        ]
        self.known += members
        note = [Put("note", f"of {self.commits}", "{}")]
        counts = [Count(latch, len(members))]
        return Deferred(delay, latch, Changes(f"of {self.commits}", members, note, WINDOW, counts))

    def _gates(self, draw: random.Random) -> list[Gate]:
        """Mostly none; of one kind or of several; now and then the latch of another task."""
        if draw.random() < 0.7:
            return []
        gates = draw.sample(GATES, draw.choice((1, 1, 2, 3)))
        if self.known and draw.random() < 0.4:
            gates.append(Gate(GateKind.LATCH, draw.choice(self.known[-20:]).id))
        return gates

    def _claim(
        self, worker: WorkerId, queues: list[str] | None, capabilities: frozenset[str], limit: int
    ) -> list[Claim]:
        due: list[float] = []

        async def claim(store: Store) -> list[Claim]:
            claimed = await store.claim(
                worker, queues=queues, capabilities=capabilities, limit=limit
            )
            due.append(float("inf") if claimed.next_due is None else claimed.next_due)
            return list(claimed.claims)

        found = self.pair.both(claim)
        if isinstance(found, Refused):
            return []
        truth, told = due
        assert told <= truth + 1e-6  # earlier is allowed, later never
        return found

    def _rescue(self, draw: random.Random) -> None:
        orphans = self.pair.both(lambda store: store.orphans(limit=MANY))
        if not isinstance(orphans, Refused) and draw.random() < 0.5:
            lost = WorkerLost(task_error(type="WorkerLost"))
            batch = [settled(each, lost, crash_limit=2) for each in orphans]
            self.pair.both(lambda store: store.save(batch))

    def _enlist(self) -> WorkerId:
        info = worker_info()
        self.pair.both(lambda store: store.register(info))
        self.pair.clock.advance(0.001)
        return info.id


def _seldom(draw: random.Random, value: T) -> T | None:
    """Mostly None: if everything happens to every task, no task lives to see much."""
    return value if draw.random() < 0.25 else None


def _outcome(draw: random.Random) -> Outcome:
    wait = draw.choice(SECONDS)
    return draw.choice(
        (
            Succeeded(b"1"),
            Succeeded(b"1"),
            Failed(task_error()),
            Failed(task_error(), retry_after=wait),
            Failed(task_error(type="Bug", retriable=False)),
            TimedOut(task_error(type="AttemptTimeout")),
            WorkerLost(task_error(type="WorkerLost")),
            Stopped(),
            Released(),
            Released(wait),
        )
    )


async def _standing(store: Store, task_id: TaskId) -> object:
    found = await store.standing(task_id)
    # Whether tasks that were started again count among those is the store's choice.
    return found and replace(found, ahead_cap=0, ended_last_minute=0)


async def _pages(store: Store, where: TaskFilter, limit: int, order: Order) -> list[list[TaskId]]:
    found, cursor = [], None
    while True:
        page = await store.list(where, limit=limit, after=cursor, order=order)
        found.append([task.id for task in page.tasks])
        cursor = page.next
        if cursor is None:
            return found
