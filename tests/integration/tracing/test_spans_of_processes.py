"""Spans of real processes, as a real receiver gets them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.integration.tracing.conftest import MILL, Processes
from tests.kit.otlp import ReceivedSpan, SpanReceiver

from holdfast import Holdfast, State
from holdfast.core.trace import EXAMPLE
from holdfast.testing.eventually import eventually

REMOTE_TRACE, REMOTE_SPAN = EXAMPLE[3:35], EXAMPLE[36:52]


async def test_one_trace_leads_through_submitter_server_and_worker(
    processes: Processes, receiver: SpanReceiver
) -> None:
    async with Holdfast(url=processes.url) as app:
        _, token = await app.client.tokens.create("test", "admin")
        processes.submit("saw")
        with processes.started("server", f"{MILL}:app", "--port", "0") as lines:
            url = next(line["url"] for line in lines if line["event"] == "server.started")
            answer = httpx.post(  # noqa: ASYNC210 - nothing else runs here
                f"{url}/api/v1/tasks",
                json={"task_type": "plane"},
                headers={"Authorization": f"Bearer {token}", "traceparent": EXAMPLE},
            )
            assert answer.json()["trace_id"] == REMOTE_TRACE
        processes.work(OTEL_SERVICE_NAME="mill-worker")
        planed = await app.get_async(answer.json()["task_id"])

    building, submit = receiver.one("building"), receiver.one("submit saw")
    wait, run = receiver.one("wait saw"), receiver.one("run saw")
    assert {one.trace_id for one in (building, submit, wait, run)} == {building.trace_id}
    assert (submit.parent, wait.parent, run.parent) == (
        building.span_id,
        submit.span_id,
        submit.span_id,
    )
    assert (submit.kind, wait.kind, run.kind) == ("producer", "internal", "consumer")
    assert submit.start <= wait.end <= run.start
    assert (submit.service, run.service) == ("holdfast", "mill-worker")
    there = receiver.one("submit plane")
    assert (there.trace_id, there.parent) == (REMOTE_TRACE, REMOTE_SPAN)
    assert receiver.one("run plane").parent == there.span_id
    assert planed.trace == f"00-{REMOTE_TRACE}-{there.span_id}-01"


@pytest.mark.parametrize(
    ("name", "own"), [("saw", "sawing"), ("plane", "planing"), ("drill", "drilling")]
)
def test_spans_and_children_of_a_handler_are_below_its_run(
    processes: Processes, receiver: SpanReceiver, name: str, own: str
) -> None:
    processes.submit(name)

    processes.work()

    chain = [receiver.one(each) for each in (f"run {name}", own, "submit log", "run log")]
    assert [one.parent for one in chain[1:]] == [one.span_id for one in chain[:-1]]
    assert {one.trace_id for one in chain} == {receiver.one("building").trace_id}


def test_what_is_submitted_as_one_composition_is_one_trace(
    processes: Processes, receiver: SpanReceiver
) -> None:
    processes.submit("together")

    processes.work()

    submit, runs = receiver.one("submit holdfast.batch"), receiver.named("run log")
    assert submit.parent == ""
    assert [(one.trace_id, one.parent) for one in runs] == [(submit.trace_id, submit.span_id)] * 2


async def test_what_a_handler_hands_on_as_traceparent_is_its_run(
    processes: Processes, receiver: SpanReceiver
) -> None:
    (task_id,) = processes.submit("saw")

    processes.work()

    run = receiver.one("run saw")
    async with Holdfast(url=processes.url) as app:
        told = (await app.get_async(task_id)).value
    assert told == f"00-{run.trace_id}-{run.span_id}-01"


def test_every_attempt_is_a_span_and_says_why_it_was_made(
    processes: Processes, receiver: SpanReceiver
) -> None:
    processes.submit("mend")

    processes.work()

    runs = receiver.named("run mend")
    said = [
        (one.attributes["holdfast.attempt"], one.attributes.get("holdfast.cause"), one.is_error)
        for one in runs
    ]
    assert said == [(1, None, True), (2, "retry", True), (3, "retry", False)]
    assert [one.attributes["mill.try"] for one in runs] == [1, 2, 3]
    assert len({one.span_id for one in runs}) == 3
    assert {one.parent for one in runs} == {receiver.one("submit mend").span_id}
    assert len(receiver.named("wait mend")) == 1


def test_a_failed_run_says_which_error_it_was_and_nothing_of_its_arguments(
    processes: Processes, receiver: SpanReceiver
) -> None:
    (task_id,) = processes.submit("break")

    processes.work()

    run = receiver.one("run break")
    assert (run.is_error, run.status) == (True, "ValueError: it is broken")
    assert [(one.name, one.attributes) for one in run.events] == [
        ("exception", {"exception.type": "ValueError", "exception.message": "it is broken"})
    ]
    assert run.attributes.pop("holdfast.worker_id")
    assert run.attributes == {
        "messaging.system": "holdfast",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": task_id,
        "holdfast.task_name": "break",
        "holdfast.attempt": 1,
        "holdfast.priority": "normal",
        "holdfast.ended": "error",
        "error.type": "ValueError",
    }
    assert not any(b"rosebud" in one.body for one in receiver.got)


async def test_a_scheduled_run_begins_with_its_firing_and_leads_to_its_delivery(
    processes: Processes, receiver: SpanReceiver
) -> None:
    with processes.started("worker", f"{MILL}:app", MILL_SCHEDULE="1"):
        await eventually(lambda: receiver.named("deliver inbox"), within=30)

    (fire, *_), delivered = receiver.named("fire report"), receiver.named("deliver inbox")[0]
    trace = [one for one in receiver.spans if one.trace_id == fire.trace_id]
    run = next(one for one in trace if one.name == "run report")
    assert (fire.parent, fire.kind, run.parent) == ("", "producer", fire.span_id)
    assert (delivered.trace_id, delivered.parent) == (fire.trace_id, run.span_id)


def test_what_is_not_sampled_makes_no_spans_and_its_children_do_not_either(
    processes: Processes, receiver: SpanReceiver
) -> None:
    off = {"OTEL_TRACES_SAMPLER": "parentbased_always_off"}
    processes.submit("saw", "plane", "drill", **off)

    processes.work()  # which by itself would sample everything

    assert receiver.spans == []


def test_a_task_of_a_submitter_without_spans_begins_its_trace_with_its_first_run(
    processes: Processes, receiver: SpanReceiver
) -> None:
    (task_id,) = processes.submit("mend", HOLDFAST_OTEL="false")

    processes.work()

    first, second, third = receiver.named("run mend")
    assert (first.trace_id, first.parent) == (task_id.replace("-", ""), "")
    assert {second.parent, third.parent} == {first.span_id}
    assert receiver.one("wait mend").parent == first.span_id


def test_a_ratio_samples_some_of_the_tasks_and_all_of_what_belongs_to_one(
    processes: Processes, receiver: SpanReceiver
) -> None:
    half = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}
    processes.submit(*["mend"] * 40, HOLDFAST_OTEL="false")

    processes.work(**half)

    by_trace: dict[str, list[ReceivedSpan]] = {}
    for span in receiver.spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    assert 5 <= len(by_trace) <= 35  # 20; further away once in a million times
    assert {len(spans) for spans in by_trace.values()} == {4}


@pytest.mark.parametrize("trouble", ["away", "slow", "refusing"])
async def test_trouble_with_the_receiver_is_said_once_and_holds_nothing_up(
    processes: Processes, receiver: SpanReceiver, trouble: str
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_TIMEOUT": "60"}
    if trouble == "away":
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
    elif trouble == "slow":
        receiver.delay = 60.0
    else:
        receiver.statuses = [400] * 1000
    ids = processes.submit(*["idle"] * 300, **environment)

    seconds = processes.work(**environment)

    async with Holdfast(url=processes.url) as app:
        assert (await app.client.stats()).states[State.COMPLETED] == len(ids)
    assert seconds < 30
    assert processes.events.count("tracing.not_exported") == (0 if trouble == "slow" else 1)
    assert set(processes.events) <= {
        "worker.started", "worker.stopped", "worker.throughput", "task.started", "task.completed",
        "tracing.not_exported",
    }  # fmt: skip


async def test_a_killed_worker_loses_spans_and_no_task(
    processes: Processes, receiver: SpanReceiver, tmp_path: Path
) -> None:
    ids = processes.submit("die", *["idle"] * 20)

    with processes.started(
        "worker", f"{MILL}:app", MILL_MARK=str(tmp_path / "mark"), HOLDFAST_LEASE="2s"
    ):
        async with Holdfast(url=processes.url) as app:

            async def ended() -> bool:
                return (await app.client.stats()).states[State.COMPLETED] == len(ids)

            await eventually(ended, within=40)

    (again,) = receiver.named("run die")
    assert again.attributes["holdfast.attempt"] == 2
    assert again.attributes["holdfast.cause"] == "worker_lost"
