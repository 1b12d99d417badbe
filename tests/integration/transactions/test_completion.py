"""`ctx.transaction()`: what a handler writes and the completion of its task are one, on each store
that has transactions.

What one store alone promises is in the file of that store; what the worker promises, whatever the
store, in `test_handlers.py`; a network that breaks, in `test_lost_commits.py`.
"""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.transactions.bookshops.base import (
    Bookshop,
    Branch,
    endings_of,
    kinds_of,
    message_of,
    ran,
    rescue,
    work,
)

from holdfast import Context, Fatal, Holdfast, State
from holdfast.errors import LeaseLost

on_servers = pytest.mark.parametrize("bookshop", ["postgres", "mongo"], indirect=True)


class TestAsyncHandlers:
    async def test_records_and_completion_are_committed_together(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        @app.task
        async def book(ctx: Context, customer: str) -> int:
            async with ctx.transaction() as conn:
                assert isinstance(conn, bookshop.connections[0])
                await bookshop.book(conn, customer)
                assert bookshop.bookings() == []
                ctx.log("inside")
                ctx.complete(await bookshop.count(conn))
            ctx.progress(1, 1)
            raise Fatal("too late to change anything")

        handle = await ran(app, book, "ada")

        assert await handle.result_async() == 1
        assert bookshop.bookings() == ["ada"]
        assert await kinds_of(handle) == ["submitted", "log"]
        assert await endings_of(handle) == ["completed"]

    async def test_an_exception_inside_rolls_back_and_the_attempt_fails_as_usual(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        @app.task(max_retries=1)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await bookshop.book(conn, f"attempt {ctx.attempt}")
                if ctx.attempt == 1:
                    raise ValueError("no")

        handle = await ran(app, book)

        assert await handle.status_async() is State.COMPLETED
        assert await endings_of(handle) == ["error", "completed"]
        assert bookshop.bookings() == ["attempt 2"]

    @pytest.mark.parametrize(
        ("bookshop", "when"),
        [
            ("sqlite", "before"),
            ("postgres", "before"),
            ("postgres", "inside"),
            ("mongo", "before"),
            ("mongo", "inside"),
        ],
        indirect=["bookshop"],
    )
    async def test_a_zombie_that_was_rescued_writes_nothing(
        self, app: Holdfast, bookshop: Bookshop, when: str
    ) -> None:
        raised: list[LeaseLost] = []

        @app.task(lock="doc", max_retries=0)
        async def book(ctx: Context) -> None:
            rescued = when if ctx.attempt == 1 else "never"
            try:
                if rescued == "before":
                    await rescue(app, ctx.id)
                async with ctx.transaction() as conn:
                    await bookshop.book(conn, f"attempt {ctx.attempt}")
                    if rescued == "inside":
                        async with asyncio.timeout(5):  # nothing of ours keeps the rescuer waiting
                            await rescue(app, ctx.id)
            except LeaseLost as error:
                raised.append(error)
                raise

        handle = await ran(app, book)

        assert len(raised) == 1
        assert await handle.status_async() is State.COMPLETED
        assert bookshop.bookings() == ["attempt 2"]
        assert "late_result_refused" in await kinds_of(handle)

    async def test_a_follow_up_submitted_through_it_is_part_of_it(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        sent: list[str] = []

        @app.task(lock="mail")
        async def send(customer: str) -> None:
            sent.append(customer)

        @app.task(max_retries=0)
        async def book(ctx: Context, customer: str) -> None:
            async with ctx.transaction() as conn:
                await bookshop.book(conn, customer)
                await send.options(connection=conn).submit_async(customer)
                if customer == "nobody":
                    raise ValueError(customer)

        await app.submit_many_async([book.call("ada"), book.call("nobody")])
        await work(app)

        assert sent == ["ada"]
        assert bookshop.bookings() == ["ada"]

    async def test_what_it_said_inside_is_stored_with_the_completion(self, app: Holdfast) -> None:
        @app.task
        async def book(ctx: Context) -> None:
            ctx.log("before")
            async with ctx.transaction():
                ctx.progress(1, 2)
                ctx.log("inside")
                ctx.cost(3)
                await asyncio.sleep(0.5)  # longer than the pause between two reports

        handle = await ran(app, book)

        task = await handle.task_async()
        lines = [e.detail for e in (await handle.history_async()).events if e.kind == "log"]
        assert task.progress is not None
        assert (task.progress.done, task.cost.units, lines) == (1, 3, ["before", "inside"])
        assert (await app.stats_async()).refused == 0

    async def test_a_timeout_inside_rolls_back(self, app: Holdfast, bookshop: Bookshop) -> None:
        @app.task(max_retries=0, timeout=0.3)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await bookshop.book(conn, "slow")
                await asyncio.sleep(30)

        handle = await ran(app, book)

        task = await handle.task_async()
        assert (task.state, task.reason) == (State.DEAD_LETTER, "timeout")
        assert bookshop.bookings() == []

    async def test_an_end_behind_our_back_is_found_out(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await bookshop.book(conn, "ada")
                await bookshop.end(conn)

        handle = await ran(app, book)

        assert await handle.status_async() is State.DEAD_LETTER
        assert "was ended inside" in await message_of(handle)

    @on_servers
    async def test_an_error_that_was_caught_inside_is_explained(
        self, app: Holdfast, bookshop: Branch
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await bookshop.stumble(conn)

        handle = await ran(app, book)

        assert bookshop.advice in await message_of(handle)
        assert bookshop.bookings() == []

    async def test_a_lock_held_by_it_is_passed_on_at_once(self, app: Holdfast) -> None:
        edits: list[int] = []

        @app.task(lock="doc")
        async def edit(ctx: Context, n: int) -> None:
            async with ctx.transaction():
                edits.append(n)

        handles = await app.submit_many_async([edit.call(n) for n in range(5)])
        worker = app.worker(poll=30.0, concurrency=5)
        running = asyncio.create_task(worker.run())
        try:
            await asyncio.gather(*(handle.result_async(timeout=10) for handle in handles))
        finally:
            worker.stop()
            await running

        assert edits == [0, 1, 2, 3, 4]
        fences = [(await handle.task_async()).fence or 0 for handle in handles]
        assert fences == sorted(set(fences))

    @pytest.mark.parametrize("bookshop", ["sqlite", "postgres"], indirect=True)
    async def test_many_handlers_and_plain_tasks_all_get_their_turn(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        @app.task
        async def book(ctx: Context, n: int) -> None:
            async with ctx.transaction() as conn:
                await bookshop.book(conn, str(n))
                if bookshop.admits_others:
                    await asyncio.sleep(0.05)  # so that more are inside than have connections

        @app.task
        async def plain(n: int) -> int:
            return n

        await app.submit_many_async([(book if n % 2 else plain).call(n) for n in range(80)])
        await work(app, concurrency=20)

        assert sorted(bookshop.bookings(), key=int) == [str(n) for n in range(80) if n % 2]
        assert (await app.stats_async()).states[State.COMPLETED] == 80


class TestSyncHandlers:
    async def test_records_and_completion_are_committed_together(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        sent: list[str] = []

        @app.task
        def send(customer: str) -> None:
            sent.append(customer)

        @app.task
        def book(ctx: Context, customer: str) -> int:
            with ctx.transaction() as conn:
                assert isinstance(conn, bookshop.connections[1])
                bookshop.book_sync(conn, customer)
                send.options(connection=conn).submit(customer)
                ctx.progress(1, 1)
                ctx.complete(bookshop.count_sync(conn))
            return -1

        handle = await ran(app, book, "ada")

        assert await handle.result_async() == 1
        assert (await handle.task_async()).progress is not None
        assert bookshop.bookings() == sent == ["ada"]
        assert await app.count_async(state="completed") == 2

    async def test_an_exception_inside_rolls_back(self, app: Holdfast, bookshop: Bookshop) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                bookshop.book_sync(conn, "ada")
                raise ValueError("no")

        handle = await ran(app, book)

        assert await handle.status_async() is State.DEAD_LETTER
        assert bookshop.bookings() == []

    @on_servers
    async def test_a_zombie_that_was_rescued_inside_its_transaction_writes_nothing(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        loop = asyncio.get_running_loop()

        @app.task
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                bookshop.book_sync(conn, f"attempt {ctx.attempt}")
                if ctx.attempt == 1:
                    asyncio.run_coroutine_threadsafe(rescue(app, ctx.id), loop).result(5)

        handle = await ran(app, book)

        assert await handle.status_async() is State.COMPLETED
        assert bookshop.bookings() == ["attempt 2"]

    async def test_the_connection_cannot_end_the_transaction(
        self, app: Holdfast, bookshop: Bookshop
    ) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context, how: int) -> None:
            with ctx.transaction() as conn:
                bookshop.book_sync(conn, "ada")
                bookshop.endings[how](conn)

        handles = await app.submit_many_async(
            [book.call(how) for how in range(len(bookshop.endings))]
        )
        await work(app)

        for handle in handles:
            assert "belongs to the task" in await message_of(handle)
        assert bookshop.bookings() == []
