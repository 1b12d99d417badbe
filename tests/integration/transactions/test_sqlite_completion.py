"""`ctx.transaction()` on SQLite: its connection, its one writer, and a commit without a network."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.integration.transactions.bookshops.base import ran
from tests.integration.transactions.bookshops.sqlite import BOOK, COUNT, SQLiteBookshop

from holdfast import Context, Holdfast, State
from holdfast.errors import InvalidOption, StoreUnavailable
from holdfast.stores.sqlite.transactions import SQLiteTransaction


@pytest.fixture
def bookshop(sqlite_bookshop: SQLiteBookshop) -> SQLiteBookshop:
    return sqlite_bookshop


async def test_the_connection_of_an_async_handler_executes_and_fetches(
    app: Holdfast, bookshop: SQLiteBookshop
) -> None:
    @app.task
    async def book(ctx: Context) -> int:
        async with ctx.transaction() as conn:
            done = await conn.execute(BOOK, ("ada",))
            assert done.rowcount == 1
            await conn.executemany(BOOK, [("bob",), ("eve",)])
            (count,) = await conn.fetchone(COUNT)
            assert await conn.fetchall("SELECT customer FROM booking") == [
                ("ada",), ("bob",), ("eve",),
            ]  # fmt: skip
            ctx.complete(count)
        return -1

    handle = await ran(app, book)

    assert await handle.result_async() == 3
    assert bookshop.bookings() == ["ada", "bob", "eve"]


async def test_a_submit_that_would_wait_for_the_handlers_own_transaction_is_refused(
    app: Holdfast,
) -> None:
    raised: list[InvalidOption] = []

    @app.task
    async def send() -> None: ...

    @app.task
    async def book(ctx: Context) -> None:
        async with ctx.transaction():
            with pytest.raises(InvalidOption) as awaited:
                await send.submit_async()
            with pytest.raises(InvalidOption) as waited:
                await asyncio.to_thread(send.submit)
            raised.extend([awaited.value, waited.value])

    handle = await ran(app, book)

    assert await handle.status_async() is State.COMPLETED
    assert ["options(connection=conn)" in str(error) for error in raised] == [True, True]


@pytest.mark.parametrize("committed", [True, False])
async def test_a_lost_answer_to_the_commit_is_found_out_by_looking(
    app: Holdfast, bookshop: SQLiteBookshop, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    complete = SQLiteTransaction.complete
    lost: list[int] = []

    async def lose_the_answer(self: SQLiteTransaction, *given: Any) -> None:
        if committed or lost:
            await complete(self, *given)
        if not lost:
            lost.append(1)
            raise StoreUnavailable("the disk went away during COMMIT")

    monkeypatch.setattr(SQLiteTransaction, "complete", lose_the_answer)

    @app.task
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, f"attempt {ctx.attempt}")

    handle = await ran(app, book)

    assert await handle.status_async() is State.COMPLETED
    assert bookshop.bookings() == ["attempt 1" if committed else "attempt 2"]
    assert len((await handle.history_async()).attempts) == (1 if committed else 2)
