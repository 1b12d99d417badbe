"""A hold on one task: its result, its end, its second start."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast import (
    Handle,
    InvalidOption,
    InvalidTransition,
    ResultTimeout,
    State,
    TaskCancelled,
    TaskFailed,
    TaskNotFound,
    fixed,
)
from holdfast.core.task import AttemptEnd, Cause, SubmitOutcome
from holdfast.testing import MemoryApp


@pytest.fixture
def divide(app: MemoryApp) -> Any:
    @app.task(max_retries=1, retry=fixed("1m"))
    def divide(a: int, b: int) -> float:
        return a / b

    return divide


def test_a_new_task_says_so(divide: Any) -> None:
    handle = divide.submit(1, 2)

    assert (handle.created, handle.outcome) == (True, SubmitOutcome.CREATED)
    assert handle.status() is State.QUEUED
    assert handle.task().payload == b'{"a":1,"b":2}'
    assert (str(handle), repr(handle)) == (handle.id, f"<Handle {handle.id}>")


def test_the_result_comes_back_as_its_type(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 2)
    app.drain()

    assert handle.result() == 0.5
    assert handle.status() is State.COMPLETED


async def test_awaiting_a_handle_is_its_result(app: MemoryApp, divide: Any) -> None:
    handle = await divide.submit_async(1, 2)
    waiting = asyncio.create_task(_awaited(handle))
    await asyncio.sleep(0)
    await app.drain_async()

    assert await waiting == 0.5


async def _awaited(handle: Handle[float]) -> float:
    return await handle


def test_a_thread_that_waits_gets_the_result_when_it_comes(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(4, 2)
    results: list[float] = []
    waiting = threading.Thread(target=lambda: results.append(handle.result(timeout="10s")))

    waiting.start()
    app.drain()
    waiting.join(10)

    assert results == [2.0]


def test_no_result_in_time_is_an_error_that_changes_nothing(divide: Any) -> None:
    handle = divide.submit(1, 2)

    with pytest.raises(ResultTimeout, match=r"still queued after 0\.05 s") as late:
        handle.result(timeout=0.05)

    assert isinstance(late.value, TimeoutError)
    assert handle.status() is State.QUEUED


def test_a_timeout_of_nonsense_is_refused(divide: Any) -> None:
    with pytest.raises(InvalidOption, match=r"^timeout: expected a duration"):
        divide.submit(1, 2).result(timeout="soon")


def test_a_dead_letter_raises_with_its_error(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 0)
    app.drain("empty")

    with pytest.raises(TaskFailed, match="ZeroDivisionError: division by zero") as failed:
        handle.result()

    assert (failed.value.state, failed.value.task_id) == ("dead_letter", handle.id)
    assert failed.value.error is not None
    assert "in divide" in (failed.value.error.traceback or "")


def test_a_cancelled_task_raises_as_cancelled(divide: Any) -> None:
    handle = divide.submit(1, 2)

    assert handle.cancel().state is State.CANCELLED
    with pytest.raises(TaskCancelled, match="was cancelled"):
        handle.result()


def test_an_expired_task_says_that_it_expired(app: MemoryApp, divide: Any) -> None:
    handle = divide.options(expires="1m").submit(1, 2)
    app.clock.advance(61)
    app.drain()

    with pytest.raises(TaskCancelled, match="expired before it could start"):
        handle.result()


def test_cancelling_what_has_ended_is_refused(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 2)
    app.drain()

    with pytest.raises(InvalidTransition, match=r"cannot cancel task .*: it is completed"):
        handle.cancel()


def test_cancelling_a_running_task_twice_is_no_error(app: MemoryApp) -> None:
    seen: list[bool] = []

    @app.task
    def work() -> None:
        seen.extend(handle.cancel().cancel_requested for _ in range(2))

    handle = work.submit()
    app.drain()

    assert seen == [True, True]


def test_an_ended_task_is_started_again(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 2)
    app.drain()

    assert handle.retry().state is State.QUEUED
    app.drain()

    assert handle.result() == 0.5
    assert [attempt.cause for attempt in handle.history().attempts] == [
        Cause.SUBMITTED,
        Cause.OPERATOR,
    ]


def test_a_task_for_later_runs_now_when_told_so(app: MemoryApp, divide: Any) -> None:
    handle = divide.options(delay="1h").submit(6, 3)

    handle.retry()

    app.drain()
    assert handle.result(timeout=1) == 2


def test_a_retry_that_waits_is_hurried(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 0)
    app.drain()
    assert handle.status() is State.RETRYING

    handle.retry()

    assert [ran.attempt for ran in app.drain()] == [2]


def test_a_task_that_is_ready_cannot_be_retried(divide: Any) -> None:
    with pytest.raises(InvalidTransition, match=r"cannot retry task .*: it is queued"):
        divide.submit(1, 2).retry()


def test_a_retry_does_not_break_a_unique_key(app: MemoryApp, divide: Any) -> None:
    once = divide.options(unique_key="k")
    first = once.submit(1, 2)
    app.drain()
    second = once.submit(1, 2)
    assert second.id != first.id

    with pytest.raises(InvalidOption, match=r"^unique_key: .*cannot start again"):
        first.retry()


def test_the_history_tells_every_attempt(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 0)
    app.drain("empty")

    history = handle.history()

    assert [(a.number, a.cause, a.ended) for a in history.attempts] == [
        (1, Cause.SUBMITTED, AttemptEnd.ERROR),
        (2, Cause.RETRY, AttemptEnd.ERROR),
    ]
    assert (history.attempts[1].started_at - history.attempts[0].started_at).total_seconds() == 60


def test_a_handle_is_made_again_from_an_id(app: MemoryApp, divide: Any) -> None:
    handle = divide.submit(1, 2)
    app.drain()

    again = app.handle(handle.id)

    assert again == handle
    assert hash(again) == hash(handle)
    assert (again.outcome, again.created) == (None, False)
    assert again.result() == 0.5


def test_a_task_this_process_does_not_define_still_has_its_json(app: MemoryApp) -> None:
    @app.task(name="elsewhere")
    def elsewhere() -> set[int]:
        return {1}

    handle = elsewhere.submit()
    app.drain()
    del app.registry._definitions["elsewhere"]

    assert app.handle(handle.id).result() == [1]


@pytest.mark.parametrize("unknown", ["x", "", "01a1e11b-abb1-7333-9c1e-c570d72d4363", "a\x00"])
def test_an_unknown_id_is_not_found(app: MemoryApp, unknown: str) -> None:
    for verb in (app.get, app.history, app.why, app.cancel, app.retry):
        with pytest.raises(TaskNotFound):
            verb(unknown)


async def test_every_verb_has_an_async_twin(app: MemoryApp, divide: Any) -> None:
    handle = await divide.submit_async(1, 2)

    assert await handle.status_async() is State.QUEUED
    assert (await handle.task_async()).id == handle.id
    assert (await handle.cancel_async()).state is State.CANCELLED
    assert (await handle.retry_async()).state is State.QUEUED
    await app.drain_async()
    assert await handle.result_async(timeout=5) == 0.5
    assert len((await handle.history_async()).attempts) == 1
