"""Listing: filters that all mean what they say, in pages that neither repeat nor hide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from holdfast.core.query import TaskFilter
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
    claim_one,
    ended,
    enlist,
    get,
    only,
    save,
    started,
    submit,
)


async def _pages(
    store: Store, where: TaskFilter, limit: int, *, oldest_first: bool = False
) -> list[list[TaskId]]:
    pages, cursor = [], None
    while True:
        page = await store.list(where, limit=limit, after=cursor, oldest_first=oldest_first)
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

        pages = await _pages(store, EVERYTHING, 3, oldest_first=True)

        assert pages == [ids[:3], ids[3:6], ids[6:]]

    @pytest.mark.parametrize(
        "where",
        [
            TaskFilter(states=frozenset({State.COMPLETED})),
            TaskFilter(states=frozenset({State.CANCELLED})),
            TaskFilter(states=frozenset({State.CANCELLED, State.COMPLETED})),
            TaskFilter(states=frozenset({State.QUEUED})),
            TaskFilter(queue="default"),
        ],
        ids=["completed", "dead_end", "ended", "queued", "queue"],
    )
    async def test_both_directions_page_through_the_same_tasks(
        self, store: Store, worker: WorkerId, where: TaskFilter
    ) -> None:
        for end in (success, stop) * 3:
            await ended(store, worker, end)
        await add(store, *new_tasks(4))
        everything = await all_ids(store, where)

        newest = await _pages(store, where, 2)
        oldest = await _pages(store, where, 2, oldest_first=True)

        assert [task for page in newest for task in page] == everything
        assert [task for page in oldest for task in page] == everything[::-1]

    async def test_tasks_that_come_are_at_the_end_of_oldest_first(self, store: Store) -> None:
        batch = new_tasks(3)
        await add(store, *batch)
        first = await store.list(EVERYTHING, limit=2, oldest_first=True)

        late = await submit(store)
        second = await store.list(EVERYTHING, limit=2, after=first.next, oldest_first=True)

        assert [t.id for t in second.tasks] == [batch[2].id, late]
        assert second.next is None

    @pytest.mark.parametrize("oldest_first", [False, True])
    async def test_a_cursor_of_the_other_direction_is_refused(
        self, store: Store, oldest_first: bool
    ) -> None:
        await add(store, *new_tasks(3))
        page = await store.list(EVERYTHING, limit=1, oldest_first=not oldest_first)

        with pytest.raises(InvalidOption, match="first") as refused:
            await store.list(EVERYTHING, limit=1, after=page.next, oldest_first=oldest_first)

        assert refused.value.option == "after"

    @pytest.mark.parametrize("text", ["", "nonsense", "oldest-", "oldest-oldest-", "\0", "\ud800"])
    @pytest.mark.parametrize("oldest_first", [False, True])
    async def test_what_is_no_cursor_is_refused(
        self, store: Store, text: str, oldest_first: bool
    ) -> None:
        await submit(store)

        with pytest.raises(InvalidOption, match="no cursor"):
            await store.list(EVERYTHING, limit=1, after=text, oldest_first=oldest_first)

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

    @pytest.mark.parametrize(
        ("where", "names"),
        [
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
        ],
        ids=range(48),  # a set's text differs between processes, and xdist compares ids
    )  # fmt: skip
    async def test_a_filter_finds_what_it_says(
        self, store: Store, mixed: _Mixed, where: TaskFilter, names: list[str]
    ) -> None:
        expected = [getattr(mixed, name) for name in names]

        assert await all_ids(store, where) == expected
        assert await store.count(where, limit=MANY) == len(expected)

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
