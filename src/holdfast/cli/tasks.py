"""`holdfast task …`: look at tasks, and act on them, one by one or by filter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

import typer

from holdfast.cli import tables
from holdfast.cli.choice import DryRun, Ids, act, choose, find_id
from holdfast.cli.command import Session, WrongUsage, Yes, with_client
from holdfast.cli.filters import Where, about_name
from holdfast.cli.screen import Answer, Screen, print_json
from holdfast.cli.words import progress_text
from holdfast.core.lifecycle import TERMINAL, is_terminal
from holdfast.core.query import Page
from holdfast.core.task import State, Task, TaskId
from holdfast.core.task_answers import HISTORY, WHY
from holdfast.views import TaskView

app = typer.Typer(help="Look at tasks, cancel, retry or forget them.", no_args_is_help=True)

UNSUCCESSFUL = frozenset({State.FAILED, State.DEAD_LETTER})

OneId = Annotated[str, typer.Argument(metavar="ID", help="The task's id, or how it begins.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="At most so many.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Go on after an earlier page.")
]
ByEnd = Annotated[bool, typer.Option("--by-end", help="Those that have ended, the last end first.")]


async def task_view(session: Session, *, with_traceback: bool = True) -> TaskView:
    """How tasks are shown: whoever has the store may see tracebacks."""
    return await TaskView.of(session.client, with_traceback=with_traceback)


async def page_answer(session: Session, page: Page, *, nothing: str) -> Answer:
    """A page of tasks."""
    data = (await task_view(session)).page(page)
    return Answer(data, lambda screen: tables.show_page(screen, page, nothing))


@app.command("list")
@with_client
async def list_tasks(
    session: Session, where: Where, limit: Limit = 25, after: After = None, by_end: ByEnd = False
) -> Answer:
    """List tasks, newest first."""
    page = await session.client.list(where, limit=limit, after=after, by_end=by_end)
    return await page_answer(session, page, nothing="No task matches." + about_name(where))


@app.command("get")
@with_client
async def get(
    session: Session,
    task_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The task's id, or how it begins.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="KEY", help="The newest with this idempotency or unique key."
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Follow its progress until it has ended.")
    ] = False,
) -> Answer | None:
    """Show everything about one task."""
    if (task_id is None) == (key is None):
        raise WrongUsage("usage", "which task? Give its ID, or --key, and not both.")
    if key is None:
        task = await session.client.get(await find_id(session, task_id or ""))
    else:
        task = await session.client.get_by_key(key)
    if watch and not is_terminal(task.state):
        task = await _follow(session, task)
    data = (await task_view(session)).task(task)
    return Answer(data, lambda screen: tables.show_task(screen, task))


async def _follow(session: Session, first: Task) -> Task:
    """Show a task's progress until it ends, then return it. JSON: one line per change."""
    screen, latest = Screen(), first
    async for latest in _changes(session, first):
        if not session.as_json:
            bar = progress_text(latest.progress, width=30, ascii_only=screen.ascii_only)
            screen.status(f"{latest.state}, attempt {latest.attempt}  {bar}".rstrip())
        elif not is_terminal(latest.state):
            print_json((await task_view(session)).task(latest))
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
async def cancel(
    session: Session, where: Where, task_ids: Ids = None, dry_run: DryRun = False, yes: Yes = False
) -> Answer:
    """Cancel tasks: waiting ones end at once, running ones are asked to stop.

    By id at once; by filter it counts them first, and asks.
    """
    chosen = await choose(session, where, task_ids)
    if chosen.ids and not dry_run:
        return await _one_by_one(session, session.client.cancel, chosen.ids, _cancelled)
    return await act(
        session,
        partial(session.client.cancel_many, chosen),
        action="cancel",
        question="Cancel {}?",
        dry_run=dry_run,
        yes=yes,
    )


def _cancelled(task: Task) -> str:
    return "was asked to stop" if task.state is State.RUNNING else f"is {task.state}"


@app.command("retry")
@with_client
async def retry(
    session: Session, where: Where, task_ids: Ids = None, dry_run: DryRun = False, yes: Yes = False
) -> Answer:
    """Start ended tasks again, or hurry those that wait for their time.

    By id at once; by filter it counts them first, and asks: failed tasks and dead letters, unless
    --state says otherwise.
    """
    chosen = await choose(session, where, task_ids, states=UNSUCCESSFUL)
    if chosen.ids and not dry_run:
        again = "is {.state} again".format
        return await _one_by_one(session, session.client.retry, chosen.ids, again)
    return await act(
        session,
        partial(session.client.replay, chosen),
        action="retry",
        question="Start {} again?",
        dry_run=dry_run,
        yes=yes,
    )


async def _one_by_one(
    session: Session,
    steer: Callable[[TaskId], Awaitable[Task]],
    ids: Sequence[TaskId],
    says: Callable[[Task], str],
) -> Answer:
    """Steer each, and say what became of it."""
    tasks = [await steer(task_id) for task_id in ids]
    view = await task_view(session, with_traceback=False)
    text = "\n".join(f"{task.id} {says(task)}." for task in tasks)
    data = {"tasks": [view.task(task) for task in tasks]}
    return Answer(data, lambda screen: screen.line(text))


@app.command("discard")
@with_client
async def discard(
    session: Session, where: Where, task_ids: Ids = None, dry_run: DryRun = False, yes: Yes = False
) -> Answer:
    """Forget ended tasks for good, history and all.

    It counts them first, and asks. Tasks that have not ended are left alone.
    """
    chosen = await choose(session, where, task_ids, states=TERMINAL)
    return await act(
        session,
        partial(session.client.discard, chosen),
        action="discard",
        question="Forget {} for good?",
        dry_run=dry_run,
        yes=yes,
    )


@app.command("history")
@with_client
async def history(
    session: Session,
    task_id: OneId,
    traceback: Annotated[
        bool, typer.Option("--traceback/--no-traceback", help="Show tracebacks too.")
    ] = True,
) -> Answer:
    """Show every attempt and event of a task, in order."""
    wanted = await find_id(session, task_id)
    found = await session.client.history(wanted)
    return Answer(
        HISTORY.write(found, whole=traceback, task_id=wanted),
        lambda screen: tables.show_history(screen, found, tracebacks=traceback),
    )


@app.command("why")
@with_client
async def why(session: Session, task_id: OneId) -> Answer:
    """Say in plain words why a task is not running."""
    found = await session.client.why(await find_id(session, task_id))
    return Answer(WHY.write(found), lambda screen: tables.show_why(screen, found))
