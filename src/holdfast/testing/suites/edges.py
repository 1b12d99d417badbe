"""Edges: odd text, large and binary values, ids that are none."""

from __future__ import annotations

import os

from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId, WorkerId
from holdfast.pauses import pause, resume
from holdfast.ports.store import Store
from holdfast.testing.factories import HEAD_STARTS, failure, new_task, success, task_error
from holdfast.testing.suites.base import (
    EVERYTHING,
    StoreSuite,
    add,
    all_ids,
    claim_one,
    ended,
    get,
    only,
    started,
    submit,
)

ODD_TEXTS = [
    "",
    " ",
    "'; DROP TABLE tasks; --",
    "%_\\*?[a]",
    'quote"back`tick$1:{}',
    "línea\nnueva\ttab\r",
    "日本語 עברית ☃ 👩‍👩‍👧",
    "e\u0301 is not \u00e9",
    "$where",
    "a.b.c",
    "x" * 2000,
]

NO_IDS = [
    "",
    "x",
    "nope",
    "00000000",
    "019a5b7e-0000-7000-8000-00000000000",
    "019A5B7E-0000-7000-8000-000000000000",
    "019a5b7e000070008000000000000000",
    "019a5b7e-0000-7000-8000-000000000000 ",
    "{019a5b7e-0000-7000-8000-000000000000}",
    "ü" * 36,
    "%",
    "with\x00nul",
    "lone\ud800surrogate",
]


class EdgeSuite(StoreSuite):
    """What goes in comes out, byte for byte; what cannot be there is not found."""

    async def test_odd_text_comes_back_and_is_found_exactly(
        self, store: Store, worker: WorkerId
    ) -> None:
        other = await submit(store)

        for text in ODD_TEXTS:
            task = await submit(
                store,
                name=text,
                queue=text,
                unique_key=text,
                idempotency_key=text,
                fingerprint=text,
                lock=text,
                requires=frozenset({text}),
                tags=(text, "plain"),
                owner=text,
            )
            found = await get(store, task)
            assert (found.name, found.queue, found.unique_key, found.lock) == (text,) * 4
            assert (found.idempotency_key, found.owner) == (text, text)
            assert (found.requires, found.tags) == (frozenset({text}), (text, "plain"))
            where = TaskFilter(
                name=text, queue=text, owner=text, tag=text, lock=text, unique_key=text
            )
            assert await all_ids(store, where) == [task]
            claimed = await claim_one(store, worker, queues=[text], capabilities={text})
            assert (claimed.task_id, claimed.lock) == (task, text)
        assert (await get(store, other)).state is State.QUEUED

    async def test_an_odd_queue_can_be_paused(self, store: Store, worker: WorkerId) -> None:
        for text in ODD_TEXTS:
            await submit(store, queue=text)
        plain = await submit(store, queue="plain")

        assert {await pause(store, text) for text in ODD_TEXTS} == {True}

        assert (await claim_one(store, worker)).task_id == plain
        assert {await resume(store, text) for text in ODD_TEXTS} == {True}

    async def test_a_payload_comes_back_byte_for_byte(self, store: Store, worker: WorkerId) -> None:
        for payload in (
            b"{}",
            b"",
            '{"☃":"日本語"}'.encode(),
            bytes(range(256)),
            b"\x00" * 1000,
            b'{"n": 1.0,   "spaces":true}',
        ):
            found = await started(store, worker, payload=payload)
            assert found.payload == payload
            assert (await get(store, found.task_id)).payload == payload

    async def test_a_payload_and_a_result_of_a_mebibyte_come_back_exactly(
        self, store: Store, worker: WorkerId
    ) -> None:
        payload, result = os.urandom(1 << 20), os.urandom(1 << 20)

        task = await ended(store, worker, lambda c: success(c, result), payload=payload)

        found = await get(store, task)
        assert found.payload == payload
        assert found.result == result

    async def test_large_numbers_come_back(self, store: Store) -> None:
        for value in (0, 1, 2**31, 2**62):
            task = await submit(store, max_retries=value)
            assert (await get(store, task)).max_retries == value

    async def test_a_timeout_comes_back_as_it_was(self, store: Store, worker: WorkerId) -> None:
        for value in (None, 0.0, 0.001, 1 / 3, 1e9):
            found = await started(store, worker, timeout=value)
            assert found.timeout == value
            assert (await get(store, found.task_id)).timeout == value

    async def test_an_error_without_a_traceback_comes_back(
        self, store: Store, worker: WorkerId
    ) -> None:
        task = await ended(
            store, worker, lambda c: failure(c, message="", traceback=None, retriable=False)
        )

        assert (await get(store, task)).error == task_error(
            message="", traceback=None, retriable=False
        )

    async def test_many_tags_keep_their_order(self, store: Store) -> None:
        tags = tuple(f"tag-{n * 7 % 50}" for n in range(50))

        task = await submit(store, tags=tags)

        assert (await get(store, task)).tags == tags

    async def test_a_task_is_found_by_its_tag_once_though_it_has_it_twice(
        self, store: Store
    ) -> None:
        task = await submit(store, tags=("a", "a"))

        assert await all_ids(store, TaskFilter(tag="a")) == [task]

    async def test_text_that_is_no_id_names_no_task(self, store: Store) -> None:
        await submit(store)

        for nobody in map(TaskId, NO_IDS):
            assert await store.get(nobody) is None
            assert await store.history(nobody) is None
            assert await store.standing(nobody) is None
            assert await all_ids(store, only(nobody)) == []
            assert await store.count(only(nobody), limit=1) == 0
            assert list(await store.cancel(only(nobody), limit=1)) == []
            assert list(await store.requeue(only(nobody), limit=1, head_starts=HEAD_STARTS)) == []
            assert await store.discard(only(nobody), limit=1) == 0
            assert await all_ids(store, TaskFilter(parent_id=nobody)) == []

    async def test_a_result_for_text_that_is_no_id_is_refused(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker)

        refusals = await store.save([success(found._replace(task_id=TaskId("nope")))])

        assert [r.task_id for r in refusals] == ["nope"]

    async def test_a_filter_by_very_many_ids_works(self, store: Store) -> None:
        batch = [new_task() for _ in range(1200)]
        await add(store, *batch)

        assert await store.count(only(*(t.id for t in batch)), limit=5000) == 1200
        assert await store.count(EVERYTHING, limit=5000) == 1200

    async def test_a_batch_of_thousands_is_stored_whole(self, store: Store) -> None:
        batch = [new_task(lock=f"doc:{n % 40}", unique_key=str(n)) for n in range(self.some(3000))]

        answers = await add(store, *batch)

        assert all(answer.created for answer in answers)
        assert sum(answer.state is State.QUEUED for answer in answers) == 40
