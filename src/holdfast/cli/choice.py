"""Which tasks a command acts on: by id or how it begins, by filter, or all; never by accident."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Final

import typer

from holdfast.cli.command import Session, WrongUsage, confirm
from holdfast.cli.filters import is_empty
from holdfast.cli.screen import Answer
from holdfast.cli.words import duration, plural
from holdfast.core.ids import is_task_id, just_before
from holdfast.core.query import TaskFilter
from holdfast.core.task import State, TaskId
from holdfast.errors import InvalidOption, TaskNotFound

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="These, by id or how it begins.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")]
SHORTEST: Final = 8
"""Fewer characters of an id are a time of more than a minute, and no id."""
MOST_SHOWN: Final = 5
DONE: Final = {
    "cancel": "cancelled",
    "retry": "retried",
    "replay": "replayed",
    "discard": "discarded",
}
_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST},32}}").fullmatch


async def find_id(session: Session, text: str) -> TaskId:
    """The id, in any case; or the only one that begins so."""
    wanted = text.strip().lower()
    if is_task_id(wanted):
        return TaskId(wanted)
    digits = wanted.replace("-", "")
    if not _BEGINNING(digits):
        raise InvalidOption(
            "id",
            f"{text!r} is no task id. Expected 36 characters such as "
            f"0197f3c2-8a51-7cc0-9d4e-1b2c3d4e5f60, or its first {SHORTEST} and more; "
            "`holdfast task list` shows them.",
        )
    found = await _beginning_with(session, digits)
    if not found:
        raise TaskNotFound(text)
    if len(found) > 1:
        more = " …" if len(found) > MOST_SHOWN else ""
        raise WrongUsage(
            "ambiguous_id",
            f"several tasks begin with {text!r}; give more of the id:\n  "
            + "\n  ".join(found[:MOST_SHOWN])
            + more,
        )
    return found[0]


async def _beginning_with(session: Session, digits: str) -> list[TaskId]:
    """Ids are in order: those that begin so are the first after the last that could not."""
    page = await session.client.list(
        limit=MOST_SHOWN + 1, after=f"oldest-{just_before(digits)}", oldest_first=True
    )
    return [task.id for task in page.tasks if task.id.replace("-", "").startswith(digits)]


async def choose(
    session: Session,
    where: TaskFilter,
    task_ids: Sequence[str] | None,
    *,
    everything: bool = False,
    states: frozenset[State] | None = None,
    noun: str = "task",
) -> TaskFilter:
    """Exactly one way of choosing: ids, a filter, or --all where a command has it. Where the filter
    names no state, `states` hold.
    """
    if task_ids and (everything or not is_empty(where)):
        raise WrongUsage("usage", "give either ids, or a filter, not both.")
    if not task_ids and not everything and is_empty(where):
        rest = ", or --all" if noun != "task" else ""
        raise WrongUsage("usage", f"which {noun}s? Give ids, a filter such as --name{rest}.")
    if task_ids:
        return replace(where, ids=tuple([await find_id(session, text) for text in task_ids]))
    return where if where.states is not None else replace(where, states=states)


async def act(
    session: Session,
    do: Callable[..., Awaitable[int]],
    *,
    action: str,
    question: str,
    dry_run: bool,
    yes: bool,
    noun: str = "task",
    pace: float | None = None,
) -> Answer:
    """Count first (`do` takes `dry_run`), ask, then act. `question` has a place for how many they
    are, and for how long that takes at this `pace`.
    """
    tasks = await do(dry_run=True)
    if dry_run or not tasks:
        text = f"{plural(tasks, noun)} would be {DONE[action]}." if tasks else f"No {noun} matches."
    else:
        spread = f", spread over {duration(tasks / pace)}" if pace else ""
        confirm(session, question.format(plural(tasks, noun) + spread), yes=yes)
        tasks = await do()
        text = f"{DONE[action].capitalize()} {plural(tasks, 'task')}{spread}."
    data = {"action": action, "dry_run": dry_run, "tasks": tasks}
    return Answer(data, lambda screen: screen.line(text))
