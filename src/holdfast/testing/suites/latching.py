"""Latches: closed until they were counted down or their task has ended, open ever after."""

from __future__ import annotations

import pytest

from holdfast.core.gate import Count, GateState, latch_of
from holdfast.core.passing import SLICE
from holdfast.core.record import Changes, Put
from holdfast.core.task import State, WorkerId
from holdfast.core.why import explain
from holdfast.errors import RecordConflict
from holdfast.ports.store import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.factories import (
    HEAD_STARTS,
    behind,
    failure,
    new_task,
    new_tasks,
    stop,
    success,
)
from holdfast.testing.suites.base import (
    MANY,
    Settle,
    StoreSuite,
    add,
    claim,
    claim_ids,
    claim_one,
    ended,
    enlist,
    get,
    only,
    save,
    started,
    state,
    submit,
)
from holdfast.testing.suites.races import at_once

GROUP = "latch:group"


def made(number: int = 1, name: str = "make") -> Changes:
    """A commit that makes the latch of the group."""
    return Changes(name, records=[Put("note", name, "{}")], counts=[Count(GROUP, number)])


def down(number: int = 1, name: str = "down", failed: int = 0) -> Changes:
    return Changes(name, records=[Put("note", name, "{}")], counts=[Count(GROUP, -number, failed)])


async def _group(store: Store) -> tuple[int, int, bool]:
    """How the latch of the group is."""
    (latch,) = await store.gates(names=[GROUP], limit=1)
    return latch.left, latch.failed, latch.is_open


any_end = pytest.mark.parametrize(
    "settle",
    [success, stop, lambda c: failure(c, retriable=False)],
    ids=["success", "stop", "failure"],
)


class LatchSuite(StoreSuite):
    """Whoever stands behind a latch is ready when it opens, and not before."""

    @any_end
    async def test_what_stands_behind_a_task_is_ready_when_that_has_ended(
        self, store: Store, worker: WorkerId, settle: Settle
    ) -> None:
        first = await submit(store)
        second = await submit(store, gates=behind(first))
        assert await state(store, second) is State.BLOCKED
        found = await claim_one(store, worker)

        await save(store, settle(found))

        assert await claim_ids(store, worker) == [second]

    async def test_a_task_and_what_stands_behind_it_come_in_one_batch_in_any_order(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = new_task()
        second = new_task(gates=behind(first.id))
        answers = await add(store, second, first)

        assert [answer.state for answer in answers] == [State.BLOCKED, State.QUEUED]
        await save(store, success(await claim_one(store, worker)))
        assert await claim_ids(store, worker) == [second.id]

    async def test_a_retry_is_no_end(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await submit(store)
        second = await submit(store, gates=behind(first))
        await save(store, failure(await claim_one(store, worker), backoff=1.0))
        clock.advance(1)

        again = await claim_one(store, worker)
        assert again.task_id == first
        await save(store, success(again))

        assert await claim_ids(store, worker) == [second]

    @pytest.mark.parametrize("delay", [None, 60.0], ids=["ready", "waiting"])
    async def test_a_task_that_is_cancelled_before_it_ran_has_ended(
        self, store: Store, worker: WorkerId, delay: float | None
    ) -> None:
        first = await submit(store, delay=delay)
        second = await submit(store, gates=behind(first))

        await store.cancel(only(first), limit=1)

        assert await claim_ids(store, worker) == [second]

    async def test_a_task_that_expired_has_ended(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        first = await submit(store, expires_in=5.0, delay=60.0)
        second = await submit(store, gates=behind(first))
        clock.advance(6)

        assert await claim_ids(store, worker) == [second]

    async def test_a_blocked_task_that_ends_opens_its_latch(
        self, store: Store, worker: WorkerId
    ) -> None:
        holder = await submit(store, lock="doc")
        first = await submit(store, lock="doc")
        second = await submit(store, gates=behind(first))

        await store.cancel(only(first), limit=1)

        assert await claim_ids(store, worker) == [holder, second]

    async def test_a_task_that_has_ended_or_is_unknown_keeps_nobody(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await ended(store, worker, success)

        answers = await add(
            store, new_task(gates=behind(first)), new_task(gates=behind("never made"))
        )

        assert [answer.state for answer in answers] == [State.QUEUED, State.QUEUED]

    async def test_one_that_comes_while_the_task_runs_waits_for_its_end(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await started(store, worker)
        second = await submit(store, gates=behind(first.task_id))
        assert await claim_ids(store, worker) == []

        await save(store, success(first))

        assert await claim_ids(store, worker) == [second]

    async def test_a_chain_goes_link_by_link(self, store: Store, worker: WorkerId) -> None:
        chain = [new_task()]
        for _ in range(4):
            chain.append(new_task(gates=behind(chain[-1].id)))
        await add(store, *chain)
        got = []

        for _ in chain:
            found = await claim_one(store, worker)
            got.append(found.task_id)
            await save(store, success(found))

        assert got == [link.id for link in chain]

    async def test_several_latches_must_all_be_open(self, store: Store, worker: WorkerId) -> None:
        await add(store, *(firsts := new_tasks(3)))
        last = await submit(store, gates=tuple(g for one in firsts for g in behind(one.id)))

        for found in await claim(store, worker):
            assert await state(store, last) is State.BLOCKED
            await save(store, success(found))

        assert await claim_ids(store, worker) == [last]

    async def test_nothing_is_held_while_a_task_waits_for_a_latch(
        self, store: Store, worker: WorkerId
    ) -> None:
        first = await submit(store)
        await submit(store, lock="doc", gates=behind(first))
        other = await submit(store, lock="doc")

        assert await claim_ids(store, worker) == [first, other]

    async def test_a_counted_latch_opens_when_the_last_of_its_tasks_has_ended(
        self, store: Store, worker: WorkerId
    ) -> None:
        members = new_tasks(3, counts=(GROUP,))
        last = new_task(gates=behind(GROUP))
        await store.commit(Changes("g", [last, *members], counts=[Count(GROUP, 3)]))

        for found in await claim(store, worker):
            assert await state(store, last.id) is State.BLOCKED
            await save(store, success(found))

        assert await claim_ids(store, worker) == [last.id]

    async def test_a_latch_remembers_how_many_did_not_go_well(
        self, store: Store, worker: WorkerId
    ) -> None:
        members = new_tasks(2, counts=(GROUP,))
        await store.commit(Changes("g", members, counts=[Count(GROUP, 2)]))
        first, second = await claim(store, worker)

        await save(store, success(first), failure(second, retriable=False))

        (latch,) = await store.gates(names=[GROUP], limit=1)
        assert (latch.left, latch.failed, latch.is_open) == (0, 1, True)

    async def test_a_commit_counts_down_too_and_a_repeat_does_not(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.commit(made(2))
        task = await submit(store, gates=behind(GROUP))
        await store.commit(down(name="one"))
        await store.commit(down(name="one"))
        assert await claim_ids(store, worker) == []

        await store.commit(down(name="two"))

        assert await claim_ids(store, worker) == [task]

    async def test_a_commit_that_loses_counts_nothing(self, store: Store) -> None:
        await store.commit(made(1))
        clash = Changes(
            "c", records=[Put("note", "make", "{}", version=7)], counts=[Count(GROUP, -1)]
        )

        with pytest.raises(RecordConflict):
            await store.commit(clash)

        (latch,) = await store.gates(names=[GROUP], limit=1)
        assert latch == GateState(name=GROUP, left=1)

    async def test_what_an_attempt_counts_up_with_its_end_comes_before_its_own_count(
        self, store: Store, worker: WorkerId
    ) -> None:
        """A member that ends by submitting another: the group is not over in between."""
        first = new_task(counts=(GROUP,))
        await store.commit(Changes("g", [first], counts=[Count(GROUP, 1)]))
        last = await submit(store, gates=behind(GROUP))
        found = await claim_one(store, worker)
        child = new_task(counts=(GROUP,))

        also = Changes("also", [child], counts=[Count(GROUP, 1)])
        await save(store, success(found)._replace(also=also))

        assert await state(store, last) is State.BLOCKED
        await save(store, success(await claim_one(store, worker)))
        assert await claim_ids(store, worker) == [last]

    async def test_an_open_latch_stays_open_whatever_is_counted(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.commit(made(1))
        await store.commit(down())
        await store.commit(made(5, name="again"))

        task = await submit(store, gates=behind(GROUP))

        assert await claim_ids(store, worker) == [task]

    async def test_counting_down_an_unknown_latch_changes_nothing(self, store: Store) -> None:
        await store.commit(down())

        assert await store.gates(limit=MANY) == []

    async def test_a_requeued_task_closes_its_own_latch_and_is_counted_again_by_others(
        self, store: Store, worker: WorkerId
    ) -> None:
        first, other = new_task(counts=(GROUP,)), new_task(counts=(GROUP,))
        await store.commit(Changes("g", [first, other], counts=[Count(GROUP, 2)]))
        await submit(store, gates=behind(first.id))
        last = await submit(store, gates=behind(GROUP))
        one, two = await claim(store, worker)
        await save(store, failure(one, retriable=False))
        await claim(store, worker)  # what stood behind it

        await store.requeue(only(first.id), limit=1, head_starts=HEAD_STARTS)
        late = await submit(store, gates=behind(first.id))
        again = await claim_one(store, worker)
        assert (again.task_id, await state(store, late)) == (first.id, State.BLOCKED)
        assert await _group(store) == (2, 0, False)
        await save(store, success(two))
        assert await _group(store) == (1, 0, False)
        assert await state(store, last) is State.BLOCKED
        await save(store, success(again))

        assert await claim_ids(store, worker) == [last, late]
        assert (await get(store, first.id)).counts == (GROUP,)

    async def test_a_requeued_task_closes_the_latches_that_it_counts(
        self, store: Store, worker: WorkerId
    ) -> None:
        members = new_tasks(3, counts=(GROUP,))
        await store.commit(Changes("g", members, counts=[Count(GROUP, 3)]))
        one, two, three = await claim(store, worker)
        await save(store, success(one), failure(two, retriable=False), stop(three))
        assert await _group(store) == (0, 2, True)

        await store.requeue(only(one.task_id, two.task_id), limit=2, head_starts=HEAD_STARTS)

        assert await _group(store) == (2, 1, False)
        last = await submit(store, gates=behind(GROUP))
        assert await state(store, last) is State.BLOCKED
        again = await claim(store, worker)
        assert [found.task_id for found in again] == [one.task_id, two.task_id]
        await save(store, *map(success, again))
        assert await _group(store) == (0, 1, True)
        assert await claim_ids(store, worker) == [last]

    async def test_a_requeued_task_that_stands_behind_its_requeued_members_waits_for_them(
        self, store: Store, worker: WorkerId
    ) -> None:
        parent = new_task(gates=behind(GROUP))
        member = new_task(counts=(GROUP,), delay=1.0)
        await store.commit(Changes("g", [parent, member], counts=[Count(GROUP, 1)]))
        await store.cancel(only(parent.id, member.id), limit=2)

        await store.requeue(only(parent.id, member.id), limit=2, head_starts=HEAD_STARTS)

        assert await state(store, parent.id) is State.BLOCKED
        found = await claim_one(store, worker)
        assert found.task_id == member.id
        await save(store, success(found))
        assert await claim_ids(store, worker) == [parent.id]

    async def test_a_latch_that_was_forgotten_is_made_anew_by_a_requeue(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        member = new_task(counts=(GROUP,), max_retries=0)
        await store.commit(Changes("g", [member], counts=[Count(GROUP, 1)]))
        await save(store, failure(await claim_one(store, worker)))
        clock.advance(100)
        await store.prune(retention=50.0, dead_letter_retention=500.0, limit=MANY)
        assert await store.gates(limit=MANY) == []

        await store.requeue(only(member.id), limit=1, head_starts=HEAD_STARTS)

        assert await _group(store) == (1, 0, False)
        await save(store, success(await claim_one(store, worker)))
        assert await _group(store) == (0, 0, True)

    async def test_one_that_is_merely_hurried_is_not_counted_again(
        self, store: Store, worker: WorkerId
    ) -> None:
        member = new_task(counts=(GROUP,), delay=60.0)
        await store.commit(Changes("g", [member], counts=[Count(GROUP, 1)]))

        await store.requeue(only(member.id), limit=1, head_starts=HEAD_STARTS)

        assert await _group(store) == (1, 0, False)

    async def test_a_long_line_behind_a_latch_passes_in_slices(
        self, store: Store, worker: WorkerId
    ) -> None:
        await store.commit(made(1))
        many = SLICE + 10
        await add(store, *new_tasks(many, gates=behind(GROUP)))

        await store.commit(down())
        got = await claim_ids(store, worker, limit=2 * many)
        while len(got) < many and (more := await claim_ids(store, worker, limit=2 * many)):
            got += more

        assert len(set(got)) == many

    async def test_latches_that_opened_long_ago_are_forgotten(
        self, store: Store, clock: FakeClock, worker: WorkerId
    ) -> None:
        await store.commit(made(1))
        await store.commit(made(1, name="other")._replace(counts=[Count("latch:shut", 1)]))
        await store.commit(down())
        clock.advance(100)

        await store.prune(retention=50.0, dead_letter_retention=50.0, limit=MANY)

        assert [latch.name for latch in await store.gates(limit=MANY)] == ["latch:shut"]

    async def test_many_tasks_count_one_latch_down_at_once(self, store: Store) -> None:
        number = self.some(40)
        members = new_tasks(number, counts=(GROUP,))
        await store.commit(Changes("g", members, counts=[Count(GROUP, number)]))
        last = await submit(store, gates=behind(GROUP))
        worker = await enlist(store)
        claims = await claim(store, worker)

        async def settle(index: int) -> None:
            for found in claims[index::4]:
                await save(store, success(found))

        await at_once(4, settle)

        assert await claim_ids(store, worker) == [last]

    async def test_why_says_what_it_waits_for(self, store: Store) -> None:
        await store.commit(made(3))
        task = await submit(store, gates=behind(GROUP))

        standing = await store.standing(task)

        assert standing is not None
        code, text = explain(standing).reasons[0]
        assert (code, "'group'" in text, "3 to go" in text) == ("dependency", True, True)

    async def test_a_latch_of_a_task_is_named_after_it(self, store: Store) -> None:
        first = await submit(store)
        await submit(store, gates=behind(first))

        assert [g.name for g in await store.gates(limit=MANY)] == [latch_of(first)]
