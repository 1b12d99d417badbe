"""The entry point: puts the commands together, and turns expected errors into one sentence.

Importing this stays cheap: commands import what they need when they run, because `holdfast worker`
must be up quickly and leave little behind.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from holdfast.cli import (
    ask,
    bench,
    dead,
    doctor,
    emit,
    executions,
    limits,
    overview,
    queues,
    schedules,
    submit,
    tasks,
    tokens,
    top,
    worker,
)
from holdfast.cli import server as serving
from holdfast.cli import up as everything
from holdfast.cli.command import AsJson, CommandFailed
from holdfast.cli.demo import command as demo
from holdfast.cli.screen import Answer, print_error, show
from holdfast.errors import ConfigError, HoldfastError, InvalidOption

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""Typer shows only this child of it; its parent is any wrong usage of the command line."""

EXAMPLES = """\
[bold]Examples[/bold]
  holdfast demo                                      see it survive a kill -9
  holdfast up shop:app                               server, workers and all
  holdfast worker shop:app -q mail -c 16             run tasks
  holdfast submit shop:app mail '{"to": "ann"}'      submit one
  holdfast task list --state retrying                look around
  holdfast task why 0197f3c2-8a51-7cc0-…             why is it not running?
  holdfast ask "every weekday at 9 sum up my inbox"  plain words make a task
  holdfast schedule preview "0 9 * * 1-5" --tz Asia/Tokyo  when would it run?
  holdfast dead replay --name shop.mail --pace 10/s  try again, gently

Exit codes: 0 done, 1 what was asked for failed, 2 wrong usage or settings.
The store: --url, or HOLDFAST_URL, or `url` in \\[tool.holdfast] of pyproject.toml.
"""

app = typer.Typer(
    name="holdfast",
    help="A task queue that holds on to every task, and is fast.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for panel, commands in {
    "Run tasks": (
        ("up", everything.up),
        ("worker", worker.worker),
        ("server", serving.server),
        ("submit", submit.submit),
        ("emit", emit.emit),
        ("ask", ask.ask),
        ("demo", demo.demo),
    ),
    "Look and act": (
        ("workers", overview.workers),
        ("drain", overview.drain),
        ("stats", overview.stats),
        ("top", top.top),
        ("executions", executions.executions),
        ("usage", executions.usage),
    ),
    "Keep it well": (
        ("migrate", doctor.migrate),
        ("doctor", doctor.doctor),
        ("bench", bench.bench),
    ),
}.items():
    for name, command in commands:
        app.command(name, rich_help_panel=panel)(command)
app.add_typer(tasks.app, name="task", rich_help_panel="Look and act")
app.add_typer(dead.app, name="dead", rich_help_panel="Look and act")
app.add_typer(queues.app, name="queue", rich_help_panel="Look and act")
app.add_typer(limits.app, name="limit", rich_help_panel="Look and act")
app.add_typer(schedules.app, name="schedule", rich_help_panel="Look and act")
app.add_typer(executions.app, name="budget", rich_help_panel="Look and act")
app.add_typer(tokens.app, name="token", rich_help_panel="Keep it well")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(_version())
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option("--version", "-V", is_eager=True, callback=_show_version, help="Print it."),
]


@app.callback()
def holdfast(version: _Version = False) -> None: ...


@app.command(rich_help_panel="Keep it well")
def version(as_json: AsJson = False) -> None:
    """Print the version."""
    number = _version()
    show(Answer({"version": number}, lambda screen: screen.line(number)), as_json=as_json)


def _version() -> str:
    from importlib.metadata import version as of  # noqa: PLC0415

    return of("holdfast")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    try:
        code = app(args=arguments, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Somebody read enough (`| head`); Python must not complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (typer.Abort, KeyboardInterrupt):
        print_error("aborted", "stopped; nothing more was done.", as_json=as_json)
        return 130
    except (HoldfastError, CommandFailed, UsageError) as error:
        return _report(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _report(error: Any, *, as_json: bool) -> int:
    if isinstance(error, CommandFailed):
        print_error(error.code, str(error), as_json=as_json)
        return error.exit_code
    if isinstance(error, HoldfastError):
        problems = [{"place": p, "problem": t} for p, t in getattr(error, "problems", ())]
        details = {"problems": problems} if problems else None
        print_error(_code(error), str(error), as_json=as_json, details=details)
        return 2 if isinstance(error, (ConfigError, InvalidOption)) else 1
    message = error.format_message()
    if not message:  # `holdfast task` alone: Typer has shown the help already
        return 2
    if not as_json and error.ctx is not None:
        message += f"\nSee `{error.ctx.command_path} --help`."
    print_error("usage", message, as_json=as_json)
    return 2


def _code(error: HoldfastError) -> str:
    """The class name as a stable code: `TaskNotFound` is `task_not_found`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()


def run() -> NoReturn:
    """What the installed script `holdfast` calls."""
    sys.exit(main())


if __name__ == "__main__":
    run()
