"""`holdfast submit`: one task from the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.command import OptionGroup, Session, WrongUsage, text_option, with_app
from holdfast.cli.filters import read_duration
from holdfast.cli.screen import Answer, Screen
from holdfast.core.task import Added, Json, State, SubmitOutcome, Task
from holdfast.errors import TaskUnsuccessful
from holdfast.settings import Settings
from holdfast.views import TaskView, place_of, submitted

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.client import Client

AppSpec = Annotated[str, typer.Argument(metavar="APP", help="The app: module:app or file.py:app.")]


def _modules(given: list[str] | None) -> list[str]:
    return list(Settings().override(include=",".join(given or ())).include)


Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        "-I",
        metavar="MODULE",
        help="Import its tasks too; repeat for several.",
        callback=_modules,
    ),
]


_option = partial(text_option, panel="This task")


def _read_options(given: dict[str, Any]) -> dict[str, Any]:
    from holdfast.definitions.readers import read_retries  # noqa: PLC0415

    limit = given["max_retries"]
    return given | {"max_retries": None if limit is None else read_retries("max_retries", limit)}


TaskOptions = Annotated[
    dict[str, Any],
    OptionGroup(
        {
            "queue": _option("--queue", "-q", says="Into this queue."),
            "priority": _option(
                "--priority", "-p", says="How urgent.", metavar="critical|high|normal|low|0-9"
            ),
            "delay": _option(
                "--delay", says="Start no sooner than this from now.", metavar="DURATION"
            ),
            "run_at": _option("--run-at", says="Start no sooner than this.", metavar="TIME"),
            "expires": _option(
                "--expires", says="Cancel if not started by then.", metavar="DURATION"
            ),
            "unique_key": _option(
                "--unique-key", says="At most one unfinished task with this key."
            ),
            "idempotency_key": _option(
                "--idempotency-key", says="The same key is the same task, for a day."
            ),
            "tags": _option("--tag", "-t", says="Tag it; repeat for several.", many=True),
            "owner": _option("--owner", says="Whose it is."),
            "callback": _option("--callback", says="Told when it has ended.", metavar="URL"),
            "traceparent": _option("--traceparent", says="The trace it belongs to.", metavar="W3C"),
            "max_retries": _option(
                "--max-retries", says="Attempts after the first.", metavar="N|unlimited"
            ),
            "timeout": _option("--timeout", says="Limit on one attempt.", metavar="DURATION|none"),
            "retry": _option(
                "--retry", says="How long to wait before a retry.", metavar="'exponential(5s, 2)'"
            ),
            "wait": _option(
                "--wait", says="Wait this long for the result, and show it.", metavar="DURATION"
            ),
        },
        _read_options,
    ),
]


@with_app
def submit(
    _session: Session,
    app: AppSpec,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The task's name.")],
    options: TaskOptions,
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[JSON]", help="Its arguments by name, as a JSON object; - reads stdin."
        ),
    ] = "{}",
    include: Include = None,
) -> Answer:
    """Submit one task.

    When this returns, the task is on disk. Prints its id, or with --wait its result.
    """
    payload, wait = read_arguments(arguments), options.pop("wait")
    patience = None if wait is None else read_duration("wait", wait)
    return asyncio.run(_submit(load(app, include), name, payload, options, patience))


async def _submit(
    app: Holdfast,
    name: str,
    payload: Json,
    options: dict[str, Any],
    patience: float | None,
) -> Answer:
    async with app:
        handle = await app.submit_by_name_async(app.registry.full_name(name), payload, **options)
        if patience is None:
            outcome = handle.outcome or SubmitOutcome.CREATED
            return await _acknowledged(await app.verbs(), await handle.task_async(), outcome)
        with suppress(TaskUnsuccessful):
            await handle.result_async(patience)
        task = await handle.task_async()
        view = await TaskView.of(await app.verbs(), with_traceback=True)
        return _ended(task, view.task(task))


def load(spec: str, include: Sequence[str] | None) -> Holdfast:
    """The app that the command line names, and its tasks."""
    from holdfast.app import Holdfast  # noqa: PLC0415
    from holdfast.worker.discovery import load_app_with_tasks  # noqa: PLC0415

    app = load_app_with_tasks(spec, include)
    assert isinstance(app, Holdfast)
    return app


async def _acknowledged(client: Client, task: Task, outcome: SubmitOutcome) -> Answer:
    added = Added(task.id, outcome, task.state)
    created = added.created
    place = await place_of(client, task) if created else None
    data = submitted(added, place, task.trace)
    there = f"{task.id} was there already ({outcome.value.replace('_', ' ')}); it is {task.state}."
    return Answer(data, lambda screen: screen.line(task.id if created else there))


def _ended(task: Task, data: Json) -> Answer:
    def human(screen: Screen) -> None:
        if task.error is not None:
            screen.line(f"{task.id} is {task.state}: {task.error.type}: {task.error.message}")
        elif task.state is not State.COMPLETED:
            screen.line(f"{task.id} is {task.state}.")
        else:
            screen.line(json.dumps(task.value, ensure_ascii=False))

    return Answer(data, human, ok=task.state is State.COMPLETED)


def read_arguments(text: str) -> dict[str, Json]:
    """The arguments as given, or a sentence that says where the JSON goes wrong."""
    value = read_json(text, "the arguments are")
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", type(None): "null"}.get(type(value), "a number")
        raise WrongUsage(
            "invalid_json",
            f"the arguments must be a JSON object by parameter name, got {kind}. "
            """For example: '{"to": "ann"}'""",
        )
    return value


def read_json(text: str, what: str) -> Json:
    """JSON from the command line, or from stdin (`-`)."""
    text = sys.stdin.read() if text == "-" else text
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise WrongUsage("invalid_json", _place(text, error, what)) from None
    return value


def _place(text: str, error: json.JSONDecodeError, what: str) -> str:
    """Show the line with the mistake and a mark under it."""
    line = text.splitlines()[error.lineno - 1] if text.splitlines() else ""
    start = max(0, error.colno - 40)
    shown = line[start : error.colno + 20]
    return (
        f"{what} no JSON: {error.msg} (line {error.lineno}, column {error.colno}).\n"
        f"  {shown}\n  {' ' * (error.colno - 1 - start)}^"
    )
