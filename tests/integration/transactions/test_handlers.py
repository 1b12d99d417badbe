"""`ctx.transaction()` on the worker's side: what it asks of a handler, whatever the store."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.transactions.bookshops.base import message_of, ran
from tests.integration.transactions.bookshops.sqlite import SQLiteBookshop

from holdfast import Context, Handle, Holdfast, State
from holdfast.errors import HoldfastError
from holdfast.testing import MemoryApp
from holdfast.testing.eventually import eventually


@pytest.fixture
def bookshop(sqlite_bookshop: SQLiteBookshop) -> SQLiteBookshop:
    return sqlite_bookshop


async def test_without_complete_the_result_is_null(app: Holdfast, bookshop: SQLiteBookshop) -> None:
    @app.task
    async def book(ctx: Context) -> int | None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, "ada")
        return 7

    handle = await ran(app, book)

    assert await handle.result_async() is None


async def test_a_result_that_does_not_fit_is_refused_inside_the_block(
    app: Holdfast, bookshop: SQLiteBookshop
) -> None:
    @app.task
    async def book(ctx: Context) -> int:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, "ada")
            ctx.complete(2**70)
        return 0

    handle = await ran(app, book)

    assert await handle.status_async() is State.FAILED
    assert bookshop.bookings() == []


async def test_there_is_one_transaction_for_each_attempt(app: Holdfast) -> None:
    raised: list[str] = []

    @app.task
    async def book(ctx: Context) -> None:
        async with ctx.transaction():
            try:
                async with ctx.transaction():
                    raise AssertionError
            except HoldfastError as error:
                raised.append(str(error))
        try:
            async with ctx.transaction():
                raise AssertionError
        except HoldfastError as error:
            raised.append(str(error))
        try:
            ctx.complete(1)
        except HoldfastError as error:
            raised.append(str(error))

    handle = await ran(app, book)

    assert await handle.status_async() is State.COMPLETED
    assert "inside its transaction already" in raised[0]
    assert "completed by its transaction already" in raised[1]
    assert "works only inside" in raised[2]


async def test_with_in_an_async_handler_is_refused(app: Holdfast) -> None:
    @app.task(max_retries=0)
    async def book(ctx: Context) -> None:
        with ctx.transaction():
            pass

    handle = await ran(app, book)

    assert "async with" in await message_of(handle)


async def test_a_thread_that_was_told_to_stop_cannot_complete(
    app: Holdfast, bookshop: SQLiteBookshop
) -> None:
    inside: list[Context] = []
    goes_on = threading.Event()

    @app.task(max_retries=0, timeout=0.2)
    def book(ctx: Context) -> None:
        with ctx.transaction() as conn:
            bookshop.book_sync(conn, "late")
            inside.append(ctx)
            with suppress(BaseException):
                goes_on.wait(20)

    handle = await book.submit_async()
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    await eventually(lambda: inside and inside[0].stop_requested)
    goes_on.set()
    try:
        await eventually(lambda: ended(handle))
    finally:
        worker.stop()
        await running

    assert (await handle.task_async()).reason == "timeout"
    assert bookshop.bookings() == []


def test_a_store_in_memory_says_that_it_has_no_transactions() -> None:
    app = MemoryApp()

    @app.task(max_retries=0)
    async def book(ctx: Context) -> None:
        async with ctx.transaction():
            pass

    handle = book.submit()
    app.drain()

    error = handle.task().error
    assert error is not None
    assert error.type == "Unsupported"
    assert "sqlite:///" in error.message


async def ended(handle: Handle[Any]) -> bool:
    return (await handle.task_async()).finished_at is not None
