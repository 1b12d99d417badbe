"""A trace comes in over HTTP, and is shown to who looks (`test_http_workers` and
`test_callback_deliveries` have the ways out).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext
from tests.integration.server.live import LiveServer

from holdfast import Holdfast, HttpClient, InvalidOption
from holdfast.core.trace import EXAMPLE

TASKS = "/api/v1/tasks"
OTHER = EXAMPLE.replace("4bf9", "5555")
TRACE, OTHER_TRACE = EXAMPLE[3:35], OTHER[3:35]
ADD: dict[str, Any] = {"task_type": "shop.add", "parameters": {"a": 1}}


def trace_of(server: LiveServer, task_id: str) -> str:
    shown = server.admin.get(f"{TASKS}/{task_id}").json()
    own = task_id.replace("-", "")[-16:]
    assert shown["traceparent"].startswith(f"00-{shown['trace_id']}-{own}-")
    return str(shown["trace_id"])


def test_the_member_wins_over_the_header_and_that_over_nothing(either_server: LiveServer) -> None:
    def sent(headers: dict[str, str], **more: str) -> str:
        answer = either_server.admin.post(TASKS, json={**ADD, **more}, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["task_id"])

    header = {"traceparent": EXAMPLE}
    alone = sent({})

    assert trace_of(either_server, sent(header)) == TRACE
    assert trace_of(either_server, sent(header, traceparent=OTHER)) == OTHER_TRACE
    assert trace_of(either_server, sent({}, traceparent=OTHER)) == OTHER_TRACE
    assert trace_of(either_server, alone) == alone.replace("-", "")


def test_arrays_and_lines_take_the_header_too(either_server: LiveServer) -> None:
    bodies = [ADD, {**ADD, "traceparent": OTHER}]
    header = {"traceparent": EXAMPLE}

    array = either_server.admin.post(TASKS, json=bodies, headers=header).json()["tasks"]
    lines = either_server.admin.post(
        f"{TASKS}?ids=true",
        content="\n".join(map(json.dumps, bodies)),
        headers={**header, "content-type": "application/x-ndjson"},
    ).json()["task_ids"]

    for first, second in ([each["task_id"] for each in array], lines):
        assert trace_of(either_server, first) == TRACE
        assert trace_of(either_server, second) == OTHER_TRACE


@pytest.mark.parametrize(
    "headers", [[("traceparent", "00-x")], [("traceparent", EXAMPLE), ("traceparent", OTHER)]]
)
def test_a_malformed_header_is_ignored(
    live_server: LiveServer, headers: list[tuple[str, str]]
) -> None:
    answer = live_server.admin.post(TASKS, json=ADD, headers=headers)

    task_id = answer.json()["task_id"]
    assert trace_of(live_server, task_id) == task_id.replace("-", "")


def test_a_malformed_member_is_refused_with_an_example(live_server: LiveServer) -> None:
    answer = live_server.admin.post(TASKS, json={**ADD, "traceparent": "00-x"})

    assert (answer.status_code, answer.json()["field"]) == (422, "traceparent")
    assert f"such as {EXAMPLE}" in answer.json()["detail"]


def test_a_client_sends_what_it_is_told_and_else_the_current_span(live_server: LiveServer) -> None:
    span = NonRecordingSpan(SpanContext(0xABC, 0xDEF, is_remote=False))
    with HttpClient(live_server.url, token=live_server.token("admin")) as client:
        told = client.submit("shop.add", {"a": 1}, traceparent=EXAMPLE)
        with otel.use_span(span):
            inside = client.submit("shop.add", {"a": 1})
            many = client.submit_many([client.call("shop.add", {"a": 1}, traceparent=OTHER)])

        assert client.get(told.task_id).trace_id == TRACE
        assert client.get(told.task_id).traceparent.startswith(f"00-{TRACE}-")
        assert client.get(inside.task_id).trace_id == f"{0xABC:032x}"
        assert client.get(many[0].task_id).trace_id == OTHER_TRACE
        with pytest.raises(InvalidOption, match="such as"):
            client.call("shop.add", {"a": 1}, traceparent="00-x")


def test_a_client_inside_a_task_sends_that_tasks_trace(live_server: LiveServer) -> None:
    token = live_server.token("admin")

    async def work() -> str:
        async with Holdfast(url="memory://") as app:

            @app.task
            async def order() -> str:
                async with HttpClient(live_server.url, token=token) as client:
                    return (await client.submit_async("shop.add", {"a": 1})).task_id

            handle = await order.options(traceparent=EXAMPLE).submit_async()
            await app.run_worker(burst=True)
            return await handle

    assert trace_of(live_server, asyncio.run(work())) == TRACE
