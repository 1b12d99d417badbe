"""Every error has a place in the one table, and none tells more than it should."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.errors import HoldfastError
from holdfast.server.problems import KINDS, Refused, body_of, refusal_of

EVERY = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, HoldfastError)
]
STEERING = {
    errors.Retry, errors.Snooze, errors.Fatal, errors.AttemptTimeout, errors.EventTimeout,
    errors.StepRefused, errors.NonDeterministic, errors.MirrorUnavailable,
}  # fmt: skip
"""Raised by handlers, our own among them; none of these can come out of a client."""
MISTAKES_OF_OURS = {
    HoldfastError, errors.StoreError, errors.ConfigError, errors.NotInitialised,
    errors.ServiceError,
}  # fmt: skip


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_is_in_the_table(kind: type[HoldfastError]) -> None:
    found = next(KINDS[base] for base in kind.__mro__ if base in KINDS)

    is_internal = found.code == "internal_error"
    assert is_internal == (kind in STEERING | MISTAKES_OF_OURS)


def test_codes_are_stable_words() -> None:
    assert all(kind.code.replace("_", "").isalpha() for kind in KINDS.values())
    assert all(kind.code == kind.code.lower() for kind in KINDS.values())


def test_an_error_that_nobody_foresaw_tells_nothing() -> None:
    refused = refusal_of(HoldfastError("the password is hunter2"))

    assert refused.status == 500
    assert "hunter2" not in refused.detail


def test_a_problem_names_its_code_its_id_and_the_field() -> None:
    refused = Refused(422, "invalid_request", "no", field="queue", hint="yes")

    assert body_of(refused, "77") == {
        "type": "urn:holdfast:problem:invalid_request",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "no",
        "code": "invalid_request",
        "id": "77",
        "field": "queue",
        "hint": "yes",
    }


def test_options_are_named_as_the_json_has_them() -> None:
    assert refusal_of(errors.InvalidOption("delay", "no")).field == "delay_seconds"
    assert refusal_of(errors.InvalidOption("queue", "no")).field == "queue"
