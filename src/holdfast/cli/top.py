"""`holdfast top`: what happens right now, on one screen."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast.cli.command import Session, WrongUsage, with_client
from holdfast.cli.screen import Answer, Screen
from holdfast.core.store_answers import WORKER
from holdfast.views import TaskView, numbers


@with_client
async def top(
    session: Session,
    once: Annotated[
        bool, typer.Option("--once", help="Print one frame and leave: for scripts.")
    ] = False,
) -> Answer | None:
    """Watch queues, workers and failures live, and act on them.

    Keys: tab between queues and workers, arrows select, p pause or resume the queue, d drain the
    worker, r replay dead letters (asks first), q quit. Every second the store is asked for its
    numbers, which is cheap however deep the backlog is.

    Like every command it looks at the store itself (--url). Where only the service can be
    reached, `GET /api/v1/queue/stats` has the same numbers.
    """
    from holdfast.cli.top_facts import Eye  # noqa: PLC0415 - they draw, so they import Rich
    from holdfast.cli.top_frame import Picture  # noqa: PLC0415
    from holdfast.cli.top_live import watch  # noqa: PLC0415

    eye = Eye(session.client)
    if not once and not session.as_json:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise WrongUsage(
                "no_terminal", "top needs a terminal to draw on; `holdfast top --once` does not."
            )
        await watch(session.client, eye, Screen())
        return None
    facts = await eye.look()
    view = await TaskView.of(session.client)
    data = {
        **await numbers(session.client, facts.stats, facts.workers),
        "worker_list": [WORKER.write(worker) for worker in facts.workers],
        "newest_errors": [view.task(task) for task in facts.errors],
    }
    picture = Picture(session.client.store.url)
    picture.see(facts)
    return Answer(data, picture.print)
