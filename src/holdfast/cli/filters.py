"""Options that choose tasks, the same for every command that takes them.

A command declares one parameter `where: Where`, or `DeadWhere`, where the state is given.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from holdfast.cli.command import OptionGroup, text_option
from holdfast.core.duration import parse_duration
from holdfast.core.query import TaskFilter
from holdfast.errors import InvalidOption

PANEL = "Which tasks"


_word = functools.partial(text_option, panel=PANEL)
_STATE = {"state": _word("--state", "-s", says="In this state; repeat for several.", many=True)}
_OPTIONS = {
    "name": _word("--name", "-n", says="With this whole task name (module.function)."),
    "queue": _word("--queue", "-q", says="Of this queue."),
    "tag": _word("--tag", "-t", says="With this tag."),
    "schedule": _word("--schedule", says="Runs of this schedule.", metavar="NAME"),
    "priority": _word(
        "--priority", says="Of this priority.", metavar="critical|high|normal|low|0-9"
    ),
    "owner": _word("--owner", says="Of this owner."),
    "lock": _word("--lock", says="With this lock key."),
    "unique_key": _word("--unique-key", says="With this unique key."),
    "idempotency_key": _word("--idempotency-key", says="With this idempotency key."),
    "error_type": _word("--error", says="Whose error is of this type.", metavar="TYPE"),
    "created_before": _word("--older", says="Submitted longer ago than this.", metavar="TIME"),
    "created_after": _word("--newer", says="Submitted less long ago than this.", metavar="TIME"),
    "finished_before": _word("--ended-before", says="Ended longer ago than this.", metavar="TIME"),
    "finished_after": _word("--ended-after", says="Ended less long ago than this.", metavar="TIME"),
}
_TIMES = {
    "created_before": "older",
    "created_after": "newer",
    "finished_before": "ended_before",
    "finished_after": "ended_after",
}


def _read(words: dict[str, Any]) -> TaskFilter:
    from holdfast.filters import where  # noqa: PLC0415

    return where(**words | {word: _since(_TIMES[word], words[word]) for word in _TIMES})


Where = Annotated[TaskFilter, OptionGroup(_STATE | _OPTIONS, _read)]
DeadWhere = Annotated[TaskFilter, OptionGroup(_OPTIONS, _read)]


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
