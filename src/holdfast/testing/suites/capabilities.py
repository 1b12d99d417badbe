"""Capabilities: a task goes only to a worker that has all it requires."""

from __future__ import annotations

from holdfast.core.task import State, WorkerId
from holdfast.ports.store import Store
from holdfast.testing.factories import new_tasks
from holdfast.testing.suites.base import (
    StoreSuite,
    add,
    claim,
    claim_ids,
    claim_one,
    state,
    submit,
)

MATCHES: list[tuple[tuple[str, ...], tuple[str, ...], bool]] = [
    ((), (), True),
    ((), ("gpu",), True),
    (("gpu",), ("gpu",), True),
    (("gpu",), ("gpu", "fast"), True),
    (("gpu", "fast"), ("fast", "gpu", "big"), True),
    (("gpu",), (), False),
    (("gpu",), ("fast",), False),
    (("gpu", "fast"), ("gpu",), False),
    (("gpu",), ("GPU", "gp", "gpu2"), False),
    (("a,b",), ("a", "b"), False),
    (("a", "b"), ("a,b",), False),
]
"""What a task requires, what a worker offers, and whether that will do."""


class CapabilitySuite(StoreSuite):
    """Matching happens in the claim; nothing is taken and put back."""

    async def test_a_task_is_taken_by_who_has_all_it_requires(
        self, store: Store, worker: WorkerId
    ) -> None:
        for number, (required, offered, taken) in enumerate(MATCHES):
            queue = f"q{number}"
            await submit(store, queue=queue, requires=frozenset(required))

            found = await claim(store, worker, queues=[queue], capabilities=offered)
            assert len(found) == taken, (required, offered)

    async def test_a_task_nobody_can_take_stays_where_it_is(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await submit(store, requires=frozenset({"gpu"}))

        await claim(store, worker)

        assert await state(store, task) is State.QUEUED
        assert (await claim_one(store, worker, capabilities={"gpu"})).attempt == 1

    async def test_tasks_behind_one_that_nobody_can_take_flow_past(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(200, requires=frozenset({"gpu"})))
        plain = await submit(store)

        assert await claim_ids(store, worker, limit=1) == [plain]

    async def test_a_claim_mixes_what_it_can_take_in_order_of_rank(
        self, store: Store, worker: WorkerId
    ) -> None:
        plain, gpu, fast, both = [
            await submit(store, requires=frozenset(names))
            for names in ((), ("gpu",), ("fast",), ("gpu", "fast"))
        ]

        assert await claim_ids(store, worker, capabilities={"gpu"}) == [plain, gpu]
        assert await claim_ids(store, worker, capabilities={"gpu", "fast"}) == [fast, both]

    async def test_many_different_sets_of_requirements_are_each_matched(
        self, store: Store, worker: WorkerId
    ) -> None:
        tasks = [await submit(store, requires=frozenset({f"site-{n}"})) for n in range(60)]

        assert await claim_ids(store, worker, capabilities={"site-41", "site-7"}) == [
            tasks[7],
            tasks[41],
        ]
