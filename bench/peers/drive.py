"""python -m bench.peers.drive PEER: do for the measuring side what it writes, a line at a time.

Runs in the peer's interpreter. A request is a JSON list, verb first; the answer one JSON value, or
`{"error": …}`. Peers may print what they like: their standard output becomes the error output.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import IO, Any

from bench.peers import bodies
from bench.peers.driver import Driver

PIECE = 1000
"""Tasks in one bulk call."""
GAPS = (0.02, 0.08)
"""Seconds between two sends, at random: no worker's poll may keep step with them."""


async def timed(act: Awaitable[None]) -> float:
    began = time.perf_counter()
    await act
    return time.perf_counter() - began


async def submit(driver: Driver, count: int, callers: int) -> float:
    """Seconds until `callers` at once have submitted `count` together."""
    return await timed(_gather([driver.submit(count // callers) for _ in range(callers)]))


async def _gather(calls: list[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*calls)


async def bulk(driver: Driver, count: int) -> float:
    """Seconds until all are submitted, in calls of `PIECE`, two callers taking turns."""
    pieces = iter([range(n, min(n + PIECE, count)) for n in range(0, count, PIECE)])

    async def caller() -> None:
        for numbers in pieces:
            await driver.bulk(numbers)

    return await timed(_gather([caller(), caller()]))


async def send_each(driver: Driver, count: int, patience: float) -> None:
    """Send tasks one at a time, and wait until all have started, or for so many seconds."""
    wanted = _started() + count
    for _ in range(count):
        await driver.send(time.time())
        await asyncio.sleep(random.uniform(*GAPS))
    deadline = time.monotonic() + patience
    while _started() < wanted and time.monotonic() < deadline:  # noqa: ASYNC110 - a file tells
        await asyncio.sleep(0.05)


async def until_finished(driver: Driver, count: int, seconds: float) -> dict[str, float]:
    """Look until the peer's store shows `count` as finished; says how often it had to look."""
    deadline, looks = time.time() + seconds, 0
    while True:
        seen, now = await driver.finished(), time.time()
        looks += 1
        if seen >= count or now > deadline:
            return {"finished": seen, "at": now, "looks": looks}
        await asyncio.sleep(0.02)


def _started() -> int:
    try:
        return (bodies.FOLDER / bodies.STAMPS).stat().st_size // bodies.STAMP.size
    except FileNotFoundError:
        return 0


VERBS: dict[str, Callable[..., Awaitable[Any]]] = {
    "install": lambda driver: driver.install(),
    "open": lambda driver: driver.open(),
    "fill": lambda driver, count: driver.fill(count),
    "submit": submit,
    "bulk": bulk,
    "send": send_each,
    "compose": lambda driver, kind, count: driver.compose(kind, count),
    "finished": until_finished,
    "mode": lambda driver: driver.mode(),
}


async def serve(driver: Driver, answers: IO[str]) -> None:
    """Answer requests until the other side closes."""
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        answer: object
        try:
            answer = await VERBS[verb](driver, *arguments)
        except Exception as problem:  # noqa: BLE001 - whatever a peer raises goes into the table
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module = importlib.import_module(f"bench.peers.{sys.argv[1]}")
    asyncio.run(serve(module.Queue(), answers))


if __name__ == "__main__":
    main()
