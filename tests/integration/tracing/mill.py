"""An app whose tasks make spans of their own; its store is in HOLDFAST_URL.

As a program it submits what it is told to: `python -m tests.integration.tracing.mill saw plane`,
inside a span of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from opentelemetry import trace

from holdfast import Context, Holdfast, context, group

app = Holdfast(retry_base="1ms", retry_jitter=False, poll="100ms")
tracer = trace.get_tracer("mill")


@app.task(name="log")
async def log() -> None: ...


@app.task(name="saw")
async def saw() -> str:
    """Does some work in a span of its own, and submits a child in it."""
    with tracer.start_as_current_span("sawing"):
        await asyncio.sleep(0)
        await log.submit_async()
    return context().traceparent


@app.task(name="plane")
def plane() -> None:
    with tracer.start_as_current_span("planing"):
        log.submit()


@app.task(name="drill", executor="process")
def drill() -> None:
    with tracer.start_as_current_span("drilling"):
        log.submit()


@app.task(name="mend", max_retries=3)
async def mend(ctx: Context) -> None:
    trace.get_current_span().set_attribute("mill.try", ctx.attempt)
    if ctx.attempt < 3:
        raise RuntimeError(f"try {ctx.attempt}")


@app.task(name="break", max_retries=0)
def break_(secret: str) -> None:
    raise ValueError("it is broken")


@app.task(name="die", max_retries=0)
def die() -> None:
    if not (mark := Path(os.environ["MILL_MARK"])).exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="idle")
async def idle() -> None:
    await asyncio.sleep(0.01)


@app.task(name="report")
async def report() -> str:
    return "all is well"


if os.environ.get("MILL_SCHEDULE"):
    app.schedule("every 1s", name="reports", owner="ann", channels=["inbox"])(report)


if __name__ == "__main__":
    with app, tracer.start_as_current_span("building"):
        for name in sys.argv[1:]:
            if name == "together":
                with trace.use_span(trace.INVALID_SPAN):  # in no trace
                    group([log.s(), log.s()]).submit()
                continue
            arguments = {"secret": "rosebud"} if name == "break" else {}
            sys.stdout.write(app.submit_by_name(name, arguments).id + "\n")
