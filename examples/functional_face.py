"""The minimum: no app object in sight, just functions."""

from __future__ import annotations

import asyncio
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import get_task, init, list_tasks, run_worker, submit_task, task


@task
async def welcome(name: str, greeting: str = "Hello") -> str:
    return f"{greeting}, {name}!"


async def main() -> None:
    async with init(url="sqlite:///tasks.db"):
        ada = await submit_task(welcome, name="Ada", priority="high", tags=["people"])
        bob = await submit_task(welcome, name="Bob", greeting="Good morning", timeout_seconds=30)
        print("waiting:", len(await list_tasks(state="queued")))

        await run_worker(burst=True)  # in production: holdfast worker module:app
        print(await ada)
        print(await bob.result_async(timeout=5))

        print("Ada's task:", (await get_task(ada)).state)
        print("with the tag:", len(await list_tasks(tag="people")))


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder):
        asyncio.run(main())
