"""Opening: a store sets itself up, knows its version, and keeps what it took."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.core.task import State, WorkerId
from holdfast.errors import HoldfastError
from holdfast.pauses import pause
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import new_tasks, success
from holdfast.testing.suites.base import (
    OpenAnother,
    StoreSuite,
    add,
    all_ids,
    claim_one,
    enlist,
    get,
    history,
    save,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once


class OpenSuite(StoreSuite):
    """`open`, `close`, schema, abilities."""

    async def test_an_open_store_has_a_schema_and_nothing_to_migrate(self, store: Store) -> None:
        assert await store.schema_version() >= 1
        assert list(await store.migrate()) == []

    async def test_a_fresh_store_has_nothing_to_complain_about(self, store: Store) -> None:
        assert list(await store.check()) == []

    async def test_the_url_names_the_kind_of_store(self, store: Store) -> None:
        scheme, separator, _ = store.url.partition("://")

        assert separator
        assert scheme.isalpha()

    async def test_abilities_are_known_words(self, store: Store) -> None:
        known = {"many_processes", "durable", "transactions", "one_writer"}

        assert store.abilities <= known

    async def test_another_handle_sees_what_was_acknowledged(
        self, store: Store, worker: WorkerId, open_another: OpenAnother
    ) -> None:
        task = await submit(store, payload=b'{"n":1}')
        await save(store, success(await claim_one(store, worker), b"2"))

        other = await open_another()

        assert await get(other, task) == await get(store, task)
        assert await history(other, task) == await history(store, task)
        assert await other.stats() == await store.stats()

    async def test_work_flows_between_two_handles(
        self, store: Store, open_another: OpenAnother
    ) -> None:
        other = await open_another()
        task = await submit(store)
        worker = await enlist(other)

        await save(other, success(await claim_one(other, worker)))

        assert await state(store, task) is State.COMPLETED

    async def test_two_handles_racing_never_start_a_task_twice(
        self, store: Store, open_another: OpenAnother
    ) -> None:
        handles = [store, await open_another()]
        batch = new_tasks(100)
        await add(store, *batch)
        workers = [await enlist(store) for _ in range(8)]

        async def drain(index: int) -> list[str]:
            got: list[str] = []
            while True:
                claimed = await handles[index % 2].claim(
                    workers[index], queues=None, capabilities=frozenset(), limit=3
                )
                if not claimed.claims:
                    return got
                got += [found.task_id for found in claimed.claims]

        shares = await at_once(8, drain)

        assert sorted(t for share in shares for t in share) == [t.id for t in batch]

    async def test_what_was_accepted_survives_closing_and_opening_again(
        self, store: Store, clock: FakeClock, open_another: OpenAnother
    ) -> None:
        if "durable" not in store.abilities:
            pytest.skip("this store keeps nothing beyond its handle (no ability `durable`)")
        first = await open_another()
        task = await submit(first, delay=5.0)
        await pause(first, "mail")
        await first.close()
        await first.close()

        second = await open_another()

        assert (await get(second, task)).run_at > clock.now
        assert await pause(second, "mail") is False
        assert await all_ids(second) == [task]

    async def test_a_submit_racing_with_close_is_either_stored_or_refused(
        self, store: Store, open_another: OpenAnother
    ) -> None:
        closing = await open_another()
        batch = new_tasks(40)

        answers = await asyncio.gather(
            *(add(closing, new) for new in batch[:20]),
            closing.close(),
            *(add(closing, new) for new in batch[20:]),
            return_exceptions=True,
        )

        taken = [answer[0].task_id for answer in answers if isinstance(answer, list)]
        refused = [answer for answer in answers if isinstance(answer, BaseException)]
        assert sorted(await all_ids(store)) == sorted(taken)
        assert all(isinstance(error, HoldfastError) for error in refused)
        assert len(taken) + len(refused) == len(batch)
