"""`holdfast submit`: one task from the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.command import Session, WrongUsage, with_app
from holdfast.cli.filters import read_duration
from holdfast.cli.screen import Answer, Screen
from holdfast.core.task import Added, Json, State, SubmitOutcome, Task
from holdfast.errors import TaskUnsuccessful
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.client import Client
    from holdfast.definitions.options import SubmitKeywords

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


def _option(*names: str, says: str, metavar: str = "TEXT") -> Any:
    return typer.Option(*names, help=says, metavar=metavar, rich_help_panel="This task")


@with_app
def submit(
    _session: Session,
    app: AppSpec,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The task's name.")],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[JSON]", help="Its arguments by name, as a JSON object; - reads stdin."
        ),
    ] = "{}",
    include: Include = None,
    queue: Annotated[str | None, _option("--queue", "-q", says="Into this queue.")] = None,
    priority: Annotated[
        str | None,
        _option("--priority", "-p", says="How urgent.", metavar="critical|high|normal|low|0-9"),
    ] = None,
    delay: Annotated[
        str | None,
        _option("--delay", says="Start no sooner than this from now.", metavar="DURATION"),
    ] = None,
    run_at: Annotated[
        str | None, _option("--run-at", says="Start no sooner than this.", metavar="TIME")
    ] = None,
    expires: Annotated[
        str | None, _option("--expires", says="Cancel if not started by then.", metavar="DURATION")
    ] = None,
    unique_key: Annotated[
        str | None, _option("--unique-key", says="At most one unfinished task with this key.")
    ] = None,
    idempotency_key: Annotated[
        str | None, _option("--idempotency-key", says="The same key is the same task, for a day.")
    ] = None,
    tags: Annotated[
        list[str] | None, _option("--tag", "-t", says="Tag it; repeat for several.")
    ] = None,
    owner: Annotated[str | None, _option("--owner", says="Whose it is.")] = None,
    callback: Annotated[
        str | None, _option("--callback", says="Told when it has ended.", metavar="URL")
    ] = None,
    traceparent: Annotated[
        str | None, _option("--traceparent", says="The trace it belongs to.", metavar="W3C")
    ] = None,
    max_retries: Annotated[
        str | None,
        _option("--max-retries", says="Attempts after the first.", metavar="N|unlimited"),
    ] = None,
    timeout: Annotated[
        str | None, _option("--timeout", says="Limit on one attempt.", metavar="DURATION|none")
    ] = None,
    retry: Annotated[
        str | None,
        _option("--retry", says="How long to wait before a retry.", metavar="'exponential(5s, 2)'"),
    ] = None,
    wait: Annotated[
        str | None,
        _option("--wait", says="Wait this long for the result, and show it.", metavar="DURATION"),
    ] = None,
) -> Answer:
    """Submit one task.

    When this returns, the task is on disk. Prints its id, or with --wait its result.
    """
    from holdfast.definitions.readers import read_retries  # noqa: PLC0415

    payload = read_arguments(arguments)
    patience = None if wait is None else read_duration("wait", wait)
    options: SubmitKeywords = {
        "queue": queue,
        "priority": priority,
        "delay": delay,
        "run_at": run_at,
        "expires": expires,
        "unique_key": unique_key,
        "idempotency_key": idempotency_key,
        "tags": tags,
        "owner": owner,
        "callback": callback,
        "traceparent": traceparent,
        "max_retries": None if max_retries is None else read_retries("max_retries", max_retries),
        "timeout": timeout,
        "retry": retry,
    }
    return asyncio.run(_submit(load(app, include), name, payload, options, patience))


async def _submit(
    app: Holdfast,
    name: str,
    payload: Json,
    options: SubmitKeywords,
    patience: float | None,
) -> Answer:
    from holdfast.views import TaskView  # noqa: PLC0415

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
    from holdfast.views import place_of, submitted  # noqa: PLC0415

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
    text = sys.stdin.read() if text == "-" else text
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise WrongUsage("invalid_json", _place(text, error)) from None
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", type(None): "null"}.get(type(value), "a number")
        raise WrongUsage(
            "invalid_json",
            f"the arguments must be a JSON object by parameter name, got {kind}. "
            """For example: '{"to": "ann"}'""",
        )
    return value


def _place(text: str, error: json.JSONDecodeError) -> str:
    """Show the line with the mistake and a mark under it."""
    line = text.splitlines()[error.lineno - 1] if text.splitlines() else ""
    start = max(0, error.colno - 40)
    shown = line[start : error.colno + 20]
    return (
        f"the arguments are no JSON: {error.msg} (line {error.lineno}, column {error.colno}).\n"
        f"  {shown}\n  {' ' * (error.colno - 1 - start)}^"
    )
