"""`holdfast dead …`: the tasks that used up their retries, kept until somebody decides."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from holdfast.cli.choice import DryRun, Ids, act, choose
from holdfast.cli.command import Session, Yes, with_client
from holdfast.cli.filters import DeadWhere, about_name, read_pace
from holdfast.cli.screen import Answer
from holdfast.cli.tasks import After, ByEnd, Limit, page_answer
from holdfast.core.query import TaskFilter
from holdfast.core.task import State

app = typer.Typer(help="Look at dead letters, replay or discard them.", no_args_is_help=True)

DEAD = frozenset({State.DEAD_LETTER})
NOUN = "dead letter"

All = Annotated[bool, typer.Option("--all", help="All dead letters.")]
Pace = Annotated[
    str | None,
    typer.Option("--pace", metavar="RATE", help="Let so many start: 10/s, 600/m, 100/h."),
]


@app.command("list")
@with_client
async def list_dead(
    session: Session,
    where: DeadWhere,
    limit: Limit = 25,
    after: After = None,
    by_end: ByEnd = False,
) -> Answer:
    """List dead letters, newest first, or by the time of their death."""
    dead = replace(where, states=DEAD)
    page = await session.client.list(dead, limit=limit, after=after, by_end=by_end)
    return await page_answer(session, page, nothing="No dead letters." + about_name(where))


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
    chosen = await _chosen(session, where, task_ids, everything=everything)
    rate = None if pace is None else read_pace(pace)
    return await act(
        session,
        partial(session.client.replay, chosen, pace=rate),
        action="replay",
        question="Replay {}?",
        dry_run=dry_run,
        yes=yes,
        noun=NOUN,
        pace=rate,
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
    chosen = await _chosen(session, where, task_ids, everything=everything)
    return await act(
        session,
        partial(session.client.discard, chosen),
        action="discard",
        question="Forget {} for good?",
        dry_run=dry_run,
        yes=yes,
        noun=NOUN,
    )


async def _chosen(
    session: Session, where: TaskFilter, task_ids: list[str] | None, *, everything: bool
) -> TaskFilter:
    chosen = await choose(session, where, task_ids, everything=everything, noun=NOUN)
    return replace(chosen, states=DEAD)
