"""Both stores, side by side, do the same whatever happens: random histories, compared step by step.

The memory store is the shortest reading of the contract, so whatever differs is a mistake in one of
the two. The seed is in the test's name.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import pauses
from holdfast.core.attempt import Claim, Report
from holdfast.core.callback import Callback
from holdfast.core.query import Order, TaskFilter
from holdfast.core.stats import Stats
from holdfast.core.task import Cost, NewTask, Priority, Progress, State, TaskId, WorkerId
from holdfast.errors import HoldfastError
from holdfast.ports.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite import SQLiteStore
from holdfast.testing import factories
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, WINDOW, new_task, worker_id, worker_info

MANY = 10_000
STEPS = 120
QUEUES = ("default", "mail", "gpu")


class Pair:
    """The two stores. Everything is asked of both, and the answers must be equal."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.stores = stores

    async def ask(self, question: Callable[[Store], Awaitable[Any]]) -> Any:
        answers = [await self._answer(store, question) for store in self.stores]
        assert answers[0] == answers[1]
        return answers[0]

    async def _answer(self, store: Store, question: Callable[[Store], Awaitable[Any]]) -> Any:
        try:
            found = await question(store)
        except HoldfastError as error:
            return f"{type(error).__name__}: {error}"
        return list(found) if isinstance(found, tuple | list) and not _is_named(found) else found


def _is_named(value: object) -> bool:
    return hasattr(value, "_fields")


class Story:
    """One random history."""

    def __init__(self, seed: int, pair: Pair, clock: FakeClock) -> None:
        self.dice = random.Random(seed)
        self.pair = pair
        self.clock = clock
        self.tasks: list[NewTask] = []
        self.workers: list[WorkerId] = []
        self.claims: list[Claim] = []
        self.notices: list[Callback] = []

    async def tell(self) -> None:
        await self.hire()
        for _ in range(STEPS):
            await self.dice.choice(self.acts)()
        await self.compare()

    @property
    def acts(self) -> list[Callable[[], Awaitable[None]]]:
        often = [self.submit, self.claim, self.claim, self.settle, self.settle, self.pass_time]
        return [
            *often, *often, self.hire, self.bury, self.cancel, self.requeue, self.discard,
            self.prune, self.report, self.pause, self.look, self.rescue, self.call_back,
        ]  # fmt: skip

    def maybe(self, chance: float) -> bool:
        return self.dice.random() < chance

    def new(self) -> NewTask:
        if self.tasks and self.maybe(0.05):
            return self.dice.choice(self.tasks)
        dice = self.dice
        task = new_task(
            name=dice.choice("ab"),
            queue=dice.choice(QUEUES),
            priority=dice.choice(list(Priority)),
            delay=dice.choice([None, None, 0.0, 5.0, 30.0]),
            expires_in=dice.choice([None, None, None, 4.0, 40.0]),
            max_retries=dice.choice([0, 1, 3]),
            unique_key=dice.choice([None, None, "u1", "u2"]),
            lock=dice.choice([None, None, "l1", "l2"]),
            requires=frozenset(dice.choice([(), (), ("gpu",)])),
            tags=dice.choice([(), ("red",), ("red", "blue")]),
            owner=dice.choice([None, "ann"]),
            callback=dice.choice([None, None, "https://example.com/told"]),
        )
        self.tasks.append(task)
        return task

    def where(self) -> TaskFilter:
        dice = self.dice
        some = tuple(dice.choice(self.tasks).id for _ in range(3)) if self.tasks else ()
        return dice.choice(
            [
                TaskFilter(ids=some),
                TaskFilter(ids=some, states=frozenset({State.QUEUED, State.DEAD_LETTER})),
                TaskFilter(queue=dice.choice(QUEUES), tag="red"),
                TaskFilter(states=frozenset(dice.sample(list(State), 3))),
                TaskFilter(states=frozenset({dice.choice(list(State))}), owner="ann"),
                TaskFilter(name="a", lock="l1"),
                TaskFilter(name_prefix="b"),
                TaskFilter(unique_key="u1", priority=Priority.LOW),
                TaskFilter(error_type="ValueError"),
                TaskFilter(worker_id=dice.choice(self.workers)),
            ]
        )

    async def submit(self) -> None:
        batch = [self.new() for _ in range(self.dice.choice([1, 1, 3, 20]))]
        await self.pair.ask(lambda store: store.add(batch, idempotency_window=WINDOW))

    async def claim(self) -> None:
        me = self.dice.choice(self.workers)
        queues = self.dice.choice([None, None, ("mail",), ("gpu", "default")])
        able = frozenset(self.dice.choice([(), ("gpu",)]))
        limit = self.dice.choice([0, 1, 5, 50])
        claimed = await self.pair.ask(
            lambda store: store.claim(me, queues=queues, capabilities=able, limit=limit)
        )
        if not isinstance(claimed, str):
            self.claims += claimed.claims

    async def settle(self) -> None:
        if not self.claims:
            return
        chosen = self.dice.sample(self.claims, min(len(self.claims), self.dice.choice([1, 4, 30])))
        how = [
            factories.success, factories.success, factories.failure, factories.timeout,
            factories.release, factories.stop, factories.loss,
            lambda claim: factories.failure(claim, retriable=False),
            lambda claim: factories.failure(claim, backoff=0.0),
        ]  # fmt: skip
        batch = [self.dice.choice(how)(claim) for claim in chosen]  # type: ignore[operator]
        await self.pair.ask(lambda store: store.save(batch))
        if self.maybe(0.7):  # else these come late, or once more
            self.claims = [claim for claim in self.claims if claim not in chosen]

    async def pass_time(self) -> None:
        self.clock.advance(self.dice.choice([0, 1, 3, 10, 45]))

    async def hire(self) -> None:
        info = worker_info(id=worker_id())
        self.workers.append(info.id)
        await self.pair.ask(lambda store: store.register(info))

    async def bury(self) -> None:
        if len(self.workers) > 1:
            gone = self.dice.choice(self.workers)
            beats = self.dice.choice([None, 0, 1])
            await self.pair.ask(lambda store: store.beat(gone, load=3))
            await self.pair.ask(lambda store: store.bury(gone, beats=beats))

    async def rescue(self) -> None:
        lost = await self.pair.ask(lambda store: store.orphans(limit=5))
        batch = [factories.loss(claim) for claim in lost]
        await self.pair.ask(lambda store: store.save(batch))

    async def cancel(self) -> None:
        where, limit = self.where(), self.dice.choice([1, 10])
        await self.pair.ask(lambda store: store.cancel(where, limit=limit))
        for me in self.workers:
            await self.pair.ask(lambda store, me=me: store.cancel_requests(me))  # type: ignore[misc]

    async def requeue(self) -> None:
        where, limit = self.where(), self.dice.choice([1, 10])
        pace = self.dice.choice([None, 2.0])
        await self.pair.ask(
            lambda store: store.requeue(where, limit=limit, head_starts=HEAD_STARTS, pace=pace)
        )

    async def discard(self) -> None:
        where = self.where()
        await self.pair.ask(lambda store: store.discard(where, limit=3))

    async def prune(self) -> None:
        await self.pair.ask(
            lambda store: store.prune(retention=60.0, dead_letter_retention=120.0, limit=MANY)
        )

    async def report(self) -> None:
        if self.claims:
            claim = self.dice.choice(self.claims)
            told = Report(
                claim.task_id, claim.attempt, claim.worker_id, Progress(done=0.5),
                Cost(units=1.5, tokens_in=2), ("a line",),
            )  # fmt: skip
            await self.pair.ask(lambda store: store.report([told]))

    async def pause(self) -> None:
        queue = self.dice.choice(QUEUES)
        if self.maybe(0.5):
            await self.pair.ask(lambda store: pauses.pause(store, queue))
        else:
            await self.pair.ask(lambda store: pauses.resume(store, queue))

    async def call_back(self) -> None:
        taken = await self.pair.ask(lambda store: store.due_callbacks(limit=3, lease=10.0))
        self.notices += taken
        for notice in self.dice.sample(self.notices, min(len(self.notices), 2)):
            retry_in, error = self.dice.choice([(None, None), (None, "gone"), (4.0, "busy")])
            await self.pair.ask(
                lambda store, it=notice, wait=retry_in, why=error: store.callback_done(  # type: ignore[misc]
                    it, retry_in=wait, error=why
                )
            )

    async def look(self) -> None:
        where = self.where()
        for order in Order:
            page = await self.pair.ask(lambda store, o=order: store.list(where, limit=4, order=o))  # type: ignore[misc]
            await self.pair.ask(
                lambda store, o=order, p=page: store.list(where, limit=4, after=p.next, order=o)  # type: ignore[misc]
            )
        await self.pair.ask(lambda store: store.count(where, limit=7))
        await self.pair.ask(_stats)

    async def compare(self) -> None:
        everything = await self.pair.ask(lambda store: store.list(TaskFilter(), limit=MANY))
        for task in everything.tasks:
            await self.compare_one(task.id)
        await self.pair.ask(_stats)
        await self.pair.ask(lambda store: store.workers())
        assert await self.pair.ask(lambda store: store.check()) == []

    async def compare_one(self, task_id: TaskId) -> None:
        await self.pair.ask(lambda store: store.history(task_id))
        await self.pair.ask(lambda store: store.standing(task_id))


async def _stats(store: Store) -> Stats:
    """Without queues that are idle: whether they are listed is the store's choice."""
    found = await store.stats()
    busy = tuple(q for q in found.queues if q.paused or q.ready + q.waiting + q.blocked + q.running)
    return Stats(
        queues=busy, states=found.states, last_minute=found.last_minute, refused=found.refused
    )


@pytest.mark.parametrize("seed", range(40))
async def test_a_random_history_ends_the_same_in_memory_and_on_disk(
    seed: int, path: Path, clock: FakeClock
) -> None:
    async with MemoryStore(clock=clock) as memory, SQLiteStore(path, clock=clock) as disk:
        await Story(seed, Pair((memory, disk)), clock).tell()
