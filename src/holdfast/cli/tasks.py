"""`holdfast task …`: look at tasks, and act on them one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import typer

from holdfast.cli import shapes
from holdfast.cli.command import Session, with_client
from holdfast.cli.filters import Where, read_id, read_ids
from holdfast.cli.screen import Answer, Screen, print_json
from holdfast.cli.words import progress_text
from holdfast.core.lifecycle import is_terminal
from holdfast.core.task import State, Task

app = typer.Typer(help="Look at tasks, cancel them, start them again.", no_args_is_help=True)

OneId = Annotated[str, typer.Argument(metavar="ID", help="The task's id.")]
ManyIds = Annotated[list[str], typer.Argument(metavar="ID...", help="One or more task ids.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="At most so many.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Go on after an earlier page.")
]


@app.command("list")
@with_client
async def list_tasks(
    session: Session, where: Where, limit: Limit = 25, after: After = None
) -> Answer:
    """List tasks, newest first."""
    page = await session.client.list(where, limit=limit, after=after)

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_page  # noqa: PLC0415

        show_page(screen, page, nothing="No task matches.")

    return Answer(shapes.page_of(page), human)


@app.command("get")
@with_client
async def get(
    session: Session,
    task_id: OneId,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Follow its progress until it has ended.")
    ] = False,
) -> Answer | None:
    """Show everything about one task."""
    wanted = read_id(task_id)
    task = await session.client.get(wanted)
    if watch and not is_terminal(task.state):
        task = await _follow(session, task)

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_task  # noqa: PLC0415

        show_task(screen, task)

    return Answer(shapes.task_of(task), human)


async def _follow(session: Session, first: Task) -> Task:
    """Show a task's progress until it ends, then return it. JSON: one line per change."""
    screen, latest = Screen(), first
    async for latest in _changes(session, first):
        if not session.as_json:
            bar = progress_text(latest.progress, width=30, ascii_only=screen.ascii_only)
            screen.status(f"{latest.state}, attempt {latest.attempt}  {bar}".rstrip())
        elif not is_terminal(latest.state):
            print_json(shapes.task_of(latest))
    screen.status(None)
    return latest


async def _changes(session: Session, task: Task) -> AsyncIterator[Task]:
    yield task
    while not is_terminal(task.state):
        await asyncio.sleep(0.25)
        seen, task = task, await session.client.get(task.id)
        if task != seen:
            yield task


@app.command("cancel")
@with_client
async def cancel(session: Session, task_ids: ManyIds) -> Answer:
    """Cancel tasks: waiting ones end at once, running ones are asked to stop."""
    tasks = [await session.client.cancel(task_id) for task_id in read_ids(task_ids)]

    def human(screen: Screen) -> None:
        for task in tasks:
            asked = task.state is State.RUNNING
            screen.line(f"{task.id} " + ("was asked to stop." if asked else f"is {task.state}."))

    return Answer({"tasks": [shapes.task_of(task) for task in tasks]}, human)


@app.command("retry")
@with_client
async def retry(session: Session, task_ids: ManyIds) -> Answer:
    """Start ended tasks again, or hurry retrying ones."""
    tasks = [await session.client.retry(task_id) for task_id in read_ids(task_ids)]

    def human(screen: Screen) -> None:
        for task in tasks:
            screen.line(f"{task.id} is {task.state} again.")

    return Answer({"tasks": [shapes.task_of(task) for task in tasks]}, human)


@app.command("history")
@with_client
async def history(
    session: Session,
    task_id: OneId,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show tracebacks too.")] = False,
) -> Answer:
    """Show every attempt and event of a task, in order."""
    wanted = read_id(task_id)
    found = await session.client.history(wanted)

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_history  # noqa: PLC0415

        show_history(screen, found, tracebacks=traceback)

    return Answer(shapes.history_of(wanted, found), human)


@app.command("why")
@with_client
async def why(session: Session, task_id: OneId) -> Answer:
    """Say in plain words why a task is not running."""
    found = await session.client.why(read_id(task_id))

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_why  # noqa: PLC0415

        show_why(screen, found)

    return Answer(shapes.why_of(found), human)
