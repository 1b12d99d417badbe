"""What a payload says of other tasks."""

from __future__ import annotations

import json

import pytest

from holdfast.core.flow import (
    Body,
    ChildOrder,
    Children,
    Dependency,
    Flow,
    OnFailure,
    ParentResult,
    ResultRef,
    Source,
    When,
    flow_of,
    with_flow,
    without_flow,
)
from holdfast.core.shown import masked
from holdfast.core.task import TaskId

A, B = TaskId("a"), TaskId("b")
WHOLE = Flow(
    after=(Dependency(A), Dependency(B, When.ALWAYS)),
    results={"x": ResultRef(Source.ONE, (A,)), "y": ResultRef(Source.EACH, (A, B))},
    children=Children(Body.AFTER, ChildOrder.SEQUENCE, OnFailure.CANCEL_REST, ParentResult.LAST),
    rest_of=B,
    body_of=A,
    debounce="k",
)


def test_what_was_said_is_read_back() -> None:
    assert flow_of(with_flow(b'{"n":1}', WHOLE)) == WHOLE


def test_a_flow_that_says_nothing_leaves_the_payload_alone() -> None:
    assert with_flow(b'{"n":1}', Flow()) == b'{"n":1}'
    assert flow_of(b'{"n":1}') is None


@pytest.mark.parametrize("payload", [b'{"text": "\\"$flow\\""}', b'["$flow"]', b'"$flow"', b"\xff"])
def test_what_only_looks_like_a_flow_is_none(payload: bytes) -> None:
    assert flow_of(payload) is None


def test_a_handler_gets_the_results_and_nothing_of_the_flow() -> None:
    payload = with_flow('{"n":1,"s":"ü"}'.encode(), WHOLE)

    assert json.loads(without_flow(payload, {"x": [2]})) == {"n": 1, "s": "ü", "x": [2]}


def test_nobody_is_shown_the_flow_among_the_arguments() -> None:
    assert masked(with_flow(b'{"n":1}', WHOLE)) == {"n": 1}
