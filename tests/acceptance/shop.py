"""The app that the acceptance tests run in real worker processes.

Each handler says in the start log that it begins and ends; the log outlives the process that wrote
it. Settings come from the environment, as in production.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast import AgentRun, Batch, BatchContext, Context, Holdfast, Limit, fixed

# Workers load this file by its path, from a folder of their own.
sys.path.append(str(Path(__file__).parents[2]))

from tests.kit.startlog import StartLog

app = Holdfast()
log = StartLog(os.environ["SHOP_LOG"])
soon = fixed(0.2)


@app.task(name="noop")
async def noop(ctx: Context, n: int = 0) -> int:
    with log.body(ctx):
        return n


@app.task(name="work", max_retries=5, retry=soon)
def work(ctx: Context, seconds: float, fail_first: bool = False) -> int:
    """Sleeps in a thread; the first attempt may fail."""
    with log.body(ctx):
        time.sleep(seconds)
        if fail_first and ctx.attempt == 1:
            raise ValueError("the first attempt fails")
        return ctx.attempt


@app.task(name="flaky", max_retries=5)
async def flaky(ctx: Context, failures: int) -> str:
    """Fails so many times, and waits between them as the settings have it."""
    with log.body(ctx):
        if ctx.attempt <= failures:
            raise ValueError(f"failure {ctx.attempt}")
        return f"attempt {ctx.attempt}"


@app.task(name="nap", max_retries=5, retry=soon)
async def nap(ctx: Context, seconds: float) -> int:
    """Sleeps on the loop; can be cancelled anywhere."""
    with log.body(ctx):
        await asyncio.sleep(seconds)
        return ctx.attempt


@app.task(name="branch", max_retries=5, retry=soon)
async def branch(ctx: Context, width: int, depth: int, seconds: float) -> int:
    """Has children, which may have children."""
    with log.body(ctx):
        for _ in range(width):
            if depth > 1:
                ctx.submit_child(branch, width, depth - 1, seconds)
            else:
                ctx.submit_child(nap, seconds)
        return depth


@app.task(name="hopeless", max_retries=0)
async def hopeless(ctx: Context, seconds: float) -> int:
    with log.body(ctx):
        await asyncio.sleep(seconds)
        raise ValueError("no hope")


@app.task(name="section", max_retries=5, retry=soon, concurrency=Limit(3, key="{tenant}"))
async def section(ctx: Context, tenant: str, seconds: float) -> int:
    """The same, three at a time of each tenant."""
    with log.body(ctx):
        await asyncio.sleep(seconds)
        return ctx.attempt


@app.task(name="patient")
def patient(ctx: Context, seconds: float) -> str:
    """A sync loop in a thread that looks whether it should stop."""
    with log.body(ctx):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if ctx.stop_requested:
                return "asked to stop"
            time.sleep(0.02)
        return "ran to its end"


@app.task(name="locked", lock="doc:{doc}", max_retries=5, retry=soon)
def locked(ctx: Context, doc: str, seconds: float) -> int | None:
    with log.body(ctx, lock=f"doc:{doc}"):
        time.sleep(seconds)
        return ctx.fence


@app.task(name="block", timeout=1.0, max_retries=0)
async def block(ctx: Context, seconds: float) -> str:
    """Keeps the whole loop."""
    with log.body(ctx):
        time.sleep(seconds)  # noqa: ASYNC251 - the mistake that is looked at
        return "late"


@app.task(name="alone_async", lock="key:{key}", timeout=0.5, max_retries=1, retry=soon)
async def alone_async(ctx: Context, key: str, seconds: float) -> int:
    """Waits for a task of its own that does not hear that it should stop."""
    with log.body(ctx), alone(key):
        if ctx.attempt == 1:
            await asyncio.create_task(deaf(seconds))
        return ctx.attempt


@app.task(name="alone_thread", lock="key:{key}", timeout=0.5, max_retries=1, retry=soon)
def alone_thread(ctx: Context, key: str, seconds: float) -> int:
    with log.body(ctx), alone(key):
        if ctx.attempt == 1:
            stay(seconds)
        return ctx.attempt


@app.task(
    name="alone_process",
    executor="process",
    lock="key:{key}",
    timeout=0.5,
    max_retries=1,
    retry=soon,
)
def alone_process(ctx: Context, key: str, seconds: float) -> int:
    with log.body(ctx), alone(key):
        if ctx.attempt == 1:
            stay(seconds)
        return ctx.attempt


STEPS = 6


def say(what: str, task_id: str, step: int) -> None:
    """A line that outlives this process: a step's effect was made (`did`), or is recorded
    (`kept`).
    """
    file = os.open(log.path.with_name("effects"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{what} {task_id} {step}\n".encode())
    finally:
        os.close(file)


@app.task(name="saga", max_retries=5, retry=soon)
async def saga(ctx: Context) -> None:
    for n in range(STEPS):
        await ctx.step(f"step-{n}", say, "did", ctx.id, n)
        say("kept", ctx.id, n)
        if n == 1:
            await ctx.sleep(0.1)
        elif n == 3:
            await ctx.wait_for("go", key=ctx.id)


def saga_sync(ctx: Context) -> None:
    for n in range(STEPS):
        ctx.step_sync(f"step-{n}", say, "did", ctx.id, n)
        say("kept", ctx.id, n)
        if n == 1:
            ctx.sleep_sync(0.1)
        elif n == 3:
            ctx.wait_for_sync("go", key=ctx.id)


saga_thread = app.task(name="saga_thread", max_retries=5, retry=soon)(saga_sync)
saga_process = app.task(name="saga_process", executor="process", max_retries=5, retry=soon)(
    saga_sync
)


def pay(run: AgentRun) -> str:
    """What a model is asked and paid for."""
    run.usage(1, tokens_in=90, tokens_out=10, cost=0.25)
    say("did", run.id, 0)
    return f"news of {run.id}"


@app.agent(name="reporter", max_retries=5, retry=soon)
async def reporter(run: AgentRun) -> str:
    with log.body(run.context):
        run.progress("Reading")
        text = await run.step("ask", pay, run)
        say("kept", run.id, 0)
        await asyncio.sleep(0.05)
        run.progress("Writing")
        return text


@contextmanager
def alone(key: str) -> Iterator[None]:
    """Leave a note if anybody else is in here. The kernel keeps the lock, until the process ends at
    the latest.
    """
    place = log.path.with_name(key)
    file = os.open(place, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        place.with_suffix(".overlap").touch()
    try:
        yield
    finally:
        os.close(file)


def stay(seconds: float) -> None:
    """Whatever is raised in here."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(BaseException):
            time.sleep(0.02)


async def deaf(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)


@app.task(name="gpu", requires={"gpu"})
async def gpu(ctx: Context) -> int:
    with log.body(ctx):
        return os.getpid()


@app.task(name="gil", timeout=60)
def gil(ctx: Context, seconds: float) -> int:
    """Holds the interpreter in a C call: no other thread of this process runs meanwhile."""
    with log.body(ctx):
        hold_the_gil(seconds)
        return ctx.attempt


@app.task(name="poison", max_retries=50, retry=soon)
def poison(ctx: Context) -> None:
    """Kills the worker that runs it."""
    log.begin(ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="child", executor="process", timeout=600)
def child(ctx: Context, seconds: float) -> int:
    with log.body(ctx):
        time.sleep(seconds)
        return os.getpid()


@app.task(name="stubborn", executor="process", timeout=1.0, max_retries=0)
def stubborn(ctx: Context, how: str) -> None:
    """Runs for ever in one of the ways that are hard to stop."""
    log.begin(ctx)
    while True:
        match how:
            case "sleep":
                time.sleep(1000)
            case "spin":
                sum(range(10_000))
            case "gil":
                hold_the_gil(1000.0)
            case "swallow":
                swallow_everything()


@app.task(name="hungry", executor="process", memory_limit="300 MiB", max_retries=0)
def hungry(ctx: Context) -> int:
    log.begin(ctx)
    held = [bytearray(50 * 1024 * 1024) for _ in range(200)]
    return len(held)


@app.task(name="fill")
def fill(text: str) -> int:
    return len(text)


@app.task(name="book", max_retries=5, retry=soon)
async def book(ctx: Context, number: int) -> None:
    """Writes a row of its own, in the transaction that completes the task."""
    with log.body(ctx):
        await asyncio.sleep(0.02)
        async with ctx.transaction() as conn:
            if is_session(conn):
                await bookings(conn).insert_one(booking(number, ctx), session=conn)
            else:
                await conn.execute(f"INSERT INTO booking VALUES ({number}, {ctx.attempt})")
            await book_twin.options(connection=conn).submit_async(number)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)


@app.task(name="book_twin", max_retries=5, retry=soon)
def book_twin(ctx: Context, number: int) -> None:
    """The same for a sync handler."""
    with log.body(ctx), ctx.transaction() as conn:
        if is_session(conn):
            bookings(conn).insert_one(booking(-number, ctx), session=conn)
        else:
            conn.execute(f"INSERT INTO booking VALUES ({-number}, {ctx.attempt})")


def is_session(connection: object) -> bool:
    """Whether the store is MongoDB, whose transactions have a session."""
    return type(connection).__module__.startswith("pymongo.")


def bookings(session: Any) -> Any:
    return session.client.get_default_database().booking


def booking(number: int, ctx: Context) -> dict[str, int]:
    return {"number": number, "attempt": ctx.attempt}


def hold_the_gil(seconds: float) -> None:
    libc = ctypes.PyDLL(None)  # unlike CDLL, calls through it keep the interpreter
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        libc.usleep(int(min(left, 900.0) * 1_000_000))


def swallow_everything() -> None:
    with suppress(BaseException):
        time.sleep(1000)


@app.task(name="bulk", batch=Batch(max=20, within="1s"), max_retries=5, retry=soon)
def bulk(ctx: BatchContext, items: list[int]) -> list[int | Exception]:
    """Odd ones fail at first, and take long after that."""
    for member in ctx.members:
        log.begin(member)
    again = [member for member in ctx.members if member.attempt == 2]
    time.sleep(30.0 if again else 0.1)
    for member in ctx.members:
        log.end(member)
    return [
        ValueError(item) if item % 2 and member.attempt == 1 else item
        for item, member in zip(items, ctx.members, strict=True)
    ]
