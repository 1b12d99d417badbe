"""`holdfast worker`: hand over to the supervisor.

This process becomes the supervisor (exec), so nothing of the command line stays in memory for the
months that a worker may run.
"""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.command import LogLevel, Session, with_app
from holdfast.cli.filters import read_duration
from holdfast.cli.submit import AppSpec, Include

Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", metavar="QUEUE", help="Serve it; repeat, or '*' for all."),
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", "-c", min=1, metavar="N", help="Tasks at a time.")
]
Processes = Annotated[
    int | None, typer.Option("--processes", min=1, metavar="N", help="Worker processes.")
]
Capabilities = Annotated[
    list[str] | None,
    typer.Option("--capability", metavar="NAME", help="What workers can do; repeat for several."),
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="How the workers' ids begin.")
]
Drain = Annotated[
    str | None, typer.Option("--drain", metavar="DURATION", help="Time for running tasks to end.")
]


@with_app
def worker(
    session: Session,
    app: AppSpec,
    include: Include = None,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    capabilities: Capabilities = None,
    lease: Annotated[
        str | None,
        typer.Option("--lease", metavar="DURATION", help="Lost after so long a silence."),
    ] = None,
    drain: Drain = None,
    name: Name = None,
    burst: Annotated[bool, typer.Option("--burst", help="Leave when nothing is ready.")] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Start anew when code changes.")] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            metavar="N",
            help="Tell /metrics and /healthz of these processes here.",
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="ADDRESS", help="Where that port listens.")
    ] = "127.0.0.1",
    log_level: LogLevel = None,
) -> None:
    """Run tasks until stopped.

    SIGTERM or Ctrl-C: finish what runs (for `drain`, 30 s), then leave; a second one: leave now.
    With --json the log on standard error is one JSON object a line.
    """
    from holdfast.worker.options import WorkerOptions  # noqa: PLC0415
    from holdfast.worker.supervisor import become_supervisor  # noqa: PLC0415

    for option, text in (("lease", lease), ("drain", drain)):
        if text is not None:
            read_duration(option, text)
    become_supervisor(
        WorkerOptions(
            app=app,
            include=tuple(include or ()),
            queues=tuple(queues) if queues else None,
            concurrency=concurrency,
            processes=processes,
            capabilities=tuple(capabilities) if capabilities else None,
            lease=lease,
            drain=drain,
            worker_name=name,
            burst=burst,
            reload=reload,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            log_level=log_level,
            log_format="json" if session.as_json else None,
        )
    )
