"""`holdfast workers` and `holdfast stats`: the whole store at a glance."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Final

import typer

from holdfast.cli.command import CommandFailed, Session, on_store, with_client, with_session
from holdfast.cli.screen import Answer
from holdfast.cli.tables import show_stats, show_workers
from holdfast.cli.words import ago, plural
from holdfast.core.fleet import ALIVE, WorkerStatus
from holdfast.core.store_answers import WORKER
from holdfast.errors import StoreUnavailable
from holdfast.views import numbers

GONE = frozenset({WorkerStatus.STOPPED, WorkerStatus.DEAD})
UNASKED: Final = 3
"""The exit code of a check that could not ask the store."""


@with_session
def workers(
    session: Session,
    everyone: Annotated[
        bool, typer.Option("--all", help="Also those that stopped or were lost.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="NAME",
            help="Only say whether these are alive and beat in time: a worker's id, or the name "
            "or host that ids begin with.",
            show_default=False,
        ),
    ] = None,
) -> Answer | None:
    """List workers: what they serve, how busy they are.

    With --check, for probes: exit code 0 if there is such a worker and all of them beat within
    `lease`; 1 if not; 3 if the store cannot be asked, which is no fault of the worker's.
    """
    if name is None:
        return asyncio.run(on_store(session, lambda: _list(session, everyone=everyone)))
    try:
        return asyncio.run(on_store(session, lambda: _check(session, name)))
    except StoreUnavailable as error:
        raise CommandFailed("store_unavailable", str(error), exit_code=UNASKED) from None


async def _list(session: Session, *, everyone: bool) -> Answer:
    known = await session.client.workers()
    found = [worker for worker in known if everyone or worker.status not in GONE]
    data = {"workers": [WORKER.write(worker) for worker in found]}
    return Answer(data, lambda screen: show_workers(screen, found))


async def _check(session: Session, name: str) -> Answer:
    """Whoever said goodbye, or was buried, is not asked about: others may have come since."""
    is_one = re.compile(rf"{re.escape(name)}(-\d+-[0-9a-f]{{8}})?").fullmatch
    known = await session.client.workers()
    found = [worker for worker in known if is_one(worker.id) and worker.status not in GONE]
    late = [worker for worker in found if worker.status not in ALIVE]
    if not found:
        text = f"No worker {name!r} is alive."
    elif late:
        seen = ", ".join(f"{w.id} ({'-' if w.beat_at is None else ago(w.beat_at)})" for w in late)
        text = f"Too long without a heartbeat: {seen}."
    else:
        text = f"{plural(len(found), 'worker')} {name!r} alive, and on time."
    ok = bool(found) and not late
    data = {"ok": ok, "workers": [WORKER.write(worker) for worker in found]}
    return Answer(data, lambda screen: screen.line(text), ok=ok)


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
