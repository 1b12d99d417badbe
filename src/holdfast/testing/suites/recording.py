"""Records: versioned documents, listed in order, taken when due; and one commit for all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from holdfast.core.attempt import Report
from holdfast.core.record import Changes, Delete, Put, Record
from holdfast.core.task import NewTask, State, TaskId, WorkerId
from holdfast.errors import IdempotencyConflict, RecordConflict
from holdfast.ports.records import one_record
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import HEAD_STARTS, WINDOW, new_task, release, success
from holdfast.testing.suites.base import (
    OpenAnother,
    StoreSuite,
    add,
    all_ids,
    claim_one,
    get,
    kinds,
    only,
    save,
    started,
    submit,
)
from holdfast.testing.suites.races import at_once

KIND = "note"


def _report(fence: tuple[TaskId, int, WorkerId], *steps: tuple[str, bytes]) -> Report:
    return Report(*fence, steps=steps)


def changes(*records: Put | Delete, tasks: tuple[NewTask, ...] = ()) -> Changes:
    return Changes(uuid4().hex, tasks, records, WINDOW)


async def put(store: Store, key: str, document: str = "{}", **given: Any) -> None:
    await store.commit(changes(Put(KIND, key, document, **given)))


async def found(store: Store, key: str) -> Record:
    record = await one_record(store, KIND, key)
    assert record is not None
    return record


async def taken(store: Store) -> tuple[list[str], float | None]:
    due = await store.take_due(KIND, limit=9, lease=5.0)
    return [record.key for record in due.records], due.next_due


class RecordSuite(StoreSuite):
    """`records` and `take_due`."""

    async def test_the_time_is_the_stores(self, store: Store, clock: FakeClock) -> None:
        assert await store.now() == clock.now

    async def test_a_record_comes_back_as_it_was_put(self, store: Store, clock: FakeClock) -> None:
        document = '{"text": "Grüße 🚀 \\\\u0000", "n": [1, 2.50, null]}'

        await put(store, "Ä key/1", document, group="Müller", sort="é", due_in=2.5)

        due_at = clock.now + timedelta(seconds=2.5)
        assert await found(store, "Ä key/1") == Record(
            KIND, "Ä key/1", 1, document, "Müller", "é", due_at
        )

    async def test_unknown_records_are_none(self, store: Store) -> None:
        await put(store, "a")

        assert await one_record(store, KIND, "b") is None
        assert await one_record(store, "other", "a") is None

    async def test_every_write_is_a_new_version_and_replaces_all_of_it(
        self, store: Store, clock: FakeClock
    ) -> None:
        await put(store, "a", "1", group="g", sort="s", due_at=clock.now)

        await put(store, "a", "2")

        assert await found(store, "a") == Record(KIND, "a", 2, "2")

    async def test_a_write_that_names_another_version_is_refused(self, store: Store) -> None:
        await put(store, "a", "1")

        with pytest.raises(RecordConflict) as caught:
            await put(store, "a", "2", version=2)

        assert (caught.value.key, caught.value.expected, caught.value.found) == ("a", 2, 1)
        assert (await found(store, "a")).document == "1"
        await put(store, "a", "2", version=1)
        assert (await found(store, "a")).version == 2

    async def test_a_record_that_must_be_new_is_refused_if_it_is_there(self, store: Store) -> None:
        await put(store, "a", "1", version=0)

        with pytest.raises(RecordConflict):
            await put(store, "a", "2", version=0)
        with pytest.raises(RecordConflict):
            await put(store, "b", "2", version=1)

        assert (await found(store, "a")).document == "1"
        assert await one_record(store, KIND, "b") is None

    async def test_a_deleted_record_is_gone_and_begins_anew(self, store: Store) -> None:
        await put(store, "a")
        await put(store, "a")

        with pytest.raises(RecordConflict):
            await store.commit(changes(Delete(KIND, "a", 1)))
        await store.commit(changes(Delete(KIND, "a", 2)))

        assert await one_record(store, KIND, "a") is None
        with pytest.raises(RecordConflict):
            await store.commit(changes(Delete(KIND, "a", 2)))
        await store.commit(changes(Delete(KIND, "a")))
        await put(store, "a", version=0)
        assert (await found(store, "a")).version == 1

    async def test_of_eight_racing_writers_one_wins_each_version(self, store: Store) -> None:
        async def write(number: int) -> int:
            won = 0
            for version in range(5):
                try:
                    await put(store, "a", str(number), version=version)
                    won += 1
                except RecordConflict:
                    pass
                while (
                    await one_record(store, KIND, "a") or Record(KIND, "a", 0, "")
                ).version <= version:
                    pass
            return won

        assert sum(await at_once(8, write)) == 5
        assert (await found(store, "a")).version == 5

    async def test_a_group_is_listed_by_sort_and_key_in_pages(self, store: Store) -> None:
        for key, sort in [("d", "1"), ("a", "2"), ("b", "10"), ("c", "1"), ("B", "1")]:
            await put(store, key, group="g", sort=sort)
        await put(store, "z", group="other")

        first = await store.records(KIND, group="g", limit=2)
        rest = await store.records(KIND, group="g", limit=9, after=first[-1])
        back = await store.records(KIND, group="g", limit=2, newest_first=True)
        more = await store.records(KIND, group="g", limit=9, after=back[-1], newest_first=True)

        assert [r.key for r in (*first, *rest)] == ["B", "c", "d", "b", "a"]
        assert [r.key for r in (*back, *more)] == ["a", "b", "d", "c", "B"]
        assert list(await store.records(KIND, group="g", limit=0)) == []

    async def test_a_kind_is_listed_by_key_whatever_the_groups(self, store: Store) -> None:
        for key, group in [("b", "1"), ("c", "0"), ("a", "2")]:
            await put(store, key, group=group, sort=group)
        await store.commit(changes(Put("other", "d", "{}")))

        first = await store.records(KIND, limit=2)
        rest = await store.records(KIND, limit=2, after=first[-1])
        back = await store.records(KIND, limit=2, newest_first=True)

        assert [r.key for r in (*first, *rest)] == ["a", "b", "c"]
        assert [r.key for r in back] == ["c", "b"]

    async def test_several_records_are_found_by_their_keys(self, store: Store) -> None:
        for key, group in [("b", "1"), ("c", "0"), ("a", "1"), ("d", "1")]:
            await put(store, key, group=group, sort=group)
        await store.commit(changes(Put("other", "e", "{}")))

        async def keys(*asked: str, limit: int = 9, **given: Any) -> list[str]:
            found = await store.records(KIND, keys=asked, limit=limit, **given)
            return [record.key for record in found]

        assert await keys("c", "nowhere", "a", "e", "b", "a") == ["a", "b", "c"]
        assert await keys("c", "a", "b", group="1") == ["a", "b"]
        assert await keys("c", "a", "b", newest_first=True, limit=2) == ["c", "b"]
        assert await keys("c", "a", "b", after=await found(store, "a")) == ["b", "c"]
        assert await keys() == await keys("a", limit=0) == []

    async def test_due_records_are_taken_the_longest_due_first(
        self, store: Store, clock: FakeClock
    ) -> None:
        for key, due_in in [("b", 2.0), ("a", 2.0), ("c", 1.0), ("later", 60.0)]:
            await put(store, key, due_in=due_in)
        await put(store, "never")
        assert await taken(store) == ([], 1.0)
        clock.advance(10)

        some = await store.take_due(KIND, limit=2, lease=30.0)
        more = await store.take_due(KIND, limit=9, lease=30.0)

        assert [r.key for r in some.records] == ["c", "a"]
        assert some.next_due == 0.0
        assert [r.key for r in more.records] == ["b"]
        assert more.next_due == 30.0
        assert some.records[0] == await found(store, "c")
        assert some.records[0].version == 2

    async def test_who_takes_a_due_record_has_it_until_the_lease_ends(
        self, store: Store, clock: FakeClock
    ) -> None:
        await put(store, "a", due_in=0.0)
        (first,) = (await store.take_due(KIND, limit=9, lease=5.0)).records

        assert await taken(store) == ([], 5.0)
        clock.advance(6)
        (second,) = (await store.take_due(KIND, limit=9, lease=5.0)).records

        with pytest.raises(RecordConflict):
            await store.commit(changes(Delete(KIND, "a", first.version)))
        await store.commit(changes(Delete(KIND, "a", second.version)))
        assert await taken(store) == ([], None)

    async def test_racing_takers_never_hold_the_same_record(self, store: Store) -> None:
        for number in range(20):
            await put(store, f"{number:02}", due_in=0.0)

        async def take(_: int) -> list[str]:
            due = await store.take_due(KIND, limit=5, lease=60.0)
            return [record.key for record in due.records]

        taken = [key for keys in await at_once(8, take) for key in keys]

        assert sorted(taken) == [f"{number:02}" for number in range(20)]

    async def test_a_record_is_seen_by_every_handle(
        self, store: Store, open_another: OpenAnother
    ) -> None:
        other = await open_another()
        await put(store, "a", "1")

        await put(other, "a", "2", version=1)

        with pytest.raises(RecordConflict):
            await put(store, "a", "3", version=1)
        assert (await found(store, "a")).document == "2"


class CommitSuite(StoreSuite):
    """`commit`, and what a settlement brings along: all of it or nothing."""

    async def test_tasks_and_records_are_written_together(
        self, store: Store, worker: WorkerId
    ) -> None:
        new = new_task(queue="mail")

        (answer,) = await store.commit(changes(Put(KIND, "a", "1"), tasks=(new,)))

        assert (answer.task_id, answer.created, answer.state) == (new.id, True, State.QUEUED)
        assert (await found(store, "a")).document == "1"
        assert (await claim_one(store, worker)).task_id == new.id
        assert await kinds(store, new.id) == ["submitted"]

    async def test_a_lost_version_race_writes_nothing_at_all(self, store: Store) -> None:
        await put(store, "b")

        with pytest.raises(RecordConflict) as caught:
            await store.commit(
                changes(Put(KIND, "a", "1"), Put(KIND, "b", "1", version=7), tasks=(new_task(),))
            )

        assert (caught.value.kind, caught.value.key) == (KIND, "b")
        assert await one_record(store, KIND, "a") is None
        assert await all_ids(store) == []

    async def test_an_idempotency_conflict_writes_nothing_at_all(self, store: Store) -> None:
        await submit(store, idempotency_key="k", fingerprint="one")
        clash = new_task(idempotency_key="k", fingerprint="two")

        with pytest.raises(IdempotencyConflict):
            await store.commit(changes(Put(KIND, "a", "1"), tasks=(new_task(), clash)))

        assert await one_record(store, KIND, "a") is None
        assert len(await all_ids(store)) == 1

    async def test_a_repeated_commit_changes_nothing_and_answers_as_before(
        self, store: Store
    ) -> None:
        await put(store, "gone")
        both = changes(
            Put(KIND, "a", "1", version=0),
            Put(KIND, "any", "1"),
            Delete(KIND, "gone", 1),
            tasks=(new_task(),),
        )
        records = changes(Put(KIND, "b", "1", version=0))
        first = [list(await store.commit(each)) for each in (both, records)]

        again = [list(await store.commit(each)) for each in (both, records)]

        assert again == first
        assert [(await found(store, key)).version for key in ("a", "any", "b")] == [1, 1, 1]

    async def test_a_commit_repeated_after_others_wrote_is_a_conflict(self, store: Store) -> None:
        mine = changes(Put(KIND, "a", "mine", version=0))
        await store.commit(mine)
        await put(store, "a", "theirs")

        with pytest.raises(RecordConflict):
            await store.commit(mine)

        assert (await found(store, "a")).document == "theirs"

    async def test_follow_ups_exist_if_the_completion_is_recorded(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await started(store, worker, lock="k")
        follow_up = new_task(lock="k", unique_key="u")

        await save(
            store,
            success(one)._replace(also=changes(Put(KIND, "a", "1", version=0), tasks=(follow_up,))),
        )

        assert (await get(store, one.task_id)).state is State.COMPLETED
        assert (await found(store, "a")).version == 1
        assert (await claim_one(store, worker)).task_id == follow_up.id

    async def test_a_late_settlement_leaves_no_follow_ups(
        self, store: Store, worker: WorkerId
    ) -> None:
        late = await started(store, worker)
        await save(store, release(late))
        follow_up = new_task()

        (refusal,) = await store.save(
            [success(late)._replace(also=changes(Put(KIND, "a", "1"), tasks=(follow_up,)))]
        )

        assert refusal.conflict is None
        assert await store.get(follow_up.id) is None
        assert await one_record(store, KIND, "a") is None
        assert await kinds(store, late.task_id) == ["submitted", "late_result_refused"]

    async def test_a_repeated_settlement_leaves_one_set_of_follow_ups(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await started(store, worker)
        settlement = success(one)._replace(also=changes(Put(KIND, "a", "1"), tasks=(new_task(),)))

        await save(store, settlement)
        await save(store, settlement)

        assert (await found(store, "a")).version == 1
        assert len(await all_ids(store)) == 2

    async def test_a_follow_up_may_have_the_keys_that_the_ending_task_lets_go(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await started(store, worker, unique_key="u", lock="k")
        again = new_task(unique_key="u", lock="k")

        await save(store, success(one)._replace(also=changes(tasks=(again,))))

        assert (await claim_one(store, worker)).task_id == again.id

    async def test_of_a_batch_that_clashes_with_itself_the_first_is_saved(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, new_task(), new_task())
        two = (await store.claim(worker, queues=None, capabilities=frozenset(), limit=2)).claims
        follow_ups = [new_task(idempotency_key="k", fingerprint=each) for each in "ab"]

        (refusal,) = await store.save(
            [
                success(claim)._replace(also=changes(tasks=(new,)))
                for claim, new in zip(two, follow_ups, strict=True)
            ]
        )

        assert refusal.task_id == two[1].task_id
        assert refusal.conflict is not None
        states = [(await get(store, each.task_id)).state for each in two]
        assert states == [State.COMPLETED, State.RUNNING]
        assert [await store.get(new.id) is None for new in follow_ups] == [False, True]

    async def test_a_clash_keeps_the_attempt_running_and_the_others_of_the_batch_saved(
        self, store: Store, worker: WorkerId
    ) -> None:
        await add(store, *(new_task() for _ in range(3)))
        three = (await store.claim(worker, queues=None, capabilities=frozenset(), limit=3)).claims
        await put(store, "a")
        clashing = changes(Put(KIND, "a", "1", version=0), tasks=(new_task(),))
        fine = changes(Put(KIND, "b", "1", version=0), tasks=(new_task(),))

        (refusal,) = await store.save(
            [
                success(three[0])._replace(also=fine),
                success(three[1])._replace(also=clashing),
                success(three[2]),
            ]
        )

        assert refusal.task_id == three[1].task_id
        assert refusal.conflict is not None
        assert "note 'a'" in refusal.conflict
        states = [(await get(store, each.task_id)).state for each in three]
        assert states == [State.COMPLETED, State.RUNNING, State.COMPLETED]
        assert (await found(store, "b")).version == 1
        assert [await store.get(new.id) is None for new in (fine.tasks[0], clashing.tasks[0])] == [
            False,
            True,
        ]
        await save(store, success(three[1]))


class JournalSuite(StoreSuite):
    """`journal`: what steps came to, once each."""

    async def test_steps_are_recorded_once_and_in_order(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await started(store, worker)
        fence = (one.task_id, one.attempt, one.worker_id)

        await store.report([_report(fence, ("z", b"1"), ("a", b'{"x": "\\u00e9"}'))])
        await store.report([_report(fence, ("z", b"2"), ("m", b"\xff\x00"))])

        assert list((await store.journal(one.task_id)).items()) == [
            ("z", b"1"),
            ("a", b'{"x": "\\u00e9"}'),
            ("m", b"\xff\x00"),
        ]

    async def test_a_stale_worker_records_no_step(self, store: Store, worker: WorkerId) -> None:
        one = await started(store, worker)
        await save(store, release(one))
        two = await claim_one(store, worker)
        stale = _report((one.task_id, one.attempt, one.worker_id), ("a", b"1"))

        (refusal,) = await store.report([stale])

        assert refusal.task_id == one.task_id
        assert await store.journal(one.task_id) == {}
        await store.report([_report((two.task_id, two.attempt, two.worker_id), ("a", b"2"))])
        assert await store.journal(one.task_id) == {"a": b"2"}

    async def test_the_journal_stays_over_a_requeue_and_goes_with_the_task(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await started(store, worker)
        await store.report([_report((one.task_id, one.attempt, one.worker_id), ("a", b"1"))])
        await save(store, success(one))
        await store.requeue(only(one.task_id), limit=1, head_starts=HEAD_STARTS)
        assert await store.journal(one.task_id) == {"a": b"1"}
        two = await claim_one(store, worker)
        await save(store, success(two))

        await store.discard(only(one.task_id), limit=1)

        assert await store.journal(one.task_id) == {}

    async def test_tasks_without_steps_have_an_empty_journal(
        self, store: Store, worker: WorkerId
    ) -> None:
        one = await started(store, worker)

        assert await store.journal(one.task_id) == {}
        assert await store.journal(new_task().id) == {}
