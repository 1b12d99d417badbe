"""`holdfast ask`: plain words in, a task out."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from holdfast.cli.command import Session, with_app
from holdfast.cli.schedule_options import read_time
from holdfast.cli.screen import Answer, Screen
from holdfast.cli.submit import load

if TYPE_CHECKING:
    from holdfast.core.assistant_answers import AssistantAnswer

BUNDLED: Final = "holdfast.cli.bundled:app"
"""The app that answers where nobody brings one."""


@with_app
def ask(
    _session: Session,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help='"every weekday at 9 summarise my inbox"')
    ],
    tz: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="Your zone; this machine's unless given."),
    ] = None,
    app: Annotated[
        str,
        typer.Option(
            "--app", metavar="APP", envvar="HOLDFAST_APP", help="The app whose agent runs it."
        ),
    ] = BUNDLED,
    chat: Annotated[str, typer.Option("--chat", help="The conversation to go on with.")] = "cli",
    owner: Annotated[str | None, typer.Option("--owner", help="Whose it is.")] = None,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="As if it were this time.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show what would be done; then --yes.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Do what was shown before; the text does not matter."),
    ] = False,
) -> Answer:
    """Say in plain words what is to be done, and when; or what to change.

    Answers to questions go on with the request before: ask again with the same --chat.
    """
    loaded, zone = load(app, None), tz or _zone_of_this_machine()

    async def work() -> AssistantAnswer:
        async with loaded:
            return await loaded.assistant.ask_async(
                text,
                timezone=zone,
                chat_id=chat,
                owner=owner,
                now=read_time("--now", now, zone),
                confirm=True if yes else False if preview else None,
            )

    said = asyncio.run(work())
    return Answer(dict(said), lambda screen: _show(screen, said), ok=said["status"] != "refused")


def _show(screen: Screen, said: AssistantAnswer) -> None:
    screen.line(f"{said['status'].replace('_', ' ')}: {said['message']}")
    schedule = said["schedule"]
    rows = {
        "task": said["task_id"],
        "when": None if schedule is None else schedule["words"],
        "category": said["category"],
        "delivery": ", ".join(said["channels"]),
        "assumed": "; ".join(said["assumptions"]),
        "fields": ", ".join(said["fields"]),
    }
    for word, value in rows.items():
        if value:
            screen.line(f"  {word:<9} {value}")
    for number, run in enumerate(said["next_runs"]):
        screen.line(f"  {'next' if number == 0 else '':<9} {run}")


def _zone_of_this_machine() -> str:
    """The IANA name of the local zone, as far as the machine tells; else UTC."""
    if named := os.environ.get("TZ", "").lstrip(":"):
        return named
    try:
        parts = Path("/etc/localtime").resolve().parts
    except OSError:
        return "UTC"
    if "zoneinfo" not in parts:
        return "UTC"
    return "/".join(parts[parts.index("zoneinfo") + 1 :])
