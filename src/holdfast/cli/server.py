"""`holdfast server`: the service, in this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.command import CommandFailed, LogLevel, Session, WrongUsage, with_session
from holdfast.cli.screen import print_json
from holdfast.cli.submit import Include, load

if TYPE_CHECKING:
    from holdfast.app import Holdfast

MaybeApp = Annotated[
    str | None,
    typer.Argument(
        metavar="[APP]", help="The app whose tasks it knows: module:app or file.py:app."
    ),
]
Host = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; others need a token.")
]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, metavar="N", help="0 takes any free one.")
]
OpenQueues = Annotated[
    list[str] | None,
    typer.Option(
        "--open-queue",
        metavar="QUEUE",
        help="Take tasks of any type here, for HTTP workers; repeat for several.",
    ),
]

_NEEDED = {"fastapi", "starlette", "uvicorn", "httptools", "icalendar", "jinja2"}


@with_session
def server(
    session: Session,
    app: MaybeApp = None,
    include: Include = None,
    host: Host = "127.0.0.1",
    port: Port = 8420,
    open_queues: OpenQueues = None,
    log_level: LogLevel = None,
) -> None:
    """Serve the REST API and the dashboard until stopped.

    Without an app it knows no task types: it shows and steers what is there, and takes tasks for
    HTTP workers. SIGTERM or Ctrl-C: finish what is under way, then leave; a second one: leave now.
    With --json the log on standard error is one JSON object a line.
    """
    from holdfast import logs  # noqa: PLC0415

    with naming_the_extra():
        from holdfast.dashboard.app import create_app  # noqa: PLC0415
        from holdfast.server.running import serve  # noqa: PLC0415
    form = "json" if session.as_json else None
    logs.before_user_code(form)
    chosen = _chosen(
        session, app, include, open_queues=open_queues or None, log_level=log_level, log_format=form
    )
    logs.set_up(chosen.settings.log_level, chosen.settings.log_format)

    def announce(url: str) -> None:
        if session.as_json:
            print_json({"url": url, "store": chosen.client.store.url})
        else:
            sys.stdout.write(f"Holdfast listens on {url} (store: {chosen.client.store.url})\n")
            sys.stdout.flush()

    asyncio.run(serve(chosen, host=host, port=port, announce=announce, make=create_app))


def _chosen(
    session: Session, spec: str | None, include: Sequence[str] | None, **overrides: Any
) -> Holdfast:
    """The app to serve, with what the command line says about it."""
    from holdfast.app import Holdfast  # noqa: PLC0415

    if spec is None and include:
        raise WrongUsage("usage", "--include imports tasks of an app: name the app too.")
    loaded = Holdfast(include=[]) if spec is None else load(spec, include)
    loaded.settings = loaded.settings.override(url=session.url, **overrides)
    if loaded.settings.url.startswith("memory:"):
        raise CommandFailed(
            "no_store",
            "memory:// lives and dies in one process, so no worker could share it with a server. "
            "Use sqlite:///holdfast.db.",
            exit_code=2,
        )
    return loaded


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Say what to install where the service's own packages are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise CommandFailed(
            "missing_extra",
            f"the server needs {error.name}: pip install 'holdfast[server]'",
            exit_code=2,
        ) from error
