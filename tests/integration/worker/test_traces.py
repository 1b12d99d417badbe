"""A trace goes from a submit into its task, into what that submits, and into the log."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from holdfast import Context, Holdfast, InvalidOption
from holdfast.core.task import Task
from holdfast.core.trace import EXAMPLE

ROOT = Path(__file__).parents[3]
TRACE = EXAMPLE[3:35]
SPAN = NonRecordingSpan(
    SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
)
PLACES = ("on_the_loop", "in_a_thread", "in_a_process", "on_a_loop_in_a_process")


def test_what_a_task_submits_is_part_of_its_trace_wherever_it_runs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    with Holdfast(url=url) as app:
        parents = {
            place: app.task(name=place)(lambda: None).options(traceparent=EXAMPLE).submit().id
            for place in PLACES
        }

        log = _work(url)

        for place, task_id in parents.items():
            parent = app.get(task_id)
            assert parent.result is not None, (place, log)
            child = app.get(json.loads(parent.result))
            assert (parent.trace, parent.trace_id) == (EXAMPLE, TRACE)
            assert (child.trace, child.trace_id) == (parent.traceparent, TRACE), place
    lines = [json.loads(line) for line in log.splitlines()]
    for event in ("task.started", "task.submitted"):
        told = [line["trace_id"] for line in lines if line["event"] == event]
        assert told[:3] == [TRACE] * 3


def _work(url: str) -> str:
    app = "tests.integration.worker.traced:app"
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", app, "--burst", "--json"],
        env={**os.environ, "HOLDFAST_URL": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


async def test_a_task_without_a_trace_begins_one_of_its_own_and_hands_it_on(tmp_path: Path) -> None:
    async with Holdfast(url=f"sqlite:///{tmp_path}/tasks.db") as app:

        @app.task
        async def child() -> None: ...

        @app.task
        async def parent() -> str:
            return (await child.submit_async()).id

        handle = await parent.submit_async()
        await app.run_worker(burst=True)
        first, second = await handle.task_async(), await app.get_async(await handle)

    assert (first.trace, first.trace_id) == (None, first.id.replace("-", ""))
    assert second.trace_id == first.trace_id
    assert second.traceparent[36:52] == second.id.replace("-", "")[-16:]


async def test_a_submit_inside_a_span_is_part_of_it_unless_it_says_otherwise(
    tmp_path: Path,
) -> None:
    async with Holdfast(url=f"sqlite:///{tmp_path}/tasks.db") as app:

        @app.task
        def note() -> None: ...

        with otel.use_span(SPAN):
            inside = await note.submit_async()
            there = await asyncio.to_thread(note.submit)
            many = await app.submit_many_async([note.call(), note.options(tags="x").call()])
            told = await note.options(traceparent=EXAMPLE).submit_async()
        outside = await note.submit_async()

        spans = [await _trace(app, each.id) for each in (inside, there, *many)]
        assert spans == [f"00-{0xABC:032x}-{0xDEF:016x}-01"] * 4
        assert await _trace(app, told.id) == EXAMPLE
        assert await _trace(app, outside.id) is None


async def test_in_a_task_a_span_counts_only_if_it_is_of_the_tasks_own_trace() -> None:
    async with Holdfast(url="memory://") as app:

        @app.task
        def child() -> None: ...

        @app.task
        async def parent(ctx: Context) -> list[str]:
            own = SpanContext(int(ctx.trace_id, 16), 0x123, is_remote=False)
            with otel.use_span(SPAN):
                stranger = await child.submit_async()
            with otel.use_span(NonRecordingSpan(own)):
                nearer = await child.submit_async()
            return [stranger.id, nearer.id]

        handle = await parent.submit_async()
        await app.run_worker(burst=True)
        task = await handle.task_async()
        stranger, nearer = await handle

        assert await _trace(app, stranger) == task.traceparent
        assert await _trace(app, nearer) == f"00-{task.trace_id}-{0x123:016x}-00"


async def _trace(app: Holdfast, task_id: str) -> str | None:
    task: Task = await app.get_async(task_id)
    return task.trace


@pytest.mark.parametrize("given", ["", "x", EXAMPLE + "-more", 7])
def test_a_malformed_option_is_refused_with_an_example(given: object) -> None:
    app = Holdfast(url="memory://")
    note = app.task(lambda: None)

    with pytest.raises(InvalidOption, match=f"traceparent: .*such as {EXAMPLE}"):
        note.options(traceparent=given)  # type: ignore[arg-type] # wrong on purpose
