"""`holdfast emit`: an event that tasks wait for."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.command import Session, with_client
from holdfast.cli.screen import Answer
from holdfast.cli.submit import read_json


@with_client
async def emit(
    session: Session,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Its name.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="Which one of that name.")],
    payload: Annotated[
        str,
        typer.Option("--payload", metavar="JSON", help="What the tasks are told; - reads stdin."),
    ] = "null",
) -> Answer:
    """Emit an event that tasks wait for.

    The first of an event and key counts. When this returns, it is on disk.
    """
    from holdfast.core.store_answers import EMITTED  # noqa: PLC0415 - only where it is needed

    said = await session.client.emit(event, key, read_json(payload, "the payload is"))
    many = f"{said.woken} task{'' if said.woken == 1 else 's'} waited for it"
    text = f"{event} {key} was emitted; {many}."
    if not said.first:
        text = f"{event} {key} was emitted before; the first one counts."
    return Answer(EMITTED.write(said), lambda screen: screen.line(text))
