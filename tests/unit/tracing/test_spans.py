"""Spans without processes: sampling by a task's id, clocks that disagree, trouble on our side."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    TraceIdRatioBased,
)

from holdfast import Holdfast
from holdfast.core.attempt import Claim
from holdfast.core.lifecycle import Failed, Succeeded
from holdfast.core.task import Cause, NewTask, Priority, TaskError, TaskId, WorkerId
from holdfast.core.trace import EXAMPLE, span_id_of
from holdfast.definitions import tracing
from holdfast.definitions.new_tasks import IdMaker
from holdfast.tracing.ids import EVERY, NONE, bound_of, is_below, spread, submitted_at
from holdfast.tracing.spans import Spans


class Kept(InMemorySpanExporter):
    """What was made."""

    @property
    def by_name(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.get_finished_spans()}


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def spans(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> Spans:
    monkeypatch.setattr(tracing, "spans_of_submits", None)
    return made(kept, ParentBased(ALWAYS_ON))


def made(kept: Kept, sampler: Sampler) -> Spans:
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return Spans(provider)


def claim(task_id: TaskId, *, trace: str | None = None, name: str = "saw", **more: Any) -> Claim:
    plain = Claim(
        task_id, 1, WorkerId("w"), name, "wood", Priority.HIGH, b"{}", 0, 3, 0, None, None, None,
        None, Cause.SUBMITTED, trace, None, False,
    )  # fmt: skip
    return plain._replace(**more)


def ids(count: int) -> list[TaskId]:
    return list(IdMaker().make(count))


@pytest.mark.parametrize("ratio", [0.01, 0.25, 0.9])
def test_a_ratio_takes_that_part_of_the_tasks_and_the_sampler_says_the_same(ratio: float) -> None:
    sampler = ParentBasedTraceIdRatio(ratio)
    bound, some = bound_of(sampler), ids(20_000)

    taken = [is_below(each, bound) for each in some]

    assert sum(taken) / len(some) == pytest.approx(ratio, abs=0.02)
    for each, is_taken in zip(some[:2000], taken, strict=False):
        trace_id = spread(int(each.replace("-", ""), 16))
        decision = sampler.should_sample(None, trace_id, "run").decision
        assert (decision is Decision.RECORD_AND_SAMPLE) == is_taken


def test_bounds_of_samplers_that_are_no_ratio() -> None:
    everything = bound_of(ParentBased(TraceIdRatioBased(1.0)))

    assert bound_of(ParentBased(ALWAYS_ON)) == bound_of(object()) == EVERY
    assert bound_of(ALWAYS_OFF) == bound_of(ParentBased(ALWAYS_OFF)) == NONE
    assert all(is_below(each, everything) and is_below(each, EVERY) for each in ids(1000))
    assert not any(is_below(each, NONE) for each in ids(1000))


def test_each_task_without_a_trace_begins_its_own_and_together_those_of_one_share_a_span(
    spans: Spans, kept: Kept
) -> None:
    alone, *others = [NewTask(each, "saw", b"{}", queue="wood") for each in ids(4)]

    (root,) = spans.submitted([alone], None, "submit")
    many = spans.submitted(others, EXAMPLE, "submit")

    single, several = kept.get_finished_spans()
    assert root.trace == f"00-{alone.id.replace('-', '')}-{single.context.span_id:016x}-01"
    assert {task.trace for task in many} == {f"{EXAMPLE[:36]}{several.context.span_id:016x}-01"}
    assert several.attributes is not None
    assert several.attributes["messaging.batch.message_count"] == 3


def test_a_decision_against_sampling_is_handed_on_and_costs_no_span(kept: Kept) -> None:
    spans = made(kept, ParentBased(ALWAYS_OFF))
    task = NewTask(ids(1)[0], "saw", b"{}")

    (own,) = spans.submitted([task], None, "submit")
    (told,) = spans.submitted([task], EXAMPLE[:-2] + "00", "submit")

    assert own.trace is not None
    assert own.trace.endswith("-00")
    assert told.trace == EXAMPLE[:-2] + "00"
    assert not spans.wants(claim(task.id, trace=own.trace))
    assert not kept.get_finished_spans()


def test_a_wait_is_never_less_than_nothing_if_the_submitters_clock_is_ahead(
    spans: Spans, kept: Kept
) -> None:
    task_id = TaskId("ffffffff-f000-7cc0-8000-1f2e3d4c5b6a")  # made in the year 10889
    ((one, span),) = spans.begin([claim(task_id, trace=EXAMPLE)], since=0.0)

    spans.end(one, span, Succeeded(b"null"))

    wait = kept.by_name["wait saw"]
    assert wait.start_time is not None
    assert wait.start_time == wait.end_time
    assert submitted_at(task_id) > wait.start_time


def test_an_attempt_has_the_span_id_that_it_hands_on(spans: Spans, kept: Kept) -> None:
    third = claim(ids(1)[0], attempt=3, cause=Cause.TIMEOUT, trace=EXAMPLE)

    ((_, span),) = spans.begin([third], since=0.0)
    spans.end(third, span, Failed(TaskError(type="OSError", message="no saw")))

    (run,) = kept.get_finished_spans()
    assert f"{run.context.span_id:016x}" == span_id_of(third.task_id, 3)
    assert run.attributes is not None
    assert run.attributes["holdfast.cause"] == "timeout"
    assert run.status.description == "OSError: no saw"


def test_a_delivery_is_called_after_its_channel(spans: Spans, kept: Kept) -> None:
    delivery = claim(ids(1)[0], name="holdfast.deliver", payload=b'{"channel":"email"}')

    ((_, span),) = spans.begin([delivery], since=0.0)
    spans.end(delivery, span, Succeeded(b"null"))

    assert "deliver email" in kept.by_name


def test_an_attempt_of_an_http_worker_is_a_span_when_its_result_comes(
    spans: Spans, kept: Kept
) -> None:
    here, elsewhere = (claim(each, trace=EXAMPLE) for each in ids(2))

    spans.given_out([here])
    spans.ended_elsewhere(here, Succeeded(b"null"))
    spans.ended_elsewhere(elsewhere, Succeeded(b"null"))

    runs = [span for span in kept.get_finished_spans() if span.name == "run saw"]
    assert [f"{run.context.span_id:016x}" for run in runs] == [
        span_id_of(here.task_id),
        span_id_of(elsewhere.task_id),
    ]


def test_what_goes_wrong_with_a_span_is_nobodys_trouble(
    spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no spans today")

    monkeypatch.setattr(spans._tracer, "start_span", broken)
    task = NewTask(ids(1)[0], "saw", b"{}")

    assert spans.begin([claim(task.id)], since=0.0) == []
    assert spans.submitted([task], EXAMPLE, "submit")[0].trace == EXAMPLE
    spans.given_out([claim(task.id)])
    spans.ended_elsewhere(claim(task.id), Succeeded(b"null"))


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk"])
def test_without_the_extra_the_error_names_it(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from holdfast import Holdfast\n"
        "try: Holdfast(url='memory://', otel=True).open()\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.startswith("ConfigError otel: spans need opentelemetry")
    assert "pip install 'holdfast[otel]'" in said.stdout


def test_off_it_imports_nothing() -> None:
    code = (
        "import sys; from holdfast import Holdfast\n"
        "app = Holdfast(url='memory://'); f = app.task(print); app.open(); f.submit()\n"
        "app.close(); sys.exit(any('opentelemetry' in name for name in sys.modules))\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_setting_is_off_by_default() -> None:
    settings = Holdfast(url="memory://").settings

    assert not settings.otel
    assert replace(settings, otel=True).otel
