"""What is asked again, and what must not be."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from holdfast import errors
from holdfast.core.task import Json
from holdfast.http.talk import MOST_TRIES, Lost, Pause, Reply, Request, Talk, ask
from holdfast.http.verbs import Verbs, call

GONE = Lost(why="ReadTimeout", sent=True)
NEVER_SENT = Lost(why="ConnectError", sent=False)


def reply(status: int = 200, body: Json = None, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers=named, body=orjson.dumps(body or {}))


def hold(talk: Talk[Any], *answers: Reply | Lost) -> tuple[Any, list[Request], list[float]]:
    """Hold a conversation with these answers; what came of it, what was asked, the pauses."""
    left, asked, pauses = list(answers), list[Request](), list[float]()
    answer: Any = None
    while True:
        try:
            step = talk.send(answer)
        except StopIteration as end:
            return end.value, asked, pauses
        if isinstance(step, Pause):
            pauses.append(step.seconds)
            answer = None
        else:
            asked.append(step)
            answer = left.pop(0)


def test_what_only_reads_is_asked_again_after_a_lost_answer() -> None:
    answer, asked, pauses = hold(ask("GET", "/x"), GONE, reply(503), reply(502), reply(body=[1]))

    assert answer == [1]
    assert len(asked) == 4
    assert pauses[0] < pauses[2]


def test_patience_has_an_end() -> None:
    with pytest.raises(errors.StoreUnavailable, match="ReadTimeout"):
        hold(ask("GET", "/x"), *[GONE] * MOST_TRIES)


def test_a_change_whose_answer_was_lost_is_not_repeated() -> None:
    with pytest.raises(errors.StoreUnavailable, match="Whether it arrived is not known"):
        hold(ask("POST", "/x"), GONE)


def test_a_change_that_certainly_did_not_arrive_is_repeated() -> None:
    answer, asked, _ = hold(ask("POST", "/x"), NEVER_SENT, reply(body={"a": 1}))

    assert (answer, len(asked)) == ({"a": 1}, 2)


def test_too_many_requests_waits_as_long_as_it_is_told() -> None:
    _, asked, pauses = hold(ask("POST", "/x"), reply(429, retry_after="3"), reply())

    assert (len(asked), pauses) == (2, [3.0])


def test_a_submit_is_repeated_only_with_an_idempotency_key() -> None:
    done = reply(
        201,
        {
            "task_id": "t",
            "status": "queued",
            "queue_position": 1,
            "outcome": "created",
            "existing": False,
        },
    )

    answer, asked, _ = hold(Verbs().submit("f", {}, idempotency_key="k"), GONE, done)
    with pytest.raises(errors.StoreUnavailable):
        hold(Verbs().submit("f", {}), GONE, done)

    assert answer.created
    assert len(asked) == 2
    assert orjson.loads(asked[0].body or b"")["idempotency_key"] == "k"


def test_an_array_is_repeated_only_if_each_task_has_a_key() -> None:
    calls = [call("f", {}, {"idempotency_key": "a"}), call("f", {}, {})]

    with pytest.raises(errors.StoreUnavailable):
        hold(Verbs().submit_many(calls), GONE)


def test_a_task_may_go_without_limits() -> None:
    body = call("f", {}, {"max_retries": "unlimited", "timeout": "none"})

    assert (body["max_retries"], body["timeout_seconds"]) == ("unlimited", "none")


def test_options_have_the_words_of_the_local_client() -> None:
    body = call(
        "f",
        {"a": 1},
        {"priority": "medium", "timeout": "1m", "delay": "2s", "tags": "t", "requires": ["gpu"]},
    )

    assert body == {
        "task_type": "f",
        "parameters": {"a": 1},
        "priority": "normal",
        "timeout_seconds": 60.0,
        "delay_seconds": 2.0,
        "tags": ["t"],
        "required_capabilities": ["gpu"],
    }


def test_a_bad_option_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(errors.InvalidOption, match="priority"):
        hold(Verbs().submit("f", {}, priority="hihg"))


@pytest.mark.parametrize(
    ("problem", "kind", "attributes"),
    [
        ({"code": "task_not_found", "task_id": "t"}, errors.TaskNotFound, {"task_id": "t"}),
        (
            {"code": "invalid_option", "field": "timeout_seconds"},
            errors.InvalidOption,
            {"option": "timeout"},
        ),
        (
            {"code": "idempotency_conflict", "field": "idempotency_key", "task_id": "t"},
            errors.IdempotencyConflict,
            {"option": "idempotency_key", "task_id": "t"},
        ),
        (
            {
                "code": "invalid_arguments",
                "errors": [{"field": "parameters.a[0]", "message": "no"}],
            },
            errors.InvalidArguments,
            {"problems": (("a[0]", "no"),)},
        ),
        (
            {"code": "unknown_task_type", "suggestion": "mail"},
            errors.UnknownTask,
            {"suggestion": "mail"},
        ),
        (
            {"code": "invalid_transition", "task_id": "t", "task_status": "running"},
            errors.InvalidTransition,
            {"task_id": "t", "state": "running"},
        ),
        (
            {"code": "insufficient_scope", "id": "5f"},
            errors.ServiceError,
            {"status": 422, "code": "insufficient_scope", "problem_id": "5f"},
        ),
    ],
)
def test_a_problem_is_raised_as_the_local_clients_error(
    problem: dict[str, Json], kind: type[Exception], attributes: dict[str, Json]
) -> None:
    with pytest.raises(kind, match=r"^what the server said$") as caught:
        hold(ask("GET", "/x"), reply(422, {"detail": "what the server said", **problem}))

    assert type(caught.value) is kind
    assert {name: getattr(caught.value, name) for name in attributes} == attributes


def test_an_answer_that_is_no_problem_is_an_error_all_the_same() -> None:
    page = Reply(status=404, headers={}, body=b"<html>")

    with pytest.raises(errors.ServiceError, match="status 404"):
        hold(ask("GET", "/x"), page)
