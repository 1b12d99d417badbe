"""`ctx.transaction()` on SQLite: the handler's rows and the task's completion are one."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Fatal, Handle, Holdfast, State
from holdfast.core.attempt import Claim
from holdfast.errors import HoldfastError, InvalidOption, LeaseLost, StoreUnavailable
from holdfast.testing import MemoryApp
from holdfast.testing.eventually import eventually
from holdfast.testing.factories import loss

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def app(path: Path) -> Iterator[Holdfast]:
    app = Holdfast(url=f"sqlite:///{path}", heartbeat="1s", lease="10s", retry_base="10ms")
    with app:
        shop(path, "CREATE TABLE booking (customer TEXT NOT NULL)")
        yield app


def shop(path: Path, sql: str, *values: Any) -> list[Any]:
    """One statement on the user's side of the database."""
    db = sqlite3.connect(path)
    try:
        with db:
            return db.execute(sql, values).fetchall()
    finally:
        db.close()


def bookings(path: Path) -> list[str]:
    return [name for (name,) in shop(path, "SELECT customer FROM booking ORDER BY rowid")]


async def work(app: Holdfast) -> None:
    async with asyncio.timeout(30):
        await app.run_worker(burst=True)


BOOK = "INSERT INTO booking VALUES (?)"


class TestAsyncHandlers:
    async def test_rows_and_completion_are_committed_together(
        self, app: Holdfast, path: Path
    ) -> None:
        @app.task
        async def book(ctx: Context, customer: str) -> int:
            async with ctx.transaction() as conn:
                done = await conn.execute(BOOK, (customer,))
                assert done.rowcount == 1
                await conn.executemany(BOOK, [("bob",), ("eve",)])
                (count,) = await conn.fetchone("SELECT count(*) FROM booking")
                assert await conn.fetchall("SELECT customer FROM booking") == [
                    ("ada",), ("bob",), ("eve",),
                ]  # fmt: skip
                ctx.complete(count)
            return -1

        handle = await book.submit_async("ada")
        await work(app)

        assert await handle.result_async() == 3
        assert bookings(path) == ["ada", "bob", "eve"]
        (attempt,) = (await handle.history_async()).attempts
        assert attempt.ended == "completed"

    async def test_without_complete_the_result_is_null(self, app: Holdfast) -> None:
        @app.task
        async def book(ctx: Context) -> int | None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, ("ada",))
            return 7

        handle = await book.submit_async()
        await work(app)

        assert await handle.result_async() is None

    async def test_an_exception_inside_rolls_back_and_the_attempt_fails_as_usual(
        self, app: Holdfast, path: Path
    ) -> None:
        seen: list[int] = []

        @app.task(max_retries=1)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, (f"attempt {ctx.attempt}",))
                seen.append(ctx.attempt)
                if ctx.attempt == 1:
                    raise ValueError("no")

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert seen == [1, 2]
        assert bookings(path) == ["attempt 2"]

    async def test_what_the_handler_does_after_the_block_changes_nothing(
        self, app: Holdfast, path: Path
    ) -> None:
        @app.task
        async def book(ctx: Context) -> str | None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, ("ada",))
                ctx.complete("booked")
            ctx.progress(1, 1)
            raise Fatal("too late")

        handle = await book.submit_async()
        await work(app)

        assert await handle.result_async() == "booked"
        history = await handle.history_async()
        assert [event.kind for event in history.events] == ["submitted"]
        assert len(history.attempts) == 1
        assert bookings(path) == ["ada"]

    async def test_a_result_that_does_not_fit_is_refused_inside_the_block(
        self, app: Holdfast, path: Path
    ) -> None:
        @app.task
        async def book(ctx: Context) -> int:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, ("ada",))
                ctx.complete(2**70)
            return 0

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.FAILED
        assert bookings(path) == []

    async def test_what_it_said_inside_is_stored_with_the_completion(self, app: Holdfast) -> None:
        @app.task
        async def book(ctx: Context) -> None:
            ctx.log("before")
            async with ctx.transaction():
                ctx.progress(1, 2)
                ctx.log("inside")
                ctx.cost(3)
                await asyncio.sleep(0.5)  # longer than the pause between two reports

        handle = await book.submit_async()
        await work(app)

        task = await handle.task_async()
        lines = [e.detail for e in (await handle.history_async()).events if e.kind == "log"]
        assert task.progress is not None
        assert (task.progress.done, task.cost.units, lines) == (1, 3, ["before", "inside"])
        assert (await app.stats_async()).refused == 0

    async def test_a_lost_lease_rolls_back_and_the_refusal_is_in_the_history(
        self, app: Holdfast, path: Path
    ) -> None:
        raised: list[BaseException] = []

        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            if ctx.attempt > 1:
                return
            await rescue(app, ctx.id)
            try:
                async with ctx.transaction() as conn:
                    await conn.execute(BOOK, ("zombie",))
            except LeaseLost as error:
                raised.append(error)
                raise

        handle = await book.submit_async()
        await work(app)

        assert len(raised) == 1
        assert bookings(path) == []
        assert await handle.status_async() is State.COMPLETED
        kinds = [event.kind for event in (await handle.history_async()).events]
        assert "late_result_refused" in kinds

    async def test_a_timeout_inside_rolls_back(self, app: Holdfast, path: Path) -> None:
        @app.task(max_retries=0, timeout=0.3)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, ("slow",))
                await asyncio.sleep(30)

        handle = await book.submit_async()
        await work(app)

        task = await handle.task_async()
        assert (task.state, task.reason) == (State.DEAD_LETTER, "timeout")
        assert bookings(path) == []

    async def test_a_follow_up_submitted_through_it_is_part_of_it(
        self, app: Holdfast, path: Path
    ) -> None:
        ran: list[str] = []

        @app.task
        async def send(customer: str) -> None:
            ran.append(customer)

        @app.task(max_retries=0)
        async def book(ctx: Context, customer: str) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, (customer,))
                await send.options(connection=conn).submit_async(customer)
                if customer == "nobody":
                    raise ValueError(customer)

        await app.submit_many_async([book.call("ada"), book.call("nobody")])
        await work(app)

        assert ran == ["ada"]
        assert bookings(path) == ["ada"]

    async def test_a_submit_that_would_wait_for_the_handlers_own_transaction_is_refused(
        self, app: Holdfast
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

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert ["options(connection=conn)" in str(error) for error in raised] == [True, True]

    async def test_there_is_one_transaction_for_each_attempt(self, app: Holdfast) -> None:
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

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert "inside its transaction already" in raised[0]
        assert "completed by its transaction already" in raised[1]
        assert "works only inside" in raised[2]

    async def test_a_commit_of_the_handlers_own_is_found_out(
        self, app: Holdfast, path: Path
    ) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, ("ada",))
                await conn.execute("COMMIT")

        handle = await book.submit_async()
        await work(app)

        task = await handle.task_async()
        assert task.state is State.DEAD_LETTER
        assert task.error is not None
        assert "was ended inside" in task.error.message

    async def test_the_next_in_line_for_the_lock_is_woken(self, app: Holdfast) -> None:
        ran: list[int] = []

        @app.task(lock="doc")
        async def edit(ctx: Context, n: int) -> None:
            async with ctx.transaction():
                ran.append(n)

        handles = app.submit_many([edit.call(n) for n in range(3)])
        worker = app.worker(poll=30.0)
        running = asyncio.create_task(worker.run())
        try:
            await asyncio.gather(*(handle.result_async(timeout=5) for handle in handles))
        finally:
            worker.stop()
            await running

        assert ran == [0, 1, 2]

    async def test_many_handlers_and_the_group_commit_of_one_process_take_turns(
        self, app: Holdfast, path: Path
    ) -> None:
        @app.task
        async def book(ctx: Context, n: int) -> None:
            async with ctx.transaction() as conn:
                await conn.execute(BOOK, (str(n),))

        @app.task
        async def plain(n: int) -> int:
            return n

        app.submit_many([(book if n % 2 else plain).call(n) for n in range(120)])
        await work(app)

        assert sorted(bookings(path), key=int) == [str(n) for n in range(120) if n % 2]
        assert (await app.stats_async()).states[State.COMPLETED] == 120


class TestSyncHandlers:
    async def test_rows_and_completion_are_committed_together(
        self, app: Holdfast, path: Path
    ) -> None:
        @app.task
        def book(ctx: Context, customer: str) -> int:
            with ctx.transaction() as conn:
                assert isinstance(conn, sqlite3.Connection)
                conn.execute(BOOK, (customer,))
                ctx.complete(conn.execute("SELECT count(*) FROM booking").fetchone()[0])
            return -1

        handle = await book.submit_async("ada")
        await work(app)

        assert await handle.result_async() == 1
        assert bookings(path) == ["ada"]

    async def test_an_exception_inside_rolls_back(self, app: Holdfast, path: Path) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                conn.execute(BOOK, ("ada",))
                raise ValueError("no")

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.DEAD_LETTER
        assert bookings(path) == []

    @pytest.mark.parametrize(
        "end",
        [
            lambda conn: conn.commit(),
            lambda conn: conn.rollback(),
            lambda conn: conn.executescript("SELECT 1"),
            lambda conn: conn.__enter__(),
        ],
        ids=["commit", "rollback", "executescript", "with"],
    )
    async def test_the_connection_cannot_end_the_transaction(
        self, app: Holdfast, path: Path, end: Callable[[sqlite3.Connection], Any]
    ) -> None:
        @app.task(max_retries=0)
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                conn.execute(BOOK, ("ada",))
                end(conn)

        handle = await book.submit_async()
        await work(app)

        error = (await handle.task_async()).error
        assert error is not None
        assert "belongs to the task" in error.message
        assert bookings(path) == []

    async def test_a_follow_up_submitted_through_it_is_part_of_it(
        self, app: Holdfast, path: Path
    ) -> None:
        ran: list[str] = []

        @app.task
        def send(customer: str) -> None:
            ran.append(customer)

        @app.task
        def book(ctx: Context, customer: str) -> None:
            with ctx.transaction() as conn:
                send.options(connection=conn).submit(customer)

        await book.submit_async("ada")
        await work(app)

        assert ran == ["ada"]

    async def test_a_thread_that_was_told_to_stop_cannot_complete(
        self, app: Holdfast, path: Path
    ) -> None:
        goes_on = threading.Event()

        @app.task(max_retries=0, timeout=0.2)
        def book(ctx: Context) -> None:
            with ctx.transaction() as conn:
                conn.execute(BOOK, ("late",))
                with suppress(BaseException):
                    goes_on.wait(20)

        handle = await book.submit_async()
        worker = app.worker()
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.5)
        goes_on.set()
        try:
            await eventually(lambda: ended(handle))
        finally:
            worker.stop()
            await running

        assert (await handle.task_async()).reason == "timeout"
        assert bookings(path) == []

    async def test_with_in_an_async_handler_is_refused(self, app: Holdfast) -> None:
        @app.task(max_retries=0)
        async def book(ctx: Context) -> None:
            with ctx.transaction():
                pass

        handle = await book.submit_async()
        await work(app)

        error = (await handle.task_async()).error
        assert error is not None
        assert "async with" in error.message


class TestUnknownOutcomes:
    @pytest.mark.parametrize("committed", [True, False])
    async def test_a_lost_answer_to_the_commit_is_found_out_by_looking(
        self, app: Holdfast, path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
    ) -> None:
        from holdfast.stores.sqlite.transactions import SQLiteTransaction

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
                await conn.execute(BOOK, (f"attempt {ctx.attempt}",))

        handle = await book.submit_async()
        await work(app)

        assert await handle.status_async() is State.COMPLETED
        assert bookings(path) == ["attempt 1" if committed else "attempt 2"]
        assert len((await handle.history_async()).attempts) == (1 if committed else 2)


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


async def rescue(app: Holdfast, task_id: str) -> None:
    """Somebody else declares the running attempt lost, and the task goes on without it."""
    running = Claim.of(await app.get_async(task_id))
    assert not await app.client.store.save([loss(running)])
