"""`holdfast dead …`: the tasks that used up their retries, kept until somebody decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from holdfast.cli import shapes
from holdfast.cli.command import Session, WrongUsage, Yes, confirm, with_client
from holdfast.cli.filters import DeadWhere, is_empty, read_ids, read_pace
from holdfast.cli.screen import Answer, Screen
from holdfast.cli.tasks import After, Limit
from holdfast.cli.words import duration, plural
from holdfast.core.query import TaskFilter
from holdfast.core.task import State

app = typer.Typer(help="Look at dead letters, replay or discard them.", no_args_is_help=True)

DEAD = frozenset({State.DEAD_LETTER})

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID...]", help="These, by id.")]
All = Annotated[bool, typer.Option("--all", help="All dead letters.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")]
Pace = Annotated[
    str | None,
    typer.Option("--pace", metavar="RATE", help="Let so many start: 10/s, 600/m, 100/h."),
]


@app.command("list")
@with_client
async def list_dead(
    session: Session, where: DeadWhere, limit: Limit = 25, after: After = None
) -> Answer:
    """List dead letters, newest first."""
    page = await session.client.list(replace(where, states=DEAD), limit=limit, after=after)

    def human(screen: Screen) -> None:
        from holdfast.cli.tables import show_page  # noqa: PLC0415

        show_page(screen, page, nothing="No dead letters.")

    return Answer(shapes.page_of(page), human)


@app.command("replay")
@with_client
async def replay(
    session: Session,
    where: DeadWhere,
    task_ids: Ids = None,
    everything: All = False,
    pace: Pace = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Answer:
    """Start dead letters again, by id or by filter, gently with --pace."""
    chosen = _chosen(where, task_ids, everything=everything)
    rate = None if pace is None else read_pace(pace)
    count = await session.client.count(chosen)
    if dry_run or not count:
        return _would("replayed", count)
    spread = f", spread over {duration(count / rate)}" if rate else ""
    confirm(session, f"Replay {plural(count, 'dead letter')}{spread}?", yes=yes)
    done = await session.client.replay(chosen, pace=rate)
    return Answer(
        {"replayed": done, "dry_run": False},
        lambda screen: screen.line(f"Replayed {plural(done, 'task')}{spread}."),
    )


@app.command("discard")
@with_client
async def discard(
    session: Session,
    where: DeadWhere,
    task_ids: Ids = None,
    everything: All = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Answer:
    """Forget dead letters for good, history and all."""
    chosen = _chosen(where, task_ids, everything=everything)
    count = await session.client.count(chosen)
    if dry_run or not count:
        return _would("discarded", count)
    confirm(session, f"Forget {plural(count, 'dead letter')} for good?", yes=yes)
    done = await session.client.discard(chosen)
    return Answer(
        {"discarded": done, "dry_run": False},
        lambda screen: screen.line(f"Discarded {plural(done, 'task')}."),
    )


def _would(verb: str, count: int) -> Answer:
    """The answer of a dry run, and of a filter that matches nothing."""
    text = (
        f"{plural(count, 'dead letter')} would be {verb}." if count else "No dead letter matches."
    )
    return Answer({verb: 0, "would_be": count, "dry_run": True}, lambda screen: screen.line(text))


def _chosen(where: TaskFilter, task_ids: list[str] | None, *, everything: bool) -> TaskFilter:
    """Exactly one way of choosing: ids, a filter, or --all; never everything by accident."""
    if task_ids and (everything or not is_empty(where)):
        raise WrongUsage("usage", "give either ids, or a filter, not both.")
    if not task_ids and not everything and is_empty(where):
        raise WrongUsage(
            "usage", "which dead letters? Give ids, a filter such as --name, or --all."
        )
    ids = read_ids(task_ids) if task_ids else None
    return replace(where, states=DEAD, ids=ids)
