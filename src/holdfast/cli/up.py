"""`holdfast up`: server, workers and maintenance in one command."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from holdfast import logs
from holdfast.cli.command import LogLevel, Session, WrongUsage, with_app
from holdfast.cli.filters import read_duration
from holdfast.cli.places import sqlite_url
from holdfast.cli.screen import Screen, print_json
from holdfast.cli.server import Host, OpenQueues, Port, naming_the_extra
from holdfast.cli.submit import Include
from holdfast.cli.supervisor import CommandSupervisor, Part
from holdfast.cli.worker import Capabilities, Concurrency, Drain, Processes, Queues
from holdfast.settings import Settings

DEMO_APP = "holdfast.cli.demo_tasks:app"
DEMO_QUEUE = "http"
"""A queue of the demo that takes tasks of any type, to try an HTTP worker on."""


@with_app
def up(
    session: Session,
    app: Annotated[
        str | None,
        typer.Argument(metavar="[APP]", help="The app: module:app or file.py:app."),
    ] = None,
    include: Include = None,
    host: Host = "127.0.0.1",
    port: Port = 8420,
    open_queues: OpenQueues = None,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    capabilities: Capabilities = None,
    drain: Drain = None,
    log_level: LogLevel = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="A store for now with demo tasks flowing, no APP.")
    ] = False,
) -> None:
    """Run everything: the server, worker processes, maintenance.

    A part that dies is started again. SIGTERM or Ctrl-C: all of it finishes what runs, then leaves
    with exit code 0; a second one: leave now.
    """
    form = "json" if session.as_json else None
    settings = Settings.load(log_level=log_level, log_format=form)
    logs.set_up(settings.log_level, settings.log_format, runs_handlers=False)
    if open_queues:
        # For the worker too: it may well know no task where there are HTTP workers.
        os.environ["HOLDFAST_OPEN_QUEUES"] = ",".join(open_queues)
    if demo == (app is not None):
        raise WrongUsage("usage", "give an app such as module:app, or --demo, and not both.")
    if demo and include:
        raise WrongUsage("usage", "the demo has its own tasks; --include is for an app of yours.")
    with naming_the_extra():
        import uvicorn  # noqa: F401, PLC0415 - better missed here, once, than in a child
    if drain is not None:
        read_duration("drain", drain)
    worker = [
        *_repeated("--queue", queues),
        *_repeated("--capability", capabilities),
        *_given("--concurrency", concurrency),
        *_given("--processes", processes),
        *_given("--drain", drain),
    ]
    door = ["--host", host, "--port", str(port), *_repeated("--open-queue", open_queues)]
    log = [*(["--json"] if session.as_json else []), *_given("--log-level", log_level)]
    if app is not None:
        more = [*_repeated("--include", include), *log]
        raise typer.Exit(_run(app, door, worker, more))
    with _demo_store() as url:
        _introduce(session, url, f"http://{host}:{port}")
        door += [] if open_queues else ["--open-queue", DEMO_QUEUE]
        feeder = Part("feeder", [], module="holdfast.cli.demo.feeder")
        code = _run(DEMO_APP, door, worker, log, feeder)
    raise typer.Exit(code)


def _run(
    app: str, door: Sequence[str], worker: Sequence[str], log: Sequence[str], *more: Part
) -> int:
    async def run() -> int:
        server = Part("server", ["server", app, *door, *log])
        workers = Part("worker", ["worker", app, *worker, *log])
        return await CommandSupervisor([server, workers, *more]).run()

    return asyncio.run(run())


@contextmanager
def _demo_store() -> Iterator[str]:
    """A store that is gone afterwards, for this process and its children."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    os.environ["HOLDFAST_URL"] = url = sqlite_url(folder / "demo.db")
    try:
        yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _introduce(session: Session, url: str, address: str) -> None:
    """Say where everything is, and give the admin token that opens it."""
    token = asyncio.run(_admin_token(url))
    login = f"{address}/login#token={token}"
    if session.as_json:
        print_json({"store": url, "token": token, "url": address, "login": login})
        return
    screen = Screen()
    screen.line(
        "Demo tasks flow through a server and its workers. Ctrl-C stops everything.", "bold"
    )
    screen.fields(
        [
            ("dashboard", login),
            ("address", address),
            ("token", f"{token} (admin, good for a day)"),
            ("store", f"{url} (gone at the end)"),
            ("try", f'curl -H "Authorization: Bearer {token}" {address}/api/v1/queue/stats'),
            ("or", f"holdfast task list --url {url}"),
        ]
    )
    screen.line()
    screen.file.flush()


async def _admin_token(url: str) -> str:
    from holdfast.app import Holdfast  # noqa: PLC0415

    async with Holdfast(url=url) as app:
        _, text = await app.client.tokens.create("demo", "admin", "1d", created_by="cli")
    return text


def _repeated(option: str, values: Sequence[str] | None) -> list[str]:
    return [word for value in values or () for word in (option, value)]


def _given(option: str, value: object) -> list[str]:
    return [] if value is None else [option, str(value)]
