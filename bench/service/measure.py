"""How fast the service takes tasks, hands them out and answers, on PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from bench.filling import fill
from bench.growth import Size as Depth
from bench.place import Place
from bench.servers import Postgres
from bench.service.process import service
from bench.service.wire import Wire
from bench.size import Size
from bench.target import Target, verdicts
from holdfast.app import Holdfast

TASKS = "/api/v1/tasks"
CALLERS = 16
BULK = 1000
BULK_CALLERS = 2
READS = 100

HEAD = """
One server process and one client process over kept-alive HTTP connections.
The client does no more than write requests and read answers.
Single: {callers} callers, a task a request.
Bulk: {bulk:,} tasks a request, {bulk_callers} requests under way.
Pick-up: from the submit request to the moment a long-polling worker has the task.
Reads: 95th percentile of {reads}, with {waiting:,} tasks waiting and {finished:,} finished.

"""


@dataclass(slots=True)
class Found:
    """What was measured; rates in tasks a second, times in milliseconds."""

    single: float
    bulk: float
    pick_up_p50: float
    pick_up_p99: float
    reads: dict[str, float]


def measure(server: Postgres, size: Size) -> str:
    """Measure, and say it as a part of the page."""
    depth = Depth(size.deep, size.deep)
    found = _measure(server, size.requests, depth)
    head = HEAD.format(
        callers=CALLERS, bulk=BULK, bulk_callers=BULK_CALLERS, reads=READS, waiting=depth.waiting,
        finished=depth.finished,
    )  # fmt: skip
    return head + verdicts(_targets(found))


def _targets(found: Found) -> list[Target]:
    return [
        Target(what="single submits, tasks/s", wanted=">= 1,500", value=found.single, limit=1500),
        Target(what="bulk submits, tasks/s", wanted=">= 20,000", value=found.bulk, limit=20_000),
        _at_most("pick-up by an HTTP worker, p50, ms", found.pick_up_p50, 15),
        Target(
            what="the same, p99, ms", wanted="", value=found.pick_up_p99, limit=None, form="{:.1f}"
        ),
        *(_at_most(f"{name}, p95, ms", value, 50) for name, value in found.reads.items()),
    ]


def _at_most(what: str, value: float, limit: float) -> Target:
    return Target(
        what=what, wanted=f"<= {limit:g}", value=value, limit=limit, at_most=True, form="{:.1f}"
    )


def _measure(server: Postgres, tasks: int, depth: Depth) -> Found:
    names = ("bench_service", "bench_service_deep")
    try:
        shallow, deep = map(server.fresh, names)
        token = asyncio.run(_prepared(shallow, None))
        with service(shallow) as (port, _):
            single, bulk, waits = asyncio.run(_writes(port, token, tasks))
        token = asyncio.run(_prepared(deep, depth))
        with service(deep) as (port, _):
            reads = asyncio.run(_reads(port, token))
        return Found(single, bulk, median(waits), quantiles(waits, n=100)[98], reads)
    finally:
        for name in names:
            server.drop(name)


async def _prepared(url: str, depth: Depth | None) -> str:
    """A store with a token, and so many tasks."""
    async with Holdfast(url=url) as app:
        _, token = await app.client.tokens.create("bench", scopes=["admin"], expires=None)
        if depth is not None:
            place = Place(app.client.store)
            await place.enter()
            await fill(place, url, depth)
        return token


async def _writes(port: int, token: str, tasks: int) -> tuple[float, float, list[float]]:
    single = await _rate(port, token, CALLERS, tasks, _one)
    bulk = await _rate(port, token, BULK_CALLERS, tasks * 10, _many)
    return single, bulk, await _pick_ups(port, token, 150)


Send = Callable[[Wire, int], Awaitable[int]]


async def _rate(port: int, token: str, callers: int, tasks: int, send: Send) -> float:
    """Tasks a second that so many callers submit together."""
    wires = [await Wire.open(port, token) for _ in range(callers)]
    for wire in wires:
        await send(wire, 0)
    left = iter(range(tasks))
    sent = 0

    async def caller(wire: Wire) -> None:
        nonlocal sent
        for number in left:
            more = await send(wire, number)
            sent += more
            if sent >= tasks:
                return

    began = time.perf_counter()
    await asyncio.gather(*map(caller, wires))
    seconds = time.perf_counter() - began
    for wire in wires:
        wire.close()
    return sent / seconds


async def _one(wire: Wire, number: int) -> int:
    await wire.post(TASKS, b'{"task_type":"noop","parameters":{"number":%d}}' % number)
    return 1


_MANY = json.dumps(
    [{"task_type": "noop", "parameters": {"number": number}} for number in range(BULK)]
).encode()


async def _many(wire: Wire, number: int) -> int:
    await wire.post(TASKS, _MANY)
    return BULK


async def _pick_ups(port: int, token: str, count: int) -> list[float]:
    """Milliseconds from a submit to a worker that waits, a task at a time."""
    submits, works = await Wire.open(port, token), await Wire.open(port, token)
    registration = {"capabilities": [], "capacity": 10, "queues": ["remote"], "version": "1"}
    worker = await works.post("/internal/workers/register", json.dumps(registration).encode())
    base = f"/internal/workers/{worker['worker_id']}"
    waits: list[float] = []
    for number in range(count + 10):
        polled = asyncio.create_task(works.post(f"{base}/poll", b'{"available_capacity":10}'))
        await asyncio.sleep(random.uniform(0.02, 0.08))
        began = time.perf_counter()
        body = b'{"task_type":"remote.noop","queue":"remote","parameters":{"n":%d}}' % number
        await submits.post(TASKS, body)
        (task,) = (await polled)["tasks"]
        waits.append((time.perf_counter() - began) * 1000)
        result = {"task_id": task["task_id"], "attempt": task["attempt"], "status": "completed"}
        await works.post(f"{base}/result", json.dumps({**result, "result": 1}).encode())
    return waits[10:]


async def _reads(port: int, token: str) -> dict[str, float]:
    wire = await Wire.open(port, token)
    page = await wire.get(f"{TASKS}?limit=100&status=queued")
    ids: Sequence[str] = [task["task_id"] for task in page["tasks"]]
    return {
        "queue/stats": await _p95(wire, lambda _: "/api/v1/queue/stats"),
        "a page of waiting tasks": await _p95(wire, lambda _: f"{TASKS}?limit=100&status=queued"),
        "a page of finished tasks": await _p95(
            wire, lambda _: f"{TASKS}?limit=100&status=completed"
        ),
        "a page of all": await _p95(wire, lambda _: f"{TASKS}?limit=100"),
        "why": await _p95(wire, lambda number: f"{TASKS}/{ids[number % len(ids)]}/why"),
    }


async def _p95(wire: Wire, path: Callable[[int], str]) -> float:
    times: list[float] = []
    for number in range(READS + 5):
        began = time.perf_counter()
        await wire.get(path(number))
        times.append((time.perf_counter() - began) * 1000)
    return quantiles(times[5:], n=20)[18]
