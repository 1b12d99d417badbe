"""Options that choose tasks, the same for every command that takes them.

A command declares one parameter `where: Where` (or `DeadWhere`, where the state is given), and
`command` puts these options in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from holdfast.core.duration import parse_duration
from holdfast.core.query import TaskFilter
from holdfast.errors import InvalidOption

Where = Annotated[TaskFilter, "by any of the options"]
DeadWhere = Annotated[TaskFilter, "by any of the options but the state"]
PANEL = "Which tasks"


def _option(*names: str, says: str, metavar: str = "TEXT") -> Any:
    return typer.Option(*names, help=says, metavar=metavar, rich_help_panel=PANEL)


_OPTIONS: Mapping[str, Any] = {
    "state": Annotated[
        list[str] | None, _option("--state", "-s", says="In this state; repeat for several.")
    ],
    "name": Annotated[
        str | None, _option("--name", "-n", says="With this whole task name (module.function).")
    ],
    "queue": Annotated[str | None, _option("--queue", "-q", says="Of this queue.")],
    "tag": Annotated[str | None, _option("--tag", "-t", says="With this tag.")],
    "priority": Annotated[
        str | None,
        _option("--priority", says="Of this priority.", metavar="critical|high|normal|low|0-9"),
    ],
    "owner": Annotated[str | None, _option("--owner", says="Of this owner.")],
    "lock": Annotated[str | None, _option("--lock", says="With this lock key.")],
    "unique_key": Annotated[str | None, _option("--unique-key", says="With this unique key.")],
    "idempotency_key": Annotated[
        str | None, _option("--idempotency-key", says="With this idempotency key.")
    ],
    "error": Annotated[
        str | None, _option("--error", says="Whose error is of this type.", metavar="TYPE")
    ],
    "older": Annotated[
        str | None,
        _option("--older", says="Submitted longer ago than this.", metavar="TIME"),
    ],
    "newer": Annotated[
        str | None,
        _option("--newer", says="Submitted less long ago than this.", metavar="TIME"),
    ],
    "ended_before": Annotated[
        str | None, _option("--ended-before", says="Ended longer ago than this.", metavar="TIME")
    ],
    "ended_after": Annotated[
        str | None,
        _option("--ended-after", says="Ended less long ago than this.", metavar="TIME"),
    ],
}


def parameters(*, states: bool) -> list[inspect.Parameter]:
    """The options as parameters; without `--state` where a command means one state anyway."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
        if states or name != "state"
    ]


def collect(given: dict[str, Any]) -> TaskFilter:
    """Take the filter options out of `given` and read them."""
    from holdfast.filters import where  # noqa: PLC0415

    words = {name: given.pop(name, None) for name in _OPTIONS}
    return where(
        state=words["state"],
        name=words["name"],
        queue=words["queue"],
        tag=words["tag"],
        priority=words["priority"],
        owner=words["owner"],
        lock=words["lock"],
        unique_key=words["unique_key"],
        idempotency_key=words["idempotency_key"],
        error_type=words["error"],
        created_before=_since("older", words["older"]),
        created_after=_since("newer", words["newer"]),
        finished_before=_since("ended_before", words["ended_before"]),
        finished_after=_since("ended_after", words["ended_after"]),
    )


def read_duration(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidOption(option, str(error)) from None


def read_pace(text: str) -> float:
    """Tasks per second, written `10/s`, `600/m`, `100/h` or just `10`."""
    number, _, unit = text.partition("/")
    per = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}.get(unit.strip())
    try:
        pace = float(number) / per if per else 0.0
    except ValueError:
        pace = 0.0
    if not 0 < pace < float("inf"):
        raise InvalidOption("pace", f"expected a rate such as 10/s, 600/m or 100/h, got {text!r}")
    return pace


def is_empty(where: TaskFilter) -> bool:
    """Whether it would match everything."""
    return where == TaskFilter()


def about_name(where: TaskFilter) -> str:
    """What to say where nothing has the name that was asked for: a store knows whole names only."""
    if where.name is None or "." in where.name:
        return ""
    return f" {where.name!r} has no module in it: names are whole here, such as shop.{where.name}."


def _since(option: str, text: str | None) -> datetime | None:
    """An instant: so long ago, or as it stands in `--json`."""
    if text is None:
        return None
    if text[4:5] == "-":
        from holdfast.definitions.instants import read_instant  # noqa: PLC0415

        return read_instant(option, text)
    return datetime.now(UTC) - timedelta(seconds=read_duration(option, text))
