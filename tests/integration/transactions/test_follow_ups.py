"""`ctx.submit()`: what a handler submits exists if and only if its completion is recorded, on each
store and wherever the handler runs.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.transactions.bookshops.base import Bookshop, ran

from holdfast import Context, Fatal, Holdfast, State
from holdfast.definitions.definition import Definition
from holdfast.errors import InvalidOption

Note = Definition[..., None, Any]


@pytest.fixture
def note(app: Holdfast) -> Note:
    """What handlers submit: no worker of these tests serves its queue."""

    @app.task(name="note", queue="later")
    async def note(name: str) -> None: ...

    return note


async def unfinished(app: Holdfast) -> list[str]:
    page = await app.list_async(queue="later")
    return sorted(task.arguments["name"] for task in page.tasks)


async def test_what_a_handler_submits_is_there_when_it_has_completed(
    app: Holdfast, note: Note
) -> None:
    @app.task
    async def book(ctx: Context, name: str) -> str:
        handle = ctx.submit(note, name)
        ctx.submit(note.options(delay="1h", unique_key="one"), name=f"{name} later")
        assert await unfinished(app) == []
        return handle.id

    handle = await ran(app, book, "ada")

    assert await unfinished(app) == ["ada", "ada later"]
    task = await app.get_async(await handle.result_async())
    assert (task.name, task.queue) == ("note", "later")
    assert task.trace_id == (await handle.task_async()).trace_id


async def test_what_a_failed_attempt_submitted_never_exists(app: Holdfast, note: Note) -> None:
    @app.task(max_retries=1)
    async def book(ctx: Context) -> None:
        ctx.submit(note, f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError("no")

    await ran(app, book)

    assert await unfinished(app) == ["attempt 2"]


async def test_sync_handlers_submit_alike(app: Holdfast, note: Note) -> None:
    @app.task
    def book(ctx: Context, name: str) -> None:
        ctx.submit(note, name)

    await ran(app, book, "bob")

    assert await unfinished(app) == ["bob"]


async def test_a_transaction_takes_follow_ups_along(
    app: Holdfast, bookshop: Bookshop, note: Note
) -> None:
    @app.task(max_retries=1)
    async def book(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await bookshop.book(conn, f"attempt {ctx.attempt}")
            ctx.submit(note, f"attempt {ctx.attempt}")
            if ctx.attempt == 1:
                raise ValueError("no")

    await ran(app, book)

    assert bookshop.bookings() == ["attempt 2"]
    assert await unfinished(app) == ["attempt 2"]


async def test_a_used_idempotency_key_fails_the_attempt_for_good(app: Holdfast, note: Note) -> None:
    await note.options(idempotency_key="k").submit_async("first")

    @app.task
    async def book(ctx: Context) -> None:
        ctx.submit(note.options(idempotency_key="k"), "second")
        ctx.submit(note, "third")

    handle = await ran(app, book)

    task = await handle.task_async()
    assert (task.state, task.attempt) == (State.FAILED, 1)
    assert task.error is not None
    assert task.error.type == "FollowUpRefused"
    assert "'k' was already used" in task.error.message
    assert await unfinished(app) == ["first"]


async def test_a_connection_is_refused_with_what_to_do(app: Holdfast, note: Note) -> None:
    @app.task
    async def book(ctx: Context) -> None:
        try:
            ctx.submit(note.options(connection=object()), "ada")
        except InvalidOption as error:
            raise Fatal(str(error)) from None

    handle = await ran(app, book)

    error = (await handle.task_async()).error
    assert error is not None
    assert "takes no connection" in error.message


async def test_a_unique_task_may_submit_its_own_successor(app: Holdfast) -> None:
    @app.task(unique="one")
    async def look(ctx: Context, number: int) -> None:
        ctx.submit(look.options(delay="1h"), number + 1)

    await ran(app, look, 1)

    tasks = (await app.list_async()).tasks
    assert sorted((task.arguments["number"], task.state) for task in tasks) == [
        (1, State.COMPLETED),
        (2, State.QUEUED),
    ]
