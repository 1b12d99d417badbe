"""`holdfast limit …`: how many may run, who holds a limit and who waits for it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli import words
from holdfast.cli.command import CommandFailed, Session, with_client
from holdfast.cli.screen import Answer, Screen
from holdfast.core.limit_state import LimitChange, LimitDetails, LimitState
from holdfast.core.scope import in_words
from holdfast.core.store_answers import LIMIT_CHANGE
from holdfast.views import limit_details, limit_list

app = typer.Typer(
    help="Look at limits, rates, shares and breakers, and set them.", no_args_is_help=True
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As `limit list` shows it: 'limit:task:send[acme]'.")
]
Value = Annotated[
    str, typer.Argument(metavar="N", help="How many may pass; of a breaker: open or closed.")
]
After = Annotated[str, typer.Option("--after", metavar="NAME", help="Go on after this one.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=1000, metavar="N", help="How many.")]


@app.command("list")
@with_client
async def list_limits(session: Session, after: After = "", limit: Most = 100) -> Answer:
    """List those that somebody uses or has set."""
    page = await session.client.limits(after=after, limit=limit)

    def show(screen: Screen) -> None:
        if not page.limits:
            screen.line("No limit is in use, and none is set.")
            return
        columns = ("name", "capacity", "set", "held", "waiting", "state", "next at")
        screen.table(columns, [_row(each) for each in page.limits])
        if page.next is not None:
            screen.line(f"There are more: --after '{page.next}'")

    return Answer(limit_list(page), show)


@app.command("show")
@with_client
async def show_limit(session: Session, name: Name) -> Answer:
    """Show one, with the first who hold it and who wait for it."""
    found = await session.client.limit(name)
    if found is None:
        raise CommandFailed(
            "limit_not_found", f"nobody uses {name!r} now and nobody has set it. Nothing is kept."
        )
    return Answer(limit_details(found), lambda screen: _show(screen, found))


@app.command("set")
@with_client
async def set_limit(session: Session, name: Name, value: Value) -> Answer:
    """Set how many may pass, until `unset`: tasks that wait pass at once if there is room."""
    done = await session.client.set_limit(name, int(value) if value.isdecimal() else value)
    what = f"lets {done.capacity} pass" if done.state is None else f"is {done.state}"
    return _changed(done, f"{what} from now on" if done.changed else f"{what} already")


@app.command("unset")
@with_client
async def unset_limit(session: Session, name: Name) -> Answer:
    """Undo `set`: tasks say again how many may pass, and failures whether a breaker is open."""
    done = await session.client.unset_limit(name)
    return _changed(done, "is as tasks say again" if done.changed else "was not set")


def _changed(done: LimitChange, what: str) -> Answer:
    text = f"The {in_words(done.name)} {what}."
    if not done.known:
        text += " Nothing has this name yet: no task uses it now."
    return Answer(LIMIT_CHANGE.write(done), lambda screen: screen.line(text))


def _row(limit: LimitState) -> tuple[object, ...]:
    return (
        limit.name,
        "all" if limit.capacity is None else limit.capacity,
        "set" if limit.is_set else "-",
        limit.held,
        f"{limit.waiting} or more" if limit.waiting_is_capped else limit.waiting,
        limit.state or "-",
        words.instant(limit.next_at),
    )


def _show(screen: Screen, found: LimitDetails) -> None:
    limit = found.limit
    screen.fields(
        [
            ("name", limit.name),
            ("is the", in_words(limit.name)),
            ("state", limit.state),
            ("capacity", "all" if limit.capacity is None else limit.capacity),
            ("set", "by an operator" if limit.is_set and limit.state is None else None),
            ("held by", limit.held),
            ("the first", ", ".join(found.holders)),
            ("waiting", f"{limit.waiting} or more" if limit.waiting_is_capped else limit.waiting),
            ("the oldest", ", ".join(found.waiters)),
            ("next at", words.instant(limit.next_at) if limit.next_at else None),
        ]
    )
