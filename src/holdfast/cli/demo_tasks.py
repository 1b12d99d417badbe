"""The tasks of `holdfast demo`: an ordinary app, with its settings from the environment.

Each body notes its start and end in the demo's journal, so that the closing table does not have to
take the store's word for it.
"""

from __future__ import annotations

import asyncio

from holdfast.app import Holdfast
from holdfast.cli.demo.journal import ENTER, LEAVE, note, noted
from holdfast.core.retry import exponential
from holdfast.definitions.context import Context

app = Holdfast(include=[])


@app.task
async def fast(ctx: Context, n: int) -> int:
    """Return at once."""
    with noted("fast", ctx.id, ctx.attempt):
        return n


@app.task
async def slow(ctx: Context, seconds: float) -> float:
    """Take a while and say how far it is."""
    with noted("slow", ctx.id, ctx.attempt):
        for step in range(10):
            ctx.progress(step, 10)
            await asyncio.sleep(seconds / 10)
        return seconds


@app.task(retry=exponential(0.5, 2.0))
async def flaky(ctx: Context, n: int) -> int:
    """Fail the first time, as networks do."""
    with noted("flaky", ctx.id, ctx.attempt):
        if ctx.attempt == 1:
            raise ConnectionError("connection reset (on purpose): the retry succeeds")
        return n


@app.task(max_retries=1, retry=exponential(0.5, 2.0))
async def broken(ctx: Context, n: int) -> int:
    """Fail every time: retried once, then kept as a dead letter."""
    with noted("broken", ctx.id, ctx.attempt):
        raise ValueError(f"order {n} has no customer (on purpose)")


@app.task(lock="account:{account}")
async def booking(ctx: Context, account: int, n: int) -> int:
    """Use an account that only one task may use at a time."""
    with noted("booking", ctx.id, ctx.attempt):
        key = f"account:{account}"
        note(ENTER, name="booking", task_id=ctx.id, attempt=ctx.attempt, detail=key)
        try:
            await asyncio.sleep(0.04)
        finally:
            note(LEAVE, name="booking", task_id=ctx.id, attempt=ctx.attempt, detail=key)
        return n


@app.task(priority="high")
async def urgent(ctx: Context, n: int) -> int:
    """Overtake whatever waits."""
    with noted("urgent", ctx.id, ctx.attempt):
        await asyncio.sleep(0.02)
        return n


@app.task(priority="low")
async def patient(ctx: Context, n: int) -> int:
    """Let others go first."""
    with noted("patient", ctx.id, ctx.attempt):
        await asyncio.sleep(0.02)
        return n


@app.task(executor="process")
def primes(ctx: Context, limit: int) -> int:
    """Count the primes below `limit` in a process of its own: work that keeps a core busy."""
    with noted("primes", ctx.id, ctx.attempt):
        sieve = bytearray([1]) * limit
        sieve[:2] = b"\0\0"
        for n in range(2, int(limit**0.5) + 1):
            if sieve[n]:
                sieve[n * n :: n] = bytes(len(range(n * n, limit, n)))
        return sum(sieve)
