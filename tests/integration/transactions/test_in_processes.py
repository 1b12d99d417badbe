"""`ctx.transaction()` in the process executor: the process has a store of its own, the worker is
told.
"""

from __future__ import annotations

import asyncio
import runpy
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, State

SHOP = """
import os, sqlite3, time
from holdfast import Context, Holdfast

app = Holdfast(url={url!r}, retry_base="10ms", heartbeat="1s", lease="10s")

@app.task(executor="process")
def book(ctx: Context, customer: str) -> int:
    ctx.log("before")
    with ctx.transaction() as conn:
        conn.execute("INSERT INTO booking VALUES (?)", (customer,))
        ctx.log("inside")
        ctx.progress(1, 2)
        if customer == "nobody":
            raise ValueError(customer)
        if customer == "slow":
            time.sleep(30)
        ctx.complete(7)
    if customer == "dies":
        os._exit(1)
    ctx.log("after")
    return -1

@app.task(executor="process")
async def book_async(ctx: Context, customer: str) -> int:
    async with ctx.transaction() as conn:
        await conn.execute("INSERT INTO booking VALUES (?)", (customer,))
        await follow.options(connection=conn).submit_async(customer)
        ctx.complete(8)
    return -1

@app.task
async def follow(customer: str) -> None: ...
"""


class Shop:
    """The app, as its processes import it too."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.py"
        self.database = folder / "shop.db"
        self.file.write_text(SHOP.format(url=f"sqlite:///{self.database}"))
        made = runpy.run_path(str(self.file), run_name="shop")
        self.app: Holdfast = made["app"]
        self.book: Any = made["book"]
        self.book_async: Any = made["book_async"]

    async def work(self) -> None:
        async with asyncio.timeout(60):
            await self.app.run_worker(burst=True, app_spec=f"{self.file}:app")

    def bookings(self) -> list[str]:
        db = sqlite3.connect(self.database)
        try:
            return [row[0] for row in db.execute("SELECT customer FROM booking")]
        finally:
            db.close()


@pytest.fixture
async def shop(tmp_path: Path) -> Any:
    shop = Shop(tmp_path)
    async with shop.app:
        db = sqlite3.connect(shop.database)
        db.execute("CREATE TABLE booking (customer TEXT)")
        db.close()
        yield shop


async def test_rows_completion_and_what_was_said_are_one(shop: Shop) -> None:
    handle = await shop.book.submit_async("ada")
    await shop.work()

    task, history = await handle.task_async(), await handle.history_async()
    assert (task.state, await handle.result_async()) == (State.COMPLETED, 7)
    assert task.progress.done == 1
    assert [e.detail for e in history.events if e.kind == "log"] == ["before", "inside"]
    assert len(history.attempts) == 1
    assert shop.bookings() == ["ada"]
    assert (await shop.app.stats_async()).refused == 0


async def test_async_handlers_have_it_too_and_follow_ups_are_part_of_it(shop: Shop) -> None:
    handle = await shop.book_async.submit_async("ada")
    await shop.work()

    assert await handle.result_async() == 8
    assert shop.bookings() == ["ada"]
    assert (await shop.app.stats_async()).states[State.COMPLETED] == 2


async def test_an_exception_inside_rolls_back_and_what_was_said_is_kept(shop: Shop) -> None:
    handle = await shop.book.options(max_retries=0).submit_async("nobody")
    await shop.work()

    history = await handle.history_async()
    assert await handle.status_async() is State.DEAD_LETTER
    assert [e.detail for e in history.events if e.kind == "log"] == ["before", "inside"]
    assert shop.bookings() == []


async def test_a_process_that_dies_after_its_commit_has_completed_its_task(shop: Shop) -> None:
    handle = await shop.book.submit_async("dies")
    await shop.work()

    assert await handle.result_async() == 7
    assert len((await handle.history_async()).attempts) == 1
    assert shop.bookings() == ["dies"]


async def test_a_process_that_is_killed_inside_has_written_nothing(shop: Shop) -> None:
    handle = await shop.book.options(max_retries=0, timeout=0.5).submit_async("slow")
    await shop.work()

    assert (await handle.task_async()).reason == "timeout"
    assert shop.bookings() == []
