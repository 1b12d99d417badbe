"""A network that breaks around the commit of a handler's transaction: what became of it is found
out, never guessed. On each store that has a server; `test_sqlite_completion.py` has the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.integration.transactions.bookshops.base import Branch, ran, work
from tests.kit.servers.proxy import Ambush, Fate, Proxy

from holdfast import Context, Holdfast, State

pytestmark = pytest.mark.parametrize("bookshop", ["postgres", "mongo"], indirect=True)

FATES = [Fate.LOSE_REQUEST, Fate.LATE_REQUEST, Fate.LOSE_ANSWER, Fate.CUT_ANSWER, Fate.DELAY]


@pytest.fixture
async def app(bookshop: Branch, proxy: Proxy) -> AsyncIterator[Holdfast]:
    async with bookshop.through(proxy) as app:
        bookshop.furnish()
        yield app


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.name.lower())
async def test_a_connection_cut_at_the_commit_is_found_out_never_guessed(
    app: Holdfast, bookshop: Branch, proxy: Proxy, fate: Fate
) -> None:
    ambushes: list[Ambush] = []

    @app.task(lock=bookshop.lock)
    async def book_async(ctx: Context, losses: int) -> None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, f"async, {losses} lost, attempt {ctx.attempt}")
            if ctx.attempt == 1:
                ambushes.append(proxy.ambush(bookshop.commit, fate, times=losses))

    @app.task(lock=bookshop.lock)
    def book_sync(ctx: Context, losses: int) -> None:
        with ctx.transaction() as conn:
            bookshop.book_sync(conn, f"sync, {losses} lost, attempt {ctx.attempt}")
            if ctx.attempt == 1:
                ambushes.append(proxy.ambush(bookshop.commit, fate, times=losses))

    often = (1,) if fate is Fate.DELAY else bookshop.losses  # what is late is not sent again
    handles = await app.submit_many_async(
        [book.call(losses) for losses in often for book in (book_async, book_sync)]
    )
    await work(app, concurrency=1)

    assert {await handle.status_async() for handle in handles} == {State.COMPLETED}
    assert (await app.stats_async()).refused == 0, "it was guessed, and wrongly"
    expected = bookshop.attempts_after(fate)
    attempts = [len((await handle.history_async()).attempts) for handle in handles]
    assert attempts == [expected] * len(handles)
    assert sorted(bookshop.bookings()) == sorted(
        f"{kind}, {losses} lost, attempt {expected}"
        for kind in ("async", "sync")
        for losses in often
    )
    assert [ambush.left for ambush in ambushes] == [0] * len(handles)


async def test_a_connection_cut_before_the_commit_is_an_ordinary_failure(
    app: Holdfast, bookshop: Branch, proxy: Proxy
) -> None:
    ambushes: list[Ambush] = []

    @app.task
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, f"attempt {ctx.attempt}")
            if ctx.attempt == 1:
                ambushes.append(proxy.ambush(bookshop.completion, Fate.LOSE_ANSWER))

    handle = await ran(app, book)

    assert [ambush.left for ambush in ambushes] == [0]
    assert await handle.status_async() is State.COMPLETED
    assert bookshop.bookings() == ["attempt 2"]
