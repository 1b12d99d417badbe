"""The tasks of `bench/service/pages.py`, and how a store comes to hold a bit of everything:
`python -m bench.page_tasks NUMBER_OF_DEAD NUMBER_OF_SCHEDULES` prints some ids as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

from bench.peers.bodies import async_noop
from holdfast import Holdfast
from holdfast.core.task import State
from holdfast.dashboard.dead_groups import first_line, group_key

GROUPS = 20

app = Holdfast()
noop = app.task(name="noop")(async_noop)


@app.task(name="broken", queue="broken", max_retries=0)
async def broken(number: int) -> None:
    raise ConnectionError(f"partner-{number % GROUPS}.example: connection refused")


@app.task(name="report", queue="agenda")
async def report(purpose: str) -> str:
    return f"{purpose}: nothing new"


async def prepare(dead: int, schedules: int) -> dict[str, str]:
    """Fail some, plan some and run each once, limit some; the ids of a few."""
    async with app:
        await app.submit_many_async([broken.call(number) for number in range(dead)])
        for number in range(schedules):
            name = f"report-{number}"
            await app.client.schedules.create(
                report.call(name), f"{number % 60} {number % 24} * * 1-5", tz="Europe/Berlin",
                name=name, owner=f"owner-{number % 10}",
            )  # fmt: skip
            await app.client.schedules.trigger(name)
        await app.run_worker(burst=True, queues=["broken", "agenda"])
        await app.set_limit_async("limit:partners", 5)
        _, token = await app.client.tokens.create("bench", scopes=["admin"], expires=None)
        (one,) = (await app.list_async(name="broken", limit=1)).tasks
        assert one.error is not None
        found = {"token": token, "dead": one.id}
        found["group"] = group_key(one.name, one.error.type, first_line(one.error.message))
        for key, words in {
            "waiting": {"state": State.QUEUED},
            "finished": {"state": State.COMPLETED},
            "run": {"name": "report"},
        }.items():
            (task,) = (await app.list_async(limit=1, **words)).tasks  # type: ignore[arg-type]
            found[key] = task.id
        return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(prepare(*map(int, sys.argv[1:])))))
