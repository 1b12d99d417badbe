"""How fast is it here? Each function measures one thing on the store it is given, with real worker
processes, and returns a value. Give them a scratch store: they fill it.

Speeds are those of the product as a user has it: arguments validated, results stored, every
acknowledgement on disk.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import quantiles
from typing import TYPE_CHECKING, TypeVar

from holdfast.cli.children import kill_group, start_worker
from holdfast.cli.command import CommandFailed
from holdfast.cli.processes import usage
from holdfast.core.fleet import WorkerStatus
from holdfast.core.task import State

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.definitions.registry import AnyDefinition, Registry

T = TypeVar("T")

APP = "holdfast.cli.bench_tasks:app"
NOOP, STAMP = "bench.noop", "bench.stamp"
BATCH = 1000
PAUSE = 0.02
"""Seconds between two submits of a pick-up measurement: the worker has gone back to sleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """So many tasks in so many seconds."""

    tasks: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.tasks / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitSpeed(Speed):
    """`callers` submitted at once, `batch` tasks a call."""

    callers: int
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSpeed(Speed):
    """From the first start to the last end, by the store's own times: no interpreter start-up."""

    processes: int
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PickUp:
    """Milliseconds from calling submit to the handler's first line, in an idle worker."""

    tasks: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCost:
    """What a worker with nothing to do costs, its supervisor included."""

    seconds: float
    cpu_percent: float
    rss_mib: float
    pss_mib: float
    processes: int


def measure_submit(url: str, tasks: int, *, callers: int = 1) -> SubmitSpeed:
    """Submit one by one, from `callers` coroutines at once."""
    share = tasks // callers

    async def one(noop: AnyDefinition) -> None:
        for n in range(share):
            await noop.submit_async(n)

    async def work(client: Client, known: Registry) -> float:
        return await _timed(client, lambda: gather(*(one(known[NOOP]) for _ in range(callers))))

    return SubmitSpeed(tasks=share * callers, seconds=_on(url, work), callers=callers, batch=1)


def measure_bulk(url: str, tasks: int, *, batch: int = BATCH) -> SubmitSpeed:
    """Submit in batches, two on their way at a time."""

    async def work(client: Client, known: Registry) -> float:
        return await _timed(client, lambda: _fill(client, known[NOOP], tasks, batch))

    return SubmitSpeed(tasks=tasks, seconds=_on(url, work), callers=1, batch=batch)


def measure_drain(
    url: str, tasks: int, *, processes: int = 1, concurrency: int = 100
) -> DrainSpeed:
    """Submit tasks, then let workers run them all. The store must hold nothing else."""
    _on(url, lambda client, known: _fill(client, known[NOOP], tasks, BATCH))
    options = ["--burst", "--processes", str(processes), "--concurrency", str(concurrency)]
    with worker(url, *options) as group:
        code = group.wait()
    if code != 0:
        raise CommandFailed("worker_failed", f"the worker left with exit code {code}.")
    seconds = _on(url, lambda client, _: _span(client, tasks))
    return DrainSpeed(tasks=tasks, seconds=seconds, processes=processes, concurrency=concurrency)


def measure_pickup(url: str, tasks: int) -> PickUp:
    """Submit one task at a time to a worker that has nothing else to do."""

    async def work(client: Client, known: Registry) -> list[float]:
        await until_ready(client)
        return [await _pick_up(known[STAMP]) for _ in range(tasks)]

    with worker(url):
        waits = sorted(_on(url, work))
    cuts = quantiles(waits, n=100, method="inclusive")
    return PickUp(tasks=tasks, p50_ms=cuts[49], p95_ms=cuts[94], p99_ms=cuts[98])


def measure_idle(url: str, seconds: float = 10.0) -> IdleCost | None:
    """Watch a worker do nothing. None where the system does not tell (only Linux does)."""
    with worker(url) as group:
        _on(url, lambda client, _: until_ready(client))
        time.sleep(1.0)  # its start-up is not idleness
        before, began = usage(group.pid), time.monotonic()
        time.sleep(seconds)
        after, passed = usage(group.pid), time.monotonic() - began
    if before is None or after is None:
        return None
    return IdleCost(
        seconds=passed,
        cpu_percent=100 * (after.cpu_seconds - before.cpu_seconds) / passed,
        rss_mib=after.rss_mib,
        pss_mib=after.pss_mib,
        processes=after.processes,
    )


@contextmanager
def worker(url: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `holdfast worker` on that store; ended with the context."""
    group = start_worker(APP, *options, environment={"HOLDFAST_URL": url})
    try:
        yield group
        group.terminate()
        group.wait(timeout=20)
    finally:
        kill_group(group)


async def until_ready(client: Client, patience: float = 30.0) -> None:
    """Wait until a worker has registered."""
    deadline = time.monotonic() + patience
    while not any(w.status is WorkerStatus.ACTIVE for w in await client.workers()):
        if time.monotonic() > deadline:
            raise CommandFailed("no_workers", f"no worker came up within {patience:.0f} s.")
        await asyncio.sleep(0.05)


def _on(url: str, work: Callable[[Client, Registry], Awaitable[T]]) -> T:
    """Do some work on a store with the tasks of `bench_tasks`."""
    from holdfast.cli.bench_tasks import make_app  # noqa: PLC0415

    async def opened() -> T:
        async with make_app(url) as app:
            return await work(await app.verbs(), app.registry)

    return asyncio.run(opened())


async def _timed(client: Client, work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that it takes, on a store that has been used."""
    await client.stats()
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def _fill(client: Client, noop: AnyDefinition, tasks: int, batch: int) -> None:
    """Two batches at a time: one is made ready while the other is stored."""
    starts = iter(range(0, tasks, batch))

    async def submit() -> None:
        for start in starts:
            numbers = range(start, min(start + batch, tasks))
            await client.submit_many([noop.call(n) for n in numbers])

    await gather(submit(), submit())


async def _span(client: Client, tasks: int) -> float:
    """Seconds from the first start to the last end, over every task; all must have completed."""
    starts: list[datetime] = []
    ends: list[datetime] = []
    after: str | None = None
    while True:
        page = await client.list(state=State.COMPLETED, limit=BATCH, after=after)
        starts += [task.started_at for task in page.tasks if task.started_at]
        ends += [task.finished_at for task in page.tasks if task.finished_at]
        after = page.next
        if after is None:
            break
    if len(ends) != tasks:
        raise CommandFailed("not_drained", f"{len(ends)} of {tasks} tasks completed.")
    return (max(ends) - min(starts)).total_seconds()


async def _pick_up(stamp: AnyDefinition) -> float:
    """Milliseconds from the submit to the start of one task."""
    await asyncio.sleep(PAUSE)
    began = time.monotonic_ns()
    handle = await stamp.submit_async()
    started: int = await handle.result_async(timeout=30)
    return (started - began) / 1e6
