"""`holdfast workers` and `holdfast stats`: the whole store at a glance."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.command import CommandFailed, Session, with_client
from holdfast.cli.screen import Answer, Screen
from holdfast.core.fleet import WorkerStatus

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

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_workers  # noqa: PLC0415

        show_workers(screen, found)

    from holdfast.core.store_answers import WORKER  # noqa: PLC0415

    return Answer({"workers": [WORKER.write(worker) for worker in found]}, human)


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
    from holdfast.views import numbers  # noqa: PLC0415

    found = await session.client.stats()

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_stats  # noqa: PLC0415

        show_stats(screen, found)

    return Answer(await numbers(session.client, found, await session.client.workers()), human)
