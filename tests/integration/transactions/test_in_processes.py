"""`ctx.transaction()` in the process executor: the process has a store of its own, the worker is
told.
"""

from __future__ import annotations

import runpy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.transactions.bookshops.base import Bookshop, work

from holdfast import Holdfast, State

SOURCE = """
import os, time
from {module} import {name} as Bookshop
from holdfast import Context

bookshop = Bookshop({url!r})
app = bookshop.app()

@app.task(executor="process")
def book(ctx: Context, customer: str) -> int:
    ctx.log("before")
    with ctx.transaction() as conn:
        bookshop.book_sync(conn, customer)
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
        await bookshop.book(conn, customer)
        await follow.options(connection=conn).submit_async(customer)
        ctx.complete(8)
    return -1

@app.task
async def follow(customer: str) -> None: ...
"""

on_any_store = pytest.mark.parametrize("bookshop", ["sqlite"], indirect=True)
"""What is about the process and not about its store."""


class Office:
    """The app, as its processes import it too."""

    def __init__(self, bookshop: Bookshop, folder: Path) -> None:
        kind = type(bookshop)
        self.file = folder / "office.py"
        self.file.write_text(
            SOURCE.format(module=kind.__module__, name=kind.__name__, url=bookshop.url)
        )
        made = runpy.run_path(str(self.file), run_name="office")
        self.app: Holdfast = made["app"]
        self.book: Any = made["book"]
        self.book_async: Any = made["book_async"]

    async def work(self) -> None:
        """In one process, one task after another."""
        await work(self.app, app_spec=f"{self.file}:app", concurrency=1)


@pytest.fixture
async def office(bookshop: Bookshop, tmp_path: Path) -> AsyncIterator[Office]:
    office = Office(bookshop, tmp_path)
    async with office.app:
        bookshop.furnish()
        yield office


async def test_records_completion_what_was_said_and_follow_ups_are_one(
    office: Office, bookshop: Bookshop
) -> None:
    handle = await office.book.submit_async("ada")
    other = await office.book_async.submit_async("bob")
    await office.work()

    task, history = await handle.task_async(), await handle.history_async()
    assert (task.state, await handle.result_async()) == (State.COMPLETED, 7)
    assert task.progress.done == 1
    assert [e.detail for e in history.events if e.kind == "log"] == ["before", "inside"]
    assert len(history.attempts) == 1
    assert await other.result_async() == 8
    assert bookshop.bookings() == ["ada", "bob"]
    stats = await office.app.stats_async()
    assert (stats.states[State.COMPLETED], stats.refused) == (3, 0)


@on_any_store
async def test_an_exception_inside_rolls_back_and_what_was_said_is_kept(
    office: Office, bookshop: Bookshop
) -> None:
    handle = await office.book.options(max_retries=0).submit_async("nobody")
    await office.work()

    history = await handle.history_async()
    assert await handle.status_async() is State.DEAD_LETTER
    assert [e.detail for e in history.events if e.kind == "log"] == ["before", "inside"]
    assert bookshop.bookings() == []


@on_any_store
async def test_a_process_that_dies_after_its_commit_has_completed_its_task(
    office: Office, bookshop: Bookshop
) -> None:
    handle = await office.book.submit_async("dies")
    await office.work()

    assert await handle.result_async() == 7
    assert len((await handle.history_async()).attempts) == 1
    assert bookshop.bookings() == ["dies"]


@on_any_store
async def test_a_process_that_is_killed_inside_has_written_nothing(
    office: Office, bookshop: Bookshop
) -> None:
    handle = await office.book.options(max_retries=0, timeout=0.5).submit_async("slow")
    await office.work()

    assert (await handle.task_async()).reason == "timeout"
    assert bookshop.bookings() == []
