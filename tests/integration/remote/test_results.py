"""What a worker hands in counts exactly once, and only from who holds the attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.remote.depot import Depot, failure, released, result, verdicts

from holdfast.core.query import TaskFilter
from holdfast.core.retry import fixed
from holdfast.core.task import AttemptEnd, Json, Reason, State, TaskId
from holdfast.definitions.backoff import dump_policy
from holdfast.remote import UNSAID, RemoteResult, ResultStatus, Sleep, Verdict
from holdfast.testing.factories import task_id


async def test_a_result_completes_its_task(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    answer = await depot.tell(worker, claim, result={"pages": [1, 2]})

    assert answer.verdict is Verdict.SAVED
    task = await depot.get(claim.task_id)
    assert (task.state, task.result) == (State.COMPLETED, b'{"pages":[1,2]}')


@pytest.mark.parametrize("other_server", [False, True])
@pytest.mark.parametrize("status", list(ResultStatus))
async def test_the_owners_repeat_is_accepted_and_changes_nothing(
    depot: Depot, status: ResultStatus, other_server: bool
) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    said = failure(claim, retriable=False) if status == "failed" else result(claim, status=status)
    if status == "deferred":
        said = replace(said, until=Sleep("cool", 60.0))
    server = depot.server() if other_server else depot.remote

    first = await depot.remote.results(worker, [said])
    before = await depot.get(claim.task_id)
    again = await server.results(worker, [said])

    assert verdicts([*first, *again]) == [Verdict.SAVED, Verdict.REPEATED]
    assert await depot.get(claim.task_id) == before
    assert "late_result_refused" not in await depot.kinds(claim.task_id)


async def test_the_owners_repeat_is_accepted_when_the_task_has_moved_on(depot: Depot) -> None:
    worker, other = await depot.worker(), await depot.worker()
    claim = await depot.started(worker)
    await depot.remote.results(worker, [failure(claim)])
    (again,) = await depot.remote.poll(other, limit=1)
    await depot.tell(other, again)

    answers = await depot.server().results(worker, [failure(claim)])

    assert verdicts(answers) == [Verdict.REPEATED]


async def test_another_server_takes_a_result_as_well(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    answers = await depot.server().results(worker, [result(claim, result=5)])

    assert verdicts(answers) == [Verdict.SAVED]
    assert (await depot.get(claim.task_id)).result == b"5"


async def test_a_stale_attempt_is_refused_noted_and_counted(depot: Depot) -> None:
    worker = await depot.worker()
    first = await depot.started(worker)
    await depot.remote.results(worker, [released(first)])
    (second,) = await depot.remote.poll(worker, limit=1)

    answer = await depot.tell(worker, first, result="late")

    assert answer.verdict is Verdict.STALE
    assert worker not in str(answer.detail)
    task = await depot.get(first.task_id)
    assert (task.state, task.attempt, task.result) == (State.RUNNING, second.attempt, None)
    assert "late_result_refused" in await depot.kinds(first.task_id)
    assert (await depot.store.stats()).refused == 1
    assert (await depot.tell(worker, second)).verdict is Verdict.SAVED


async def test_the_log_says_only_of_a_result_that_counts_that_the_task_is_completed(
    depot: Depot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "holdfast.remote")
    owner, other = await depot.worker(), await depot.worker()
    claim = await depot.started(owner)

    await depot.tell(other, claim)
    stolen = "task.completed" in caplog.text
    await depot.tell(owner, claim)

    assert (stolen, "task.completed" in caplog.text) == (False, True)


async def test_a_foreign_result_is_refused_noted_and_counted(depot: Depot) -> None:
    owner, other = await depot.worker(), await depot.worker()
    claim = await depot.started(owner)

    answer = await depot.tell(other, claim, result="stolen")

    assert answer.verdict is Verdict.STALE
    assert await depot.state(claim.task_id) is State.RUNNING
    assert "late_result_refused" in await depot.kinds(claim.task_id)
    assert (await depot.store.stats()).refused == 1
    assert (await depot.tell(owner, claim)).verdict is Verdict.SAVED


async def test_an_attempt_that_was_never_started_is_refused(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    answer = await depot.tell(worker, claim._replace(attempt=2))

    assert answer.verdict is Verdict.STALE
    assert await depot.state(claim.task_id) is State.RUNNING


@pytest.mark.parametrize("wrong", ["0192f0c1-7a3b-7cc0-8000-1f2e3d4c5b6a", "no id at all"])
async def test_an_unknown_task_is_refused_and_counted(depot: Depot, wrong: str) -> None:
    worker = await depot.worker()
    said = RemoteResult(task_id=TaskId(wrong), attempt=1, status=ResultStatus.COMPLETED)

    answers = await depot.remote.results(worker, [said])

    assert verdicts(answers) == [Verdict.UNKNOWN]
    assert (await depot.store.stats()).refused == 1


@pytest.mark.parametrize(
    "value",
    ["x" * 1_100_000, 2**64, "a\0b", float("nan"), {"deep": [2**70]}],
    ids=["too large", "64 bits", "NUL", "NaN", "deep down"],
)
async def test_a_result_that_no_store_may_hold_changes_nothing(depot: Depot, value: Json) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    answer = await depot.tell(worker, claim, result=value)

    assert answer.verdict is Verdict.INVALID
    assert await depot.state(claim.task_id) is State.RUNNING
    assert (await depot.tell(worker, claim)).verdict is Verdict.SAVED


async def test_a_failure_is_retried_as_long_as_retries_are_left(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, max_retries=1)

    await depot.remote.results(worker, [failure(claim)])
    (again,) = await depot.remote.poll(worker, limit=1)
    await depot.remote.results(worker, [failure(again)])

    task = await depot.get(claim.task_id)
    assert (task.state, task.reason, task.charged) == (
        State.DEAD_LETTER,
        Reason.RETRIES_EXHAUSTED,
        2,
    )
    assert task.error is not None
    assert (task.error.type, task.error.message) == ("ValueError", "no such row")


async def test_a_failure_that_is_not_retriable_is_final(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    await depot.remote.results(worker, [failure(claim, retriable=False)])

    task = await depot.get(claim.task_id)
    assert (task.state, task.reason) == (State.FAILED, Reason.NOT_RETRIABLE)


async def test_the_worker_may_say_when_to_try_again(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)

    await depot.remote.results(worker, [failure(claim, retry_after=3600.0)])

    task = await depot.get(claim.task_id)
    assert task.state is State.RETRYING
    assert 3500 < (task.run_at - task.created_at).total_seconds() < 3700


async def test_a_type_nobody_defines_here_is_retried_by_the_tasks_own_policy(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, retry=dump_policy(fixed("1h")))

    await depot.remote.results(worker, [failure(claim)])

    task = await depot.get(claim.task_id)
    assert task.state is State.RETRYING
    assert 3500 < (task.run_at - task.created_at).total_seconds() < 3700


async def test_a_released_task_goes_back_and_nothing_is_charged(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, max_retries=0)

    await depot.remote.results(worker, [released(claim)])

    (again,) = await depot.remote.poll(worker, limit=1)
    assert (again.task_id, again.attempt, again.charged) == (claim.task_id, 2, 0)


@pytest.mark.parametrize("told", [False, True], ids=["unaware", "told by a heartbeat"])
async def test_a_cancelled_task_that_is_handed_back_is_cancelled(depot: Depot, told: bool) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    await depot.store.cancel(TaskFilter(ids=(claim.task_id,)), limit=1)
    if told:
        await depot.remote.heartbeat(worker)

    first = await depot.remote.results(worker, [released(claim)])
    again = await depot.server().results(worker, [released(claim)])

    assert verdicts([*first, *again]) == [Verdict.SAVED, Verdict.REPEATED]
    task = await depot.get(claim.task_id)
    assert (task.state, task.reason) == (State.CANCELLED, Reason.CANCELLED)
    (attempt,) = (await depot.history(claim.task_id)).attempts
    assert attempt.ended is (AttemptEnd.CANCELLED if told else AttemptEnd.RELEASED)


async def test_a_batch_is_answered_one_by_one(depot: Depot) -> None:
    worker, other = await depot.worker(), await depot.worker()
    good, huge, bad = [await depot.started(worker) for _ in range(3)]
    foreign = await depot.started(other)
    unknown = good._replace(task_id=task_id())

    answers = await depot.remote.results(
        worker,
        [
            result(good),
            result(huge, result="x" * 1_100_000),
            result(foreign),
            result(unknown),
            failure(bad, retriable=False),
            result(good),
            failure(good),
        ],
    )

    assert verdicts(answers) == [
        Verdict.SAVED,
        Verdict.INVALID,
        Verdict.STALE,
        Verdict.UNKNOWN,
        Verdict.SAVED,
        Verdict.REPEATED,
        Verdict.STALE,
    ]
    assert await depot.state(good.task_id) is State.COMPLETED
    assert await depot.state(huge.task_id) is State.RUNNING
    assert await depot.state(foreign.task_id) is State.RUNNING
    assert await depot.state(bad.task_id) is State.FAILED


async def test_texts_that_no_store_can_hold_are_mended_in_errors(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    said = failure(claim, retriable=False)
    assert said.error is not None
    broken = type(said.error)(type="E\0", message="a\0b" + "x" * 100_000, retriable=False)

    answer = await depot.tell(worker, claim, status=ResultStatus.FAILED, error=broken)

    assert answer.verdict is Verdict.SAVED
    error = (await depot.get(claim.task_id)).error
    assert error is not None
    assert error.type == "E\\0"
    assert len(error.message) < 5000


async def test_a_completed_task_lets_the_next_with_its_lock_start(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker, lock="printer")
    waiting = await depot.submit(lock="printer")
    polling = await depot.parked(worker)

    await depot.tell(worker, claim)

    (following,) = await polling
    assert following.task_id == waiting
    assert following.fence is not None
    assert claim.fence is not None
    assert following.fence > claim.fence


@pytest.mark.parametrize("other_server", [False, True])
async def test_a_worker_that_had_a_task_once_need_not_say_which_attempt(
    depot: Depot, other_server: bool
) -> None:
    first, worker = await depot.worker(), await depot.worker()
    await depot.tell(first, await depot.started(first), status=ResultStatus.RELEASED)
    (claim,) = await depot.remote.poll(worker, limit=1, wait=0.0)
    server = depot.server() if other_server else depot.remote

    said = result(claim, attempt=UNSAID, result=2)
    answers = [*await server.results(worker, [said]), *await server.results(worker, [said])]

    assert verdicts(answers) == [Verdict.SAVED, Verdict.REPEATED]
    assert [answer.attempt for answer in answers] == [2, 2]
    assert (await depot.get(claim.task_id)).result == b"2"


async def test_a_worker_that_had_a_task_twice_must_say_which_attempt(depot: Depot) -> None:
    worker = await depot.worker()
    claim = await depot.started(worker)
    await depot.remote.results(worker, [released(claim)])
    (again,) = await depot.remote.poll(worker, limit=1, wait=0.0)

    (answer,) = await depot.remote.results(worker, [result(claim, attempt=UNSAID)])

    assert answer.verdict is Verdict.AMBIGUOUS
    assert "attempt" in str(answer.detail)
    assert (await depot.get(again.task_id)).state is State.RUNNING


async def test_a_result_without_an_attempt_from_who_never_had_the_task_is_refused(
    depot: Depot,
) -> None:
    worker, other = await depot.worker(), await depot.worker()
    claim = await depot.started(worker)

    (answer,) = await depot.remote.results(other, [result(claim, attempt=UNSAID)])

    assert answer.verdict is Verdict.STALE
    assert (await depot.get(claim.task_id)).state is State.RUNNING
