"""`holdfast workers` and `holdfast stats`: the whole store at a glance."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.command import CommandFailed, Session, with_client
from holdfast.cli.screen import Answer
from holdfast.cli.tables import show_stats, show_workers
from holdfast.core.fleet import WorkerStatus
from holdfast.core.store_answers import WORKER
from holdfast.views import numbers

GONE = frozenset({WorkerStatus.STOPPED, WorkerStatus.DEAD})


@with_client
async def workers(
    session: Session,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also those that stopped or were lost.")
    ] = False,
) -> Answer:
    """List workers: what they serve, how busy they are."""
    known = await session.client.workers()
    found = [worker for worker in known if everyone or worker.status not in GONE]
    data = {"workers": [WORKER.write(worker) for worker in found]}
    return Answer(data, lambda screen: show_workers(screen, found))


@with_client
async def drain(
    session: Session,
    worker_id: Annotated[str, typer.Argument(metavar="WORKER", help="The worker's id.")],
) -> Answer:
    """Ask a worker to finish what it has and leave."""
    if not await session.client.ask_to_drain(worker_id):
        raise CommandFailed(
            "worker_not_found",
            f"no worker {worker_id!r} is alive; `holdfast workers` shows those that are.",
        )
    text = f"{worker_id} was asked to finish what it has and leave."
    return Answer(
        {"worker_id": worker_id, "drain_requested": True}, lambda screen: screen.line(text)
    )


@with_client
async def stats(session: Session) -> Answer:
    """Count tasks by state and by queue."""
    found = await session.client.stats()
    data = await numbers(session.client, found, await session.client.workers())
    return Answer(data, lambda screen: show_stats(screen, found))
