"""Workers of different releases on one store: what one's code is not fit for is left to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.integration.worker.workshop import Workshop

from holdfast.core.attempt import Attempt
from holdfast.core.fleet import shown_capabilities
from holdfast.core.task import AttemptEnd, Reason, State, TaskId
from holdfast.core.why import Why, explain
from holdfast.errors import InvalidArguments
from holdfast.testing.eventually import eventually


class Release(Workshop):
    """The code of one release, on the store of another."""

    def __init__(self, first: Workshop, **settings: Any) -> None:
        super().__init__(first.store, first.dispatcher)
        self.settings = replace(first.settings, **settings)


@pytest.fixture
def old(shop: Workshop) -> Release:
    return Release(shop)


@pytest.fixture
def new(shop: Workshop) -> Release:
    return Release(shop)


async def first_attempt(shop: Workshop, task: TaskId) -> Attempt:
    """The first attempt, once it has ended."""

    async def ended() -> Attempt:
        attempts = await shop.attempts(task)
        assert attempts
        assert attempts[0].ended is not None
        return attempts[0]

    return await eventually(ended)


async def why(shop: Workshop, task: TaskId) -> Why:
    standing = await shop.store.standing(task)
    assert standing is not None
    return explain(standing)


async def test_a_task_unknown_here_goes_back_uncharged_and_is_not_offered_again(
    old: Release, new: Release
) -> None:
    @new.task(name="mail.sent")
    async def sent() -> str:
        return "sent"

    @old.task(name="mail.send")
    async def send() -> None: ...

    task = await new.submit(sent)
    await old.drain()
    await old.drain()

    waiting = await old.get(task)
    assert (waiting.state, waiting.attempt, waiting.charged) == (State.QUEUED, 1, 0)
    assert waiting.error is not None
    assert waiting.error.type == "UnknownTask"
    assert "Did you mean 'mail.send'?" in waiting.error.message
    await new.drain()
    assert (await old.get(task)).result == b'"sent"'


async def test_of_old_and_new_workers_each_takes_what_it_knows(old: Release, new: Release) -> None:
    @old.task(name="old")
    async def removed(n: int) -> int:
        return n

    @new.task(name="new")
    async def added(n: int) -> int:
        return n

    calls = [(n,) for n in range(20)]
    async with old.working(), new.working():
        tasks = await old.submit_many(removed, calls) + await new.submit_many(added, calls)
        done = [await old.reaches(task, State.COMPLETED) for task in tasks]

    assert {(task.charged, task.crash_count) for task in done} == {(0, 0)}
    assert max(task.attempt for task in done) <= 2


async def test_a_new_worker_is_woken_for_what_an_old_one_did_not_know(
    old: Release, new: Release
) -> None:
    @old.task(name="old")
    async def removed() -> None: ...

    @new.task(name="new")
    async def added() -> None: ...

    async with new.working(poll=600.0), old.working(poll=600.0):
        for _ in range(5):
            task = await new.submit(added)
            await old.reaches(task, State.COMPLETED)


@pytest.mark.parametrize("is_sync", [False, True], ids=["async", "thread"])
async def test_arguments_that_do_not_fit_are_handed_back_uncharged_to_others(
    old: Release, new: Release, is_sync: bool
) -> None:
    async def pay(order: int) -> str:
        return "old"

    async def pay_in(order: int, currency: str) -> str:
        return currency

    def pay_sync(order: int) -> str:
        return "old"

    def pay_in_sync(order: int, currency: str) -> str:
        return currency

    old.task(name="pay", max_retries=0)(pay_sync if is_sync else pay)
    newer = new.task(name="pay", max_retries=0)(pay_in_sync if is_sync else pay_in)

    async with old.working():
        task = await new.submit(newer, 7, "USD")
        attempt = await first_attempt(old, task)
    waiting, reasons = await old.get(task), (await why(old, task)).reasons
    async with new.working():
        done = await new.reaches(task, State.COMPLETED)

    assert (attempt.ended, attempt.charged) == (AttemptEnd.RELEASED, False)
    assert attempt.error is not None
    assert attempt.error.type == "UnfitArguments"
    assert "currency: is no parameter of this task" in attempt.error.message
    assert (waiting.state, waiting.charged) == (State.QUEUED, 0)
    assert "unfit_arguments" in dict(reasons)
    assert (done.result, done.charged) == (b'"USD"', 0)


async def test_what_new_code_requires_and_old_code_did_not_send_is_left_to_old_workers(
    old: Release, new: Release
) -> None:
    @old.task(name="pay")
    async def pay(order: int) -> str:
        return "old"

    @new.task(name="pay")
    async def pay_in(order: int, currency: str) -> str:
        return currency

    async with new.working():
        task = await old.submit(pay, 7)
        await first_attempt(old, task)
    async with old.working():
        assert (await old.reaches(task, State.COMPLETED)).result == b'"old"'


async def test_what_the_caller_leaves_out_fits_a_worker_that_lacks_it(
    old: Release, new: Release
) -> None:
    @old.task(name="pay")
    async def pay(order: int) -> str:
        return "old"

    @new.task(name="pay")
    async def pay_in(order: int, currency: str = "EUR") -> str:
        return currency

    task = await new.submit(pay_in, 7)
    await old.drain()

    assert (await old.get(task)).payload == b'{"order":7}'
    assert (await old.get(task)).result == b'"old"'


async def test_arguments_that_nobody_takes_become_a_dead_letter_in_time(shop: Workshop) -> None:
    old, new = Release(shop, unknown_task_grace=0.5), Release(shop)

    @old.task(name="grow")
    async def grow(size: int) -> None: ...

    @new.task(name="grow")
    async def grow_to(size: str) -> None: ...

    task = await new.submit(grow_to, "large")
    async with old.working():
        dead = await old.reaches(task, State.DEAD_LETTER)

    assert (dead.reason, dead.charged) == (Reason.UNFIT_ARGUMENTS, 0)
    assert dead.error is not None
    assert "size" in dead.error.message
    assert dead.attempt >= 2
    assert "No worker took its arguments" in (await why(old, task)).sentence


async def test_an_error_about_arguments_that_the_body_raises_is_a_failure(shop: Workshop) -> None:
    @shop.task()
    async def nosy() -> None:
        raise InvalidArguments("what it wanted to submit does not fit")

    task = await shop.submit(nosy)
    await shop.drain()

    assert (await shop.get(task)).state is State.FAILED


async def test_what_nobody_knows_stays_and_says_why(
    old: Release, new: Release, caplog: pytest.LogCaptureFixture
) -> None:
    @old.task()
    async def other() -> None: ...

    @new.task(name="orders.refund")
    async def refund() -> None: ...

    tasks = [await new.submit(refund) for _ in range(3)]
    async with old.working():
        for task in tasks:
            await first_attempt(old, task)
        told = await why(old, tasks[0])

    assert [code for code, _ in told.reasons] == ["unknown_task"]
    assert "'orders.refund'" in told.sentence
    assert "--include" in told.sentence
    warned = [said for said in caplog.messages if said.startswith("worker.unknown_task")]
    assert warned == ["worker.unknown_task task_name=orders.refund queue=default"], "said once"
    assert {(await old.get(task)).state for task in tasks} == {State.QUEUED}


async def test_what_nobody_knew_for_long_becomes_a_dead_letter(shop: Workshop) -> None:
    old, new = Release(shop, unknown_task_grace=0.4, heartbeat=0.1), Release(shop)

    @old.task()
    async def other() -> None: ...

    @new.task(name="refund")
    async def refund() -> None: ...

    task, mine = await new.submit(refund), await old.submit(other)
    async with old.working():
        dead = await old.reaches(task, State.DEAD_LETTER)

    assert (dead.reason, dead.charged, dead.attempt) == (Reason.UNKNOWN_TASK, 0, 1)
    assert "No worker knew it" in (await why(old, task)).sentence
    assert (await old.get(mine)).state is State.COMPLETED


async def test_what_somebody_knows_waits_however_long_that_worker_is_busy(shop: Workshop) -> None:
    settings = {"unknown_task_grace": 0.2, "heartbeat": 0.1}
    old, new = Release(shop, **settings), Release(shop, **settings)
    done = 0

    @old.task()
    async def other() -> None: ...

    @new.task(name="refund")
    async def refund() -> None:
        nonlocal done
        done += 1

    async with new.working(queues=("elsewhere",)), old.working():
        task = await new.submit(refund)
        await first_attempt(old, task)
        later = await old.submit(other, delay=1.0)  # five graces
        await old.reaches(later, State.COMPLETED)
        assert (await old.get(task)).state is State.QUEUED


async def test_nobody_is_shown_which_tasks_a_worker_knows_as_capabilities(shop: Workshop) -> None:
    @shop.task(name="mine")
    async def mine() -> None: ...

    async with shop.working(capabilities=frozenset({"gpu"})) as worker:

        async def registered() -> frozenset[str]:
            found = [info for info in await shop.store.workers() if info.id == worker.id]
            assert found
            return found[0].capabilities

        assert shown_capabilities(await eventually(registered)) == ["gpu"]
