"""The tasks of `bench/storms.py`, and what it does to them: `python -m bench.storm_tasks VERB N`.

Prints how many seconds the verb took.
"""

from __future__ import annotations

import asyncio
import sys
import time

from holdfast.app import Holdfast
from holdfast.core.gate import Gate, GateKind
from holdfast.core.task import NewTask
from holdfast.definitions.context import context

AT_A_TIME = 2000
KEYS = 10_000

app = Holdfast()


@app.task(name="plain")
async def plain(number: int) -> int:
    return number


@app.task(name="stormy")
async def stormy(number: int) -> int:
    if context().attempt == 1:
        raise ValueError(f"no row {number % 10}")
    return number


async def act(verb: str, tasks: int) -> None:
    async with app:
        verbs = await app.verbs()
        match verb:
            case "requeue":
                assert await verbs.replay(state="completed") == tasks
            case "cancel":
                assert await verbs.cancel_many(state="queued") == tasks
            case "locks" | "limits":
                for start in range(0, tasks, AT_A_TIME):
                    numbers = range(start, min(tasks, start + AT_A_TIME))
                    new = verbs.new_tasks([plain.call(n) for n in numbers])
                    pairs = zip(new, numbers, strict=True)
                    gated = [_behind_a_gate(verb, task, n % KEYS) for task, n in pairs]
                    await verbs.store.add(gated, idempotency_window=0.0)
            case _:
                body = {"plain": plain, "stormy": stormy}[verb]
                for start in range(0, tasks, AT_A_TIME):
                    calls = [body.call(n) for n in range(start, min(tasks, start + AT_A_TIME))]
                    await app.submit_many_async(calls)


def _behind_a_gate(verb: str, task: NewTask, key: int) -> NewTask:
    if verb == "locks":
        return task._replace(lock=f"key {key}")
    return task._replace(gates=(Gate(GateKind.LIMIT, f"key {key}", 5),))


if __name__ == "__main__":
    begun = time.perf_counter()
    asyncio.run(act(sys.argv[1], int(sys.argv[2])))
    print(time.perf_counter() - begun)
