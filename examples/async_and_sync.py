"""Sync and async handlers side by side, submitted from sync and async code."""

from __future__ import annotations

import asyncio
import threading
from contextlib import chdir
from tempfile import TemporaryDirectory

from holdfast import Holdfast

app = Holdfast()


@app.task
async def fetch(page: int) -> str:
    await asyncio.sleep(0.01)  # an async handler waits without keeping anybody from working
    return f"page {page} on the loop"


@app.task
def resize(photo: str) -> str:
    on_main = threading.current_thread() is threading.main_thread()
    return f"{photo} in {'the main thread' if on_main else 'a thread'}"


async def main() -> None:
    async with app:
        pages = [await fetch.submit_async(n) for n in (1, 2, 3)]
        photo = await resize.submit_async("cat.png")
        await app.run_worker(burst=True)
        for task in (*pages, photo):
            print(await task)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder):
        asyncio.run(main())
