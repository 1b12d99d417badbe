"""Pausing: a paused queue hands out nothing; all else goes on."""

from __future__ import annotations

from holdfast.core.task import State, WorkerId
from holdfast.pauses import pause, resume
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import success
from holdfast.testing.suites.base import (
    OpenAnother,
    StoreSuite,
    claim,
    claim_ids,
    save,
    started,
    state,
    submit,
)


class PauseSuite(StoreSuite):
    """`pause` and `resume` say whether they changed anything."""

    async def test_a_paused_queue_hands_out_nothing(self, store: Store, worker: WorkerId) -> None:
        task = await submit(store, queue="mail")

        assert await pause(store, "mail") is True

        assert await claim(store, worker) == []
        assert await claim(store, worker, queues=["mail"]) == []
        assert await state(store, task) is State.QUEUED

    async def test_a_resumed_queue_goes_on_in_order(self, store: Store, worker: WorkerId) -> None:
        await pause(store, "mail")
        tasks = [await submit(store, queue="mail") for _ in range(3)]

        assert await resume(store, "mail") is True

        assert await claim_ids(store, worker) == tasks

    async def test_pausing_twice_changes_nothing_the_second_time(self, store: Store) -> None:
        assert [await pause(store, "mail"), await pause(store, "mail")] == [True, False]
        assert [await resume(store, "mail"), await resume(store, "mail")] == [True, False]

    async def test_a_queue_that_was_not_paused_cannot_be_resumed(self, store: Store) -> None:
        assert await resume(store, "never heard of") is False

    async def test_an_empty_queue_can_be_paused_before_its_first_task(
        self, store: Store, worker: WorkerId
    ) -> None:
        assert await pause(store, "new") is True

        await submit(store, queue="new")

        assert await claim(store, worker) == []

    async def test_other_queues_flow_past_a_paused_one(
        self, store: Store, worker: WorkerId
    ) -> None:
        await submit(store, queue="mail")
        other = await submit(store, queue="film")
        await pause(store, "mail")

        assert await claim_ids(store, worker) == [other]

    async def test_running_tasks_of_a_paused_queue_go_on(
        self, store: Store, worker: WorkerId
    ) -> None:
        found = await started(store, worker, queue="mail")
        await pause(store, "mail")

        await save(store, success(found))

        assert await state(store, found.task_id) is State.COMPLETED

    async def test_due_tasks_of_a_paused_queue_start_only_after_it_is_resumed(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        task = await submit(store, queue="mail", delay=5.0)
        await pause(store, "mail")
        clock.advance(10)

        assert await claim(store, worker) == []
        await resume(store, "mail")
        assert await claim_ids(store, worker) == [task]

    async def test_a_pause_is_seen_by_every_handle(
        self, store: Store, worker: WorkerId, open_another: OpenAnother
    ) -> None:
        other = await open_another()
        await submit(store, queue="mail")
        assert len(await claim(other, worker)) == 1
        await submit(store, queue="mail")

        await pause(store, "mail")

        assert await claim(other, worker) == []
