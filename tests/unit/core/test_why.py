"""Why is my task not running? Every reason has its code and says what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.core.fleet import WorkerStatus
from holdfast.core.gate import GateState
from holdfast.core.stats import Standing
from holdfast.core.task import Cause, Priority, Reason, State, Task, TaskId, WorkerId
from holdfast.core.why import explain
from holdfast.testing.factories import task_error, worker_info

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAIN = Task(
    id=TaskId("t"),
    name="demo",
    queue="default",
    priority=Priority.NORMAL,
    state=State.QUEUED,
    payload=b"{}",
    created_at=NOW,
    run_at=NOW,
    rank=0,
    attempt=0,
    charged=0,
    max_retries=3,
    crash_count=0,
    cause=Cause.SUBMITTED,
)


def standing(task: Task = PLAIN, **given: Any) -> Standing:
    plain = Standing(
        now=NOW,
        task=task,
        queue_paused=False,
        ahead=0,
        ahead_cap=1000,
        gate=None,
        ahead_at_gate=None,
        workers=(worker_info(),),
    )
    return replace(plain, **given)


def codes(found: Standing) -> list[str]:
    return [code for code, _ in explain(found).reasons]


def test_the_next_in_line_with_a_free_worker_is_about_to_start() -> None:
    assert codes(standing()) == ["about_to_start"]


def test_the_eta_is_the_line_at_the_pace_of_the_last_minute() -> None:
    found = explain(standing(ahead=90, ended_last_minute=30))

    assert found.eta_seconds == 180.0


def test_the_next_in_line_starts_at_once() -> None:
    assert explain(standing(ahead=0, ended_last_minute=3)).eta_seconds == 0.0


@pytest.mark.parametrize(
    "given",
    [
        {"ended_last_minute": 0},
        {"ahead": None},
        {"queue_paused": True},
        {"workers": ()},
        {"task": replace(PLAIN, requires=frozenset({"gpu"}))},
        {"task": replace(PLAIN, run_at=NOW + timedelta(seconds=9))},
        {"task": replace(PLAIN, state=State.RUNNING, worker_id=WorkerId("w"))},
    ],
    ids=["nothing ended", "not ready", "paused", "no worker", "no capability", "future", "running"],
)
def test_there_is_no_eta_if_more_than_the_line_is_in_the_way(given: dict[str, Any]) -> None:
    assert explain(standing(**{"ahead": 5, "ended_last_minute": 30} | given)).eta_seconds is None


def test_the_next_in_line_waits_while_every_worker_is_busy() -> None:
    assert codes(standing(workers=(worker_info(load=10), worker_info(load=12)))) == ["workers_busy"]


def test_a_free_worker_that_does_not_serve_the_task_does_not_count() -> None:
    busy = worker_info(load=10)
    elsewhere = worker_info(queues=("mail",))

    assert codes(standing(workers=(busy, elsewhere))) == ["workers_busy"]


def test_a_free_worker_without_the_capability_does_not_count() -> None:
    task = replace(PLAIN, requires=frozenset({"gpu"}))
    busy = worker_info(load=10, capabilities=frozenset({"gpu"}))

    assert codes(standing(task, workers=(busy, worker_info()))) == ["workers_busy"]


@pytest.mark.parametrize(
    ("ahead", "sentence"),
    [
        (1, "It waits in line: 1 task of queue 'default' before it."),
        (7, "It waits in line: 7 tasks of queue 'default' before it."),
        (1000, "It waits in line: 1000 or more tasks of queue 'default' before it."),
    ],
)
def test_the_place_in_line_is_told(ahead: int, sentence: str) -> None:
    found = explain(standing(ahead=ahead))

    assert (found.reasons, found.ahead) == ((("in_line", sentence),), ahead)
    assert found.ahead_is_capped == (ahead == 1000)


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (90, "in 90 s."),
        (600, "in 10 min."),
        (7200, "in 2.0 h."),
        (86_400 * 3, "in 3.0 days."),
    ],
)
def test_a_future_run_at_is_told_with_the_time_left(wait: int, words: str) -> None:
    task = replace(PLAIN, run_at=NOW + timedelta(seconds=wait))

    ((code, sentence),) = explain(standing(task, ahead=None)).reasons

    assert code == "future_run_at"
    assert sentence.endswith(words)
    assert "UTC" in sentence


def test_a_wait_for_a_retry_names_the_attempt_that_failed() -> None:
    task = replace(PLAIN, state=State.RETRYING, attempt=2, run_at=NOW + timedelta(seconds=5))

    ((code, sentence),) = explain(standing(task, ahead=None)).reasons

    assert code == "retry_wait"
    assert sentence.startswith("Attempt 2 failed; the next may start at 2026-03-01 12:00:05 UTC")


def test_a_paused_queue_comes_with_the_command_that_resumes_it() -> None:
    ((code, sentence),) = explain(standing(queue_paused=True)).reasons

    assert code == "queue_paused"
    assert "holdfast queue resume default" in sentence


@pytest.mark.parametrize(
    ("gate", "ahead", "code", "sentence"),
    [
        (
            GateState(name="lock:doc:1", held=1, holder=TaskId("other")),
            0,
            "locked",
            "Its lock 'doc:1' is held by task other; it is next there.",
        ),
        (
            GateState(name="lock:doc:1", held=1),
            2,
            "locked",
            "Its lock 'doc:1' is held by another task; 2 before it there.",
        ),
        (
            GateState(name="limit:acme", capacity=3, held=3),
            1000,
            "limited",
            (
                "Its limit 'acme' is used up: 3 of 3 are ready or running; "
                "1000 or more before it there."
            ),
        ),
        (
            GateState(name="share:eve", capacity=2, held=2),
            1,
            "share_used",
            "Its share 'eve' is used up: 2 of 2 are in line or running; 1 before it there.",
        ),
        (
            GateState(name="rate:mail", capacity=5, opens_at=NOW + timedelta(seconds=9)),
            0,
            "rate_limited",
            (
                "Its rate 'mail' is used up: 5 a period; the next may at 12:00:09 UTC; "
                "it is next there."
            ),
        ),
        (
            GateState(name="breaker:api", capacity=0, pinned=True),
            0,
            "breaker_open",
            (
                "Its breaker 'api' is open, because too much failed or an operator opened it; "
                "it is next there."
            ),
        ),
        (GateState(name="latch:t1", left=2), 7, "dependency", "It waits for 't1': 2 to go."),
        (
            GateState(name="latch:t1", is_open=True),
            7,
            "let_through",
            "What it waits for, 't1', has come; it is let through.",
        ),
    ],
)
def test_a_closed_gate_is_named_with_the_place_before_it(
    gate: GateState, ahead: int, code: str, sentence: str
) -> None:
    task = replace(PLAIN, state=State.BLOCKED)

    found = explain(standing(task, ahead=None, gate=gate, ahead_at_gate=ahead))

    assert found.reasons == ((code, sentence),)


def test_no_worker_at_all_is_told() -> None:
    dead = worker_info(status=WorkerStatus.DEAD)

    assert codes(standing(workers=())) == ["no_worker"]
    assert codes(standing(workers=(dead,))) == ["no_worker"]


def test_a_queue_that_nobody_serves_is_told() -> None:
    ((code, sentence),) = explain(standing(workers=(worker_info(queues=("mail",)),))).reasons

    assert code == "no_worker_for_queue"
    assert "-q default" in sentence


@pytest.mark.parametrize(
    ("queue", "requires", "fix"),
    [
        ("default", set(), "start one with `holdfast worker module:app`."),
        ("mail", set(), "start one with `holdfast worker module:app -q mail`."),
        (
            "mail",
            {"gpu", "fast"},
            "with `holdfast worker module:app -q mail --capability fast --capability gpu`.",
        ),
        ("js", {"http"}, "start an HTTP worker on queue 'js'."),
        (
            "js",
            {"http", "gpu"},
            "start an HTTP worker on queue 'js' with the capabilities 'gpu'.",
        ),
    ],
)
def test_the_worker_to_start_is_one_that_can_take_the_task(
    queue: str, requires: set[str], fix: str
) -> None:
    task = replace(PLAIN, queue=queue, requires=frozenset(requires))

    ((_, sentence),) = explain(standing(task, workers=())).reasons

    assert sentence.endswith(fix)


def test_a_task_for_http_workers_is_not_told_of_a_capability_that_nobody_typed() -> None:
    task = replace(PLAIN, requires=frozenset({"http"}))

    ((code, sentence),) = explain(standing(task)).reasons

    assert code == "missing_capability"
    assert sentence.startswith("It is for HTTP workers, and no live one serves its queue; start an")


def test_workers_that_all_leave_are_no_workers() -> None:
    leaving = worker_info(status=WorkerStatus.DRAINING)

    ((code, sentence),) = explain(standing(workers=(leaving,))).reasons

    assert (code, sentence.split(";")[0]) == ("no_worker", "Every worker that is alive is leaving")


def test_a_capability_that_nobody_has_is_named() -> None:
    task = replace(PLAIN, requires=frozenset({"gpu", "fast"}))
    fast = worker_info(capabilities=frozenset({"fast"}))

    ((code, sentence),) = explain(standing(task, workers=(fast,))).reasons

    assert code == "missing_capability"
    assert "'gpu'" in sentence
    assert "'fast'" not in sentence


def test_capabilities_that_no_single_worker_has_together_are_named() -> None:
    task = replace(PLAIN, requires=frozenset({"gpu", "fast"}))
    workers = tuple(worker_info(capabilities=frozenset({c})) for c in ("gpu", "fast"))

    ((code, sentence),) = explain(standing(task, workers=workers)).reasons

    assert code == "missing_capability"
    assert "no single live worker has all" in sentence


def test_several_reasons_are_all_told_the_time_first() -> None:
    task = replace(PLAIN, run_at=NOW + timedelta(seconds=5))

    found = standing(task, ahead=None, queue_paused=True, workers=())

    assert codes(found) == ["future_run_at", "queue_paused", "no_worker"]
    assert explain(found).sentence.count(". ") >= 2


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        (
            {"state": State.RUNNING, "attempt": 2, "worker_id": WorkerId("w")},
            "running",
            "attempt 2",
        ),
        (
            {"state": State.RUNNING, "cancel_requested": True, "worker_id": WorkerId("w")},
            "cancelling",
            "asked to stop",
        ),
        ({"state": State.COMPLETED, "attempt": 3}, "completed", "in attempt 3"),
        ({"state": State.CANCELLED, "reason": Reason.CANCELLED}, "cancelled", "was cancelled"),
        ({"state": State.CANCELLED, "reason": Reason.EXPIRED}, "expired", "it expired"),
        (
            {"state": State.FAILED, "reason": Reason.NOT_RETRIABLE, "error": task_error()},
            "failed",
            "Last error: ValueError: no such row",
        ),
        (
            {"state": State.DEAD_LETTER, "reason": Reason.RETRIES_EXHAUSTED},
            "attempts_used",
            "3 retries are used up",
        ),
        (
            {"state": State.DEAD_LETTER, "reason": Reason.POISON, "crash_count": 3},
            "attempts_used",
            "died 3 times",
        ),
        (
            {"state": State.DEAD_LETTER, "reason": Reason.TIMEOUT},
            "attempts_used",
            "ran out of time",
        ),
    ],
)
def test_a_task_that_does_not_wait_says_where_it_is(
    changes: dict[str, Any], code: str, words: str
) -> None:
    found = explain(standing(replace(PLAIN, **changes), ahead=None))

    ((told, sentence),) = found.reasons
    assert told == code
    assert words in sentence
    assert (found.task_id, found.state, found.ahead_is_capped) == ("t", changes["state"], False)
