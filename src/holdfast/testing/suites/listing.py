"""Listing: filters that all mean what they say, in pages that neither repeat nor hide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from holdfast.core.query import Order, TaskFilter
from holdfast.core.task import Priority, State, TaskId, WorkerId
from holdfast.errors import InvalidOption
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import failure, new_task, new_tasks, stop, success, task_id
from holdfast.testing.suites.base import (
    EVERYTHING,
    MANY,
    StoreSuite,
    add,
    all_ids,
    claim,
    claim_one,
    ended,
    enlist,
    get,
    only,
    save,
    started,
    submit,
)

NO_CURSORS = (
    "",
    "nonsense",
    "oldest-",
    "oldest-oldest-",
    "ended-",
    "ended-99999999T999999-",
    "\0",
    "\ud800",
)


async def _pages(
    store: Store, where: TaskFilter, limit: int, order: Order = Order.NEWEST
) -> list[list[TaskId]]:
    pages, cursor = [], None
    while True:
        page = await store.list(where, limit=limit, after=cursor, order=order)
        pages.append([task.id for task in page.tasks])
        cursor = page.next
        if cursor is None:
            return pages


async def _added_newest_first(store: Store, number: int) -> list[TaskId]:
    batch = new_tasks(number)
    await add(store, *batch)
    return [new.id for new in reversed(batch)]


class PageSuite(StoreSuite):
    """Newest first or oldest first, by cursor."""

    async def test_tasks_are_listed_newest_first(self, store: Store) -> None:
        batch = new_tasks(5)
        await add(store, *batch)

        assert await all_ids(store) == [t.id for t in reversed(batch)]

    async def test_a_listed_task_is_the_whole_picture(self, store: Store, worker: WorkerId) -> None:
        task = await ended(store, worker, failure, tags=("a",), lock="doc:1", owner="anna")

        (listed,) = (await store.list(EVERYTHING, limit=1)).tasks

        assert listed == await get(store, task)

    async def test_pages_hold_every_task_once_and_the_last_one_says_so(self, store: Store) -> None:
        ids = await _added_newest_first(store, 7)

        assert await _pages(store, EVERYTHING, 3) == [ids[:3], ids[3:6], ids[6:]]

    async def test_a_last_page_that_is_full_has_no_empty_one_after_it(self, store: Store) -> None:
        ids = await _added_newest_first(store, 6)

        assert await _pages(store, EVERYTHING, 3) == [ids[:3], ids[3:]]

    async def test_a_page_of_matches_is_full_though_others_lie_between(self, store: Store) -> None:
        batch = [new_task(queue="ab"[n % 2]) for n in range(12)]
        await add(store, *batch)
        ids = [t.id for t in reversed(batch) if t.queue == "a"]

        assert await _pages(store, TaskFilter(queue="a"), 4) == [ids[:4], ids[4:]]

    async def test_tasks_that_come_between_two_pages_neither_repeat_nor_hide_any(
        self, store: Store
    ) -> None:
        batch = new_tasks(4)
        await add(store, *batch)
        first = await store.list(EVERYTHING, limit=2)

        await submit(store)
        second = await store.list(EVERYTHING, limit=2, after=first.next)

        assert [t.id for t in second.tasks] == [batch[1].id, batch[0].id]

    async def test_tasks_that_go_between_two_pages_neither_repeat_nor_hide_any(
        self, store: Store, worker: WorkerId
    ) -> None:
        tasks = [await ended(store, worker, success) for _ in range(4)]
        first = await store.list(EVERYTHING, limit=2)

        await store.discard(only(tasks[2], tasks[3]), limit=2)
        second = await store.list(EVERYTHING, limit=2, after=first.next)

        assert [t.id for t in second.tasks] == [tasks[1], tasks[0]]

    async def test_oldest_first_is_the_same_list_the_other_way_round(self, store: Store) -> None:
        ids = [*reversed(await _added_newest_first(store, 7))]

        pages = await _pages(store, EVERYTHING, 3, Order.OLDEST)

        assert pages == [ids[:3], ids[3:6], ids[6:]]

    async def test_both_directions_page_through_the_same_tasks(
        self, store: Store, worker: WorkerId
    ) -> None:
        for end in (success, stop) * 3:
            await ended(store, worker, end)
        await add(store, *new_tasks(4))

        for where in (
            TaskFilter(states=frozenset({State.COMPLETED})),
            TaskFilter(states=frozenset({State.CANCELLED})),
            TaskFilter(states=frozenset({State.CANCELLED, State.COMPLETED})),
            TaskFilter(states=frozenset({State.QUEUED})),
            TaskFilter(queue="default"),
        ):
            everything = await all_ids(store, where)
            newest = await _pages(store, where, 2)
            oldest = await _pages(store, where, 2, Order.OLDEST)
            assert [task for page in newest for task in page] == everything
            assert [task for page in oldest for task in page] == everything[::-1]

    async def test_tasks_that_come_are_at_the_end_of_oldest_first(self, store: Store) -> None:
        batch = new_tasks(3)
        await add(store, *batch)
        first = await store.list(EVERYTHING, limit=2, order=Order.OLDEST)

        late = await submit(store)
        second = await store.list(EVERYTHING, limit=2, after=first.next, order=Order.OLDEST)

        assert [t.id for t in second.tasks] == [batch[2].id, late]
        assert second.next is None

    async def test_a_cursor_of_another_order_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        for _ in range(3):
            await ended(store, worker, stop)

        for order, other in product(Order, Order):
            page = await store.list(EVERYTHING, limit=1, order=other)
            if order is other:
                again = await store.list(EVERYTHING, limit=1, after=page.next, order=order)
                assert len(again.tasks) == 1
                continue
            with pytest.raises(InvalidOption, match="another order") as refused:
                await store.list(EVERYTHING, limit=1, after=page.next, order=order)
            assert refused.value.option == "after"

    async def test_what_is_no_cursor_is_refused(self, store: Store) -> None:
        await submit(store)

        for text, order in product(NO_CURSORS, Order):
            with pytest.raises(InvalidOption, match="no cursor"):
                await store.list(EVERYTHING, limit=1, after=text, order=order)

    @pytest.mark.parametrize("together", [False, True], ids=["one by one", "at one instant"])
    async def test_by_their_ends_tasks_come_in_the_order_of_those(
        self, store: Store, clock: FakeClock, worker: WorkerId, together: bool
    ) -> None:
        await add(store, *new_tasks(10, max_retries=0))
        claims = await claim(store, worker, limit=9)
        for number in (5, 0, 7, 3, 8, 1, 6, 2, 4):
            end = (success, stop, failure)[number % 3]
            await save(store, end(claims[number]))
            if not together:
                clock.advance(1)
        tasks = [await get(store, found.task_id) for found in claims]
        tasks.sort(key=lambda task: (task.finished_at or clock.now, task.id))

        for where in (
            EVERYTHING,
            TaskFilter(states=frozenset({State.DEAD_LETTER})),
            TaskFilter(states=frozenset({State.CANCELLED, State.DEAD_LETTER})),
            TaskFilter(states=frozenset({State.COMPLETED, State.QUEUED})),
            TaskFilter(queue="default", finished_after=datetime(2000, 1, 1, tzinfo=UTC)),
        ):
            states = where.states or frozenset(State)
            expected = [task.id for task in tasks if task.state in states]
            first = await _pages(store, where, 2, Order.FIRST_ENDED)
            last = await _pages(store, where, 2, Order.LAST_ENDED)
            assert [task for page in first for task in page] == expected
            assert [task for page in last for task in page] == expected[::-1]
            assert max(map(len, first)) == 2

    async def test_by_their_ends_tasks_are_found_by_ids_too(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await add(store, *new_tasks(4))
        claims = await claim(store, worker, limit=3)
        for found in reversed(claims):
            await save(store, success(found))
            clock.advance(1)
        waiting = (await store.list(TaskFilter(states=frozenset({State.QUEUED})), limit=1)).tasks[0]
        wanted = only(claims[0].task_id, claims[2].task_id, waiting.id)

        page = await store.list(wanted, limit=10, order=Order.FIRST_ENDED)

        assert [task.id for task in page.tasks] == [claims[2].task_id, claims[0].task_id]

    async def test_an_empty_store_has_one_empty_page(self, store: Store) -> None:
        assert await _pages(store, EVERYTHING, 10) == [[]]

    async def test_a_limit_of_zero_lists_nothing(self, store: Store) -> None:
        await submit(store)

        assert (await store.list(EVERYTHING, limit=0)).tasks == ()

    async def test_a_count_stops_at_its_limit(self, store: Store) -> None:
        await add(store, *new_tasks(5))

        assert [await store.count(EVERYTHING, limit=n) for n in (0, 3, 5, 99)] == [0, 3, 5, 5]

    async def test_an_unknown_id_is_no_task(self, store: Store) -> None:
        assert await store.get(task_id()) is None
        assert await store.standing(task_id()) is None


@dataclass(frozen=True)
class _Mixed:
    """One task of each kind that the filters must tell apart."""

    plain: TaskId
    mail: TaskId
    running: TaskId
    retrying: TaskId
    dead: TaskId
    blocked: TaskId
    worker: WorkerId


FILTERS: list[tuple[TaskFilter, list[str]]] = [
    (TaskFilter(states=frozenset({State.RUNNING})), ["running"]),
    (TaskFilter(states=frozenset({State.QUEUED})), ["mail", "plain"]),
    (TaskFilter(states=frozenset({State.BLOCKED, State.RETRYING})), [
        "blocked", "retrying",
    ]),
    (TaskFilter(states=frozenset({State.COMPLETED})), []),
    (TaskFilter(states=frozenset()), []),
    (TaskFilter(states=frozenset(State)), [
        "mail", "plain", "blocked", "running", "retrying", "dead",
    ]),
    (TaskFilter(name="other"), ["plain"]),
    (TaskFilter(name="OTHER"), []),
    (TaskFilter(name_prefix="oth"), ["plain"]),
    (TaskFilter(name_prefix="other"), ["plain"]),
    (TaskFilter(name_prefix="others"), []),
    (TaskFilter(name_prefix="the"), []),
    (TaskFilter(name_prefix="OTH"), []),
    (TaskFilter(name_prefix="o_h"), []),
    (TaskFilter(name_prefix="o%"), []),
    (TaskFilter(name_prefix="o*"), []),
    (TaskFilter(name_prefix=""), [
        "mail", "plain", "blocked", "running", "retrying", "dead",
    ]),
    (TaskFilter(name_prefix="dem", tag="y", queue="default"), ["dead"]),
    (TaskFilter(queue="mail"), ["mail"]),
    (TaskFilter(queue="nope"), []),
    (TaskFilter(priority=Priority.HIGH), ["running"]),
    (TaskFilter(priority=Priority.LOW), []),
    (TaskFilter(tag="y"), ["mail", "dead"]),
    (TaskFilter(tag="ye"), []),
    (TaskFilter(tag="x\",\"y"), []),
    (TaskFilter(owner="anna"), ["retrying"]),
    (TaskFilter(lock="doc:1"), ["blocked", "running"]),
    (TaskFilter(unique_key="u"), ["mail"]),
    (TaskFilter(idempotency_key="i"), ["mail"]),
    (TaskFilter(idempotency_key="u"), []),
    (TaskFilter(error_type="Bug"), ["dead"]),
    (TaskFilter(error_type="Net"), ["retrying"]),
    (TaskFilter(error_type="ValueError"), []),
    (TaskFilter(name="demo", tag="y", queue="default"), ["dead"]),
    (TaskFilter(owner="anna", error_type="Bug"), []),
    (TaskFilter(worker_id=WorkerId("nobody")), []),
    (TaskFilter(ids=()), []),
    (TaskFilter(names=frozenset({"other", "nope"})), ["plain"]),
    (TaskFilter(names=frozenset({"other"}), name="demo"), []),
    (TaskFilter(names=frozenset({"other"}), name_prefix="o"), ["plain"]),
    (TaskFilter(names=frozenset({"dead_letter"})), []),
    (TaskFilter(names=frozenset()), []),
    (TaskFilter(queues=frozenset({"mail", "nope"})), ["mail"]),
    (TaskFilter(queues=frozenset({"mail"}), queue="default"), []),
    (TaskFilter(queues=frozenset({"default"}), owner="anna"), ["retrying"]),
    (TaskFilter(queues=frozenset({"default"}), states=frozenset({State.DEAD_LETTER})), [
        "dead",
    ]),
    (TaskFilter(queues=frozenset({"mail"}), states=frozenset({State.QUEUED})), ["mail"]),
    (TaskFilter(queues=frozenset()), []),
]  # fmt: skip


class FilterSuite(StoreSuite):
    """Every field of `TaskFilter`, alone and together."""

    @pytest.fixture
    async def mixed(self, store: Store, clock: FakeClock) -> _Mixed:
        worker = await enlist(store)
        dead = await ended(
            store, worker, lambda c: failure(c, type="Bug"), max_retries=0, tags=("x", "y")
        )
        clock.advance(10)
        retrying = await ended(
            store, worker, lambda c: failure(c, type="Net"), owner="anna", tags=("yes",)
        )
        running = await started(store, worker, lock="doc:1", priority=Priority.HIGH)
        blocked = await submit(store, lock="doc:1", parent_id=running.task_id)
        clock.advance(10)
        plain = await submit(store, name="other", owner="bert")
        mail = await submit(store, queue="mail", unique_key="u", idempotency_key="i", tags=("y",))
        return _Mixed(plain, mail, running.task_id, retrying, dead, blocked, worker)

    async def test_an_empty_filter_matches_all(self, store: Store, mixed: _Mixed) -> None:
        assert len(await all_ids(store)) == 6

    async def test_a_filter_finds_what_it_says(self, store: Store, mixed: _Mixed) -> None:
        for where, names in FILTERS:
            expected = [getattr(mixed, name) for name in names]
            assert await all_ids(store, where) == expected, where
            assert await store.count(where, limit=MANY) == len(expected), where

    async def test_a_worker_finds_what_it_runs_or_ran_last(
        self, store: Store, mixed: _Mixed
    ) -> None:
        assert await all_ids(store, TaskFilter(worker_id=mixed.worker)) == [
            mixed.running,
            mixed.retrying,
            mixed.dead,
        ]

    async def test_a_parent_finds_its_children(self, store: Store, mixed: _Mixed) -> None:
        assert await all_ids(store, TaskFilter(parent_id=mixed.running)) == [mixed.blocked]

    async def test_ids_find_those_tasks_once_each_newest_first(
        self, store: Store, mixed: _Mixed
    ) -> None:
        where = only(mixed.dead, mixed.mail, task_id(), mixed.dead)

        assert await all_ids(store, where) == [mixed.mail, mixed.dead]

    async def test_ids_and_other_fields_must_both_match(self, store: Store, mixed: _Mixed) -> None:
        where = TaskFilter(ids=(mixed.dead, mixed.mail), tag="x")

        assert await all_ids(store, where) == [mixed.dead]

    async def test_created_after_includes_its_instant_and_created_before_does_not(
        self, store: Store, mixed: _Mixed
    ) -> None:
        middle = (await get(store, mixed.retrying)).created_at
        step = timedelta(microseconds=1)

        for after, before, names in (
            (middle, None, ["mail", "plain", "blocked", "running", "retrying"]),
            (middle + step, None, ["mail", "plain"]),
            (None, middle, ["dead"]),
            (None, middle + step, ["blocked", "running", "retrying", "dead"]),
            (middle, middle + step, ["blocked", "running", "retrying"]),
            (middle, middle, []),
        ):
            where = TaskFilter(created_after=after, created_before=before)
            assert await all_ids(store, where) == [getattr(mixed, name) for name in names]

    async def test_finished_after_includes_its_instant_and_finds_ended_tasks_only(
        self, store: Store, mixed: _Mixed
    ) -> None:
        await save(store, success(await claim_one(store, mixed.worker, queues=["mail"])))
        done = mixed.mail
        first = (await get(store, mixed.dead)).finished_at
        last = (await get(store, done)).finished_at
        assert first is not None
        assert last is not None
        step = timedelta(microseconds=1)

        for after, before, expected in (
            (first, None, [done, mixed.dead]),
            (first + step, None, [done]),
            (None, last, [mixed.dead]),
            (first, last + step, [done, mixed.dead]),
            (last, last, []),
        ):
            where = TaskFilter(finished_after=after, finished_before=before)
            assert set(await all_ids(store, where)) == set(expected)
            dead = replace(where, states=frozenset({State.DEAD_LETTER}))
            assert await all_ids(store, dead) == [t for t in expected if t == mixed.dead]

    async def test_the_error_type_is_that_of_the_present_error(
        self, store: Store, worker: WorkerId
    ) -> None:
        await ended(store, worker, lambda c: failure(c, type="Bug", backoff=0.0))
        await save(store, success(await claim_one(store, worker)))

        assert await all_ids(store, TaskFilter(error_type="Bug")) == []

    async def test_ended_tasks_are_found_by_their_unique_key_and_lock(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(store, worker, stop, unique_key="u", lock="doc:1")

        assert await all_ids(store, TaskFilter(unique_key="u", lock="doc:1")) == [task]
