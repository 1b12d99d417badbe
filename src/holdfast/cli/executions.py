"""`holdfast executions`, `holdfast usage`, `holdfast budget …`: runs, what they use and may use."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import words
from holdfast.cli.command import CommandFailed, Session, WrongUsage, with_client
from holdfast.cli.screen import Answer, Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.core.budget_state import BudgetState, PeriodState, UsageReport
    from holdfast.core.execution import Execution

app = typer.Typer(help="Bound what owners and schedules may use.", no_args_is_help=True)

Owner = Annotated[str | None, typer.Option("--owner", help="Of this owner.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="At most so many.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="owner:NAME or schedule:NAME.")]
LimitText = Annotated[
    list[str] | None,
    typer.Option(metavar="WHAT=N", help="runs=20, units=…, tokens=… or cost=…; may be repeated."),
]
WHOLE = ("runs", "tokens")


class EndWord(StrEnum):
    """How an execution ended, or that it has not."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"


class RowWord(StrEnum):
    """What the rows of a usage are."""

    DAY = "day"
    SCHEDULE = "schedule"


@with_client
async def executions(
    session: Session,
    execution: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One of them, with all that is known.")
    ] = None,
    owner: Owner = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Of this schedule.")] = None,
    status: Annotated[EndWord | None, typer.Option("--status", help="Ended like this.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Go on after an earlier page.")
    ] = None,
    limit: Limit = 20,
) -> Answer:
    """List what schedules have run, newest first, or show one run."""
    from holdfast.core.execution_answers import EXECUTION  # noqa: PLC0415 - only where needed

    if execution is not None:
        one = await session.client.executions.get(execution)
        return Answer(EXECUTION.write(one, whole=True), lambda screen: _show_one(screen, one))
    page = await session.client.executions.list(
        owner=owner,
        schedule=schedule,
        status=None if status is None else status.value,
        after=after,
        limit=limit,
    )

    def show(screen: Screen) -> None:
        _show_many(screen, page.executions)
        if page.next is not None:
            screen.line(f"More: --after {page.next}")

    told = [EXECUTION.write(each) for each in page.executions]
    return Answer({"executions": told, "next": page.next}, show)


@with_client
async def usage(
    session: Session,
    owner: Owner = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="The first day; else of this month.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="The last day; else today.")
    ] = None,
    by: Annotated[RowWord | None, typer.Option("--by", help="A row for each.")] = None,
) -> Answer:
    """Show what runs have used: how many, units, tokens and money."""
    from holdfast.core.execution_answers import USAGE  # noqa: PLC0415 - only where needed

    report = await session.client.usage(
        owner=owner,
        first=_day("--from", first),
        last=_day("--to", last),
        by=None if by is None else ("day" if by is RowWord.DAY else "schedule"),
    )
    return Answer(USAGE.write(report), lambda screen: _show_usage(screen, report, by))


@app.command("list")
@with_client
async def list_budgets(session: Session, owner: Owner = None, limit: Limit = 100) -> Answer:
    """List budgets, and what has been used of them."""
    from holdfast.core.execution_answers import BUDGET  # noqa: PLC0415 - only where needed

    page = await session.client.budgets.list(owner=owner, limit=limit)
    told = [BUDGET.write(each) for each in page.budgets]
    return Answer(
        {"budgets": told, "next": page.next}, lambda screen: _show_budgets(screen, page.budgets)
    )


@app.command("show")
@with_client
async def show_budget(session: Session, key: Key) -> Answer:
    """Show one."""
    found = await session.client.budgets.get(key)
    if found is None:
        raise CommandFailed("budget_not_found", f"there is no budget {key!r}")
    return _told(found)


@app.command("set")
@with_client
async def set_budget(
    session: Session,
    key: Key,
    day: LimitText = None,
    month: LimitText = None,
    zone: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="Where its days begin; else UTC.")
    ] = None,
) -> Answer:
    """Set what an owner or a schedule may use in a day and in a month.

    A run that would exceed it is skipped, and its schedule is paused until the period is over.
    What is not given stays as it is.
    """
    made = await session.client.budgets.set(
        key,
        day=_limits("--day", day),  # type: ignore[arg-type] # read and checked there
        month=_limits("--month", month),  # type: ignore[arg-type] # the same
        zone=zone,
    )
    return _told(made)


@app.command("delete")
@with_client
async def delete_budget(session: Session, key: Key) -> Answer:
    """Forget one, and what was used of it."""
    if not await session.client.budgets.delete(key):
        raise CommandFailed("budget_not_found", f"there is no budget {key!r}")
    return Answer(
        {"key": key, "deleted": True}, lambda screen: screen.line(f"{key} has no budget any more.")
    )


def _told(budget: BudgetState) -> Answer:
    from holdfast.core.execution_answers import BUDGET  # noqa: PLC0415 - only where needed

    return Answer(BUDGET.write(budget), lambda screen: _show_budgets(screen, [budget]))


def _limits(option: str, given: Sequence[str] | None) -> dict[str, float] | None:
    if given is None:
        return None
    limits: dict[str, float] = {}
    for each in given:
        name, _, text = each.partition("=")
        try:
            limits[name] = int(text) if name in WHOLE else float(text)
        except ValueError:
            raise WrongUsage("usage", f"{option}: expected WHAT=N, got {each!r}") from None
    return limits


def _day(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise WrongUsage("usage", f"{option}: expected a day (2026-03-02), got {text!r}") from None


def _show_many(screen: Screen, many: Sequence[Execution]) -> None:
    if not many:
        screen.line("No schedule has run anything that is kept.")
        return
    columns = ("id", "schedule", "owner", "scheduled for", "status", "units", "tokens", "cost")
    rows = [
        (
            one.id,
            one.schedule,
            one.owner or "-",
            words.instant(one.scheduled_for),
            one.status.value,
            f"{one.usage.units:g}",
            one.usage.tokens,
            f"{one.usage.cost:g}",
        )
        for one in many
    ]
    screen.table(columns, rows, spare=("owner", "units", "tokens"))


def _show_one(screen: Screen, one: Execution) -> None:
    expected = "" if one.estimated_units is None else f" (expected {one.estimated_units:g})"
    used = one.usage
    screen.fields(
        [
            ("id", one.id),
            ("schedule", one.schedule),
            ("title", one.title),
            ("purpose", one.purpose),
            ("owner", one.owner),
            ("status", one.status.value),
            ("scheduled for", words.instant(one.scheduled_for)),
            ("steps", "; ".join(one.steps) or None),
            ("units", f"{used.units:g}{expected}"),
            ("tokens", f"{used.tokens_in:,} in, {used.tokens_out:,} out"),
            ("cost", f"{used.cost:g}"),
            ("error", None if one.error is None else one.error.message),
            *((f"by {each.channel}", each.status.value) for each in one.deliveries),
        ]
    )
    if one.content is not None:
        screen.line()
        screen.line(str(one.content))


def _show_usage(screen: Screen, report: UsageReport, by: RowWord | None) -> None:
    whose = "everybody" if report.owner is None else report.owner
    screen.line(f"Used by {whose} from {report.first} to {report.last} ({report.zone}):")
    columns = (by.value if by else "", "runs", "units", "tokens in", "tokens out", "cost")
    rows = [(each.key, each.totals) for each in report.rows] + [("in all", report.totals)]
    screen.table(
        columns,
        [
            (key, one.runs, f"{one.units:g}", one.tokens_in, one.tokens_out, f"{one.cost:g}")
            for key, one in rows
        ],
    )


def _show_budgets(screen: Screen, budgets: Sequence[BudgetState]) -> None:
    if not budgets:
        screen.line("There is no budget. Set one: holdfast budget set owner:NAME --day runs=20")
        return
    columns = ("key", "period", "runs", "units", "tokens", "cost", "ends")
    rows = [
        (each.key, period.name, *_used(period), words.instant(period.ends_at))
        for each in budgets
        for period in (each.day, each.month)
    ]
    screen.table(columns, rows)


def _used(period: PeriodState) -> list[str]:
    """`2+1/20` is used, reserved and the limit."""
    shown = []
    for name in ("runs", "units", "tokens", "cost"):
        used, held = getattr(period.used, name), getattr(period.reserved, name)
        limit = getattr(period, name)
        both = f"{used:g}+{held:g}" if held else f"{used:g}"
        shown.append(both if limit is None else f"{both}/{limit:g}")
    return shown
