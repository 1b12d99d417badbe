"""`holdfast queue …`: the lanes and whether they move."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.command import Session, with_client
from holdfast.cli.screen import Answer
from holdfast.cli.tables import show_queues
from holdfast.views import queue_list

app = typer.Typer(help="Look at queues, pause and resume them.", no_args_is_help=True)

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]


@app.command("list")
@with_client
async def list_queues(session: Session) -> Answer:
    """List queues with what waits and runs in each."""
    stats = await session.client.stats()
    data = queue_list(session.client, stats)
    return Answer(data, lambda screen: show_queues(screen, stats.queues))


@app.command("pause")
@with_client
async def pause(session: Session, queue: Queue) -> Answer:
    """Stop handing out a queue's tasks; running ones go on."""
    changed = await session.client.pause(queue)
    is_known = await session.client.knows_queue(queue)
    text = f"Queue {queue!r} {'is paused' if changed else 'was paused already'}."
    if not is_known:
        text += " Nothing has this name yet: no task is in it and no live worker names it."
    data = {"queue": queue, "paused": True, "changed": changed, "known": is_known}
    return Answer(data, lambda screen: screen.line(text))


@app.command("resume")
@with_client
async def resume(session: Session, queue: Queue) -> Answer:
    """Hand out a paused queue's tasks again."""
    changed = await session.client.resume(queue)
    is_known = await session.client.knows_queue(queue)
    text = f"Queue {queue!r} {'goes on' if changed else 'was not paused'}."
    if not (changed or is_known):
        text += " Nothing has this name: no task is in it and no live worker names it."
    data = {"queue": queue, "paused": False, "changed": changed, "known": is_known}
    return Answer(data, lambda screen: screen.line(text))
